// SPDX-License-Identifier: Apache-2.0
#include "gpusched/core/types.hpp"

#include <gtest/gtest.h>

namespace gpusched {
namespace {

TEST(Types, SecondsRoundToTheNearestMicrosecondHalvesAwayFromZero) {
  EXPECT_EQ(from_seconds(1.5).us, 1'500'000);
  EXPECT_EQ(from_seconds(0.0000014).us, 1);
  EXPECT_EQ(from_seconds(0.0000015).us, 2);
  EXPECT_EQ(from_seconds(-0.0000015).us, -2);
  EXPECT_EQ(whole_seconds(3), from_seconds(3));
  EXPECT_DOUBLE_EQ(to_seconds(Time{2'500'000}), 2.5);
}

TEST(Types, TimesAddAndCompareAsIntegers) {
  Time t = whole_seconds(5) + Time{1};
  t -= whole_seconds(2);
  EXPECT_EQ(t, Time{3'000'001});
  EXPECT_LT(whole_seconds(3), t);
  EXPECT_GT(Time::max(), whole_seconds(9'000'000'000'000));
}

TEST(Types, MulDivKeepsProductsWiderThan64Bits) {
  const std::int64_t big = 4'000'000'000'000'000'000;
  EXPECT_EQ(mul_div(big, 999, 1000), big / 1000 * 999);
  EXPECT_EQ(mul_div(7, 3, 2), 10);
  EXPECT_EQ(mul_div_up(7, 3, 2), 11);
  EXPECT_EQ(mul_div_up(8, 3, 2), 12);
}

}  // namespace
}  // namespace gpusched
