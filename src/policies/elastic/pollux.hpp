// SPDX-License-Identifier: Apache-2.0
/// Pollux's choice of sizes: the generalized mean of the jobs' speedups, with power -1, is to be largest.
#pragma once

#include <span>

#include "gpusched/core/types.hpp"
#include "src/policies/elastic/sizing.hpp"

namespace gpusched {

/// A job's part of the objective.
struct PolluxObjective {
  double fair_rate = 1;      ///< work a second on an equal share of the cluster
  double change_factor = 1;  ///< of its speedup when its size changes, in (0, 1]
};

/// 1 / speedup of the job with that size, which the sum of is to be smallest: the power mean of power -1 is largest
/// then.
double pollux_cost(const SizedJob& job, const PolluxObjective& of, std::uint32_t size);

/// Gives sizes to jobs that have their least ones (those of size 0 wait), with `free` GPUs left. From the least sizes
/// on, the step that lowers the sum most a GPU is taken again and again, of steps to any larger size: the sum is the
/// least possible where costs fall ever more slowly, and else off by at most what one step brings. O(n most^2).
void maximize_speedups(std::span<SizedJob> jobs, std::span<const PolluxObjective> of, MilliGpu free);

}  // namespace gpusched
