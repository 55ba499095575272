// SPDX-License-Identifier: Apache-2.0
/// JobChanges: what users do to jobs that were submitted: they cancel them, give them another priority or another size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A change of one job. It has no effect on a job that ended before.
struct JobChange {
  /// What changes.
  enum class Kind : std::uint8_t {
    cancel,    ///< the job is given up, whether it waits or runs
    priority,  ///< its priority is `priority` from now on
    size,      ///< it asks for `shape` from now on. If it runs, it waits again, and may go on at this instant
  };

  Time time{};                     ///< on the trace's clock; after the job's submission
  JobId job = no_job;              ///< whose
  Kind kind = Kind::cancel;        ///< what
  std::int32_t priority = 0;       ///< of Kind::priority: larger is more urgent
  std::uint32_t shape = no_index;  ///< of Kind::size: JobTable::shape_id(), see JobTable::number_of_shape()
};

/// Immutable while a run lasts; the engine borrows it. Made for one JobTable, whose ids it holds.
class JobChanges {
 public:
  /// Nothing changes.
  JobChanges() = default;
  /// Those of a table of `jobs`, in any order; at most one for a job and an instant. O(n log n + jobs).
  JobChanges(std::vector<JobChange> changes, std::uint32_t jobs) : changes_(std::move(changes)) {
    const auto place = [](const JobChange& change) { return std::pair(change.time.us, change.job); };
    std::sort(changes_.begin(), changes_.end(),
              [&place](const JobChange& a, const JobChange& b) { return place(a) < place(b); });
    if (changes_.empty()) return;
    cancels_.assign(jobs, 0);
    for (const JobChange& change : changes_) {
      if (change.kind == JobChange::Kind::cancel) cancels_[index(change.job)] = 1;
      resizes_ = resizes_ || change.kind == JobChange::Kind::size;
    }
  }

  /// True when nothing changes.
  [[nodiscard]] bool is_empty() const { return changes_.empty(); }
  /// True when some job changes its size.
  [[nodiscard]] bool resizes() const { return resizes_; }
  /// By time, then by job.
  [[nodiscard]] std::span<const JobChange> all() const { return changes_; }
  /// True when the job is cancelled at some time, unless it has ended by then.
  [[nodiscard]] bool cancels(JobId job) const { return !cancels_.empty() && cancels_[index(job)] != 0; }

  /// Those of the `count` jobs from `first` on, which are then numbered from `begin` on.
  [[nodiscard]] JobChanges slice(std::uint32_t first, std::uint32_t count, std::uint32_t begin = 0) const {
    std::vector<JobChange> part;
    for (JobChange change : changes_) {
      if (index(change.job) < first || index(change.job) - first >= count) continue;
      change.job = JobId{index(change.job) - first + begin};
      part.push_back(change);
    }
    return {std::move(part), begin + count};
  }

 private:
  std::vector<JobChange> changes_;
  std::vector<std::uint8_t> cancels_;  // by job; empty when nothing changes
  bool resizes_ = false;
};

}  // namespace gpusched
