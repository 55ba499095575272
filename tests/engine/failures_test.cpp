// SPDX-License-Identifier: Apache-2.0
// Failures of nodes, worked out by hand and against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr JobId the_job{0};

NodeChange down(std::int64_t at_s, std::uint32_t node) { return {whole_seconds(at_s), NodeId{node}, false}; }
NodeChange up(std::int64_t at_s, std::uint32_t node) { return {whole_seconds(at_s), NodeId{node}, true}; }

NodeChange drain(std::int64_t at_s, std::uint32_t node) { return {whole_seconds(at_s), NodeId{node}, false, true}; }

NodeFailures recorded(std::initializer_list<NodeChange> changes) {
  NodeFailures failures;
  failures.add_changes(std::span(changes.begin(), changes.size()));
  return failures;
}

Cluster nodes(std::uint32_t count, std::uint32_t gpus) {
  Cluster cluster = Cluster::pool(gpus);
  cluster.nodes.assign(count, cluster.nodes.front());
  return cluster;
}

// A run, every event of which is kept, with the engine's own audit after each instant.
struct WatchedRun {
  Engine engine;
  std::vector<std::pair<Time, Event>> events = {};
  RunLog log = RunLog();
  bool finished = false;

  template <class P>
  WatchedRun(const JobTable& jobs, const Cluster& cluster, const NodeFailures& failures, P policy,
             const EngineOptions& options = {})
      : engine(jobs, cluster, options, {.failures = &failures}) {
    Decision decision = engine.decision();
    bool consistent = engine.consistent();
    while (engine.advance()) {
      for (const Event& event : engine.events()) events.emplace_back(engine.view().now(), event);
      log.observe(engine.view(), engine.events());
      policy.decide(engine.view(), decision);
      engine.apply();
      for (const Event& event : engine.events()) events.emplace_back(engine.view().now(), event);
      log.observe(engine.view(), engine.events());
      consistent = consistent && engine.consistent();
    }
    EXPECT_TRUE(consistent);
    finished = engine.all_finished();
  }
};

TEST(Failures, ARunWithoutCheckpointsBeginsAnew) {
  const JobTable jobs = table_of({{0, 10, 2}});
  const NodeFailures failures = recorded({down(7, 0), up(9, 0)});
  const WatchedRun run(jobs, nodes(1, 2), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(19));
  EXPECT_EQ(run.engine.kills(the_job), 1u);
  EXPECT_EQ(run.engine.preemptions(the_job), 0u);
  EXPECT_EQ(run.engine.lost(the_job), whole_seconds(7));
  EXPECT_EQ(run.engine.overhead(the_job), Time{});
  EXPECT_EQ(run.engine.ran(the_job), whole_seconds(17));
  using enum EventKind;
  const std::vector<std::pair<Time, Event>> expected{{whole_seconds(0), {submit, the_job}},
                                                     {whole_seconds(0), {start, the_job}},
                                                     {whole_seconds(7), {kill, the_job, NodeId{0}}},
                                                     {whole_seconds(7), {node_down, no_job, NodeId{0}}},
                                                     {whole_seconds(9), {node_up, no_job, NodeId{0}}},
                                                     {whole_seconds(9), {start, the_job}},
                                                     {whole_seconds(19), {finish, the_job}}};
  EXPECT_EQ(run.events, expected);
}

// Two nodes of two GPUs, of which one is out of service for 20 of the 40 s between the two submissions. Machines that
// were not there used to count.
TEST(Failures, OfferedLoadIsOfTheMachinesInService) {
  const JobTable jobs = table_of({{0, 10, 2}, {40, 25, 2}});
  const WatchedRun run(jobs, nodes(2, 2), recorded({down(15, 0), up(35, 0), down(50, 1), up(60, 1)}), Fifo{});
  ASSERT_TRUE(run.finished);
  EXPECT_DOUBLE_EQ(find_saturation(run.engine, run.log).offered_load, (20.0 + 50) / (4 * 40 - 2 * 20));
}

