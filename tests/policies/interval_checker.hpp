// SPDX-License-Identifier: Apache-2.0
/// Checks the intervals of a finished run against the trace, the cluster and what the engine reports, from their
/// definitions alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/interval_log.hpp"

namespace gpusched::test {

/// What a policy does to the time that a job runs, besides the run's own preemption costs.
struct RunTimes {
  bool own_overheads = false;  ///< it adds to the work left, or takes from it: ran need not follow from the trace
  bool moves = false;          ///< running jobs change nodes, which opens intervals without a start
};

class IntervalChecker {
 public:
  IntervalChecker(const Engine& engine, const Cluster& cluster, std::span<const Interval> intervals)
      : engine_(engine), cluster_(cluster), intervals_(intervals), runs_(engine.jobs().size()) {}

  /// What is wrong; nothing when all is well. Precondition: every job ended.
  [[nodiscard]] std::optional<std::string> fault(RunTimes times) {
    for (const Interval& interval : intervals_) {
      if (interval.end == Time::max() || interval.end < interval.start) return name(interval.job) + " has no end";
      runs_[index(interval.job)][{interval.start, interval.end}] += interval.gpu_milli;
    }
    for (std::uint32_t job = 0; job < runs_.size(); ++job) {
      if (auto wrong = fault_of(JobId{job}, times)) return wrong;
    }
    return overbooked();
  }

 private:
  struct Earlier {
    bool operator()(const std::pair<Time, Time>& a, const std::pair<Time, Time>& b) const {
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    }
  };

  static std::string name(JobId job) { return "job " + std::to_string(index(job)); }

  [[nodiscard]] std::optional<std::string> fault_of(JobId job, RunTimes times) const {
    const JobTable& jobs = engine_.jobs();
    const auto& runs = runs_[index(job)];
    const bool cancelled = engine_.is_cancelled(job);
    if (runs.empty() && cancelled && engine_.first_start(job) == Time::max()) return std::nullopt;
    if (runs.empty()) return name(job) + " never ran";
    Time last = jobs.submit(job), sum{};
    for (const auto& [run, gpu_milli] : runs) {
      if (run.first < last) return name(job) + " runs before its submission, or twice at once";
      const bool instantly = run.first == run.second;  // attempts of no work at one instant are one entry
      const MilliGpu gang = jobs.shape(job).gpu_milli();
      if (gpu_milli != gang && !(instantly && gpu_milli % gang == 0))
        return name(job) + " runs with a part of its gang";
      sum += run.second - run.first;
      last = run.second;
    }
    if (runs.begin()->first.first != engine_.first_start(job)) return name(job) + " has a first start that is none";
    if (cancelled ? last > engine_.end(job) : last != engine_.end(job)) return name(job) + " ends twice";
    if (sum != engine_.ran(job)) return name(job) + " ran longer or shorter than its intervals";
    const PreemptionCost& cost = engine_.view().options().preemption;
    const std::int64_t stops = engine_.preemptions(job);
    const Time paid{stops * (cost.checkpoint + cost.restart).us};
    const Time lost{stops * cost.checkpoint_interval.us};
    if (times.own_overheads || cancelled) return std::nullopt;
    if (sum < jobs.work(job)) return name(job) + " did less than its work";
    if (sum > jobs.work(job) + paid + lost) return name(job) + " did more than its work and costs";
    // A load that is interrupted is paid as far as it went.
    const Time overhead = engine_.overhead(job);
    if (lost == Time{} && (sum != jobs.work(job) + overhead || overhead > paid)) {
      return name(job) + " paid another price than was asked";
    }
    const std::size_t starts = jobs.attempts(job) + static_cast<std::size_t>(stops);
    if (!times.moves && runs.size() > starts) return name(job) + " was interrupted more often than is counted";
    return std::nullopt;
  }

  // More taken of a node, or of a quota, than there is, at some time.
  [[nodiscard]] std::optional<std::string> overbooked() const {
    struct Change {
      Time time;
      int sign;
      const Interval* interval;
    };
    std::vector<Change> changes;
    for (const Interval& interval : intervals_) {
      if (interval.start == interval.end) continue;
      changes.push_back({interval.start, +1, &interval});
      changes.push_back({interval.end, -1, &interval});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.sign < b.sign;  // what ends makes room first
    });
    struct Held {
      std::int64_t gpu = 0, cpu = 0, memory = 0;
    };
    std::vector<Held> nodes(cluster_.nodes.size());
    std::vector<MilliGpu> vcs(cluster_.vcs.size() + 1, 0);
    for (const Change& change : changes) {
      const JobId job = change.interval->job;
      const Shape& shape = engine_.jobs().shape(job);
      const std::size_t node = index(change.interval->node);
      const MilliGpu gpu = change.sign * change.interval->gpu_milli;
      const std::int64_t tasks = shape.gpu_milli_per_task > 0 ? gpu / shape.gpu_milli_per_task : 0;
      nodes[node].gpu += gpu;
      nodes[node].cpu += tasks * shape.cpu_milli_per_task;
      nodes[node].memory += tasks * shape.memory_mib_per_task;
      const std::uint32_t vc = engine_.view().queue_of(job);
      vcs[vc] += gpu;
      const Node& machine = cluster_.nodes[node];
      if (nodes[node].gpu > machine.gpus * whole_gpu || nodes[node].cpu > machine.cpu_milli ||
          nodes[node].memory > machine.memory_mib) {
        return "node " + std::to_string(node) + " gives more than it has to " + name(job);
      }
      if (vc < cluster_.vcs.size() && vcs[vc] > cluster_.vcs[vc].quota) return name(job) + " exceeds a quota";
    }
    return std::nullopt;
  }

  const Engine& engine_;
  const Cluster& cluster_;
  std::span<const Interval> intervals_;
  std::vector<std::map<std::pair<Time, Time>, MilliGpu, Earlier>> runs_;  // of each job, with their GPUs
};

}  // namespace gpusched::test
