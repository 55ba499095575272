// SPDX-License-Identifier: Apache-2.0
// Tests of differences against published values, their errors under the null hypothesis, and what runs say together.
// tests/base/paired_tests_oracle.py compares them with SciPy and rliable.
#include "src/base/paired_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpusched {
namespace {

using Values = std::vector<double>;

// Heights of Darwin's cross- and self-fertilised maize in eighths of an inch (Fisher, The Design of Experiments, 1935,
// table 3); the sum of the negative ranks is 24, of 15 pairs p = 0.0413.
TEST(SignedRank, DarwinsMaize) {
  const Values differences{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
  const SignedRank found = signed_rank_test(differences);
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.negative, 24);
  EXPECT_EQ(found.positive, 96);
  EXPECT_DOUBLE_EQ(found.p, 0.041259765625);
  EXPECT_DOUBLE_EQ(found.rank_biserial, (96.0 - 24) / 120);
}

// Depression scale before and after therapy (Hollander and Wolfe, Nonparametric Statistical Methods, 1973, table 3.1):
// the statistic is 5, the one-sided p is 0.020.
TEST(SignedRank, HollanderAndWolfesPatients) {
  const Values before{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const Values after{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  Values differences;
  for (std::size_t i = 0; i < before.size(); ++i) differences.push_back(after[i] - before[i]);
  const SignedRank found = signed_rank_test(differences);
  EXPECT_EQ(found.positive, 5);
  EXPECT_DOUBLE_EQ(found.p, 2 * 10.0 / 512);
}

// Ranks of 1, 2, 2, 3 are 1, 2.5, 2.5, 4; with a zero that is ranked first (Pratt) they are 2, 3.5, 3.5, 5.
TEST(SignedRank, TiesShareTheirRanksAndZerosCountAsSaid) {
  const Values differences{0, 1, 2, -2, 3};
  const SignedRank pratt = signed_rank_test(differences);
  EXPECT_EQ(pratt.positive, 10.5);
  EXPECT_EQ(pratt.negative, 3.5);
  EXPECT_EQ(pratt.nonzero, 4u);
  EXPECT_DOUBLE_EQ(pratt.rank_biserial, 7.0 / 15);
  // Sums up to 3.5 among the 16: 0; 2; 3.5 twice. Both tails.
  EXPECT_DOUBLE_EQ(pratt.p, 2 * 4.0 / 16);
  const SignedRank wilcoxon = signed_rank_test(differences, ZeroDifferences::wilcoxon);
  EXPECT_EQ(wilcoxon.negative, 2.5);
  EXPECT_DOUBLE_EQ(wilcoxon.rank_biserial, 5.0 / 10);
  EXPECT_DOUBLE_EQ(wilcoxon.p, 2 * 4.0 / 16);
}

TEST(SignedRank, NothingSpeaksWhereNothingDiffers) {
  for (const Values& none : {Values{}, Values{0, 0, 0}}) {
    const SignedRank found = signed_rank_test(none);
    EXPECT_EQ(found.p, 1);
    EXPECT_EQ(found.rank_biserial, 0);
  }
  EXPECT_EQ(signed_rank_test(Values{3}).p, 1);
}

// All signs of twelve sizes: 174 of the 4,096 patterns have p below 0.05, as the table of critical values has it (sums
// up to 13), and of no pattern is p less than the share of patterns that are as extreme.
TEST(SignedRank, ErrsAsOftenAsItSaysUnderTheNullHypothesis) {
  Values p_values;
  for (unsigned signs = 0; signs < 4096; ++signs) {
    Values differences;
    for (unsigned i = 0; i < 12; ++i) differences.push_back((signs >> i & 1) != 0 ? 1.0 + i : -1.0 - i);
    p_values.push_back(signed_rank_test(differences).p);
  }
  EXPECT_EQ(std::count_if(p_values.begin(), p_values.end(), [](double p) { return p < 0.05; }), 174);
  std::sort(p_values.begin(), p_values.end());
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    const auto as_extreme = std::upper_bound(p_values.begin(), p_values.end(), p_values[i]) - p_values.begin();
    ASSERT_DOUBLE_EQ(p_values[i], static_cast<double>(as_extreme) / 4096);
  }
}

// Differences of a first-order autoregression with mean 0.
Values dependent(std::size_t count, double autocorrelation, Rng rng) {
  Values values;
  double value = rng.normal() / std::sqrt(1 - autocorrelation * autocorrelation);
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(value);
    value = autocorrelation * value + rng.normal();
  }
  return values;
}

// The share of 1,000 series whose p is below 0.05, of single windows and of blocks. Tolerance of the second: three
// standard deviations of the count above docs/evaluate.md's 10 %.
TEST(SignedRank, TreatsDependentWindowsAsFewer) {
  constexpr int trials = 1000;
  for (const double autocorrelation : {0.0, 0.3, 0.5, 0.7, 0.9}) {
    int single = 0, blocked = 0;
    for (int trial = 0; trial < trials; ++trial) {
      const Values series = dependent(80, autocorrelation, Rng(11).split(static_cast<std::uint64_t>(trial)));
      single += signed_rank_test(series).p < 0.05 ? 1 : 0;
      const auto found = blocked_signed_rank(series, 1);
      blocked += found && found->test.p < 0.05 ? 1 : 0;
    }
    EXPECT_LT(blocked, 0.10 * trials + 3 * std::sqrt(trials * 0.10 * 0.90)) << autocorrelation;
    if (autocorrelation == 0) {
      EXPECT_NEAR(single, 0.05 * trials, 3 * std::sqrt(trials * 0.05 * 0.95));
      EXPECT_GT(blocked, 0.02 * trials);
    }
    if (autocorrelation >= 0.5) {
      EXPECT_GT(single, 0.18 * trials) << autocorrelation;
    }
  }
}

TEST(SignedRank, SaysNothingOfTooFewBlocks) {
  Rng rng(2);
  Values values;
  for (int i = 0; i < 39; ++i) values.push_back(1 + rng.uniform());
  EXPECT_FALSE(blocked_signed_rank(values, 1));
  values.push_back(1.5);
  const auto found = blocked_signed_rank(values, 1);
  ASSERT_TRUE(found);
  EXPECT_LT(found->test.p, 1e-3);
  EXPECT_EQ(found->test.rank_biserial, 1);
  EXPECT_EQ(blocked_signed_rank(values, 4)->blocks, 10u);
  EXPECT_FALSE(blocked_signed_rank(values, 8));  // five blocks
}

// Fisher, The Design of Experiments, section 21: of the 2^15 sums of Darwin's differences 1,726 are as large as 314.
TEST(SignFlips, DarwinsMaize) {
  const Values differences{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
  Values ours, theirs;
  for (const double difference : differences) {
    ours.push_back(std::max(difference, 0.0));
    theirs.push_back(std::max(-difference, 0.0));
  }
  EXPECT_DOUBLE_EQ(sign_flip_test(ours, theirs).p, 1726.0 / 32768);
}

// Of six pairs all must lie on one side of a ratio that is rejected.
TEST(SignFlips, TheIntervalIsWhatIsNotRejected) {
  const auto found = sign_flip_test(Values{14, 15, 16, 17, 18, 19}, Values(6, 20));
  EXPECT_DOUBLE_EQ(found.p, 2.0 / 64);
  ASSERT_TRUE(found.relative);
  EXPECT_NEAR(found.relative->low, -0.3, 1e-12);
  EXPECT_NEAR(found.relative->high, -0.05, 1e-12);
  const auto worse = sign_flip_test(Values(6, 20), Values{14, 15, 16, 17, 18, 19});
  EXPECT_NEAR(worse.relative->low, 20. / 19 - 1, 1e-12);
  EXPECT_NEAR(worse.relative->high, 20. / 14 - 1, 1e-12);
  // The ends agree with p, and 0 of ours is -100 %.
  const auto none = sign_flip_test(Values(8, 0), Values(8, 3));
  EXPECT_EQ(none.relative->low, -1);
  EXPECT_LT(none.relative->high, 0);
  EXPECT_EQ(sign_flip_test(Values(8, 3), Values(8, 3)).p, 1);
}

// What one pair decides, or a reference of zeros, has no upper end.
TEST(SignFlips, NoIntervalWhereTheirsMayBeNothing) {
  EXPECT_FALSE(sign_flip_test(Values{5, 6, 7, 8, 9, 9}, Values(6, 0)).relative);
  EXPECT_FALSE(sign_flip_test(Values{5, 6, 7, 8, 9, 9}, Values{0, 0, 0, 0, 0, 4}).relative);
  const auto one = sign_flip_test(Values{10, 1, 2, 1, 2, 1, 2, 1}, Values{999, 1, 1, 2, 1, 2, 1, 2});
  EXPECT_GT(one.p, 0.05);
}

// Both sides are drawn alike, and one pair often makes the sum.
TEST(SignFlips, ErrsAtMostAsOftenAsItSaysUnderHeavyTails) {
  Rng rng(5);
  const auto normal = [&] { return std::sqrt(-2 * std::log(1 - rng.uniform())) * std::cos(2 * M_PI * rng.uniform()); };
  for (const std::size_t pairs : {6u, 8u, 15u, 20u}) {
    const int trials = pairs > 8 ? 300 : 2000;
    int wrong = 0;
    for (int trial = 0; trial < trials; ++trial) {
      Values ours(pairs), theirs(pairs);
      for (std::size_t i = 0; i < pairs; ++i) {
        const double level = std::exp(2 * normal());
        ours[i] = level * std::exp(2 * normal());
        theirs[i] = level * std::exp(2 * normal());
      }
      const auto found = sign_flip_test(ours, theirs);
      wrong += found.p <= 0.05 ? 1 : 0;
      if (found.relative) {
        EXPECT_EQ(found.p <= 0.05, found.relative->low > 0 || found.relative->high < 0);
      }
    }
    EXPECT_LE(wrong, trials * 0.05 + 3 * std::sqrt(trials * 0.05 * 0.95)) << pairs;
    EXPECT_GE(wrong, trials * 0.01) << pairs;
  }
}

// A ratio of 0.7 with a tenth of noise.
TEST(SignFlips, FindsADifference) {
  Rng rng(6);
  Values ours, theirs;
  for (int i = 0; i < 20; ++i) {
    theirs.push_back(10 + rng.uniform());
    ours.push_back(0.7 * theirs.back() * (0.95 + 0.1 * rng.uniform()));
  }
  const auto found = sign_flip_test(ours, theirs);
  EXPECT_LE(found.p, 0.001);
  EXPECT_LT(found.relative->low, -0.3);
  EXPECT_GT(found.relative->high, -0.3);
  EXPECT_LT(found.relative->high - found.relative->low, 0.05);
}

TEST(Holm, StepsDown) {
  const Values corrected = holm_corrected(Values{0.01, 0.04, 0.03, 0.005});
  const Values expected{0.03, 0.06, 0.06, 0.02};  // 0.005 x 4, 0.01 x 3, 0.03 x 2, and not below that
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(corrected[i], expected[i]);
  EXPECT_EQ(holm_corrected(Values{0.6, 0.9}), (Values{1, 1}));
  EXPECT_TRUE(holm_corrected(Values{}).empty());
}

// Six policies that are as good as the reference, whose noise they share: in how many of 2,000 experiments is any of
// them called different? Tolerance: three standard deviations of the count.
TEST(Holm, KeepsTheErrorOfTheWholeFamily) {
  constexpr int trials = 2000;
  int single = 0, corrected = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Rng rng = Rng(5).split(static_cast<std::uint64_t>(trial));
    Values reference(20), p_values;
    for (double& value : reference) value = rng.normal();
    for (int policy = 0; policy < 6; ++policy) {
      Values differences;
      for (const double other : reference) differences.push_back(rng.normal() - other);
      p_values.push_back(signed_rank_test(differences).p);
    }
    const Values holm = holm_corrected(p_values);
    single += *std::min_element(p_values.begin(), p_values.end()) <= 0.05 ? 1 : 0;
    corrected += *std::min_element(holm.begin(), holm.end()) <= 0.05 ? 1 : 0;
  }
  EXPECT_LT(corrected, 0.05 * trials + 3 * std::sqrt(trials * 0.05 * 0.95));
  EXPECT_GT(corrected, 0.01 * trials);
  EXPECT_GT(single, 0.12 * trials);
}

TEST(Runs, ProbabilityOfImprovementCountsPairsOfRuns) {
  // Window 0: 1 and 3 against 2 and 3: below in two pairs, equal in one, above in one. Window 1: all equal.
  EXPECT_DOUBLE_EQ(probability_below({{1, 5}, {3, 5}}, {{2, 5}, {3, 5}}), (2.5 / 4 + 0.5) / 2);
}

TEST(Runs, InterquartileMeanOfRatiosTakesAllRunsAndWindows) {
  // Ratios 0.5, 1, 2, 9: the middle half is 1 and 2.
  EXPECT_DOUBLE_EQ(*normalised_interquartile_mean({{1, 4}, {4, 36}}, {{2, 4}}), 1.5);
  EXPECT_FALSE(normalised_interquartile_mean({{1, 4}}, {{2, 0}}));
}

// Five seeds that fare alike in all windows: drawn whole their spread shows, drawn window by window it would vanish.
TEST(Runs, IntervalsDrawRunsWhole) {
  Rng rng(4);
  RunScores ours(6), theirs(1);
  for (int w = 0; w < 60; ++w) {
    theirs[0].push_back(10 + rng.uniform());
    for (std::size_t run = 0; run < ours.size(); ++run) ours[run].push_back(run < 3 ? 9 : 12);
  }
  const auto found = run_intervals(ours, theirs, Rng(1));
  ASSERT_TRUE(found);
  EXPECT_LT(found->below.low, 0.2);
  EXPECT_GT(found->below.high, 0.8);
  EXPECT_LT(found->normalised->low, 0.9);
  EXPECT_GT(found->normalised->high, 1.1);
  ours.resize(4);
  EXPECT_FALSE(run_intervals(ours, theirs, Rng(1)));
  EXPECT_FALSE(run_intervals(theirs, theirs, Rng(1)));
}

}  // namespace
}  // namespace gpusched
