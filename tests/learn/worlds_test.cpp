// SPDX-License-Identifier: Apache-2.0
// Environments whose windows run on clusters of their own, under conditions of their own; seeds by environment; the
// jobs that steps list.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched::test {
namespace {

// Two worlds: five windows on 8 GPUs; three on 12, where jobs end at their requests.
class Worlds : public ::testing::Test {
 protected:
  Worlds() {
    worlds_[1].inputs.kill_at_limit = true;
    for (std::uint32_t i = 0; i < 8; ++i) {
      Window window = whole(some_jobs(i + 1, 40));
      window.world = &worlds_[i < 5 ? 0 : 1];
      windows_.push_back(std::move(window));
    }
  }

  [[nodiscard]] VectorEnvOptions options() const { return {.environments = 4, .worlds = {0, 5}}; }

  std::array<EnvWorld, 2> worlds_{EnvWorld{.cluster = Cluster::homogeneous(2, 4)},
                                  EnvWorld{.cluster = Cluster::homogeneous(3, 4)}};
  std::vector<Window> windows_;
};

TEST_F(Worlds, EpisodesGoThroughThemByTurns) {
  VectorEnv env(windows_, {}, worlds_[0].cluster, options());
  env.reset(3);
  std::vector<std::uint32_t> episodes(env.size());
  for (int step = 0; step < 600; ++step) {
    for (std::uint32_t e = 0; e < env.size(); ++e) {
      const std::uint32_t world = (e + episodes[e]) % 2;
      ASSERT_EQ(env.window(e) < 5 ? 0u : 1u, world);
      ASSERT_EQ(env.env(e).engine().view().cluster().total_gpus(), world == 0 ? 8 : 12);
    }
    for (const std::uint32_t e : env.step(Heuristic::sjf).ended) ++episodes[e];
  }
  EXPECT_GE(*std::min_element(episodes.begin(), episodes.end()), 3u);
}

TEST_F(Worlds, AnEpisodeIsThatOfItsWorldAlone) {
  for (const std::size_t number : {std::size_t{1}, std::size_t{6}}) {
    const Window& window = windows_[number];
    Window alone = whole(window.jobs);
    EnvOptions plain;
    plain.inputs.kill_at_limit = window.world->inputs.kill_at_limit;
    Env inside(worlds_[0].cluster, {}), outside(window.world->cluster, plain);
    StepResult one = inside.reset(window), other = outside.reset(alone);
    while (!one.done()) {
      ASSERT_FALSE(other.done());
      one = inside.step(Heuristic::sjf);
      other = outside.step(Heuristic::sjf);
      ASSERT_EQ(one.reward, other.reward);
    }
    EXPECT_TRUE(other.done());
  }
}

TEST(SeedsOfEnvironments, AreThoseOfTheFirstOfAVectorOfThatSeed) {
  const JobTable jobs = some_jobs(6, 400);
  const Cluster cluster = Cluster::homogeneous(2, 4);
  std::vector<Window> windows;
  for (std::uint32_t first = 0; first < 360; first += 20) windows.push_back(whole(jobs.slice(first, 40)));
  const std::vector<std::uint64_t> seeds{9, 4, 9};
  VectorEnv together(windows, {}, cluster, {.environments = 3});
  together.reset(seeds);
  for (std::uint32_t e = 0; e < 3; ++e) {
    VectorEnv alone(windows, {}, cluster, {.environments = 1});
    alone.reset(seeds[e]);
    VectorEnv copy(windows, {}, cluster, {.environments = 3});
    copy.restore(together.save());
    for (int step = 0; step < 300; ++step) {
      ASSERT_EQ(copy.window(e), alone.window(0));
      copy.step(Heuristic::sjf);
      alone.step(Heuristic::sjf);
      ASSERT_EQ(copy.batch().results[e].scalar, alone.batch().results[0].scalar);
    }
  }
}

// One GPU: 0 runs from 0 to 10 s while 1 and 2 come; 1 is chosen at 10 s and runs until 30 s, then 2 until 35 s.
TEST(JobsOfSteps, AreListedByHand) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10}, {.submit = 1, .work = 20}, {.submit = 4, .work = 5}});
  const Window window = whole(jobs);
  EnvOptions options{.lists_jobs = true};
  options.agenda.heuristic = Heuristic::fcfs;
  std::size_t rewards = 0;
  options.reward = [&rewards](const RewardInput& step) {
    rewards += step.started.size();
    return 0.0;
  };
  const Cluster cluster = Cluster::homogeneous(1, 1);
  Env env(cluster, options);
  const auto ids = [](std::span<const JobId> list) { return std::vector<JobId>(list.begin(), list.end()); };
  ASSERT_FALSE(env.reset(window).done());
  EXPECT_TRUE(env.started().empty() && env.finished().empty());
  ASSERT_FALSE(env.step(0).done());
  EXPECT_EQ(ids(env.started()), std::vector<JobId>{JobId{0}});
  EXPECT_EQ(ids(env.finished()), std::vector<JobId>{JobId{0}});
  EXPECT_EQ(env.now(), whole_seconds(10));
  EXPECT_TRUE(env.step(0).terminated);  // afterwards there is no choice: 2 is alone
  EXPECT_EQ(ids(env.started()), (std::vector<JobId>{JobId{1}, JobId{2}}));
  EXPECT_EQ(ids(env.finished()), (std::vector<JobId>{JobId{1}, JobId{2}}));
  EXPECT_EQ(rewards, 3u);
  Env plain(cluster, {});
  plain.reset(window);
  plain.step(0);
  EXPECT_TRUE(plain.started().empty() && plain.finished().empty());
}

// A job that ends at its limit, 5 s, leaves the end that was planned, 100 s later, behind: the episode is over at 6 s.
TEST(EndOfEpisodes, IsTheLastEndAndNotWhatWasPlanned) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .estimate = 1},
                                  {.submit = 0, .work = 1, .estimate = 1},
                                  {.submit = 0, .work = 100, .estimate = 5}});
  EnvOptions options;
  options.inputs.kill_at_limit = true;
  const Cluster cluster = Cluster::homogeneous(1, 2);
  Env env(cluster, options);
  const Window window = whole(jobs);
  StepResult result = env.reset(window);
  double seconds = result.seconds;
  while (!result.done()) {
    result = env.step(Heuristic::fcfs);
    seconds += result.seconds;
  }
  EXPECT_TRUE(result.terminated);
  EXPECT_DOUBLE_EQ(seconds, 6);
  EXPECT_EQ(env.now(), whole_seconds(6));
}

}  // namespace
}  // namespace gpusched::test
