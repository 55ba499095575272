// SPDX-License-Identifier: Apache-2.0
/// Two rules of time that all baselines of the Muri artifact (SIGCOMM'22) follow: a running job loses a start-up
/// overhead again at every event, and ends that nearly coincide become one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// Seconds that the Muri artifact takes off a running job of `model` on `gpus` GPUs at every event; 10 for models and
/// GPU counts that its table does not list. Source: the artifact's overhead table.
inline Time muri_overhead(std::string_view model, std::uint32_t gpus) {
  struct Row {
    std::string_view model;
    std::int64_t seconds[6];  // on 1, 2, 4, 8, 16, 32 GPUs
  };
  static constexpr Row rows[] = {
      {"vgg16", {7, 7, 8, 9, 9, 10}},     {"vgg19", {7, 7, 8, 9, 10, 10}},
      {"resnet18", {4, 5, 5, 7, 7, 7}},   {"shufflenet_v2_x1_0", {4, 4, 5, 5, 7, 8}},
      {"bert", {10, 10, 10, 10, 10, 10}}, {"gpt2", {10, 10, 10, 10, 10, 10}},
      {"a2c", {38, 39, 39, 46, 46, 46}},  {"dqn", {5, 5, 6, 6, 8, 8}},
  };
  static constexpr std::uint32_t counts[] = {1, 2, 4, 8, 16, 32};
  for (const Row& row : rows) {
    if (row.model != model) continue;
    for (std::size_t i = 0; i < std::size(counts); ++i) {
      if (counts[i] == gpus) return whole_seconds(row.seconds[i]);
    }
  }
  return whole_seconds(10);
}

/// What a running job has left under an overhead at every event.
struct OverheadAccount {
  Time remaining{};  ///< work, as of the last event
  Time planned{};    ///< the engine's end of it, never later than the next event's
  Time overhead{};

  /// The job progressed through `span`, the time between two events, less its overhead.
  void progress(Time span) { remaining.us -= std::max<std::int64_t>(span.us - overhead.us, 0); }
};

/// The work left of each job under an overhead at every event. The engine's own plan of a job's end is kept a lower
/// bound, and corrected only when it is due before the next event: O(1) corrections an event, not one a running job.
/// Runs at the reference rate.
class EventOverhead {
 public:
  /// A job came, with all of its work left.
  void admit(const OracleView& view, JobId job) {
    if (waiting_.empty()) waiting_.resize(view.job_count());
    waiting_[index(job)] = {view.remaining(job),
                            muri_overhead(view.families()[view.family(job)], view.shape(job).tasks)};
  }

  /// The work left of a waiting job.
  [[nodiscard]] Time remaining(JobId job) const { return waiting_[index(job)].remaining; }

  /// The account of a waiting job that is about to be started in the open decision; the engine will plan it by its own
  /// work left, which knows no overhead.
  [[nodiscard]] OverheadAccount start(const OracleView& view, JobId job) const {
    const Waiting& waiting = waiting_[index(job)];
    const Time planned = later_by(view.now(), view.remaining(job));
    return {.remaining = waiting.remaining, .planned = planned, .overhead = waiting.overhead};
  }

  /// A running job was preempted and waits again.
  void preempt(JobId job, const OverheadAccount& account) { waiting_[index(job)].remaining = account.remaining; }

  /// Plans the ends of `running`, the running jobs in policy order, each a struct with a `job` and its `account`.
  /// An end within `relative` (of time since the trace's zero) of one already collected joins it: that job ends
  /// at the first one's time, work left or not. 0 joins nothing but equal ends.
  template <class Run>
  void plan(Time now, Decision& decision, std::vector<Run>& running, double relative) {
    if (running.empty()) return;
    gather(now, running, relative);
    const Time earliest = collect_earliest(now, running, relative);
    for (const std::uint32_t i : near_) {
      if (running[i].account.planned <= earliest) replan(decision, running[i], now + running[i].account.remaining);
    }
    for (const std::uint32_t i : ending_) replan(decision, running[i], earliest);
  }

 private:
  // Fills near_ with the running jobs whose end, or the engine's planned end, may belong to the earliest group. Those
  // ends form a chain that begins with the first end; each link is within the tolerance of the link before.
  template <class Run>
  void gather(Time now, const std::vector<Run>& running, double relative) {
    std::int64_t least = Time::max().us;
    for (const Run& run : running) least = std::min(least, run.account.remaining.us);
    const Time first = now + Time{least};
    for (std::int64_t reach = chain_guess * (tolerance(first, relative) + 1);; reach = mul_div(reach, chain_guess, 1)) {
      const std::int64_t limit = later_by(first, Time{reach}).us;
      near_.clear();
      ends_.clear();
      for (std::uint32_t i = 0; i < running.size(); ++i) {
        const OverheadAccount& account = running[i].account;
        const std::int64_t end = now.us + account.remaining.us;
        if (std::min(end, account.planned.us) > limit) continue;
        near_.push_back(i);
        if (end <= limit) ends_.push_back({end});
      }
      std::sort(ends_.begin(), ends_.end(), earlier);
      chain_end_ = first;
      for (const Time end : ends_) {
        if (end.us > chain_end_.us + tolerance(end, relative)) break;
        chain_end_ = end;
      }
      if (chain_end_.us + tolerance(chain_end_, relative) < limit) return;
    }
  }

  // Fills ending_ with the jobs of the earliest group of ends and returns its time.
  template <class Run>
  Time collect_earliest(Time now, const std::vector<Run>& running, double relative) {
    groups_.clear();
    members_.clear();
    for (const std::uint32_t i : near_) {
      const Time end = now + running[i].account.remaining;
      if (end > chain_end_) continue;
      const auto near = [&](const Time group) {
        return std::max(group, end, earlier).us - std::min(group, end, earlier).us <=
               tolerance(std::max(group, end, earlier), relative);
      };
      const auto group = std::find_if(groups_.begin(), groups_.end(), near);
      members_.push_back({group - groups_.begin(), i});
      if (group == groups_.end()) groups_.push_back(end);
    }
    const auto first = std::min_element(groups_.begin(), groups_.end(), earlier);
    ending_.clear();
    for (const auto& [group, i] : members_) {
      if (group == first - groups_.begin()) ending_.push_back(i);
    }
    return *first;
  }

  static bool earlier(Time a, Time b) { return a < b; }

  static std::int64_t tolerance(Time t, double relative) {
    return static_cast<std::int64_t>(std::abs(static_cast<double>(t.us)) * relative);
  }

  // How many tolerances the first search looks ahead; longer chains are rare.
  static constexpr std::int64_t chain_guess = 64;

  template <class Run>
  static void replan(Decision& decision, Run& run, Time end) {
    if (run.account.planned == end) return;
    decision.adjust_work(run.job, end - run.account.planned);
    run.account.planned = end;
  }

  struct Waiting {
    Time remaining{};
    Time overhead{};
  };

  std::vector<Waiting> waiting_;  // by job id; for a running job the value at its start
  // Of the present event, numbers among the running jobs:
  std::vector<std::uint32_t> near_, ending_;
  std::vector<Time> ends_;
  Time chain_end_{};
  std::vector<Time> groups_;
  std::vector<std::pair<std::ptrdiff_t, std::uint32_t>> members_;  // (group, job)
};

}  // namespace gpusched
