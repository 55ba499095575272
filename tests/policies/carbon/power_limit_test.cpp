// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/power_limit.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace gpusched {
namespace {

// 100 W: 20 s at 90 W; 200 W: 12 s at 160 W; 300 W: 10 s at 240 W. Joules: 1800, 1920, 2400.
const std::vector<LimitedRun> three{{100, 20, 90}, {200, 12, 160}, {300, 10, 240}};

TEST(ZeusChoice, WeighsEnergyAgainstTime) {
  EXPECT_EQ(zeus_cost(three[1], 0.5, 300), 0.5 * 1920 + 0.5 * 3600);
  EXPECT_EQ(zeus_choice(three, 1, 300), 0u);    // energy alone
  EXPECT_EQ(zeus_choice(three, 0, 300), 2u);    // time alone
  EXPECT_EQ(zeus_choice(three, 0.5, 300), 2u);  // 3900, 2760, 2700
  EXPECT_EQ(zeus_choice(three, 0.6, 300), 1u);  // 3480, 2592, 2640
}

TEST(ZeusChoice, TakesTheSmallerLimitOfEquals) {
  const std::vector<LimitedRun> equal{{300, 10, 100}, {200, 10, 100}, {250, 10, 100}};
  EXPECT_EQ(zeus_choice(equal, 0.5, 300), 1u);
}

// The order of the runs and the length of the work do not matter; energy never rises with what it is worth.
RC_GTEST_PROP(ZeusChoice, DependsOnTheRunsAlone, ()) {
  std::vector<LimitedRun> runs;
  for (int i = *rc::gen::inRange(1, 8); i > 0; --i) {
    runs.push_back({100.0 + i, static_cast<double>(*rc::gen::inRange(1, 64)), 4.0 * *rc::gen::inRange(1, 64)});
  }
  const double eta = *rc::gen::inRange(0, 9) / 8.0;
  const LimitedRun chosen = runs[zeus_choice(runs, eta, 512)];
  const std::vector<LimitedRun> backwards(runs.rbegin(), runs.rend());
  RC_ASSERT(backwards[zeus_choice(backwards, eta, 512)].limit_w == chosen.limit_w);
  std::vector<LimitedRun> twice = runs;
  for (LimitedRun& run : twice) run.time_s *= 2;
  RC_ASSERT(twice[zeus_choice(twice, eta, 512)].limit_w == chosen.limit_w);
  for (const double more : {eta, (1 + eta) / 2, 1.0}) {
    RC_ASSERT(runs[zeus_choice(runs, more, 512)].energy_j() <= chosen.energy_j());
  }
}

}  // namespace
}  // namespace gpusched
