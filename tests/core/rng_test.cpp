// SPDX-License-Identifier: Apache-2.0
#include "gpusched/core/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gpusched {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Known-answer vectors of the Random123 distribution, file kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, IsAFunctionOfItsSeed) {
  Rng a(42), b(42), c(43);
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t drawn = a.next();
    EXPECT_EQ(drawn, b.next());
    EXPECT_NE(drawn, c.next());
  }
}

TEST(Rng, RestoresInTheMiddleOfABlock) {
  for (int draws = 0; draws < 5; ++draws) {
    Rng rng(9);
    for (int i = 0; i < draws; ++i) rng.next();
    Rng again = Rng::restore(rng.state());
    EXPECT_EQ(again.next(), rng.next()) << draws;
    EXPECT_EQ(again.next(), rng.next()) << draws;
  }
}

TEST(Rng, SplitsAreApartAndDoNotAdvanceTheParent) {
  Rng parent(1);
  Rng arrivals = parent.split("arrivals"), sizes = parent.split("sizes"), first = parent.split(0),
      second = parent.split(1);
  const std::vector<std::uint64_t> drawn{arrivals.next(), sizes.next(), first.next(), second.next(), parent.next()};
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(drawn[i], drawn[j]);
  }
  EXPECT_EQ(drawn.back(), Rng(1).next());
}

// Mean of n draws within five standard errors.
template <class Draw>
void expect_mean(double expected, double deviation, Draw draw) {
  constexpr int n = 100'000;
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += draw();
  EXPECT_NEAR(sum / n, expected, 5 * deviation / std::sqrt(n));
}

TEST(Rng, DistributionsHaveTheirMoments) {
  Rng rng(3);
  expect_mean(0.5, std::sqrt(1.0 / 12), [&] { return rng.uniform(); });
  expect_mean(7, 7, [&] { return rng.exponential(7); });
  expect_mean(0, 1, [&] { return rng.normal(); });
  expect_mean(1, std::sqrt(2), [&] { return std::pow(rng.normal(), 2); });
  expect_mean(1, 0.5, [&] { return std::log(rng.lognormal(1, 0.5)); });
}

TEST(Rng, BelowIsUniform) {
  Rng rng(11);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen[rng.below(7)];
  double chi_squared = 0;
  for (const int count : seen) chi_squared += std::pow(count - 10'000, 2) / 10'000;
  EXPECT_LT(chi_squared, 22.5);  // 99.9% quantile with 6 degrees of freedom
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, ShuffleKeepsTheElements) {
  Rng rng(5);
  std::vector<int> cards(100);
  std::iota(cards.begin(), cards.end(), 0);
  const std::vector<int> sorted = cards;
  rng.shuffle(cards.data(), cards.size());
  EXPECT_NE(cards, sorted);
  std::sort(cards.begin(), cards.end());
  EXPECT_EQ(cards, sorted);
}

}  // namespace
}  // namespace gpusched