TEST(Failures, ACheckpointKeepsWhatItSaved) {
  // 14 s of 20: checkpoints at 4, 8 and 12. Restarting takes 3 s, but nothing is written at a failure.
  const JobTable jobs = table_of({{0, 20, 1}});
  EngineOptions options;
  options.preemption = {
      .checkpoint = whole_seconds(50), .restart = whole_seconds(3), .checkpoint_interval = whole_seconds(4)};
  const NodeFailures failures = recorded({down(14, 0), up(15, 0)});
  const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{}, options);
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(15 + 3 + 8));
  EXPECT_EQ(run.engine.lost(the_job), whole_seconds(2));
  EXPECT_EQ(run.engine.overhead(the_job), whole_seconds(3));
}

TEST(Failures, AFailureWhileLoadingLosesTheLoading) {
  const JobTable jobs = table_of({{0, 20, 1}});
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(3), .checkpoint_interval = whole_seconds(4)};
  const NodeFailures failures = recorded({down(14, 0), up(15, 0), down(17, 0), up(20, 0)});
  const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{}, options);
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(20 + 3 + 8));
  EXPECT_EQ(run.engine.overhead(the_job), whole_seconds(2 + 3));
  EXPECT_EQ(run.engine.lost(the_job), whole_seconds(2));
  EXPECT_EQ(run.engine.kills(the_job), 2u);
}

TEST(Failures, PeriodicCheckpointsTakeTimeExceptAtTheEnd) {
  // 100 s in pieces of 25: three checkpoints of 5 s.
  const JobTable jobs = table_of({{0, 100, 1}});
  EngineOptions options;
  options.preemption = {.checkpoint_interval = whole_seconds(25), .periodic_checkpoint = whole_seconds(5)};
  {
    const WatchedRun run(jobs, nodes(1, 1), {}, Fifo{}, options);
    EXPECT_EQ(run.engine.end(the_job), whole_seconds(115));
    EXPECT_EQ(run.engine.overhead(the_job), whole_seconds(15));
  }
  {
    // At 59 s the second checkpoint is not written to its end: 25 s are kept, and 75 s take two more checkpoints.
    const NodeFailures failures = recorded({down(59, 0), up(60, 0)});
    const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{}, options);
    EXPECT_EQ(run.engine.end(the_job), whole_seconds(60 + 75 + 10));
    EXPECT_EQ(run.engine.overhead(the_job), whole_seconds(5 + 4 + 10));
    EXPECT_EQ(run.engine.lost(the_job), whole_seconds(25));
  }
  {
    const NodeFailures failures = recorded({down(60, 0), up(61, 0)});
    const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{}, options);
    EXPECT_EQ(run.engine.end(the_job), whole_seconds(61 + 50 + 5));
    EXPECT_EQ(run.engine.lost(the_job), Time{});
  }
}

TEST(Failures, AtYoungsIntervalPreemptionsSaveAllAndFailuresFallBack) {
  // C = 8 s, M = 10,000 s on one node: Young's interval is 400 s.
  const JobTable jobs = table_of({{0, 1000, 1}, {500, 50, 1}});
  NodeFailures failures = recorded({down(1000, 0), up(1001, 0)});
  const NodeId own[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 10'000, .mean_repair_s = 1}), own);
  EngineOptions options;
  options.seed = 3;  // under which the law draws no failure in this run
  options.preemption = {.restart = whole_seconds(5), .periodic_checkpoint = whole_seconds(8)};
  options.preemption.rule = CheckpointRule::young;
  const WatchedRun run(jobs, nodes(1, 1), failures, ShortestRemaining(false), options);
  ASSERT_EQ(run.engine.preemptions(the_job), 1u);
  ASSERT_EQ(run.engine.kills(the_job), 1u);
  // 492 s of work until 500; loading until 555, 400 s until 955, a checkpoint until 963: at 1000 s 37 s are lost. The
  // 108 s that are left take no further checkpoint.
  EXPECT_EQ(run.engine.lost(the_job), whole_seconds(37));
  EXPECT_EQ(run.engine.overhead(the_job), whole_seconds(8 + 5 + 8 + 5));
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(1001 + 5 + 108));
}

TEST(Failures, OneNodeStopsTheWholeGang) {
  const JobTable jobs = table_of({{0, 10, 4}, {1, 3, 2}});
  const NodeFailures failures = recorded({down(5, 1), up(30, 1)});
  const WatchedRun run(jobs, nodes(2, 2), failures, FifoSkip{});
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(8));  // on the node that is up
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(40));
  EXPECT_TRUE(run.finished);
}

