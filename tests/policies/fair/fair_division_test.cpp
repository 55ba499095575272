// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/fair_division.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/differential/check_many.hpp"

namespace gpusched {
namespace {

/// Weighted max-min from its definition: whoever demands no more than an equal part gets that, and the rest is divided
/// anew.
std::vector<std::int64_t> deserved(std::int64_t total, const std::vector<std::int64_t>& weights,
                                   const std::vector<std::int64_t>& demands) {
  std::vector<std::int64_t> shares(weights.size(), 0);
  std::vector<bool> satisfied(weights.size(), false);
  for (bool again = true; again;) {
    again = false;
    std::int64_t left = total, weight_sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      satisfied[i] ? left -= shares[i] : weight_sum += weights[i];
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (satisfied[i]) continue;
      shares[i] = mul_div(left, weights[i], weight_sum);
      if (demands[i] > shares[i]) continue;
      shares[i] = demands[i];
      satisfied[i] = again = true;
    }
  }
  return shares;
}

std::vector<std::int64_t> shares_of(std::int64_t total, const std::vector<std::int64_t>& weights,
                                    const std::vector<std::int64_t>& demands) {
  FairDivision division(weights);
  std::vector<std::int64_t> shares;
  for (std::size_t i = 0; i < demands.size(); ++i) division.demand(i, demands[i]);
  division.divide(total);
  for (std::size_t i = 0; i < demands.size(); ++i) shares.push_back(division.share(i));
  return shares;
}

TEST(FairDivision, WhatOneLeavesGoesToTheOthersByWeight) {
  EXPECT_EQ(shares_of(100, {1, 1, 2}, {10, 1000, 1000}), (std::vector<std::int64_t>{10, 30, 60}));
  EXPECT_EQ(shares_of(100, {1, 1}, {10, 20}), (std::vector<std::int64_t>{10, 20}));
  EXPECT_EQ(shares_of(90, {1, 1, 1}, {1000, 1000, 1000}), (std::vector<std::int64_t>{30, 30, 30}));
}

TEST(FairDivision, FollowsChangesOfDemandsAndOfTheTotal) {
  test::check_many(3000, [] {
    const auto weights = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::element<std::int64_t>(1000, 1, 2500, 3)));
    std::vector<std::int64_t> demands(weights.size(), 0);
    FairDivision division(weights);
    const int changes = *rc::gen::inRange(1, 30);
    for (int change = 0; change < changes; ++change) {
      const auto who = *rc::gen::inRange<std::size_t>(0, weights.size());
      demands[who] = *rc::gen::weightedOneOf<std::int64_t>(
          {{9, rc::gen::inRange<std::int64_t>(0, 9)}, {1, rc::gen::just(std::int64_t{1} << 62)}});
      division.demand(who, demands[who]);
      if (*rc::gen::arbitrary<bool>()) continue;
      const auto total = *rc::gen::inRange<std::int64_t>(0, 40);
      division.divide(total);
      const std::vector<std::int64_t> expected = deserved(total, weights, demands);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        RC_ASSERT(division.share(i) == expected[i]);
        RC_ASSERT(static_cast<double>(expected[i]) <=
                  division.most_by_weight() * static_cast<double>(weights[i]) * (1 + 1e-12));
      }
    }
  });
}

}  // namespace
}  // namespace gpusched
