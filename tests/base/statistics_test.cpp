// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gpusched {
namespace {

TEST(Statistics, InterquartileMeanLeavesTheTailsOut) {
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1000, 2, 3, -500}), 2.5);
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1, 5}), 3);
}

// 60 independent normal differences: the interval must hold the true mean in 95 of 100 cases, neither much less nor
// much more. Tolerance: three standard deviations of the count.
TEST(Statistics, IntervalsHoldTheMeanOfNormalDifferences) {
  int given = 0, covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Rng rng = Rng(7).split(static_cast<std::uint64_t>(trial));
    std::vector<double> ours(60), theirs(60);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      theirs[i] = 20 + rng.normal();
      ours[i] = theirs[i] + 3 + rng.normal();
    }
    const auto interval = paired_intervals({ours}, {theirs}, 1, rng.split("bootstrap"), 399);
    if (!interval) continue;
    ++given;
    covered += interval->difference.low <= 3 && 3 <= interval->difference.high ? 1 : 0;
  }
  EXPECT_GT(given, 1850);
  EXPECT_NEAR(covered, 0.95 * given, 0.016 * given);
}

// Percentile intervals of independent windows held in 23 to 56 % of cases where windows depend on each other.
TEST(Statistics, DependentValuesCountForLess) {
  Rng rng(3);
  std::vector<double> values, nothing(400, 0.0), independent(400);
  for (int run = 0; run < 40; ++run) values.insert(values.end(), 10, 5 + rng.normal());
  for (double& value : independent) value = 5 + rng.normal();
  EXPECT_EQ(block_length(independent), 1u);
  EXPECT_GE(block_length(values), 6u);
  EXPECT_LT(effective_count(values, 1), 60);
  EXPECT_GT(effective_count(independent, 1), 250);
  const auto width = [&](const std::vector<double>& of) {
    const auto interval = paired_intervals({of}, {nothing}, 1, Rng(1));
    return interval ? interval->difference.high - interval->difference.low : 0;
  };
  EXPECT_GT(width(values), 2 * width(independent));
}

TEST(Statistics, WhatTheWindowsShareCancels) {
  Rng rng(5);
  std::vector<double> ours(40), theirs(40), nothing(40, 0.0);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    theirs[i] = 10 + rng.normal();
    ours[i] = theirs[i] + 1 + 0.1 * rng.normal();
  }
  const auto paired = paired_intervals({ours}, {theirs}, 1, Rng(9));
  const auto own = paired_intervals({ours}, {nothing}, 1, Rng(9));
  ASSERT_TRUE(paired && own);
  EXPECT_LT(paired->difference.high - paired->difference.low, 0.3 * (own->difference.high - own->difference.low));
  EXPECT_NEAR(paired->relative.low, 0.1, 0.02);
}

// Five seeds that differ everywhere by a constant: the windows say nothing, and Student's t with four degrees of
// freedom says how far the mean of the seeds may lie from that of others.
TEST(Statistics, SeedsAreDrawnWhole) {
  RunScores runs;
  for (const double level : {0.0, 1.0, 2.0, 3.0, 4.0}) runs.emplace_back(40, level);
  EXPECT_DOUBLE_EQ(interquartile_mean_of_runs(runs), 2);
  const RunScores nothing{std::vector<double>(40, 0.0)};
  const auto interval = paired_intervals(runs, nothing, 1, Rng(1));
  ASSERT_TRUE(interval);
  EXPECT_LT(interval->difference.low, 2 - 1.2);
  EXPECT_GT(interval->difference.low, 2 - 4);
  const auto constant = paired_intervals({runs[2]}, nothing, 1, Rng(1));
  ASSERT_TRUE(constant);
  EXPECT_EQ(constant->difference.high, 2);
}

// A quarter in nearly all windows. Resamples without the others passed for exact, and this interval had no upper end.
TEST(Statistics, FewWindowsThatDifferDoNotStretchAnInterval) {
  Rng rng(11);
  std::vector<double> ours(60), theirs(60);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    theirs[i] = 0.5 + 0.1 * rng.normal();
    ours[i] = theirs[i] * (i == 20 || i == 21 ? 0.28 : 0.25);
  }
  const auto interval = paired_intervals({ours}, {theirs}, 1, Rng(1));
  ASSERT_TRUE(interval) << interval.error().message;
  EXPECT_LT(interval->relative.high, -0.7);
  EXPECT_GT(interval->relative.low, -0.8);
}

std::string reason(const std::vector<double>& ours, const std::vector<double>& theirs, std::size_t overlap = 1,
                   WindowMean mean = WindowMean::arithmetic) {
  const auto interval = paired_intervals({ours}, {theirs}, overlap, Rng(1), 99, mean);
  return interval ? "" : interval.error().message;
}

// All reasons were called "too few windows".
TEST(Statistics, EachReasonForNoIntervalHasItsWords) {
  Rng rng(8);
  const auto series = [&](std::size_t count, std::size_t different) {
    std::vector<double> values(count, 0.0);
    for (std::size_t i = 0; i < different; ++i)
      values[i * count / std::max<std::size_t>(different, 1)] = 1 + rng.normal();
    return values;
  };
  const auto why = [&](std::size_t count, std::size_t different, std::size_t overlap) {
    return reason(series(count, different), std::vector<double>(count, 0.0), overlap);
  };
  EXPECT_EQ(why(39, 39, 1), "too few windows");
  EXPECT_EQ(why(200, 200, 1), "");
  EXPECT_EQ(why(200, 9, 1), "too few windows differ");
  EXPECT_EQ(why(200, 200, 25), "too few windows");  // eight blocks
  std::vector<double> slow(200);
  for (std::size_t i = 0; i < slow.size(); ++i) slow[i] = std::sin(0.02 * static_cast<double>(i)) + 0.01 * rng.normal();
  EXPECT_EQ(reason(slow, std::vector<double>(200, 0.0)).rfind("windows too alike in time (effective blocks ", 0), 0u);
  const auto same = paired_intervals({series(40, 0)}, {std::vector<double>(40, 0.0)}, 1, Rng(1), 99);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->difference.low, 0);
  EXPECT_EQ(verdict(same->difference), "no difference detected");
}

