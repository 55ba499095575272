// SPDX-License-Identifier: Apache-2.0
/// The rule by which `guarded` lets another policy have the run.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "src/policies/meta/figure.hpp"

namespace gpusched {

/// What a policy reached on the jobs of the past.
struct PastFigures {
  double value = 0;                 ///< of the figure, over all jobs
  std::vector<double> stretches;    ///< of the figure, by stretches of equally many jobs in order of submission
  std::array<double, 3> limited{};  ///< mean completion time in s, 99th percentile of waits in s, mean bounded slowdown
};

/// The figures of these jobs, which stand in order of submission. Preconditions: stretches >= 2, and as many jobs.
PastFigures figures_of_past(const std::vector<JobResult>& jobs, const WeightedFigure& figure, std::size_t stretches);

/// The upper end of the 95 % interval of the mean difference between a policy and another in the same stretches,
/// by Student's t over these, relative to the other's mean: below 0 the agent is clearly better. Infinite where the
/// other's mean is 0. Precondition: two or more of each, equally many.
double highest_difference(std::span<const double> values, std::span<const double> other);

/// True where a policy is better in the figure by more than `margin`, a share, with its whole interval
/// (highest_difference()), and in no limited figure more than `margin` above the other.
bool may_replace(const PastFigures& figures, const PastFigures& other, double margin);

}  // namespace gpusched
