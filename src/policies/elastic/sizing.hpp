// SPDX-License-Identifier: Apache-2.0
/// Sizing: the jobs to which an elastic policy gives sizes, and how these sizes come about.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// A job in the system. Sizes are numbers of tasks; a rigid job has one size.
struct SizedJob {
  JobId job = no_job;
  const ElasticCurve* curve = nullptr;  ///< null: rigid
  std::uint32_t phase = 0;              ///< of its curve
  MilliGpu milli_per_task = 0;
  std::uint32_t least = 1, most = 1;
  std::uint32_t held = 0;  ///< 0: it waits
  std::uint32_t size = 0;  ///< what the policy gives it; 0: it waits

  /// Work a second with that many tasks, relative to the number that it asks for. Precondition: least <= tasks <= most.
  [[nodiscard]] double rate(std::uint32_t tasks) const {
    if (curve == nullptr) return 1;
    return static_cast<double>(curve->rate(tasks, phase)) / static_cast<double>(reference_rate);
  }
  /// GPUs with that many tasks, in thousandths.
  [[nodiscard]] MilliGpu milli(std::uint32_t tasks) const { return tasks * milli_per_task; }
};

/// All jobs that run or wait, in order of their places (QueuePlace), each with size 0.
std::vector<SizedJob> jobs_to_size(const View& view);

/// Gives jobs their least sizes, in the order of the list, while they fit `free`, which is less by them afterwards.
void give_least_sizes(std::span<SizedJob> jobs, MilliGpu& free);

/// Carries the sizes out: stops jobs that are to have another one, then starts in the order of the list. A job that
/// does not find its size on the nodes stays as it was where that is still free, else starts with the most tasks that
/// fit, or waits. A job that was stopped in vain runs on.
void give_sizes(std::span<const SizedJob> jobs, Decision& decision);

/// Rounds of a fixed length, the first when the first job comes.
class SizingRounds {
 public:
  explicit SizingRounds(Time length) : length_(length) {}

  /// True when a round begins now; asks to be called at the next one.
  bool begins(const View& view, Decision& decision);

 private:
  Time length_;
  Time next_ = Time{-end_of_time.us};
};

}  // namespace gpusched
