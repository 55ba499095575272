// SPDX-License-Identifier: Apache-2.0
#include "src/sim/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpusched {
namespace {

TEST(Statistics, InterquartileMeanLeavesTheTailsOut) {
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1000, 2, 3, -500}), 2.5);
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1, 5}), 3);
}

// On n = 60 independent normal values a percentile bootstrap holds the true mean with probability
// P(|t_59| < 1.96 sqrt(59/60)) = 0.940: it knows neither Student's t nor the n - 1. Tolerance: three standard
// deviations.
TEST(Statistics, BootstrapCoversTheMean) {
  int covered = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    Rng rng = Rng(7).split(static_cast<std::uint64_t>(trial));
    std::vector<double> values(60);
    for (double& value : values) value = 3 + rng.normal();
    const ConfidenceInterval interval = block_bootstrap(values, 1, rng.split("bootstrap"), 500);
    covered += interval.low <= 3 && 3 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(covered, 0.940 * trials, 0.016 * trials);
}

// Values that repeat in runs of ten carry a tenth of the information: only blocks see that.
TEST(Statistics, BlocksWidenTheIntervalOfDependentValues) {
  Rng rng(3);
  std::vector<double> values;
  for (int run = 0; run < 30; ++run) values.insert(values.end(), 10, rng.normal());
  const auto width = [&](std::size_t block) {
    const ConfidenceInterval interval = block_bootstrap(values, block, Rng(1), 2000);
    return interval.high - interval.low;
  };
  EXPECT_NEAR(width(10) / width(1), std::sqrt(10.0), 0.8);
}

TEST(Statistics, VerdictsNeedAnIntervalWithoutZero) {
  EXPECT_EQ(verdict({-2, -1}), "better");
  EXPECT_EQ(verdict({1, 2}), "worse");
  EXPECT_EQ(verdict({-1, 1}), "no difference detected");
}

}  // namespace
}  // namespace gpusched
