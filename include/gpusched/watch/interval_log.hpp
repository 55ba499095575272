// SPDX-License-Identifier: Apache-2.0
/// IntervalLog: which job ran on which node from when to when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// A job on one node, from a start or a move to the next preemption, move or end.
struct Interval {
  JobId job = no_job;      ///< who
  NodeId node = no_node;   ///< where
  MilliGpu gpu_milli = 0;  ///< GPU thousandths held on this node
  Time start{};            ///< of the start or move
  Time end = Time::max();  ///< max() while it runs
};

/// An Observer that keeps every interval, in order of start, one a node of a run: 32 bytes per interval and 4 per job.
class IntervalLog {
 public:
  /// Opens and closes intervals by the events of an instant.
  void observe(const View& view, std::span<const Event> events) {
    first_row_.resize(view.job_count(), no_index);
    for (const Event& event : events) {
      switch (event.kind) {
        case EventKind::start: open(view, event.job); break;
        case EventKind::move:
          close(event.job, view.now());
          open(view, event.job);
          break;
        case EventKind::preempt:
        case EventKind::retry:
        case EventKind::kill:
        case EventKind::finish: close(event.job, view.now()); break;
        default: break;
      }
    }
  }

  /// All intervals so far, in order of start.
  [[nodiscard]] std::span<const Interval> intervals() const { return intervals_; }
  /// Moves the intervals out.
  [[nodiscard]] std::vector<Interval> take() && { return std::move(intervals_); }

 private:
  void open(const View& view, JobId job) {
    first_row_[index(job)] = static_cast<std::uint32_t>(intervals_.size());
    view.for_each_grant(job, [this, &job, &view](const Grant& grant) {
      intervals_.push_back(
          {job, grant.node, grant.tasks * view.shape(job).gpu_milli_per_task, view.now(), Time::max()});
    });
    merge_nodes(first_row_[index(job)]);
  }

  // Grants of one node may lie apart in the list. Its row stands in the place of the first of them.
  void merge_nodes(std::size_t first) {
    places_.clear();
    for (std::size_t row = first; row < intervals_.size(); ++row) places_.emplace_back(intervals_[row].node, row);
    std::sort(places_.begin(), places_.end());
    bool repeated = false;
    for (std::size_t i = 1, kept = 0; i < places_.size(); ++i) {
      if (places_[i].first != places_[kept].first) {
        kept = i;
        continue;
      }
      Interval& more = intervals_[places_[i].second];
      intervals_[places_[kept].second].gpu_milli += more.gpu_milli;
      more.node = no_node;
      repeated = true;
    }
    if (!repeated) return;
    const auto merged = [](const Interval& row) { return row.node == no_node; };
    intervals_.erase(std::remove_if(intervals_.begin() + static_cast<std::ptrdiff_t>(first), intervals_.end(), merged),
                     intervals_.end());
  }

  void close(JobId job, Time now) {
    for (std::size_t row = first_row_[index(job)]; row < intervals_.size() && intervals_[row].job == job; ++row) {
      intervals_[row].end = now;
    }
  }

  std::vector<Interval> intervals_;
  std::vector<std::uint32_t> first_row_;                // of each job's present run
  std::vector<std::pair<NodeId, std::size_t>> places_;  // scratch of merge_nodes()
};

}  // namespace gpusched