TEST(Failures, ANodeThatFirstComesUpLaterIsAbsent) {
  const JobTable jobs = table_of({{0, 10, 2}, {0, 10, 2}});
  const NodeFailures failures = recorded({up(4, 1)});
  const WatchedRun run(jobs, nodes(2, 2), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(10));
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(14));
}

TEST(Failures, WhatIsRecordedBeforeTheFirstJobHasHappened) {
  const JobTable jobs = table_of({{100, 10, 2}});
  const NodeFailures failures = recorded({down(3, 0), up(5, 0), down(50, 1), up(200, 1)});
  const WatchedRun run(jobs, nodes(2, 1), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(210));
}

TEST(Failures, JobsWithoutGpusDoNotRunOnANodeThatIsDown) {
  const JobTable jobs = table_of({{.work = 10, .shape = {.tasks = 2, .gpu_milli_per_task = 0}},
                                  {.work = 10, .shape = {.tasks = 2, .gpu_milli_per_task = 0}}});
  const NodeFailures failures = recorded({down(-5, 0), down(4, 1), up(20, 1)});
  const WatchedRun run(jobs, nodes(2, 2), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(30));
  EXPECT_EQ(run.engine.kills(the_job), 1u);
}

TEST(Failures, AJobThatFinishesAtThatInstantIsNotKilled) {
  const JobTable jobs = table_of({{0, 7, 1}});
  const NodeFailures failures = recorded({down(7, 0), up(8, 0)});
  const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(7));
  EXPECT_EQ(run.engine.kills(the_job), 0u);
}

TEST(Failures, TwoCausesKeepANodeDownUntilBothAreGone) {
  const JobTable jobs = table_of({{0, 10, 2}});
  NodeFailures failures;
  const NodeId both[] = {NodeId{0}, NodeId{1}};
  // A switch that fails at a fixed law: drawn times differ, so only the union is checked.
  failures.add_unit(failures.add_law({.mean_up_s = 20, .mean_repair_s = 5}), both);
  failures.add_changes(std::vector<NodeChange>{down(2, 0), up(3, 0), down(4, 1), up(12, 1)});
  const WatchedRun run(jobs, nodes(2, 1), failures, Fifo{});
  EXPECT_TRUE(run.finished);
  std::int32_t is_down = 0;
  for (const auto& [time, event] : run.events) {
    EXPECT_TRUE(event.kind != EventKind::start || is_down == 0);
    if (event.kind == EventKind::node_down) ++is_down;
    if (event.kind == EventKind::node_up) --is_down;
  }
}

TEST(Failures, ADrainedNodeFinishesWhatRunsThere) {
  const JobTable jobs = table_of({{0, 10, 1}, {0, 10, 1}, {5, 3, 1}, {5, 3, 1}});
  const NodeFailures failures = recorded({drain(2, 0), up(20, 0)});
  const WatchedRun run(jobs, nodes(2, 1), failures, Fifo{});
  for (const std::uint32_t job : {0u, 1u}) {
    EXPECT_EQ(run.engine.end(JobId{job}), whole_seconds(10));
    EXPECT_EQ(run.engine.kills(JobId{job}), 0u);
  }
  EXPECT_EQ(run.engine.end(JobId{2}), whole_seconds(13));  // one node is left
  EXPECT_EQ(run.engine.end(JobId{3}), whole_seconds(16));
  EXPECT_NE(std::find(run.events.begin(), run.events.end(),
                      std::pair(whole_seconds(2), Event{EventKind::node_down, no_job, NodeId{0}})),
            run.events.end());
}

TEST(Failures, WhatADrainedNodeLeavesIdleIsWithheld) {
  // Held: 2 GPUs for 10 s, then 4 for 10 s. Withheld: the 2 others from 2 s, all 4 from 10 to 20 s.
  const JobTable jobs = table_of({{0, 10, 2}, {0, 10, 4}});
  const NodeFailures failures = recorded({drain(2, 0), drain(4, 0), up(20, 0)});
  const WatchedRun run(jobs, nodes(1, 4), failures, Fifo{});
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(30));
  EXPECT_DOUBLE_EQ(RunLog::gpu_seconds(run.log.held()), 20 + 40);
  EXPECT_DOUBLE_EQ(RunLog::gpu_seconds(run.log.withheld()), 8 * 2 + 10 * 4);
}

