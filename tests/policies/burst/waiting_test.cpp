// SPDX-License-Identifier: Apache-2.0
#include "src/policies/burst/waiting.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpusched {
namespace {

TEST(BurstWaiting, IsInProportionToWhatItNames) {
  EXPECT_EQ(burst_wait_h({BurstWait::no_wait, 0.25}, 8, 4), 0);
  EXPECT_EQ(burst_wait_h({BurstWait::constant, 0.25}, 8, 4), 0.25);
  EXPECT_EQ(burst_wait_h({BurstWait::linear_runtime, 0.25}, 8, 4), 2);
  EXPECT_EQ(burst_wait_h({BurstWait::linear_cost, 0.25}, 8, 4), 8);
  EXPECT_EQ(burst_wait_h({BurstWait::linear_capacity, 0.25}, 8, 4), 1);
}

RC_GTEST_PROP(BurstWaiting, GrowsWithItsFactorAlone, ()) {
  const double runtime_h = *rc::gen::inRange(1, 100), gpus = *rc::gen::inRange(1, 64);
  const double factor = *rc::gen::inRange(1, 50);
  for (const auto& [name, wait] : burst_wait_names) {
    const double once = burst_wait_h({wait, factor}, runtime_h, gpus);
    RC_ASSERT(burst_wait_h({wait, 2 * factor}, runtime_h, gpus) == 2 * once);
    const bool by_runtime = wait == BurstWait::linear_runtime || wait == BurstWait::linear_cost;
    RC_ASSERT(burst_wait_h({wait, factor}, 2 * runtime_h, gpus) == (by_runtime ? 2 : 1) * once);
    const bool by_gpus = wait == BurstWait::linear_capacity || wait == BurstWait::linear_cost;
    RC_ASSERT(burst_wait_h({wait, factor}, runtime_h, 2 * gpus) == (by_gpus ? 2 : 1) * once);
  }
}

}  // namespace
}  // namespace gpusched
