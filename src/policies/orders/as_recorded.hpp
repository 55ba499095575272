// SPDX-License-Identifier: Apache-2.0
/// What the cluster that wrote the trace did: every job starts when its record says that it started.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/queues/job_heaps.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Starts each job at its recorded start, or at its submission where none is recorded. A job for which there is no room
/// then (the recorded cluster was larger, or packed otherwise) starts as soon as there is, the earliest recorded start
/// first, and holds back no other. A job that was requeued goes on at once. O(shapes + log waiting) an event.
class AsRecorded {
 public:
  /// Borrows `jobs` for its life.
  explicit AsRecorded(const JobTable& jobs) : jobs_(&jobs) {}

  [[nodiscard]] std::string_view name() const { return "as-recorded"; }
  void decide(const View& view, Decision& decision);

 private:
  using Due = std::pair<std::int64_t, std::uint32_t>;  // microseconds, then the job

  void withdraw(const View& view, JobId job);

  const JobTable* jobs_;
  std::vector<Due> later_;            // a heap, the earliest first
  JobHeaps<std::int64_t> due_{true};  // by recorded start
  Time awake_at_ = Time::max();       // the wake that was asked for last
};

/// Errors when no job has a recorded start.
PolicyInfo as_recorded_info();

}  // namespace gpusched
