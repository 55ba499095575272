// SPDX-License-Identifier: Apache-2.0
// The environment where nodes fail.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/sjf.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched::test {
namespace {

RewardVector play(Env& env, const Window& window, Heuristic heuristic) {
  StepResult result = env.reset(window);
  while (!result.done()) result = env.step(env.agenda().heuristic_action(heuristic));
  EXPECT_TRUE(result.terminated);
  return env.totals();
}

JobTable one_job(std::int64_t work_s) {
  JobTableBuilder builder;
  builder.add({.id = "a", .submit = {}, .work = whole_seconds(work_s), .shape = {.gpu_milli_per_task = whole_gpu}});
  return *std::move(builder).build();
}

// The node is away from 4 s to 6 s, and the work before is lost: 4 s, 2 s of waiting and 10 s.
TEST(EnvFailures, RewardsCountWorkThatIsDoneAgain) {
  const JobTable jobs = one_job(10);
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(1, 1);
  NodeFailures failures;
  failures.add_changes(
      std::vector<NodeChange>{{whole_seconds(4), NodeId{0}, false}, {whole_seconds(6), NodeId{0}, true}});
  EnvOptions options;
  options.inputs.failures = &failures;
  Env env(cluster, options);
  const RewardVector totals = play(env, window, Heuristic::fcfs);
  EXPECT_DOUBLE_EQ(totals[reward_jct], -16);
  EXPECT_DOUBLE_EQ(totals[reward_wait], -2);
  EXPECT_NEAR(totals[reward_bounded_slowdown], -0.6, 1e-12);  // (2 + 14) / 10
  EXPECT_EQ(env.engine().end(JobId{0}), whole_seconds(16));
}

NodeFailures law(const Cluster& cluster, double mean_up_s, double repair_s) {
  NodeFailures failures;
  const std::uint32_t number = failures.add_law({.mean_up_s = mean_up_s, .mean_repair_s = repair_s});
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    const NodeId id{node};
    failures.add_unit(number, {&id, 1});
  }
  return failures;
}

TEST(EnvFailures, AHeuristicHasTheRunOfItsPolicyUnderTheSameFailures) {
  const JobTable jobs = some_jobs(3, 300, true);
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(3, 4);
  const NodeFailures failures = law(cluster, 20000, 600);
  for (const std::uint64_t seed : {1u, 2u}) {
    EnvOptions options;
    options.agenda = {
        .mode = ActionMode::fit_or_wait, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::sjf};
    options.engine.seed = seed;
    options.inputs.failures = &failures;
    Env env(cluster, options);
    play(env, window, Heuristic::sjf);
    Sjf policy(true);
    Engine engine(window.jobs, cluster, engine_options(options, window), {.failures = &failures});
    ASSERT_TRUE(simulate(engine, policy));
    EXPECT_EQ(spans_of(env.engine()), spans_of(engine));
    std::uint32_t kills = 0;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) kills += engine.kills(JobId{i});
    EXPECT_GT(kills, 3u);
  }
}

// What is out of service is in no group of nodes, nor free.
TEST(EnvFailures, ObservationsShowTheNodesThatAreUp) {
  JobTableBuilder builder;
  for (const std::int64_t submit : {0, 10, 20, 30}) {
    builder.add({.id = std::to_string(submit),
                 .submit = whole_seconds(submit),
                 .work = whole_seconds(5),
                 .shape = {.gpu_milli_per_task = whole_gpu}});
  }
  const JobTable jobs = *std::move(builder).build();
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(4, 2);
  NodeFailures failures;
  failures.add_changes(
      std::vector<NodeChange>{{whole_seconds(7), NodeId{1}, false}, {whole_seconds(15), NodeId{1}, true}});
  EnvOptions options;
  options.inputs.failures = &failures;
  Env env(cluster, options);
  std::vector<float> up, free;
  StepResult result = env.reset(window);
  while (!result.done()) {
    std::vector<float> rows(4 * job_features), prior(5), groups(8 * group_features), global(global_features);
    std::vector<std::uint8_t> mask(5);
    env.encode({rows.data(), prior.data(), mask.data(), groups.data(), global.data()});
    float share = 0;
    for (std::size_t group = 0; group < 8; ++group) share += groups[group * group_features + group_gpu_share];
    up.push_back(share);
    free.push_back(global[free_fraction]);
    result = env.step(0);
  }
  EXPECT_EQ(up, (std::vector<float>{1, 0.75, 1}));
  EXPECT_EQ(free, (std::vector<float>{1, 0.75, 1}));
}

TEST(EnvFailures, AnEpisodeEndsWhereFailuresUndoAllWork) {
  const JobTable jobs = one_job(100'000);
  const Window window = whole(jobs);
  const Cluster cluster = Cluster::homogeneous(1, 1);
  const NodeFailures failures = law(cluster, 100, 1);
  EnvOptions options;
  options.inputs.failures = &failures;
  Env env(cluster, options);
  StepResult result = env.reset(window);
  while (!result.done()) result = env.step(0);
  EXPECT_TRUE(result.truncated);
  EXPECT_GT(env.engine().kills(JobId{0}), 100u);
}

}  // namespace
}  // namespace gpusched::test
