// SPDX-License-Identifier: Apache-2.0
/// GpuLog: which job held which GPUs from when to when, how each run ended, and how many jobs waited meanwhile. What
/// trace_events.hpp is written from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/view.hpp"
#include "src/sim/cluster_level_log.hpp"

namespace gpusched {

/// How an uninterrupted run of a job ended.
enum class RunEnd : std::uint8_t {
  finished,   ///< the job did its last work
  retried,    ///< the attempt ended and the job waits for its next one
  preempted,  ///< a decision stopped it
  killed,     ///< a node of the job went down
  resized,    ///< its user gave the job another size
  moved,      ///< a decision gave it other nodes: the next run begins at once
};

/// GPUs of one node, from a start or a move to the next preemption, move or end. A job that shares GPUs has one for
/// each task.
struct GpuRun {
  std::uint64_t devices = 0;  ///< bit d: GPU d of the node; 0 where the node only counts its GPUs
  Time start{}, end = Time::max();
  MilliGpu gpu_milli = 0;     ///< GPU thousandths held
  JobId job = no_job;         ///< who
  NodeId node = no_node;      ///< where
  std::uint32_t run = 0;      ///< number among the uninterrupted runs of the job, from 1
  std::uint32_t attempt = 0;  ///< number of the trace's attempt, from 1
  RunEnd how = RunEnd::finished;
};

/// An Observer: 56 bytes per GpuRun, 40 per instant at which an amount changes, 8 per job.
class GpuLog {
 public:
  /// Takes down the events of an instant.
  void observe(const View& view, std::span<const Event> events) {
    jobs_.resize(view.job_count());
    for (const Event& event : events) {
      switch (event.kind) {
        case EventKind::start: open(view, event.job); break;
        case EventKind::move:
          close(view, event.job, RunEnd::moved);
          open(view, event.job);
          break;
        case EventKind::preempt: close(view, event.job, RunEnd::preempted); break;
        case EventKind::retry: close(view, event.job, RunEnd::retried); break;
        case EventKind::kill: close(view, event.job, event.node == no_node ? RunEnd::resized : RunEnd::killed); break;
        case EventKind::finish: close(view, event.job, RunEnd::finished); break;
        case EventKind::submit:
        case EventKind::wake:
        case EventKind::node_down:
        case EventKind::node_up:
        case EventKind::withdraw:
        case EventKind::refuse:
        case EventKind::reprioritize:
        case EventKind::more_power: break;
      }
    }
    levels_.observe(view, events);
  }

  /// In order of start.
  [[nodiscard]] std::span<const GpuRun> runs() const { return runs_; }
  /// In order of time, each unlike the one before.
  [[nodiscard]] std::span<const ClusterLevel> levels() const { return levels_.levels(); }

 private:
  struct JobRuns {
    std::uint32_t first = no_index;  // its present run's place in runs_
    std::uint32_t count = 0;
  };

  void open(const View& view, JobId job) {
    JobRuns& runs = jobs_[index(job)];
    runs.first = static_cast<std::uint32_t>(runs_.size());
    ++runs.count;
    view.for_each_grant(job, [&](const Grant& grant) {
      runs_.push_back({.devices = grant.devices,
                       .start = view.now(),
                       .gpu_milli = grant.tasks * view.shape(job).gpu_milli_per_task,
                       .job = job,
                       .node = grant.node,
                       .run = runs.count,
                       .attempt = view.attempt(job) + 1});
    });
  }

  void close(const View& view, JobId job, RunEnd how) {
    for (std::size_t row = jobs_[index(job)].first; row < runs_.size() && runs_[row].job == job; ++row) {
      runs_[row].end = view.now();
      runs_[row].how = how;
    }
  }

  std::vector<GpuRun> runs_;
  std::vector<JobRuns> jobs_;
  ClusterLevelLog levels_;
};

}  // namespace gpusched
