// SPDX-License-Identifier: Apache-2.0
// Runs worked out by hand in which several effects meet: found by tests/world_reference.
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

NodeFailures outage_of(std::uint32_t node, std::int64_t down_s, std::int64_t up_s) {
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(down_s), NodeId{node}, false},
                                        {whole_seconds(up_s), NodeId{node}, true}};
  failures.add_changes(changes);
  return failures;
}

TEST(CrossedEffects, AJobMovesWherePowerIsCountedAndNothingCosts) {
  const JobTable jobs = table_of({{0, 100, 1}, {10, 1, 1}});
  PowerModel power;
  power.gpus = {{.load = {.idle_w = 50, .full_w = 250}, .limits = {}}};
  power.kinds.resize(1);
  power.kind_of = {0, 0, 0};
  Engine engine(jobs, Cluster::homogeneous(3, 1), {}, {.power = &power});
  Decision decision = engine.decision();
  ASSERT_TRUE(engine.advance());
  ASSERT_EQ(decision.start_on(JobId{0}, std::vector<NodeTasks>{{.node = NodeId{0}, .tasks = 1}}), Verdict::ok);
  engine.apply();
  ASSERT_TRUE(engine.advance());
  ASSERT_EQ(decision.vacate(JobId{0}), Verdict::ok);
  ASSERT_EQ(decision.move_on(JobId{0}, std::vector<NodeTasks>{{.node = NodeId{1}, .tasks = 1}}), Verdict::ok);
  decision.start(JobId{1});
  engine.apply();
  while (engine.advance()) engine.apply();
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(100));
}

