// SPDX-License-Identifier: Apache-2.0
/// Jobs that ended before a run begins, as their trace tells: what predictions may rest on from the start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// Jobs of a trace, in order of their ends. Borrows both; ids of virtual clusters, shapes, users, groups and names are
/// those of all tables sliced from the trace. None by default.
struct PastJobs {
  const JobTable* trace = nullptr;           ///< all of its jobs; null for none
  std::span<const std::uint32_t> jobs = {};  ///< their numbers in the trace

  /// Calls visit(const JobTable&, JobId) for each.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const std::uint32_t job : jobs) visit(*trace, JobId{job});
  }
};

/// The jobs of a trace in order of their ends: those of its own log where it records starts, else as if every job had
/// started when it was submitted. Borrows the trace.
class JobEnds {
 public:
  /// O(n log n).
  explicit JobEnds(const JobTable& trace) : trace_(&trace), by_end_(trace.size() - trace.in_front()) {
    std::iota(by_end_.begin(), by_end_.end(), trace.in_front());
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return end_of(a) < end_of(b); });
  }

  /// Those that had ended before job `first` was submitted, all of them earlier jobs; borrows this object. O(log n).
  [[nodiscard]] PastJobs before(JobId first) const {
    const Time now = trace_->submit(first);
    const auto end = std::partition_point(by_end_.begin(), by_end_.end(),
                                          [this, &now](std::uint32_t job) { return end_of(job) < now; });
    return {.trace = trace_, .jobs = {by_end_.begin(), end}};
  }

 private:
  [[nodiscard]] Time end_of(std::uint32_t job) const {
    const Time start = trace_->start(JobId{job});
    return (start == Time::max() ? trace_->submit(JobId{job}) : start) + trace_->work(JobId{job});
  }

  const JobTable* trace_;
  std::vector<std::uint32_t> by_end_;
};

}  // namespace gpusched
