// SPDX-License-Identifier: Apache-2.0
// Effects on jobs worked out by hand, and what their intervals must be. Coverage is in interval_grid_test.cpp and
// tests/sim/log_coverage_test.cpp.
#include "src/base/job_effects.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {
namespace {

using RunValues = std::vector<std::vector<double>>;

const EffectEstimate& of(const std::vector<EffectEstimate>& effects, JobEffect effect) {
  return *std::find_if(effects.begin(), effects.end(), [&](const auto& one) { return one.effect == effect; });
}

std::vector<EffectEstimate> values_of(const RunValues& ours, const RunValues& theirs) {
  return job_effects({ours, theirs}, {.count = 1, .jobs = ours.front().size()}, 1, Rng(0));
}

TEST(JobEffects, ByHand) {
  RunValues ours(1), theirs(1);
  for (int i = 1; i <= 100; ++i) {
    ours[0].push_back(i);
    theirs[0].push_back(2 * i);
  }
  ours[0][0] = 2;     // as theirs
  ours[0][99] = 300;  // the largest, and worse than theirs
  const auto effects = values_of(ours, theirs);
  ASSERT_EQ(effects.size(), job_effect_names.size());
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::mean).ours, (5050 + 1 + 200) / 100.0);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::mean).theirs, 101);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::trimmed_mean).ours, (95.0 * 96 / 2 + 1) / 95);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::winsorised_mean).ours, (95.0 * 96 / 2 + 1 + 5 * 95) / 100);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::median).ours, 50.5);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::p90).theirs, 2 * 90.1);
  EXPECT_NEAR(of(effects, JobEffect::p99).ours, 99 + 201 * 0.01, 1e-9);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::better_off).ours, 0.98);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::better_off).theirs, 0.01);
  EXPECT_DOUBLE_EQ(of(effects, JobEffect::better_off).difference(), 0.97);
  EXPECT_EQ(of(effects, JobEffect::better_off).direction(), -1);
  EXPECT_EQ(of(effects, JobEffect::mean).direction(), -1);
  for (const EffectEstimate& effect : effects) EXPECT_FALSE(effect.interval) << "one batch gives none";
}

// Of all pairs of one job of each side, by the definition.
TEST(JobEffects, ARandomJobIsOneOfAllPairs) {
  Rng rng = Rng(4).split("pairs");
  RunValues ours(2), theirs(1);
  for (int i = 0; i < 60; ++i) {
    ours[0].push_back(static_cast<double>(rng.below(9)));
    ours[1].push_back(static_cast<double>(rng.below(7)));
    theirs[0].push_back(static_cast<double>(rng.below(8)));
  }
  double wins = 0, better = 0, worse = 0;
  for (const auto& run : ours) {
    for (std::size_t i = 0; i < 60; ++i) {
      better += run[i] < theirs[0][i] ? 1 : 0;
      worse += run[i] > theirs[0][i] ? 1 : 0;
      for (const double other : theirs[0]) wins += run[i] < other ? 1 : run[i] == other ? 0.5 : 0;
    }
  }
  const auto effects = values_of(ours, theirs);
  EXPECT_NEAR(of(effects, JobEffect::random_job).ours, wins / (120 * 60), 1e-12);
  EXPECT_NEAR(of(effects, JobEffect::random_job).theirs, 1 - wins / (120 * 60), 1e-12);
  EXPECT_NEAR(of(effects, JobEffect::better_off).ours, better / 120, 1e-12);
  EXPECT_NEAR(of(effects, JobEffect::better_off).theirs, worse / 120, 1e-12);
}

RunValues drawn(std::size_t jobs, double mean_log, std::uint64_t seed) {
  Rng rng = Rng(seed).split("jobs");
  RunValues values(1);
  for (std::size_t i = 0; i < jobs; ++i) values[0].push_back(rng.lognormal(mean_log, 1));
  return values;
}

TEST(JobEffects, TellsADifferenceAndHowMuchLogTellsASmallOne) {
  const BatchPlan plan{.count = 40, .jobs = 2000};
  const auto large = job_effects({drawn(2000, 0, 1), drawn(2000, 0.5, 2)}, plan, 1, Rng(0));
  for (const EffectEstimate& effect : large) {
    ASSERT_TRUE(effect.interval) << static_cast<int>(effect.effect);
    EXPECT_EQ(effect.direction(), -1);
    if (effect.effect == JobEffect::p99) continue;  // 20 jobs lie above it
    EXPECT_LE(effect.p, 0.05) << static_cast<int>(effect.effect);
    EXPECT_LE(effect.needed.value_or(9), 1) << static_cast<int>(effect.effect);
    EXPECT_TRUE(effect.interval->high < 0 || effect.interval->low > 0);
  }
  const auto small = job_effects({drawn(2000, 0, 1), drawn(2000, 0.02, 2)}, plan, 1, Rng(0));
  const EffectEstimate& median = of(small, JobEffect::median);
  EXPECT_GT(median.p, 0.05);
  ASSERT_TRUE(median.needed);
  EXPECT_GT(*median.needed, 1);
  // More comparisons need more log.
  EXPECT_GT(*of(job_effects({drawn(2000, 0, 1), drawn(2000, 0.02, 2)}, plan, 20, Rng(0)), JobEffect::median).needed,
            *median.needed);
}