// The two tasks are on two cards of one node, which fails once in 1,000,000 s: sqrt(2 x 2 s x 1,000,000 s).
TEST(CrossedEffects, YoungsIntervalCountsEachNodeOnce) {
  const JobTable jobs = table_of({{.work = 10'000, .shape = {.tasks = 2, .gpu_milli_per_task = 600}}});
  NodeFailures failures;
  const NodeId node{0};
  failures.add_unit(failures.add_law({.mean_up_s = 1e6, .mean_repair_s = 1}), {&node, 1});
  const PreemptionCost cost{.rule = CheckpointRule::young, .periodic_checkpoint = whole_seconds(2)};
  Engine engine(jobs, Cluster::homogeneous(1, 2), {.preemption = cost}, {.failures = &failures});
  ASSERT_TRUE(engine.advance());
  ASSERT_EQ(engine.decision().start(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.view().work_to_keep(JobId{0}), whole_seconds(2000));
}

// The gang is in one rack, which stops it once in 1,000,000 s, on however many nodes of it.
TEST(CrossedEffects, YoungsIntervalCountsARackOnce) {
  const JobTable jobs = table_of({{.work = 10'000, .shape = {.tasks = 4, .gpu_milli_per_task = 1000}}});
  NodeFailures failures;
  const std::vector<NodeId> rack{NodeId{0}, NodeId{1}, NodeId{2}, NodeId{3}};
  failures.add_unit(failures.add_law({.mean_up_s = 1e6, .mean_repair_s = 1}), rack);
  const PreemptionCost cost{.rule = CheckpointRule::young, .periodic_checkpoint = whole_seconds(2)};
  Engine engine(jobs, Cluster::homogeneous(4, 1), {.preemption = cost}, {.failures = &failures});
  ASSERT_TRUE(engine.advance());
  ASSERT_EQ(engine.decision().start(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.view().work_to_keep(JobId{0}), whole_seconds(2000));
}

// Both share the card of the first node in turns; the second node only counts its GPUs.
TEST(CrossedEffects, AGangHasTheCompanyOfItsOneCardWhicheverNodeIsNamedFirst) {
  const JobTable jobs = table_of({{.work = 100, .shape = {.tasks = 2, .gpu_milli_per_task = 500}},
                                  {.work = 100, .shape = {.tasks = 1, .gpu_milli_per_task = 400}}});
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.nodes[0].sharing = SharingMode::time_slicing;
  cluster.nodes[1].counts_only = true;
  for (const std::uint32_t first : {0u, 1u}) {
    Engine engine(jobs, cluster);
    Decision decision = engine.decision();
    ASSERT_TRUE(engine.advance());
    const std::vector<NodeTasks> nodes{{.node = NodeId{first}, .tasks = 1}, {.node = NodeId{1 - first}, .tasks = 1}};
    ASSERT_EQ(decision.start_on(JobId{0}, nodes), Verdict::ok);
    ASSERT_EQ(decision.start_on(JobId{1}, std::vector<NodeTasks>{{.node = NodeId{0}, .tasks = 1}}), Verdict::ok);
    engine.apply();
    EXPECT_EQ(engine.view().expected_end(JobId{0}), whole_seconds(200)) << first;
    EXPECT_EQ(engine.view().expected_end(JobId{1}), whole_seconds(200)) << first;
  }
}

// Company slows work, not the writing of checkpoints: an interval of 10 s, and 10 s for each. Two equal jobs work at
// half speed and write at the same time.
TEST(CrossedEffects, CheckpointsTakeAsLongBesideOthersOnTheCard) {
  const auto ends_of = [](std::int64_t work_a, std::int64_t submit_b) {
    const JobTable jobs =
        table_of({{.work = work_a, .shape = {.tasks = 1, .gpu_milli_per_task = 500}},
                  {.submit = submit_b, .work = 30, .shape = {.tasks = 1, .gpu_milli_per_task = 500}}});
    Cluster cluster = Cluster::homogeneous(1, 1);
    cluster.nodes[0].sharing = SharingMode::time_slicing;
    const PreemptionCost cost{.checkpoint_interval = whole_seconds(10), .periodic_checkpoint = whole_seconds(10)};
    Engine engine(jobs, cluster, {.preemption = cost});
    Fifo policy;
    EXPECT_TRUE(simulate(engine, policy));
    return std::vector<double>{to_seconds(engine.end(JobId{0})), to_seconds(engine.end(JobId{1}))};
  };
  EXPECT_EQ(ends_of(30, 0), (std::vector<double>{80, 80}));
  // The first writes from 10 to 20 and ends at 40, when the other, which works from 15 to 35, has written for 5 s.
  EXPECT_EQ(ends_of(20, 15), (std::vector<double>{40, 75}));
}

// Nor loading: a node that fails from 10 to 20, and 10 s to start again. What is loaded when the other job comes, or
// goes, takes as long as it would have.
TEST(CrossedEffects, LoadsTakeAsLongBesideOthersOnTheCard) {
  const auto ends_of = [](std::int64_t work_b, std::int64_t submit_b) {
    const JobTable jobs =
        table_of({{.work = 30, .shape = {.tasks = 1, .gpu_milli_per_task = 500}},
                  {.submit = submit_b, .work = work_b, .shape = {.tasks = 1, .gpu_milli_per_task = 500}}});
    Cluster cluster = Cluster::homogeneous(1, 1);
    cluster.nodes[0].sharing = SharingMode::time_slicing;
    const NodeFailures failures = outage_of(0, 10, 20);
    Engine engine(jobs, cluster, {.preemption = {.restart = whole_seconds(10)}}, {.failures = &failures});
    Fifo policy;
    EXPECT_TRUE(simulate(engine, policy));
    return std::vector<double>{to_seconds(engine.end(JobId{0})), to_seconds(engine.end(JobId{1}))};
  };
  EXPECT_EQ(ends_of(30, 0), (std::vector<double>{90, 90}));
  EXPECT_EQ(ends_of(2, 24), (std::vector<double>{60, 28}));  // 4 s at half speed, while the first loads
}

TEST(CrossedEffects, AHeldJobNeverEndsBeforeTimeZeroEither) {
  const JobTable jobs = table_of({{-50, 100, 1}});
  Engine engine(jobs, Cluster::homogeneous(1, 1));
  Decision decision = engine.decision();
  ASSERT_TRUE(engine.advance());
  decision.start(JobId{0});
  decision.hold(JobId{0});
  engine.apply();
  EXPECT_EQ(engine.view().expected_end(JobId{0}), Time::max());
}

// Job 0 was preempted and stands at the end; the place of job 2, whose node fails, is between those of 1 and 3.
TEST(CrossedEffects, AKilledJobFindsItsPlaceBesideAPreemptedOne) {
  const JobTable jobs = table_of({{0, 100, 1}, {0, 100, 1}, {0, 100, 1}, {0, 100, 1}});
  const NodeFailures failures = outage_of(1, 10, 20);
  Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.failures = &failures});
  Decision decision = engine.decision();
  ASSERT_TRUE(engine.advance());
  decision.start_on(JobId{0}, std::vector<NodeTasks>{{.node = NodeId{0}, .tasks = 1}});
  decision.start_on(JobId{2}, std::vector<NodeTasks>{{.node = NodeId{1}, .tasks = 1}});
  decision.wake(whole_seconds(5));
  engine.apply();
  ASSERT_TRUE(engine.advance());
  decision.preempt(JobId{0});
  decision.wake(whole_seconds(15));
  engine.apply();
  ASSERT_TRUE(engine.advance());
  const auto queue = engine.view().queue(0);
  EXPECT_EQ(std::vector<JobId>(queue.begin(), queue.end()),
            (std::vector<JobId>{JobId{1}, JobId{2}, JobId{3}, JobId{0}}));
}

// Job 0 waits for job 1 from 0 to 101. A node is away from 50 to 60, and that is the first that anybody sees.
TEST(CrossedEffects, NothingIsWithheldBeforeTheFirstNodeFails) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .after = {"1"}}, {.submit = 100, .work = 1}});
  const NodeFailures failures = outage_of(1, 50, 60);
  Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.failures = &failures});
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(RunLog::gpu_seconds(log.withheld()), 10);
  EXPECT_EQ(RunLog::gpu_seconds(log.capacity()), 2 * 102);
}

