// SPDX-License-Identifier: Apache-2.0
/// WeightedFigure: what a policy that chooses policies wants to be low.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// What became of a job, as far as is known.
struct JobResult {
  Time age{};     ///< from its submission to its end, or to the last instant that is looked at
  Time waited{};  ///< of that, without its nodes
  Time length{};  ///< of its run, for slowdowns
};

/// A weighted sum of averages over jobs, lower is better. The names are those of Metrics.
class WeightedFigure {
 public:
  /// "avg_jct_s", or weighted terms, "1:avg_jct_s+600:avg_bounded_slowdown". Errors name what was expected.
  static Result<WeightedFigure> parse(std::string_view text);

  /// The sum for these jobs; 0 where there are none. The bound of slowdowns is slowdown_bound.
  [[nodiscard]] double of(const std::vector<JobResult>& jobs) const;

 private:
  struct Term {
    double weight = 1;
    std::size_t kind = 0;
  };
  std::vector<Term> terms_;
};

/// The mean completion time, the 99th percentile of waits and the mean bounded slowdown, which no policy should buy its
/// figure with.
const std::array<WeightedFigure, 3>& limited_figures();

/// The parameter `figure`.
ParameterInfo figure_parameter();

}  // namespace gpusched
