// SPDX-License-Identifier: Apache-2.0
#include "src/sim/decision_times.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpusched::test {
namespace {

TEST(DecisionTimes, AreExactBelow64Nanoseconds) {
  DecisionTimes times;
  EXPECT_EQ(times.quantile_us(0.5), 0);
  EXPECT_EQ(times.mean_us(), 0);
  for (int ns = 1; ns <= 50; ++ns) times.add(ns);
  EXPECT_EQ(times.count(), 50u);
  EXPECT_DOUBLE_EQ(times.mean_us(), 0.0255);
  EXPECT_DOUBLE_EQ(times.quantile_us(0.5), 0.025);
  EXPECT_DOUBLE_EQ(times.quantile_us(0.99), 0.050);
  EXPECT_DOUBLE_EQ(times.longest_us(), 0.050);
}

RC_GTEST_PROP(DecisionTimes, QuantilesAreWithinOneSixtyFourth, ()) {
  auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::map(rc::gen::inRange(0, 60), [](int bits) { return (std::int64_t{1} << bits) + bits * 12'345; })));
  DecisionTimes times;
  for (const std::int64_t value : values) times.add(value);
  std::sort(values.begin(), values.end());
  const double q = *rc::gen::inRange(1, 1001) / 1000.0;
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
  const double truth = static_cast<double>(values[rank - 1]) / 1000;
  RC_ASSERT(times.quantile_us(q) >= truth * (1 - 1e-12));
  RC_ASSERT(times.quantile_us(q) <= truth * (1 + 1.0 / 64) + 1e-12);
}

}  // namespace
}  // namespace gpusched::test
