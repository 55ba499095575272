// SPDX-License-Identifier: Apache-2.0
// Bandits on made rewards: their regret stays within the bounds that are proved for them.
#include "src/policies/meta/bandit_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace gpusched {
namespace {

// What a bandit brought and what each arm alone would have.
struct Gains {
  double own = 0;
  std::vector<double> arms;
  std::vector<std::uint64_t> pulls;
  [[nodiscard]] double best() const { return *std::max_element(arms.begin(), arms.end()); }
};

using Reward = std::function<double(std::uint64_t, std::size_t)>;  // of a time and an arm

template <class Rule>
Gains play(Rule rule, std::size_t arms, std::uint64_t pulls, const Reward& reward) {
  Gains gains{.own = 0, .arms = std::vector<double>(arms), .pulls = std::vector<std::uint64_t>(arms)};
  for (std::uint64_t t = 0; t < pulls; ++t) {
    const std::size_t chosen = rule.choose();
    for (std::size_t arm = 0; arm < arms; ++arm) gains.arms[arm] += reward(t, arm);
    gains.own += reward(t, chosen);
    ++gains.pulls[chosen];
    rule.learn(reward(t, chosen));
  }
  return gains;
}

// 0 or 1 with that chance, alike for whoever asks.
double coin(std::uint64_t seed, std::uint64_t t, std::size_t arm, double chance) {
  return Rng(seed).split(t).split(arm).uniform() < chance ? 1 : 0;
}

// Against any rewards: arms take turns as the best, in stretches that nothing foretells, or by the parity of the time.
TEST(Exp3, KeepsWithinItsBoundWhateverTheRewards) {
  constexpr std::size_t arms = 4;
  constexpr std::uint64_t pulls = 10'000;
  const double e = std::exp(1.0), k = static_cast<double>(arms);
  const std::vector<Reward> made = {
      [](std::uint64_t t, std::size_t arm) { return coin(1, t, arm, arm == 2 ? 0.7 : 0.4); },
      [](std::uint64_t t, std::size_t arm) { return (t / 500) % arms == arm ? 1.0 : 0.1; },
      [](std::uint64_t t, std::size_t arm) { return t < 6000 ? (arm == 0 ? 1.0 : 0.0) : (arm == 3 ? 1.0 : 0.2); },
      [](std::uint64_t t, std::size_t arm) { return (t + arm) % 2 == 0 ? 1.0 : 0.0; }};
  const double gamma = std::min(1.0, std::sqrt(k * std::log(k) / ((e - 1) * static_cast<double>(pulls))));
  for (std::size_t which = 0; which < made.size(); ++which) {
    double regret = 0, best = 0;
    constexpr int draws = 20;  // the bound is of the expectation
    for (int seed = 0; seed < draws; ++seed) {
      const Gains gains = play(Exp3(arms, gamma, Rng(static_cast<std::uint64_t>(seed))), arms, pulls, made[which]);
      best = gains.best();
      regret += (best - gains.own) / draws;
    }
    EXPECT_LE(regret, (e - 1) * gamma * best + k * std::log(k) / gamma) << which;
  }
}

TEST(Exp3, LearnsWhatIsBest) {
  const Gains gains =
      play(Exp3(3, 0.1, Rng(7)), 3, 5000, [](std::uint64_t, std::size_t arm) { return arm == 1 ? 0.9 : 0.1; });
  EXPECT_GT(gains.pulls[1], 4000u);
}

TEST(Ucb1, KeepsWithinItsBoundOnStationaryRewards) {
  const std::vector<double> means{0.9, 0.8, 0.5, 0.2};
  constexpr std::uint64_t pulls = 10'000;
  double bound = 0, regret = 0;
  for (std::size_t arm = 1; arm < means.size(); ++arm) {
    const double gap = means[0] - means[arm];
    bound += 8 * std::log(static_cast<double>(pulls)) / gap + (1 + std::acos(-1.0) * std::acos(-1.0) / 3) * gap;
  }
  constexpr std::uint64_t worlds = 20;
  for (std::uint64_t world = 0; world < worlds; ++world) {
    const Gains gains = play(UpperConfidence(means.size()), means.size(), pulls,
                             [&](std::uint64_t t, std::size_t arm) { return coin(100 + world, t, arm, means[arm]); });
    for (std::size_t arm = 1; arm < means.size(); ++arm) {
      regret += static_cast<double>(gains.pulls[arm]) * (means[0] - means[arm]) / static_cast<double>(worlds);
    }
  }
  EXPECT_LE(regret, bound);
  EXPECT_GT(regret, 0);
}

// Each arm once, in turn; then by the bound: after rewards 1, 0 it is 1 + sqrt(2 ln 2) against sqrt(2 ln 2).
TEST(Ucb1, PullsByTheUpperBound) {
  UpperConfidence rule(2);
  EXPECT_EQ(rule.choose(), 0u);
  rule.learn(1);
  EXPECT_EQ(rule.choose(), 1u);
  rule.learn(0);
  EXPECT_EQ(rule.choose(), 0u);
  rule.learn(1);
  // 1 + sqrt(2 ln 3 / 2) = 2.05 against sqrt(2 ln 3) = 1.48
  EXPECT_EQ(rule.choose(), 0u);
}

// The pulls of the worse arm, on two regimes: theorem 1 of Garivier and Moulines with B = 1, xi = 0.6 and the discount
// that they give, 1 - sqrt(changes / pulls) / 4.
TEST(DiscountedUcb, KeepsWithinItsBoundOnTwoRegimes) {
  constexpr std::uint64_t pulls = 1'000'000;
  constexpr double changes = 1, xi = 0.6, gap = 0.8;
  const double discount = 1 - std::sqrt(changes / static_cast<double>(pulls)) / 4, rest = 1 - discount;
  const auto mean = [](std::uint64_t t, std::size_t arm) { return (t < pulls / 2) == (arm == 0) ? 0.9 : 0.1; };
  UpperConfidence rule(2, discount, xi);
  std::uint64_t worse = 0, late = 0;
  Rng rng(5);
  for (std::uint64_t t = 0; t < pulls; ++t) {
    const double drawn[] = {rng.uniform() < mean(t, 0) ? 1.0 : 0.0, rng.uniform() < mean(t, 1) ? 1.0 : 0.0};
    const std::size_t chosen = rule.choose();
    rule.learn(drawn[chosen]);
    worse += mean(t, chosen) < 0.5 ? 1 : 0;
    late += t >= pulls * 9 / 10 && mean(t, chosen) < 0.5 ? 1 : 0;
  }
  const double padded = 32 * std::sqrt(2.0) * xi / (std::pow(discount, 1 / rest) * gap * gap);
  const double tail = 4 / ((1 - std::exp(-1.0)) * std::log(1 + 4 * std::sqrt(1 - 1 / (2 * xi))));
  const double lag =
      (discount - 1) / (std::log(1 - discount) * std::log(discount)) * std::log((1 - discount) * std::log(1 / rest));
  const double bound = (padded + tail) * static_cast<double>(pulls) * rest * std::log(1 / rest) +
                       lag * changes / rest * std::log(1 / rest);
  ASSERT_LT(bound, static_cast<double>(pulls) / 2);  // it says something
  EXPECT_LE(static_cast<double>(worse), bound);
  EXPECT_LT(late, pulls / 10 / 20);  // it has noticed that the regime changed
}

}  // namespace
}  // namespace gpusched