// One window that holds most of the difference is no reason to keep the samples without it; tails in all windows are.
TEST(Statistics, HeavyTailsGiveNoInterval) {
  Rng rng(4);
  std::vector<double> normal(80), skewed(80), heavy(80), one_sided(80), nothing(80, 0.0);
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const double z = rng.normal();
    normal[i] = 5 + z;
    skewed[i] = std::exp(0.5 * z);
    heavy[i] = (i % 2 == 0 ? 1 : -1) * std::exp(3 * z);
    one_sided[i] = std::exp(2 * z);
  }
  EXPECT_NEAR(tail_index(normal), 0.6, 0.15);
  EXPECT_GT(tail_index(heavy), 1.5);
  EXPECT_EQ(tail_index(nothing), 0);
  EXPECT_NEAR(asymmetry(normal), 0, 0.5);
  EXPECT_GT(asymmetry(one_sided), 1.8);
  EXPECT_EQ(asymmetry(nothing), 0);
  EXPECT_EQ(reason(normal, nothing), "");
  EXPECT_EQ(reason(skewed, nothing), "");
  EXPECT_EQ(reason(heavy, nothing), "differences too heavy-tailed");
  EXPECT_EQ(reason(one_sided, nothing), "differences too heavy-tailed");
  const double before = tail_index(normal);
  normal[3] = 1e6;
  EXPECT_LT(tail_index(normal), before + 0.35);
}

// Two hours beside one hour and two seconds beside one count alike.
TEST(Statistics, GeometricMeansCountRatios) {
  Rng rng(6);
  std::vector<double> ours(60), theirs(60);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    theirs[i] = std::exp(3 * rng.normal());
    ours[i] = 2 * theirs[i] * std::exp(0.01 * rng.normal());
  }
  EXPECT_EQ(reason(ours, theirs), "differences too heavy-tailed");
  const auto interval = paired_intervals({ours}, {theirs}, 1, Rng(1), 99, WindowMean::geometric);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->relative.low, 1, 0.03);
  EXPECT_NEAR(interval->relative.high, 1, 0.03);
  const double level = *interquartile_mean_of_runs({theirs}, WindowMean::geometric);
  EXPECT_DOUBLE_EQ(interval->difference.low, level * interval->relative.low);
  EXPECT_DOUBLE_EQ(*interquartile_mean_of_runs({{1, 4}, {2, 8}}, WindowMean::geometric), std::sqrt(8.0));
  ours[5] = 0;
  EXPECT_EQ(reason(ours, theirs, 1, WindowMean::geometric), "no ratio where a window has 0");
  EXPECT_FALSE(interquartile_mean_of_runs({ours}, WindowMean::geometric));  // used to be 0
}

TEST(Statistics, StudentsTailsAreTheTables) {
  for (const double freedom : {1.0, 2.0, 5.0, 10.0, 40.0, 200.0}) {
    EXPECT_NEAR(student_t_p(student_t_quantile(freedom), freedom), 0.05, 2e-4) << freedom;
    EXPECT_NEAR(student_t_p(-student_t_quantile(freedom), freedom), 0.05, 2e-4) << freedom;
    EXPECT_EQ(student_t_p(0, freedom), 1);
  }
  EXPECT_NEAR(student_t_p(1, 1), 0.5, 1e-12);  // Cauchy's quartiles
  EXPECT_NEAR(student_t_p(4.032, 5), 0.01, 1e-5);
  EXPECT_NEAR(student_t_p(3.291, 1e6), 0.001, 2e-6);
  EXPECT_EQ(student_t_p(1e200, 3), 0);
}

// p is at most 0.05 just where the interval is without 0, of one run and of several.
TEST(Statistics, PIsThatOfTheInterval) {
  int told = 0, untold = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng = Rng(seed).split("pairs");
    RunScores ours(seed % 3 == 0 ? 4 : 1, std::vector<double>(50)), theirs(1, std::vector<double>(50));
    for (std::vector<double>& run : ours) {
      const double own = ours.size() > 1 ? 0.3 * rng.normal() : 0;
      for (double& value : run) value = 10 + own + 0.05 * static_cast<double>(seed % 10) + rng.normal();
    }
    for (double& value : theirs[0]) value = 10 + rng.normal();
    const auto intervals = paired_intervals(ours, theirs, 1, Rng(seed), 399);
    if (!intervals) continue;
    const bool without_zero = intervals->relative.low > 0 || intervals->relative.high < 0;
    EXPECT_EQ(intervals->p <= 0.05, without_zero) << seed << " " << intervals->p;
    (without_zero ? told : untold) += 1;
  }
  EXPECT_GT(told, 5);
  EXPECT_GT(untold, 5);
}

TEST(Statistics, VerdictsNeedAnIntervalWithoutZero) {
  EXPECT_EQ(verdict({-2, -1}), "better");
  EXPECT_EQ(verdict({1, 2}), "worse");
  EXPECT_EQ(verdict({-1, 1}), "no difference detected");
}

}  // namespace
}  // namespace gpusched
