// SPDX-License-Identifier: Apache-2.0
/// ClusterLevelLog: how many jobs waited and ran, and how many GPUs were asked for, in use and in service, over time.
/// What timeline.csv is written from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// What waits and runs from an instant on. Jobs that limits hold back wait.
struct ClusterLevel {
  Time since{};
  MilliGpu waiting_milli = 0, used_milli = 0;  ///< asked for by waiting jobs; held by running ones
  std::uint32_t waiting_jobs = 0, running_jobs = 0;
  std::int64_t up_gpus = 0;  ///< in service, or held by jobs on nodes that are drained

  [[nodiscard]] bool same_amounts(const ClusterLevel& other) const {
    return waiting_milli == other.waiting_milli && used_milli == other.used_milli &&
           waiting_jobs == other.waiting_jobs && running_jobs == other.running_jobs && up_gpus == other.up_gpus;
  }
};

/// An Observer: 40 bytes per instant at which an amount changes.
class ClusterLevelLog {
 public:
  /// Takes down the events of an instant.
  void observe(const View& view, std::span<const Event> events) {
    for (const Event& event : events) {
      if (!concerns_job(event.kind)) continue;
      if (event.kind == EventKind::start) wait(view, event.job, -1);
      if (event.kind == EventKind::start) run(view.held_gpu_milli(event.job), 1);
      if (event.kind == EventKind::preempt || leaves_cluster(event.kind)) run(-view.released_gpu_milli(event.job), -1);
      if (event.kind == EventKind::preempt || enters_queue(event.kind)) wait(view.at(event), event.job, 1);
      if (event.kind == EventKind::withdraw) wait(view.at(event), event.job, -1);
    }
    now_.waiting_jobs = queued_jobs_ + view.held_back().jobs;
    now_.waiting_milli = queued_milli_ + view.held_back().gpu_milli;
    now_.up_gpus = view.cluster().total_gpus() - view.cluster().withheld_gpu_milli() / whole_gpu;
    keep_level(view.now());
  }

  /// In order of time, each unlike the one before.
  [[nodiscard]] std::span<const ClusterLevel> levels() const { return levels_; }

 private:
  void wait(const View& view, JobId job, int sign) {
    queued_jobs_ += static_cast<std::uint32_t>(sign);
    queued_milli_ += sign * view.shape(job).gpu_milli();
  }

  void run(MilliGpu more, int jobs) {
    now_.running_jobs += static_cast<std::uint32_t>(jobs);
    now_.used_milli += more;
  }

  // An instant is seen twice, before and after the decision: the later amounts count.
  void keep_level(Time now) {
    if (!levels_.empty() && levels_.back().since == now) levels_.pop_back();
    now_.since = now;
    if (levels_.empty() || !levels_.back().same_amounts(now_)) levels_.push_back(now_);
  }

  std::vector<ClusterLevel> levels_;
  ClusterLevel now_;
  std::uint32_t queued_jobs_ = 0;
  MilliGpu queued_milli_ = 0;
};

}  // namespace gpusched
