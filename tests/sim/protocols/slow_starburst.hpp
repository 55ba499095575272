// SPDX-License-Identifier: Apache-2.0
// Starburst's simulator written down anew, in hours of floating point and without the engine.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "src/sim/protocols/starburst_protocol.hpp"

namespace gpusched::test {

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

class SlowStarburst {
 public:
  SlowStarburst(const std::vector<StarburstJob>& jobs, const StarburstPolicy& policy, const StarburstOptions& options)
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

}  // namespace gpusched::test
