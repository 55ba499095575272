// SPDX-License-Identifier: Apache-2.0
/// The gamma distribution: its distribution function and draws.
#pragma once

#include "gpusched/core/rng.hpp"

namespace gpusched {

/// A gamma distribution with mean shape * scale and variance shape * scale^2. Both are above 0.
struct GammaDistribution {
  double shape = 1;
  double scale = 1;

  /// The probability of at most `x`: the regularised incomplete gamma function (Abramowitz and Stegun, 6.5.29 below the
  /// mean, 6.5.31 above it).
  [[nodiscard]] double cdf(double x) const;

  /// One draw (Marsaglia and Tsang, ACM Transactions on Mathematical Software 26(3), 2000).
  double draw(Rng& rng) const;
};

}  // namespace gpusched
