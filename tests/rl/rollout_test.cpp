// SPDX-License-Identifier: Apache-2.0
// What is made of episodes: states side by side, advantages and differential rewards.
#include "src/rl/rollout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

Episode episode_of(std::vector<double> reward, std::vector<double> seconds) {
  Episode episode;
  double now = 0;
  for (const double span : seconds) {
    episode.time_s.push_back(now);
    now += span;
  }
  episode.actions.resize(reward.size());
  episode.reward = std::move(reward);
  episode.seconds = std::move(seconds);
  return episode;
}

TEST(CopyStates, AreThoseAppendedOneByOneWhateverWasThereBefore) {
  const Observation few = test::random_observation(3, 1), many = test::random_observation(9, 2);
  const std::vector<SeenState> states{{&many, 8}, {&few, 0}, {&many, 0}, {&few, 2}, {&many, 5}};
  Observation appended, copied;
  for (const auto& [seen, e] : states) append_state(appended, *seen, e);
  for (const Observation& before : {Observation{}, few, many}) {
    copied = before;
    copy_states(states, copied);
    EXPECT_EQ(copied.jobs, appended.jobs);
    EXPECT_EQ(copied.prior, appended.prior);
    EXPECT_EQ(copied.mask, appended.mask);
    EXPECT_EQ(copied.job_begin, appended.job_begin);
    EXPECT_EQ(copied.groups, appended.groups);
    EXPECT_EQ(copied.group_begin, appended.group_begin);
    EXPECT_EQ(copied.global, appended.global);
    EXPECT_EQ(copied.privileged, appended.privileged);
  }
}

TEST(Advantages, WithoutDiscountAndCriticAreReturnsToGo) {
  const std::vector<Episode> episodes{episode_of({-1, -2, -4}, {10, 0, 10})};
  PpoOptions options;
  options.lambda = 1;
  options.baseline = Baseline::critic;
  const Advantages result = advantages_of(episodes, {{0, 0, 0, 0}}, 1, 0, options);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{-7, -6, -4}));
  EXPECT_EQ(result.value_target[0], (std::vector<double>{-7, -6, -4}));
}

TEST(Advantages, DiscountAndLambdaFollowTime) {
  const std::vector<Episode> episodes{episode_of({-1, -2}, {30, 120})};
  PpoOptions options;
  options.lambda = 0.9;
  options.lambda_time_s = 60;
  options.baseline = Baseline::critic;
  const double beta = 0.01;
  // The run was truncated: the last value is the final observation's.
  const Advantages result = advantages_of(episodes, {{-3, -2.5, -2}}, 1, beta, options);
  const double last = -2 + std::exp(-beta * 120) * -2 - -2.5;
  const double first = -1 + std::exp(-beta * 30) * -2.5 - -3 + std::exp(-beta * 30) * std::pow(0.9, 0.5) * last;
  EXPECT_NEAR(result.advantage[0][1], last, 1e-12);
  EXPECT_NEAR(result.advantage[0][0], first, 1e-12);
}

TEST(Advantages, GroupsCompareAtTheSameTime) {
  // Returns to go: (-4, -2) at times 0 and 10; (-6, -2) at 0 and 20. At time 10 the second is half way: -4.
  const std::vector<Episode> episodes{episode_of({-2, -2}, {10, 10}), episode_of({-4, -2}, {20, 10})};
  PpoOptions options;
  options.baseline = Baseline::group;
  const Advantages result = advantages_of(episodes, {{0, 0, 0}, {0, 0, 0}}, 2, 0, options);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{2, 2}));
  EXPECT_EQ(result.advantage[1], (std::vector<double>{-2, -2}));  // at 20 the first is over: nothing left to lose
}

TEST(Advantages, TheSelfCriticComparesWithTheHeuristicAtTheSameTime) {
  // The heuristic has (-6, -2) to go at times 0 and 20, and its critic sees -1 behind its end: (-7, -3).
  const std::vector<Episode> episodes{episode_of({-2, -2}, {10, 10}), episode_of({-4, -2}, {20, 10})};
  const Rivals rivals{.episodes = {episode_of({-4, -2}, {20, 10})}, .last_value = {-1}};
  PpoOptions options;
  options.baseline = Baseline::self_critic;
  const Advantages result = advantages_of(episodes, {{0, 0, 0}, {0, 0, -1}}, 2, 0, options, rivals);
  EXPECT_EQ(result.advantage[0], (std::vector<double>{-4 + 7, -2 + 5}));  // half way at time 10
  EXPECT_EQ(result.advantage[1], (std::vector<double>{0, 0}));            // did as the heuristic
}

TEST(Advantages, DifferentialRewardsAreThoseAboveTheAverage) {
  std::vector<Episode> episodes{episode_of({-2, -1}, {10, 10}), episode_of({-9}, {20})};
  EXPECT_EQ(mean_reward_per_s(episodes), -0.3);
  make_differential(episodes, -0.3);
  EXPECT_NEAR(episodes[0].reward[0], 1, 1e-12);
  EXPECT_NEAR(episodes[0].reward[1], 2, 1e-12);
  EXPECT_NEAR(episodes[1].reward[0], -3, 1e-12);
  EXPECT_NEAR(mean_reward_per_s(episodes), 0, 1e-12);
}

}  // namespace
}  // namespace gpusched
