// SPDX-License-Identifier: Apache-2.0
// The environment where users change jobs, runs go through stages and jobs are elastic: its runs are those of the
// engine under the same conditions, and its rewards add up to the metrics of that run.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/learn/env.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/sjf.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched::test {
namespace {

RewardVector rewards_of(Env& env, const Window& window, Heuristic heuristic) {
  StepResult result = env.reset(window);
  while (!result.done()) result = env.step(env.agenda().heuristic_action(heuristic));
  EXPECT_TRUE(result.terminated);
  return env.totals();
}

// Every tenth job is cancelled, every seventh gets another size, every third another priority, while it waits or runs.
JobChanges some_changes(JobTable& jobs, std::uint64_t seed) {
  Rng rng(seed);
  std::map<std::pair<std::uint32_t, std::int64_t>, JobChange> changes;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const auto add = [&](JobChange change) {
      change.job = job;
      change.time = jobs.submit(job) + whole_seconds(1 + static_cast<std::int64_t>(rng.below(2000)));
      changes[{i, change.time.us}] = change;
    };
    if (i % 10 == 3) add({.kind = JobChange::Kind::cancel});
    if (i % 3 == 0) add({.kind = JobChange::Kind::priority, .priority = static_cast<std::int32_t>(rng.below(9))});
    if (i % 7 == 5) {
      Shape shape = jobs.shape(job);
      shape.tasks = 1 + static_cast<std::uint32_t>(rng.below(4));
      add({.kind = JobChange::Kind::size, .shape = jobs.number_of_shape(shape)});
    }
  }
  std::vector<JobChange> list;
  for (const auto& [place, change] : changes) list.push_back(change);
  return {std::move(list), jobs.size()};
}

StageModel some_stages() {
  StageModel stages;
  stages.provision = whole_seconds(30);
  stages.keep_alive = whole_seconds(100);
  stages.transfer_bytes_per_s = bytes_per_gib;
  stages.storage_bytes_per_s = 2 * bytes_per_gib;
  stages.items = {{.bytes = static_cast<std::int64_t>(20 * bytes_per_gib), .load = whole_seconds(4)}};
  stages.images.items = {0};
  return stages;
}

// The mean over scored jobs that no user cancels, as the metric has it, from the sums of the reward.
void expect_metrics(const RewardVector& totals, const Engine& engine, const Window& window) {
  double jct = 0, wait = 0;
  for (std::uint32_t i = window.first_scored; i < window.jobs.size(); ++i) {
    const JobId job{i};
    if (window.changes.cancels(job)) continue;
    jct += to_seconds(engine.end(job) - engine.submit(job));
    wait += to_seconds(engine.end(job) - engine.submit(job) - engine.ran(job));
  }
  EXPECT_NEAR(totals[reward_jct], -jct, 1e-6 * jct);
  EXPECT_NEAR(totals[reward_wait], -wait, 1e-6 * jct);
}

struct Given {
  bool changes = false, stages = false, elastic = false;
};

