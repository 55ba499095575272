// SPDX-License-Identifier: Apache-2.0
#include "src/base/rounded_parts.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {
namespace {

using Parts = std::vector<std::int64_t>;

Parts rounded(const Parts& parts, std::int64_t unit) { return rounded_parts<std::int64_t>(parts, unit); }

TEST(RoundedParts, WhatIsLeftGoesToTheLargestRemainders) {
  EXPECT_EQ(rounded({14, 14, 12}, 10), (Parts{2, 1, 1}));  // 4.0 of which 3 are whole; the first of equals
  EXPECT_EQ(rounded({4, 4, 4}, 10), (Parts{1, 0, 0}));
  EXPECT_EQ(rounded({-14, 29}, 10), (Parts{-1, 3}));
  EXPECT_EQ(rounded({}, 10), Parts{});
  const Parts parts{4, 4, 4};
  EXPECT_EQ(rounded_parts<std::int64_t>(parts, 10, 2), (Parts{1, 1, 0})) << "12, rounded up";
}

TEST(RoundedParts, AlwaysAddUpAndNoneIsAUnitOff) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Parts parts(1 + rng.below(9));
    for (std::int64_t& part : parts) part = static_cast<std::int64_t>(rng.below(2000)) - 1000;
    const std::int64_t unit = 1 + static_cast<std::int64_t>(rng.below(90));
    const Parts whole = rounded(parts, unit);
    const double sum = static_cast<double>(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
    const double of_whole = static_cast<double>(std::accumulate(whole.begin(), whole.end(), std::int64_t{0}));
    EXPECT_LE(std::abs(of_whole - sum / static_cast<double>(unit)), 0.5);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_LT(std::abs(static_cast<double>(parts[i]) / static_cast<double>(unit) - static_cast<double>(whole[i])), 1);
    }
  }
}

}  // namespace
}  // namespace gpusched