TEST(JobEffects, OfOneRunWithItselfIsNone) {
  const RunValues values = drawn(2000, 0, 3);
  for (const EffectEstimate& effect : job_effects({values, values}, {.count = 40, .jobs = 2000}, 1, Rng(0))) {
    if (is_share(effect.effect)) {
      EXPECT_NEAR(effect.difference(), 0, 1e-12);
      continue;
    }
    ASSERT_TRUE(effect.interval);
    EXPECT_EQ(effect.interval->low, 0);
    EXPECT_EQ(effect.interval->high, 0);
    EXPECT_EQ(effect.p, 1);
    EXPECT_FALSE(effect.needed);
  }
}

// Waits are often 0: a median of 0 has no ratio, and its difference is told in seconds.
TEST(JobEffects, OfZerosAreDifferences) {
  RunValues ours(1, std::vector<double>(2000, 0.0)), theirs = ours;
  for (std::size_t i = 0; i < 2000; i += 4) theirs[0][i] = 10;
  const auto effects = job_effects({ours, theirs}, {.count = 20, .jobs = 2000}, 1, Rng(0));
  const EffectEstimate& mean = of(effects, JobEffect::mean);
  EXPECT_FALSE(mean.relative);
  EXPECT_DOUBLE_EQ(mean.difference(), -2.5);
  ASSERT_TRUE(mean.interval);
  EXPECT_LT(mean.interval->high, 0);
  const EffectEstimate& median = of(effects, JobEffect::median);
  EXPECT_EQ(median.difference(), 0);
  ASSERT_TRUE(median.interval);
  EXPECT_EQ(median.interval->low, 0);
  EXPECT_EQ(median.interval->high, 0);
}

// Half of the total in one batch: the interval of the ratio of totals must not tell, those of quantiles may.
TEST(JobEffects, OneBatchDoesNotTell) {
  RunValues ours = drawn(4000, 0, 5), theirs = drawn(4000, 0.3, 6);
  for (std::size_t i = 2000; i < 2100; ++i) ours[0][i] = 100;
  const auto effects = job_effects({ours, theirs}, {.count = 40, .jobs = 4000}, 1, Rng(0));
  EXPECT_GT(of(effects, JobEffect::mean).difference(), 0);
  EXPECT_GT(of(effects, JobEffect::mean).p, 0.05);
  EXPECT_LE(of(effects, JobEffect::median).p, 0.05);
  EXPECT_EQ(of(effects, JobEffect::median).direction(), -1);
}

// Seeds that differ widely make an interval wide, however many jobs each ran.
TEST(JobEffects, CountsHowFarRunsDiffer) {
  RunValues ours, theirs = drawn(4000, 0.2, 9);
  for (const double mean_log : {-0.4, 0.0, 0.4, -0.2}) ours.push_back(drawn(4000, mean_log, 7).front());
  const BatchPlan plan{.count = 40, .jobs = 4000};
  const auto all = job_effects({ours, theirs}, plan, 1, Rng(0));
  const auto one = job_effects({{ours[1]}, theirs}, plan, 1, Rng(0));
  const auto width = [](const EffectEstimate& effect) { return effect.interval->high - effect.interval->low; };
  EXPECT_GT(width(of(all, JobEffect::median)), 3 * width(of(one, JobEffect::median)));
  EXPECT_GT(of(all, JobEffect::median).p, 0.05);
  EXPECT_LE(of(one, JobEffect::median).p, 0.05);
}

TEST(Batches, AreAsLongAsTheQueueIsRemembered) {
  Rng rng = Rng(1).split("queue");
  std::vector<double> noise, slow;
  double level = 0;
  for (int i = 0; i < 20'000; ++i) {
    noise.push_back(rng.normal());
    level = std::exp(-1 / 50.0) * level + rng.normal();
    slow.push_back(level);
  }
  EXPECT_LE(memory_of(noise), 12u);
  // e^(-150 / 50) = 0.05, twice.
  EXPECT_NEAR(static_cast<double>(memory_of(slow)), 300, 120);
  EXPECT_EQ(memory_of(std::vector<double>(1000, 3.0)), 1u);
  std::vector<double> walk(5000);
  for (std::size_t i = 1; i < walk.size(); ++i) walk[i] = walk[i - 1] + 1;
  EXPECT_GT(memory_of(walk), walk.size() / least_batches);
}

TEST(Batches, HaveEveryJobOnce) {
  for (const std::size_t jobs : {1u, 7u, 200u, 201u, 4999u, 100'000u}) {
    for (const std::size_t memory : {1u, 30u, 1000u}) {
      const BatchPlan plan = plan_batches(jobs, memory);
      EXPECT_EQ(plan.first(0), 0u);
      EXPECT_EQ(plan.first(plan.count), jobs);
      EXPECT_LE(plan.count, most_batches);
      EXPECT_TRUE(plan.count == 1 || plan.batch_jobs() >= std::max(memory, least_batch_jobs));
      EXPECT_EQ(plan.enough(), jobs >= least_batches * std::max(memory, least_batch_jobs));
    }
  }
}

}  // namespace
}  // namespace gpusched