TEST(Failures, ADrainedNodeThatGoesDownStopsWhatStillRuns) {
  const JobTable jobs = table_of({{0, 20, 1}});
  const NodeFailures failures = recorded({drain(5, 0), down(12, 0), drain(13, 0), up(15, 0)});
  const WatchedRun run(jobs, nodes(1, 2), failures, Fifo{});
  EXPECT_EQ(run.engine.kills(the_job), 1u);
  EXPECT_EQ(run.engine.lost(the_job), whole_seconds(12));
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(35));
}

TEST(Failures, AFailureOfADrainedNodeStopsWhatStillRuns) {
  const JobTable jobs = table_of({{0, 1'000'000, 1}});
  NodeFailures failures = recorded({drain(5, 0), up(2'000'000, 0)});
  const NodeId own[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 1000, .mean_repair_s = 5}), own);
  const WatchedRun run(jobs, nodes(2, 1), failures, Fifo{});
  EXPECT_EQ(run.engine.kills(the_job), 1u);  // then it runs on the other node
}

TEST(Failures, APolicyThatPreemptsLeavesTheJobsOfADrainedNodeInPeace) {
  const JobTable jobs = table_of({{0, 20, 1}, {6, 3, 2}});
  const NodeFailures failures = recorded({drain(5, 0), up(30, 0)});
  const WatchedRun run(jobs, nodes(1, 2), failures, ShortestRemaining(false));
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(20));
  EXPECT_EQ(run.engine.preemptions(the_job), 0u);
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(33));
}

TEST(Failures, ADrainThatIsCalledOffGivesBackWhatIsFree) {
  const Shape share{.gpu_milli_per_task = 300};
  const JobTable jobs = table_of({{.work = 10, .shape = share}, {.submit = 3, .work = 10, .shape = share}});
  const NodeFailures failures = recorded({drain(2, 0), up(5, 0)});
  const WatchedRun run(jobs, nodes(1, 1), failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(10));
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(15));
}

TEST(Failures, ASpareStandsInForAFailedNodeWhichIsTheNextSpare) {
  const JobTable jobs = table_of({{0, 10, 1}, {0, 10, 1}, {0, 10, 1}});
  NodeFailures failures = recorded({down(4, 0), up(6, 0), down(12, 2), up(13, 2)});
  failures.keep_spares(1);
  const WatchedRun run(jobs, nodes(3, 1), failures, Fifo{});
  // The first job goes on on the spare, node 2, since it keeps its place; the third waits for the second. At 12 s node
  // 0 stands in for node 2.
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(10));
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(22));
  EXPECT_EQ(run.engine.end(JobId{2}), whole_seconds(20));
  std::vector<std::pair<Time, Event>> changes;
  for (const auto& item : run.events) {
    if (!concerns_job(item.second.kind)) changes.push_back(item);
  }
  using enum EventKind;
  const std::vector<std::pair<Time, Event>> expected{{whole_seconds(4), {node_down, no_job, NodeId{0}}},
                                                     {whole_seconds(4), {node_up, no_job, NodeId{2}}},
                                                     {whole_seconds(12), {node_down, no_job, NodeId{2}}},
                                                     {whole_seconds(12), {node_up, no_job, NodeId{0}}}};
  EXPECT_EQ(changes, expected);
}

TEST(Failures, ASpareStandsInForANodeOfItsKindAlone) {
  Cluster cluster = nodes(3, 1);
  cluster.nodes[2] = nodes(1, 2).nodes.front();
  const JobTable jobs = table_of({{0, 10, 2}});
  NodeFailures failures = recorded({down(4, 0), up(50, 0)});
  failures.keep_spares(1);
  const WatchedRun run(jobs, cluster, failures, Fifo{});
  EXPECT_EQ(run.engine.end(the_job), whole_seconds(60));
}