void expect_the_run_of_its_policy(Given given, std::uint64_t seed) {
  SCOPED_TRACE("changes " + std::to_string(given.changes) + ", stages " + std::to_string(given.stages) + ", elastic " +
               std::to_string(given.elastic) + ", seed " + std::to_string(seed));
  JobTable jobs = some_jobs(seed, 300, true);
  const Cluster cluster = Cluster::homogeneous(3, 4);
  const JobChanges changes = given.changes ? some_changes(jobs, seed) : JobChanges{};
  const StageModel stages = some_stages();
  ElasticModel elastic(jobs.shapes().size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    if (shape.is_share() || shape.gpu_milli_per_task == 0 || elastic.curve(jobs, job) != nullptr) continue;
    ElasticCurve curve{.min_tasks = shape.tasks, .max_tasks = shape.tasks};
    curve.phases = {{.until = 0.5, .rates = {reference_rate}}, {.until = 1, .rates = {reference_rate}}};
    elastic.add(jobs.family(job), jobs.shape_id(job), curve);
  }
  Window window = whole(jobs);
  window.first_scored = 40;
  window.changes = changes;
  EnvOptions options;
  options.agenda = {
      .mode = ActionMode::fit_or_wait, .knowledge = RuntimeKnowledge::oracle, .heuristic = Heuristic::sjf};
  options.engine.preemption.restart = whole_seconds(7);
  if (given.stages) options.inputs.stages = &stages;
  if (given.elastic) options.inputs.elastic = &elastic;
  Env env(cluster, options);
  const RewardVector totals = rewards_of(env, window, Heuristic::sjf);
  Sjf policy(true);
  Engine engine(window.jobs, cluster, engine_options(options, window), run_inputs(options, window));
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(spans_of(env.engine()), spans_of(engine));
  expect_metrics(totals, engine, window);
}

// In these worlds no job changes its size after it ran: the policy would then go by what is left of it, the
// environment's order by its whole run time.
TEST(EnvConditions, AnEpisodeIsTheRunOfItsPolicyUnderTheSameConditions) {
  for (const std::uint64_t seed : {1u, 3u}) {
    for (const Given given : {Given{}, Given{.changes = true}, Given{.stages = true}, Given{.elastic = true},
                              Given{.changes = true, .stages = true}, Given{.stages = true, .elastic = true}}) {
      expect_the_run_of_its_policy(given, seed);
    }
  }
}

// One GPU: b waits behind a until a user gives it up at 4 s. No average counts b, and c waits 6 s in place of 26.
TEST(EnvConditions, JobsThatUsersCancelAreNotScored) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10}, {.submit = 1, .work = 20}, {.submit = 4, .work = 5}});
  Window window = whole(jobs);
  window.changes = JobChanges({{.time = whole_seconds(4), .job = JobId{1}}}, jobs.size());
  const Cluster cluster = Cluster::homogeneous(1, 1);
  EnvOptions options;
  options.agenda.heuristic = Heuristic::fcfs;
  Env env(cluster, options);
  const RewardVector totals = rewards_of(env, window, Heuristic::fcfs);
  EXPECT_DOUBLE_EQ(totals[reward_jct], -(10 + 11));
  EXPECT_DOUBLE_EQ(totals[reward_wait], -6);
  EXPECT_EQ(env.engine().end(JobId{2}), whole_seconds(15));
}

// A job of one GPU that asks for two from 2 s on waits for both: what it holds is counted as it is then.
TEST(EnvConditions, AJobThatChangesItsSizeIsCountedAsItIsThen) {
  JobTable jobs = table_of({{.submit = 0, .work = 10}, {.submit = 1, .work = 10}});
  Shape two = jobs.shape(JobId{1});
  two.tasks = 2;
  const std::uint32_t number = jobs.number_of_shape(two);
  Window window = whole(jobs);
  window.changes = JobChanges(
      {{.time = whole_seconds(2), .job = JobId{1}, .kind = JobChange::Kind::size, .shape = number}}, jobs.size());
  const Cluster cluster = Cluster::homogeneous(1, 2);
  EnvOptions options;
  options.agenda.heuristic = Heuristic::fcfs;
  options.weights = {};
  options.weights[reward_energy] = 1;
  options.idle_gpu_w = 0;
  options.busy_gpu_w = 3'600'000;  // a kWh a GPU-second
  Env env(cluster, options);
  const RewardVector totals = rewards_of(env, window, Heuristic::fcfs);
  EXPECT_EQ(env.engine().end(JobId{1}), whole_seconds(19));
  // One GPU for a's 10 s and b's first second, two for its other nine.
  EXPECT_NEAR(totals[reward_energy], -(10 + 1 + 2 * 9), 1e-9);
}

}  // namespace
}  // namespace gpusched::test
