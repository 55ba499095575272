// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/starburst_protocol.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {
namespace {

// GPUs on a node.
struct Held {
  std::size_t node = 0;
  std::int64_t gpus = 0;
};

struct Running {
  double end = 0;
  std::vector<Held> held;

  friend bool operator<(const Running& a, const Running& b) { return a.end > b.end; }  // the first end on top
};

class StarburstRun {
 public:
  StarburstRun(const std::vector<StarburstJob>& jobs, const StarburstPolicy& policy, const StarburstOptions& options)
      : jobs_(jobs),
        policy_(policy),
        options_(options),
        idle_(static_cast<std::size_t>(options.nodes), options.gpus_per_node) {
    for (const StarburstJob& job : jobs) {
      latest_.push_back(job.submit_h + burst_wait_h(policy.waiting, job.runtime_h, static_cast<double>(job.gpus)));
    }
  }

  StarburstResult run() {
    for (double now = next_event(); now < never; now = next_event()) {
      end_runs(now);
      leave(now);
      while (next_ < jobs_.size() && jobs_[next_].submit_h <= now) join(next_++);
      pass(now);
    }
    result_.mean_wait_h = wait_h_ / static_cast<double>(std::max<std::size_t>(jobs_.size(), 1));
    return result_;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  [[nodiscard]] double next_event() const {
    double next = next_ < jobs_.size() ? jobs_[next_].submit_h : never;
    if (!running_.empty()) next = std::min(next, running_.top().end);
    if (!by_latest_.empty()) next = std::min(next, by_latest_.begin()->first);
    return next;
  }

  void end_runs(double now) {
    while (!running_.empty() && running_.top().end <= now) {
      for (const Held& held : running_.top().held) idle_[held.node] += held.gpus;
      running_.pop();
    }
  }

  // Of those that have waited for long enough.
  void leave(double now) {
    while (!by_latest_.empty() && by_latest_.begin()->first <= now) {
      const std::size_t job = by_latest_.begin()->second;
      queue_.erase(key_of(job));
      by_latest_.erase(by_latest_.begin());
      wait_h_ += latest_[job] - jobs_[job].submit_h;
      result_.cost_usd += options_.usd_per_gpu_h * static_cast<double>(jobs_[job].gpus) * jobs_[job].runtime_h;
      ++result_.cloud_jobs;
    }
  }

  [[nodiscard]] std::pair<double, std::size_t> key_of(std::size_t job) const {
    return {policy_.shortest_first ? jobs_[job].runtime_h : jobs_[job].submit_h, job};
  }

  void join(std::size_t job) {
    queue_.insert(key_of(job));
    by_latest_.emplace(latest_[job], job);
  }

  void pass(double now) {
    for (auto at = queue_.begin(); at != queue_.end();) {
      const std::size_t job = at->second;
      const std::vector<Held> held = place(jobs_[job].gpus);
      if (held.empty()) {
        if (!policy_.loop) return;
        ++at;
        continue;
      }
      for (const Held& part : held) idle_[part.node] -= part.gpus;
      running_.push({now + jobs_[job].runtime_h, held});
      wait_h_ += now - jobs_[job].submit_h;
      by_latest_.erase({latest_[job], job});
      at = queue_.erase(at);
    }
  }

  // Nothing where it does not fit.
  [[nodiscard]] std::vector<Held> place(std::int64_t gpus) const {
    std::vector<std::size_t> order(idle_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return idle_[a] < idle_[b]; });
    std::vector<Held> held;
    do {
      const std::int64_t part = std::min(gpus, options_.gpus_per_node);
      const auto holds = [&](std::size_t node) { return idle_[node] >= part; };
      const auto node = std::find_if(order.begin(), order.end(), holds);
      if (node == order.end()) return {};
      held.push_back({*node, part});
      order.erase(node);
      gpus -= part;
    } while (gpus > 0);
    return held;
  }

  const std::vector<StarburstJob>& jobs_;
  const StarburstPolicy& policy_;
  const StarburstOptions& options_;
  std::vector<std::int64_t> idle_;                              // GPUs by node
  std::vector<double> latest_;                                  // start on the cluster, by job
  std::size_t next_ = 0;                                        // of the jobs
  std::set<std::pair<double, std::size_t>> queue_, by_latest_;  // of the same jobs
  std::priority_queue<Running> running_;
  double wait_h_ = 0;
  StarburstResult result_;
};

}  // namespace

Result<std::vector<StarburstJob>> read_starburst_jobs(const std::string& path) {
  constexpr std::array<MeasuredColumn, 3> columns{{{"submit_h"}, {"runtime_h"}, {"gpus"}}};
  constexpr std::int64_t most_gpus = 1'000'000;
  std::vector<StarburstJob> jobs;
  const auto read = for_each_measured_cells(path, columns, [&](MeasuredCells& cells) {
    jobs.push_back({cells.number(0, 0), cells.positive(1), cells.count(2, 0, most_gpus)});
  });
  if (!read) return Unexpected{read.error()};
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const StarburstJob& a, const StarburstJob& b) { return a.submit_h < b.submit_h; });
  return jobs;
}

std::vector<StarburstPolicy> starburst_policies(const std::vector<StarburstJob>& jobs) {
  double sum = 0;
  for (const StarburstJob& job : jobs) sum += job.runtime_h;
  const double quarter = sum / static_cast<double>(std::max<std::size_t>(jobs.size(), 1)) / 4;
  return {{"no-wait", {BurstWait::no_wait, 0}},
          {"constant", {BurstWait::constant, quarter}},
          {"linear_cost 0.07805625 loop", {BurstWait::linear_cost, 0.07805625}, true},
          {"linear_cost 0.25 loop", {BurstWait::linear_cost, 0.25}, true},
          {"linear_capacity 0.25 loop", {BurstWait::linear_capacity, 0.25}, true},
          {"linear_runtime 0.25", {BurstWait::linear_runtime, 0.25}},
          {"sjf linear_cost 0.25 loop", {BurstWait::linear_cost, 0.25}, true, true}};
}

StarburstResult run_starburst(const std::vector<StarburstJob>& jobs, const StarburstPolicy& policy,
                              const StarburstOptions& options) {
  return StarburstRun(jobs, policy, options).run();
}

}  // namespace gpusched
