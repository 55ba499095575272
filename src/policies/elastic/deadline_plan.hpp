// SPDX-License-Identifier: Apache-2.0
/// DeadlinePlan: GPUs promised to jobs over time, by ElasticFlow's progressive filling.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "src/policies/elastic/sizing.hpp"

namespace gpusched {

/// The numbers of tasks that a job is planned with, ascending: its least size and its doublings up to the largest that
/// is faster than all smaller ones. No job is planned past the peak of its curve.
std::vector<std::uint32_t> planned_sizes(const SizedJob& job);

/// The least of these above the size that the job has; that size where there is none.
std::uint32_t next_planned_size(const SizedJob& job);

/// GPUs free from now on, less what is promised.
class DeadlinePlan {
 public:
  /// `milli`: thousandths of a GPU in service.
  DeadlinePlan(Time now, MilliGpu milli) : now_(now), free_{{now, milli}} {}

  /// What a job is promised.
  struct Promise {
    std::uint32_t level = 0;  ///< position in planned_sizes() of the largest size that it may have
    std::uint32_t tasks = 0;  ///< that it has now
    bool in_time = false;     ///< it ends by its deadline
  };

  /// Promises a job with `left` work (at the size that it asks for) the fewest GPUs with which it ends by `deadline`:
  /// of its planned sizes the smallest for which filling what is free from now on, with at most that size, ends in time
  /// (Gu et al., ElasticFlow, ASPLOS 2023, section 4.1, Algorithm 1). Sizes below `least_level` are not tried: a job
  /// that needs less than it was promised must not hold its GPUs for longer, which others count on. Where no size is
  /// enough, it gets as much as it can use.
  Promise promise(const SizedJob& job, Time left, Time deadline, std::uint32_t least_level = 0);

  /// GPUs not promised now.
  [[nodiscard]] MilliGpu free_now() const { return free_.begin()->second; }

 private:
  struct Part {
    Time begin{}, end{};
    MilliGpu milli = 0;
    std::uint32_t tasks = 0;
  };

  [[nodiscard]] std::vector<Part> fill(const SizedJob& job, std::span<const std::uint32_t> sizes, Time left) const;
  void take(const Part& part);

  Time now_;
  std::map<Time, MilliGpu> free_;  // from each instant to the next
};

}  // namespace gpusched