// With drains, failures and spares together: every job ends once, what it ran is its work and what it lost, and never
// are more nodes in service than without the spares.
template <class P>
void expect_all_survive(std::uint64_t seed, P policy) {
  Rng rng(seed);
  const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(rng.below(most)); };
  constexpr std::uint32_t node_count = 6, spares = 2;
  std::vector<Row> rows;
  std::int64_t submit = 0;
  for (int i = 0; i < 40; ++i) {
    submit += below(20);
    rows.push_back({.submit = submit, .work = below(60), .gpus = static_cast<std::uint32_t>(1 + below(6))});
    if (below(4) == 0) rows.back().shape = {.gpu_milli_per_task = 250};
  }
  const JobTable jobs = table_of(rows);
  NodeFailures failures;
  std::vector<NodeChange> changes;
  for (std::uint32_t node = 0; node < node_count; ++node) {
    std::int64_t at_s = below(200);
    for (int i = 0; i < 4; ++i) {
      changes.push_back(below(2) == 0 ? drain(at_s, node) : down(at_s, node));
      if (below(2) == 0) changes.push_back(down(at_s += below(50), node));
      changes.push_back(up(at_s += below(100), node));
      at_s += below(200);
    }
    const NodeId own[] = {NodeId{node}};
    failures.add_unit(failures.add_law({.mean_up_s = 1500, .detect_s = 5, .mean_repair_s = 50}), own);
  }
  failures.add_changes(changes);
  failures.keep_spares(spares);
  const WatchedRun run(jobs, nodes(node_count, 4), failures, policy);
  ASSERT_TRUE(run.finished) << seed;
  std::int64_t in_service = node_count - spares, finishes = 0;
  for (const auto& [time, event] : run.events) {
    in_service += event.kind == EventKind::node_up ? 1 : event.kind == EventKind::node_down ? -1 : 0;
    finishes += event.kind == EventKind::finish ? 1 : 0;
    if (event.kind != EventKind::node_up) continue;
    ASSERT_LE(in_service, std::int64_t{node_count - spares}) << seed;
  }
  EXPECT_EQ(finishes, jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    EXPECT_EQ(run.engine.ran(job), jobs.work(job) + run.engine.lost(job) + run.engine.overhead(job)) << seed;
  }
}

TEST(Failures, DrainsAndSparesLoseNobody) {
  for (std::uint64_t seed = 0; seed < random_runs(60); ++seed) {
    expect_all_survive(seed, Fifo{});
    expect_all_survive(seed, FifoSkip{});
    expect_all_survive(seed, ShortestRemaining(false));
  }
}

TEST(Failures, AJobThatWaitsForEverEndsTheRun) {
  // Nodes fail and are repaired for ever, but no event can start a job that the policy leaves waiting.
  const JobTable jobs = table_of({{0, 10, 5}});
  NodeFailures failures;
  const NodeId all[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 20, .mean_repair_s = 5}), all);
  const WatchedRun run(jobs, nodes(2, 2), failures, Fifo{});
  EXPECT_FALSE(run.finished);
}

