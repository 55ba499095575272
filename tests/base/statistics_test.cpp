// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.hpp"

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

TEST(Statistics, WithOneRunTheStratifiedIntervalIsThatOfThePairedDifferences) {
  Rng rng(5);
  std::vector<double> ours(40), theirs(40), differences(40);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    theirs[i] = 10 + rng.normal();
    differences[i] = 1 + 0.1 * rng.normal();
    ours[i] = theirs[i] + differences[i];
  }
  const PairedIntervals paired = stratified_bootstrap({ours}, {theirs}, 4, Rng(9), 3000);
  const ConfidenceInterval plain = block_bootstrap(differences, 4, Rng(9), 3000);
  EXPECT_NEAR(paired.difference.low, plain.low, 1e-12);
  EXPECT_NEAR(paired.difference.high, plain.high, 1e-12);
  // What the windows share cancels: far narrower than either side's own interval.
  const ConfidenceInterval own = block_bootstrap(ours, 4, Rng(9), 3000);
  EXPECT_LT(plain.high - plain.low, 0.3 * (own.high - own.low));
  EXPECT_NEAR(paired.relative.low, 0.1, 0.02);
}

// Five seeds that differ everywhere by a constant: the windows say nothing, so that the interval is that of the
// interquartile mean of five draws, which is the mean of the middle three.
TEST(Statistics, SeedsAreDrawnWhole) {
  RunScores runs;
  for (const double level : {0.0, 1.0, 2.0, 3.0, 4.0}) runs.emplace_back(30, level);
  EXPECT_DOUBLE_EQ(interquartile_mean_of_runs(runs), 2);
  const RunScores nothing{std::vector<double>(30, 0.0)};
  const ConfidenceInterval interval = stratified_bootstrap(runs, nothing, 3, Rng(1)).difference;
  // Exactly, by enumeration of the 3125 draws: the 2.5 % and 97.5 % quantiles are 1/3 and 11/3.
  EXPECT_NEAR(interval.low, 1.0 / 3, 1e-9);
  EXPECT_NEAR(interval.high, 11.0 / 3, 1e-9);
  EXPECT_EQ(stratified_bootstrap({runs[2]}, nothing, 3, Rng(1)).difference.high, 2);
}

TEST(Statistics, BlocksMustFitTwice) {
  EXPECT_TRUE(enough_for_blocks(4, 2));
  EXPECT_FALSE(enough_for_blocks(3, 2));
  EXPECT_FALSE(enough_for_blocks(1, 1));
}

TEST(Statistics, VerdictsNeedAnIntervalWithoutZero) {
  EXPECT_EQ(verdict({-2, -1}), "better");
  EXPECT_EQ(verdict({1, 2}), "worse");
  EXPECT_EQ(verdict({-1, 1}), "no difference detected");
}

}  // namespace
}  // namespace gpusched