// The job holds both nodes and shrinks to one at the instant at which the other one fails: its run is lost.
TEST(CrossedEffects, AJobThatShrinksWhenItsNodeFailsBeginsAnew) {
  JobTable jobs = table_of({{0, 200, 2}});
  const std::uint32_t one = jobs.number_of_shape({.tasks = 1, .gpu_milli_per_task = whole_gpu});
  const JobChanges changes({{.time = whole_seconds(100), .job = JobId{0}, .kind = JobChange::Kind::size, .shape = one}},
                           1);
  const NodeFailures failures = outage_of(1, 100, 120);
  Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.failures = &failures, .changes = &changes});
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_TRUE(engine.consistent());
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(300));
  EXPECT_EQ(engine.kills(JobId{0}), 1u);
  EXPECT_EQ(engine.lost(JobId{0}), whole_seconds(100));
  EXPECT_EQ(fault_of_account(engine, log), std::nullopt);
}

// Its container takes 50 s from the start on, whatever size it has meanwhile.
TEST(CrossedEffects, AJobThatShrinksWaitsOnForItsContainer) {
  for (const std::uint32_t nodes : {1u, 4u}) {
    JobTable jobs = table_of({{0, 1000, 4}});
    const std::uint32_t one = jobs.number_of_shape({.tasks = 1, .gpu_milli_per_task = whole_gpu});
    const JobChanges changes(
        {{.time = whole_seconds(10), .job = JobId{0}, .kind = JobChange::Kind::size, .shape = one}}, 1);
    StageModel stages;
    stages.provision = whole_seconds(50);
    Engine engine(jobs, Cluster::homogeneous(nodes, 4 / nodes), {}, {.stages = &stages, .changes = &changes});
    Fifo policy;
    RunLog log;
    ASSERT_TRUE(simulate(engine, policy, log));
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(1050)) << nodes;
    EXPECT_EQ(engine.overhead(JobId{0}), whole_seconds(50)) << nodes;
    EXPECT_EQ(fault_of_account(engine, log), std::nullopt);
  }
}

// Both nodes fall asleep while the job waits for the one that is away until 100, and take 7 s to wake.
TEST(CrossedEffects, NodesFallAsleepWhileAJobWaitsForOneThatFailed) {
  const JobTable jobs = table_of({{0, 10, 2}});
  const NodeFailures failures = outage_of(1, 5, 100);
  PowerModel power;
  power.gpus = {{.load = {.idle_w = 50, .full_w = 250}, .limits = {}}};
  power.kinds = {{.sleep = {.after = whole_seconds(20), .wake = whole_seconds(7)}}};
  power.kind_of = {0, 0};
  Engine engine(jobs, Cluster::homogeneous(2, 1), {}, {.failures = &failures, .power = &power});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(117));
}

}  // namespace
}  // namespace gpusched::test