TEST(Failures, SimulateGivesUpOnAJobThatNeverKeepsAnyWork) {
  const JobTable jobs = table_of({{0, 100'000, 1}});
  NodeFailures failures;
  const NodeId all[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 1000, .mean_repair_s = 5}), all);
  Engine engine(jobs, nodes(1, 1), {}, {.failures = &failures});
  Fifo policy;
  EXPECT_FALSE(simulate(engine, policy));
  EXPECT_TRUE(goes_on_for_ever(engine));
  EXPECT_GT(engine.kills(the_job), 100u);
}

// The second job would be done between two failures, but waits for the end of the first, which never comes.
TEST(Failures, SimulateGivesUpSoonAlthoughAShortJobWaits) {
  const JobTable jobs = table_of({{0, 100'000, 1}, {1, 10, 1}});
  NodeFailures failures;
  const NodeId all[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 1000, .mean_repair_s = 5}), all);
  Engine engine(jobs, nodes(1, 1), {}, {.failures = &failures});
  Fifo policy;
  EXPECT_FALSE(simulate(engine, policy));
  EXPECT_TRUE(goes_on_for_ever(engine));
  EXPECT_LT(engine.kills(the_job), 30'000u);
}

TEST(Failures, SimulateGivesUpOnAGangForWhichNodesAreNeverUpTogether) {
  const JobTable jobs = table_of({{0, 100, 40}});
  NodeFailures failures;
  const std::uint32_t law = failures.add_law({.mean_up_s = 10, .mean_repair_s = 1000});
  for (std::uint32_t node = 0; node < 40; ++node) {
    const NodeId own[] = {NodeId{node}};
    failures.add_unit(law, own);
  }
  Engine engine(jobs, nodes(40, 1), {}, {.failures = &failures});
  Fifo policy;
  EXPECT_FALSE(simulate(engine, policy));
  EXPECT_TRUE(goes_on_for_ever(engine));
}

TEST(Failures, ComeAtTheSameTimesWhateverThePolicyDoes) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < 200; ++i)
    rows.push_back({.submit = i * 7, .work = 10 + i * 37 % 90, .gpus = static_cast<std::uint32_t>(1 + i % 4)});
  const JobTable jobs = table_of(rows);
  NodeFailures failures;
  const std::uint32_t law = failures.add_law(
      {.mean_up_s = 300, .up_shape = 0.7, .mean_repair_s = 40, .repair = FailureLaw::Repair::lognormal});
  for (std::uint32_t node = 0; node < 4; ++node) {
    const NodeId own[] = {NodeId{node}};
    failures.add_unit(law, own);
  }
  const auto changes_of = [](const WatchedRun& run) {
    std::vector<std::pair<Time, Event>> changes;
    for (const auto& item : run.events) {
      if (!concerns_job(item.second.kind) && item.second.kind != EventKind::wake) changes.push_back(item);
    }
    return changes;
  };
  auto fifo = changes_of(WatchedRun(jobs, nodes(4, 2), failures, Fifo{}));
  auto sjf = changes_of(WatchedRun(jobs, nodes(4, 2), failures, Sjf{}));
  auto srtf = changes_of(WatchedRun(jobs, nodes(4, 2), failures, ShortestRemaining(false)));
  const std::size_t common = std::min({fifo.size(), sjf.size(), srtf.size()});
  ASSERT_GT(common, 20u);
  for (auto* list : {&fifo, &sjf, &srtf}) list->resize(common);
  EXPECT_EQ(fifo, sjf);
  EXPECT_EQ(fifo, srtf);
}

TEST(Failures, ACopyOfTheEngineGoesOnAlike) {
  const JobTable jobs = table_of({{0, 500, 2}, {3, 400, 1}, {5, 300, 2}});
  NodeFailures failures;
  const std::uint32_t law = failures.add_law({.mean_up_s = 400, .mean_repair_s = 20});
  for (std::uint32_t node = 0; node < 2; ++node) {
    const NodeId own[] = {NodeId{node}};
    failures.add_unit(law, own);
  }
  EngineOptions options;
  options.preemption.checkpoint_interval = whole_seconds(50);
  Engine engine(jobs, nodes(2, 2), options, {.failures = &failures});
  Fifo policy;
  Decision decision = engine.decision();
  for (int step = 0; step < 6 && engine.advance(); ++step) {
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  Engine copy = engine;
  Fifo policy_of_copy = policy;
  ASSERT_TRUE(simulate(engine, policy));
  ASSERT_TRUE(simulate(copy, policy_of_copy));
  for (std::uint32_t job = 0; job < jobs.size(); ++job) EXPECT_EQ(engine.end(JobId{job}), copy.end(JobId{job}));
}

TEST(Failures, WhatIsNotNoticedStandsStill) {
  // Without detection the node fails at f and the job begins anew at once; with 30 s of it, 30 s later.
  const JobTable jobs = table_of({{0, 1000, 1}});
  Time failed_at{};
  for (const double detect_s : {0.0, 30.0}) {
    NodeFailures failures;
    const NodeId own[] = {NodeId{0}};
    failures.add_unit(failures.add_law({.mean_up_s = 700, .detect_s = detect_s, .mean_repair_s = 1e9}), own);
    const WatchedRun run(jobs, nodes(2, 1), failures, Fifo{});
    ASSERT_EQ(run.engine.kills(the_job), 1u);
    const auto killed = std::find_if(run.events.begin(), run.events.end(),
                                     [](const auto& item) { return item.second.kind == EventKind::kill; });
    ASSERT_LT(killed->first, whole_seconds(1000 + 30));
    if (detect_s == 0) failed_at = killed->first;
    EXPECT_EQ(killed->first, failed_at + from_seconds(detect_s));
    EXPECT_EQ(run.engine.lost(the_job), killed->first);
    EXPECT_EQ(run.engine.end(the_job), killed->first + whole_seconds(1000));
  }
}

// Laws: the share of time that a node is up tends to mean up / (mean up + mean repair) for every distribution.
struct LawCase {
  const char* name;
  FailureLaw law;
};

class FailureLaws : public testing::TestWithParam<LawCase> {};

INSTANTIATE_TEST_SUITE_P(
    Distributions, FailureLaws,
    testing::Values(
        LawCase{"Exponential", {.mean_up_s = 900, .mean_repair_s = 100}},
        LawCase{"Bursts", {.mean_up_s = 900, .up_shape = 0.6, .mean_repair_s = 100}},
        LawCase{"Ageing",
                {.mean_up_s = 900, .up_shape = 3, .mean_repair_s = 100, .repair = FailureLaw::Repair::exponential}},
        LawCase{
            "LogNormalRepair",
            {.mean_up_s = 900, .mean_repair_s = 100, .repair_sigma = 0.8, .repair = FailureLaw::Repair::lognormal}}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(FailureLaws, KeepTheirMeans) {
  Rng rng(7);
  double up_s = 0, repair_s = 0;
  constexpr int draws = 40'000;
  for (int i = 0; i < draws; ++i) {
    up_s += GetParam().law.draw_up(rng);
    repair_s += GetParam().law.draw_repair(rng);
  }
  EXPECT_NEAR(up_s / draws, 900, 900 * 0.03);
  EXPECT_NEAR(repair_s / draws, 100, 100 * 0.03);
}

// Goodput of one job on a node that fails at exponential times, is up again at once and takes R to restart, with
// checkpoints of C every tau (Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// FGCS 22(3), 2006, equation for the expected wall time): tau / (M e^(R/M) (e^((tau + C)/M) - 1)). The form counts a
// restart at the first start too, which a long job makes up for.
double daly_goodput(double tau_s, double mean_up_s, double write_s, double restart_s) {
  return tau_s / (mean_up_s * std::exp(restart_s / mean_up_s) * (std::exp((tau_s + write_s) / mean_up_s) - 1));
}

double measured_goodput(std::int64_t tau_s, double mean_up_s) {
  // 20,000 h of work: about 2,000 failures, so the standard error of the lost time is about 2 % of a small part.
  const JobTable jobs = table_of({{0, std::int64_t{20'000} * 3600, 1}});
  NodeFailures failures;
  const NodeId own[] = {NodeId{0}};
  // The fixed repair of a microsecond stands for none.
  failures.add_unit(failures.add_law({.mean_up_s = mean_up_s, .mean_repair_s = 1e-6}), own);
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(120),
                        .checkpoint_interval = whole_seconds(tau_s),
                        .periodic_checkpoint = whole_seconds(60)};
  Engine engine(jobs, nodes(1, 1), options, {.failures = &failures});
  Fifo policy;
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.ran(the_job), jobs.work(the_job) + engine.overhead(the_job) + engine.lost(the_job));
  return to_seconds(jobs.work(the_job)) / to_seconds(engine.end(the_job));
}

TEST(Failures, GoodputIsDalysAndPeaksNearYoungsInterval) {
  constexpr double mean_up_s = 10 * 3600;
  EXPECT_NEAR(daly_goodput(2078, mean_up_s, 60, 120), 0.940, 0.0005);
  const std::int64_t intervals_s[] = {500, 1000, 2078, 4000, 8000};
  std::int64_t best_s = 0;
  double best = 0;
  for (const std::int64_t tau_s : intervals_s) {
    const double goodput = measured_goodput(tau_s, mean_up_s);
    EXPECT_NEAR(goodput, daly_goodput(static_cast<double>(tau_s), mean_up_s, 60, 120), 0.004) << tau_s;
    if (goodput > best) best_s = tau_s;
    best = std::max(best, goodput);
  }
  EXPECT_EQ(best_s, 2078);  // sqrt(2 C M), Young, CACM 17(9), 1974
}

}  // namespace
}  // namespace gpusched::test
