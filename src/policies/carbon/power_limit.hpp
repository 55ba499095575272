// SPDX-License-Identifier: Apache-2.0
/// Which power limit a GPU gets for a job, by what time and energy are worth.
#pragma once

#include <cstddef>
#include <span>

namespace gpusched {

/// One piece of work, say an epoch, under one power limit.
struct LimitedRun {
  double limit_w = 0;
  double time_s = 0;
  double power_w = 0;  ///< mean draw

  [[nodiscard]] double energy_j() const { return power_w * time_s; }
};

/// Zeus's cost of energy and time (You et al., "Zeus", NSDI 2023, section 3, equation 2): eta x energy + (1 - eta) x
/// `most_w` x time, in joules, where most_w is the largest power limit of the GPU. eta from 0 (time alone) to 1.
double zeus_cost(const LimitedRun& run, double eta, double most_w);

/// The place of the run of least cost, of equals the one with the smaller limit (same paper, equation 7: the batch
/// size is given, the limit is chosen alone). Precondition: at least one run.
std::size_t zeus_choice(std::span<const LimitedRun> runs, double eta, double most_w);

}  // namespace gpusched
