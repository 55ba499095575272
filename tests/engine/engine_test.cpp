// SPDX-License-Identifier: Apache-2.0
// Small runs worked out by hand.
#include "gpusched/engine/engine.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "gpusched/watch/history_hash.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

using Spans = std::vector<Span>;

TEST(Engine, FifoBlocksBehindTheFirstThatDoesNotFit) {
  const JobTable jobs = table_of({{0, 10, 2}, {1, 5, 4}, {2, 3, 1}});
  EXPECT_EQ(run(jobs, Cluster::pool(4), Fifo{}), (Spans{{0, 10}, {10, 15}, {15, 18}}));
}

TEST(Engine, FifoSkipPassesOverIt) {
  const JobTable jobs = table_of({{0, 10, 2}, {1, 5, 4}, {2, 3, 1}});
  EXPECT_EQ(run(jobs, Cluster::pool(4), FifoSkip{}), (Spans{{0, 10}, {10, 15}, {2, 5}}));
}

TEST(Engine, SjfTakesTheShortestWaiting) {
  const JobTable jobs = table_of({{0, 10, 1}, {1, 5, 1}, {2, 3, 1}, {3, 4, 1}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), Sjf{}), (Spans{{0, 10}, {17, 22}, {10, 13}, {13, 17}}));
}

TEST(Engine, SrtfPreemptsForLessWork) {
  const JobTable jobs = table_of({{0, 10, 1}, {2, 3, 1}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), ShortestRemaining(false)), (Spans{{0, 13}, {2, 5}}));
}

TEST(Engine, PreemptionCostsProlongTheNextRun) {
  const JobTable jobs = table_of({{0, 10, 1}, {2, 3, 1}});
  EngineOptions options;
  options.preemption = {.checkpoint = whole_seconds(2), .restart = whole_seconds(5)};
  EXPECT_EQ(run(jobs, Cluster::pool(1), ShortestRemaining(false), options), (Spans{{0, 20}, {2, 5}}));
}

TEST(Engine, WorkSinceTheLastCheckpointIsLost) {
  // 7 of 20 seconds done at the preemption, of which a checkpoint every 4 s saves 4: 16 are left at 10.
  const JobTable jobs = table_of({{0, 20, 1}, {7, 3, 1}});
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(1), .checkpoint_interval = whole_seconds(4)};
  Engine engine(jobs, Cluster::pool(1), options);
  ShortestRemaining policy(false);
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(10 + 1 + 16));
  EXPECT_EQ(engine.ran(JobId{0}), whole_seconds(7 + 1 + 16));
  EXPECT_EQ(engine.preemptions(JobId{0}), 1u);
}

// Job 0 works for 150 s, of which 100 are kept, loads from 160 s on for 60 and works for 70 more, of which none are
// kept: 900 s are left when it loads again at 300 s.
TEST(Engine, LoadingIsNoWorkThatACheckpointKeeps) {
  const JobTable jobs = table_of({{0, 1000, 1}, {150, 10, 1}, {290, 10, 1}});
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(60), .checkpoint_interval = whole_seconds(100)};
  EXPECT_EQ(run(jobs, Cluster::pool(1), ShortestRemaining(false), options), (Spans{{0, 1260}, {150, 160}, {290, 300}}));
}

// A load that another preemption cuts short is begun anew.
TEST(Engine, ALoadCutShortLeavesTheWorkAsItWas) {
  const JobTable jobs = table_of({{0, 1000, 1}, {150, 10, 1}, {170, 10, 1}});
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(60), .checkpoint_interval = whole_seconds(100)};
  EXPECT_EQ(run(jobs, Cluster::pool(1), ShortestRemaining(false), options), (Spans{{0, 1140}, {150, 160}, {170, 180}}));
}

TEST(Engine, WhatWouldEndAfterTheEndOfTimeNeverEnds) {
  const JobTable jobs = table_of({{0, 1000, 1}, {10, 10, 1}, {100, 10, 1}, {200, 10, 1}});
  Engine engine(jobs, Cluster::pool(1), {.preemption = {.restart = whole_seconds(4'599'999'999'900)}});
  ShortestRemaining policy(false);
  EXPECT_FALSE(simulate(engine, policy));
  EXPECT_EQ(engine.view().finished(), 3u);
  EXPECT_GE(engine.view().remaining(JobId{0}), Time{});
}

TEST(Engine, AStartTakenBackAtOnceIsNoPreemption) {
  const JobTable jobs = table_of({{0, 10, 1}, {1, 5, 1}});
  Engine engine(jobs, Cluster::pool(1), {.preemption = {.restart = whole_seconds(7)}});
  Decision decision = engine.decision();
  engine.advance();
  ASSERT_EQ(decision.start(JobId{0}), Verdict::ok);
  decision.adjust_work(JobId{0}, whole_seconds(100));
  ASSERT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_TRUE(engine.events().empty());
  EXPECT_EQ(engine.first_start(JobId{0}), Time::max());
  EXPECT_EQ(engine.preemptions(JobId{0}), 0u);
  EXPECT_TRUE(engine.consistent());

  engine.advance();  // 1 s: started, taken back, and put where it was again
  decision.start(JobId{0});
  decision.preempt(JobId{0});
  ASSERT_EQ(decision.restore(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.events().size(), 1u);
  EXPECT_TRUE(engine.consistent());
  EXPECT_EQ(engine.view().expected_end(JobId{0}), whole_seconds(11));
}

TEST(Engine, AHeldJobKeepsItsPlaceAndDoesNoWork) {
  const JobTable jobs = table_of({{0, 10, 1}, {4, 1, 1}, {20, 1, 1}});
  Engine engine(jobs, Cluster::pool(2));
  Decision decision = engine.decision();
  engine.advance();
  decision.start(JobId{0});
  engine.apply();
  engine.advance();  // 4 s
  decision.hold(JobId{0});
  engine.apply();
  EXPECT_EQ(engine.view().expected_end(JobId{0}), Time::max());
  engine.advance();  // 20 s
  EXPECT_EQ(engine.view().remaining(JobId{0}), whole_seconds(6));
  decision.resume(JobId{0});
  engine.apply();
  EXPECT_TRUE(engine.consistent());
  EXPECT_EQ(engine.view().expected_end(JobId{0}), whole_seconds(26));
  EXPECT_EQ(engine.view().ran(JobId{0}), whole_seconds(20));
}

TEST(View, TellsDemandsApartByWhatTheClusterBounds) {
  std::vector<Row> rows;
  for (const std::int64_t mib : {0, 10, 20, 20}) {
    rows.push_back({.work = 1, .shape = {.gpu_milli_per_task = whole_gpu, .memory_mib_per_task = mib}});
  }
  const JobTable jobs = table_of(rows);
  Cluster cluster = Cluster::homogeneous(2, 4);
  EXPECT_EQ(Engine(jobs, cluster).view().demand_count(), 2u);  // none, and some
  cluster.nodes[1].memory_mib = 100;
  const Engine bounded(jobs, cluster);
  EXPECT_EQ(bounded.view().demand_count(), 3u);
  EXPECT_EQ(bounded.view().demand(JobId{2}), bounded.view().demand(JobId{3}));
  EXPECT_EQ(bounded.view().shape_of_demand(bounded.view().demand(JobId{1})).memory_mib_per_task, 10);
}

TEST(Engine, AnAttemptThatEndsQueuesAgainInItsPlace) {
  const JobTable jobs = table_of({{.submit = 0, .attempts = {3, 4}}, {.submit = 1, .work = 5}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), Fifo{}), (Spans{{0, 7}, {7, 12}}));
}

TEST(Engine, AJobOfNoWorkEndsWhenItStarts) {
  const JobTable jobs = table_of({{0, 5, 1}, {1, 0, 1}, {1, 2, 1}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), Fifo{}), (Spans{{0, 5}, {5, 5}, {5, 7}}));
}

TEST(Engine, VirtualClustersQueueApartWithinTheirQuotas) {
  Cluster cluster = Cluster::pool(4);
  cluster.vcs = {{.name = "a", .quota = 1 * whole_gpu}, {.name = "b", .quota = 3 * whole_gpu}};
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1, .vc = "a"},
                                  {.submit = 0, .work = 10, .gpus = 1, .vc = "a"},
                                  {.submit = 1, .work = 4, .gpus = 3, .vc = "b"},
                                  {.submit = 1, .work = 4, .gpus = 1, .vc = "nobody"}});
  // The second job of a waits for its quota though GPUs idle; a job of no virtual cluster waits for a free GPU.
  EXPECT_EQ(run(jobs, cluster, Fifo{}), (Spans{{0, 10}, {10, 20}, {1, 5}, {5, 9}}));
}

TEST(Engine, OwnedNodesServeTheirOwner) {
  Cluster cluster = Cluster::homogeneous(2, 2);
  cluster.vcs = {{.name = "a"}, {.name = "b"}};
  cluster.nodes[0].vc = 0;
  cluster.nodes[1].vc = 1;
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 2, .vc = "a"},
                                  {.submit = 1, .work = 10, .gpus = 1, .vc = "a"},
                                  {.submit = 2, .work = 10, .gpus = 2, .vc = "b"}});
  EXPECT_EQ(run(jobs, cluster, Fifo{}), (Spans{{0, 10}, {10, 20}, {2, 12}}));
}

TEST(Engine, SharesOfOneGpuRunTogether) {
  const Shape half{.gpu_milli_per_task = 500}, most{.gpu_milli_per_task = 700};
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .shape = half},
                                  {.submit = 0, .work = 10, .shape = half},
                                  {.submit = 0, .work = 10, .shape = most},
                                  {.submit = 0, .work = 10, .shape = half}});
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 2), Fifo{}), (Spans{{0, 10}, {0, 10}, {0, 10}, {10, 20}}));
}

TEST(Engine, CpuStarvationBlocksGpuJobs) {
  Cluster cluster = Cluster::homogeneous(1, 8);
  cluster.nodes[0].cpu_milli = 10'000;
  const JobTable jobs =
      table_of({{.submit = 0, .work = 10, .shape = {.cpu_milli_per_task = 8'000}},
                {.submit = 1, .work = 5, .shape = {.gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = 4'000}},
                {.submit = 1, .work = 5, .shape = {.gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = 2'000}}});
  EXPECT_EQ(run(jobs, cluster, FifoSkip{}), (Spans{{0, 10}, {10, 15}, {1, 6}}));
}

TEST(Engine, AGangRunsAtTheRateOfItsSlowestNode) {
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"fast", "slow"};
  cluster.nodes[1].gpu_type = 1;
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1, .gpu_spec = "fast", .family = "resnet"},
                                  {.submit = 20, .work = 10, .gpus = 2, .family = "resnet"},
                                  {.submit = 60, .work = 10, .gpus = 1, .gpu_spec = "slow", .family = "bert"}});
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  const std::uint32_t resnet = jobs.families().find("resnet");
  runtime.set(resnet, 0, 2 * reference_rate);
  runtime.set(resnet, 1, reference_rate / 2);
  EXPECT_EQ(run(jobs, cluster, Fifo{}, {}, &runtime), (Spans{{0, 5}, {20, 40}, {60, 70}}));
}

TEST(Engine, AGangOfAGivenSizeHasRatesOfItsOwn) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1, .family = "resnet"},
                                  {.submit = 20, .work = 10, .gpus = 2, .family = "resnet"},
                                  {.submit = 60, .work = 10, .gpus = 2, .family = "bert"}});
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 1);
  const std::uint32_t resnet = jobs.families().find("resnet");
  runtime.set(resnet, 0, 2 * reference_rate);
  runtime.set_for_gang(resnet, 2, 0, reference_rate / 2);
  EXPECT_EQ(run(jobs, Cluster::pool(2), Fifo{}, {}, &runtime), (Spans{{0, 5}, {20, 40}, {60, 70}}));
}

// What a gang has no rate for is that of its family, at whatever place of the table it was added.
TEST(RuntimeModel, KeepsTheRowsOfGangsApart) {
  RuntimeModel runtime(3, 2);
  runtime.set(1, 0, 11);
  runtime.set(1, 1, 12);
  runtime.set_for_gang(1, 8, 0, 81);
  runtime.set_for_gang(1, 2, 1, 22);
  runtime.set_for_gang(0, 4, 0, 40);
  runtime.set_for_gang(1, 8, 1, 82);
  const auto rates = [&](std::uint32_t family, const Shape& shape) {
    const auto row = runtime.rates(family, shape);
    return std::vector<RatePpm>(row.begin(), row.end());
  };
  const auto gang = [](std::uint32_t gpus) { return Shape{.tasks = gpus, .gpu_milli_per_task = whole_gpu}; };
  using Rates = std::vector<RatePpm>;
  EXPECT_EQ(rates(1, gang(1)), (Rates{11, 12}));
  EXPECT_EQ(rates(1, gang(2)), (Rates{11, 22}));
  EXPECT_EQ(rates(1, gang(8)), (Rates{81, 82}));
  EXPECT_EQ(rates(1, (Shape{.tasks = 2, .gpu_milli_per_task = 4 * whole_gpu})), (Rates{81, 82}));
  EXPECT_EQ(rates(1, (Shape{.tasks = 4, .gpu_milli_per_task = whole_gpu / 2})), (Rates{11, 12}));  // a share
  EXPECT_EQ(rates(0, gang(4)), (Rates{40, reference_rate}));
  EXPECT_EQ(rates(2, gang(8)), (Rates{reference_rate, reference_rate}));
  EXPECT_EQ(rates(3, gang(8)), Rates{});
}

TEST(View, TellsTheSpeedsOfAJobWhereThereAreAny) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 2, .family = "resnet"}});
  RuntimeModel runtime(2, 2);
  runtime.set_for_gang(1, 2, 1, 300'000);
  const Engine known(jobs, Cluster::pool(2), {}, {.runtime = &runtime}), unknown(jobs, Cluster::pool(2));
  EXPECT_EQ(known.view().speed(JobId{0}, 0), reference_rate);
  EXPECT_EQ(known.view().speed(JobId{0}, 1), 300'000u);
  EXPECT_EQ(known.view().speed(JobId{0}, 7), reference_rate);  // a type that the table does not have
  EXPECT_TRUE(unknown.view().speeds(JobId{0}).empty());
  EXPECT_EQ(unknown.view().speed(JobId{0}, 1), reference_rate);
}

TEST(Engine, AFinishNeverComesEarlyWhateverTheRate) {
  Cluster cluster = Cluster::pool(1);
  const JobTable jobs = table_of({{0, 10, 1}});
  RuntimeModel runtime(1, 1);
  runtime.set(0, 0, 3 * reference_rate);
  Engine engine(jobs, cluster, {}, {.runtime = &runtime});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), Time{3'333'334});
}

// ---- commands ----

TEST(Decision, StartsOnOneGpuTypeAlone) {
  Cluster cluster = Cluster::homogeneous(3, 2);
  cluster.gpu_types = {"a", "b"};
  cluster.nodes[1].gpu_type = 1;
  const JobTable jobs = table_of({{0, 10, 2}, {0, 10, 3}, {.submit = 0, .work = 10, .gpus = 1, .gpu_spec = "a"}});
  Engine engine(jobs, cluster);
  ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(decision.start_on_type(JobId{1}, 1), Verdict::does_not_fit);  // 2 GPUs of that type
  EXPECT_EQ(decision.start_on_type(JobId{2}, 1), Verdict::does_not_fit);  // not allowed there
  EXPECT_EQ(decision.start_on_type(JobId{0}, 1), Verdict::ok);
  EXPECT_EQ(decision.start_on_type(JobId{0}, 1), Verdict::wrong_phase);
  EXPECT_EQ(decision.start_on_type(JobId{1}, 0), Verdict::ok);
  engine.apply();
  engine.view().for_each_grant(JobId{0}, [](const Grant& grant) { EXPECT_EQ(grant.node, NodeId{1}); });
  EXPECT_TRUE(engine.consistent());
}

// Jobs of two families on a fast node and a slow one: each starts where it is fastest as long as there is room.
TEST(Placement, FastestLooksAtEachJobsOwnSpeeds) {
  Cluster cluster = Cluster::homogeneous(2, 2);
  cluster.gpu_types = {"v100", "k80"};
  cluster.nodes[1].gpu_type = 1;
  const JobTable jobs = table_of({{.submit = 0, .work = 60, .gpus = 1, .family = "recommendation"},
                                  {.submit = 1, .work = 60, .gpus = 1, .family = "resnet"},
                                  {.submit = 2, .work = 60, .gpus = 2, .family = "resnet"},
                                  {.submit = 50, .work = 60, .gpus = 1, .family = "resnet"}});
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  runtime.set(jobs.families().find("resnet"), 1, reference_rate / 4);
  runtime.set(jobs.families().find("recommendation"), 1, 2 * reference_rate);
  const EngineOptions fastest{.placement = Placement::fastest};
  // The gang of 2 spans both types at 2 s, and runs at the speed of the slower. At 50 s only a slow GPU is idle.
  EXPECT_EQ(run(jobs, cluster, Fifo{}, fastest, &runtime), (Spans{{0, 30}, {1, 61}, {2, 242}, {50, 290}}));
  // Few nodes: the first two share a node, so that the gang has the slow one to itself.
  EXPECT_EQ(run(jobs, cluster, Fifo{}, {}, &runtime), (Spans{{0, 60}, {1, 61}, {2, 242}, {60, 120}}));
}

TEST(Decision, RefusesWhatIsNotPossibleAndChangesNothing) {
  const JobTable jobs = table_of({{0, 10, 2}, {0, 10, 3}, {5, 1, 1}});
  Engine engine(jobs, Cluster::pool(4));
  ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::wrong_phase);
  EXPECT_EQ(decision.restore(JobId{0}), Verdict::wrong_phase);
  EXPECT_EQ(decision.adjust_work(JobId{0}, whole_seconds(1)), Verdict::wrong_phase);
  EXPECT_EQ(decision.start(JobId{2}), Verdict::wrong_phase);  // not yet submitted
  EXPECT_EQ(decision.start(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.start(JobId{0}), Verdict::wrong_phase);
  EXPECT_FALSE(decision.fits(JobId{1}));
  EXPECT_EQ(decision.start(JobId{1}), Verdict::does_not_fit);
  const NodeTasks elsewhere{.node = NodeId{1}, .tasks = 3};
  EXPECT_EQ(decision.start_on(JobId{1}, {&elsewhere, 1}), Verdict::does_not_fit);
  EXPECT_EQ(decision.wake(engine.view().now()), Verdict::in_the_past);
  engine.apply();
  EXPECT_TRUE(engine.consistent());
  EXPECT_EQ(engine.view().cluster().free_gpu_milli(), 2 * whole_gpu);
  EXPECT_EQ(engine.view().phase(JobId{1}), JobPhase::pending);
}

TEST(Decision, APreemptionTakenBackLeavesNoTrace) {
  const JobTable jobs = table_of({{0, 10, 2}, {4, 3, 2}});
  EngineOptions options;
  options.preemption.restart = whole_seconds(100);
  Engine engine(jobs, Cluster::homogeneous(1, 2), options);
  engine.advance();
  engine.decision().start(JobId{0});
  engine.apply();
  engine.advance();
  Decision decision = engine.decision();
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.start(JobId{1}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{0}), Verdict::does_not_fit);
  EXPECT_EQ(decision.preempt(JobId{1}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{0}), Verdict::ok);
  engine.apply();
  EXPECT_TRUE(engine.consistent());
  EXPECT_EQ(engine.preemptions(JobId{0}), 0u);
  engine.advance();
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(10));
}

TEST(Decision, AnAdjustmentMovesTheFinish) {
  const JobTable jobs = table_of({{0, 10, 1}, {4, 0, 1}});
  Engine engine(jobs, Cluster::pool(2));
  engine.advance();
  engine.decision().start(JobId{0});
  engine.apply();
  engine.advance();
  EXPECT_EQ(engine.decision().adjust_work(JobId{0}, whole_seconds(7)), Verdict::ok);
  engine.decision().start(JobId{1});
  engine.apply();
  while (engine.advance()) engine.apply();
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(17));
  EXPECT_EQ(engine.ran(JobId{0}), whole_seconds(17));
}

TEST(Decision, WakesComeOnceAnInstantAndBeforeSubmissions) {
  const JobTable jobs = table_of({{0, 1, 1}, {7, 1, 1}});
  Engine engine(jobs, Cluster::pool(1));
  engine.advance();
  EXPECT_EQ(engine.decision().wake(whole_seconds(7)), Verdict::ok);
  EXPECT_EQ(engine.decision().wake(whole_seconds(7)), Verdict::ok);
  EXPECT_EQ(engine.decision().wake(whole_seconds(5)), Verdict::ok);
  engine.apply();
  ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().now(), whole_seconds(5));
  ASSERT_TRUE(engine.advance());
  const std::vector<Event> events(engine.events().begin(), engine.events().end());
  EXPECT_EQ(events, (std::vector<Event>{{EventKind::wake, no_job}, {EventKind::submit, JobId{1}}}));
}

// ---- time ----

TEST(Engine, EventsOfOneInstantComeTogether) {
  const JobTable jobs = table_of({{0, 5, 1}, {0, 5, 1}, {5, 1, 2}});
  Engine engine(jobs, Cluster::pool(2));
  Fifo policy;
  engine.advance();
  Decision decision = engine.decision();
  policy.decide(engine.view(), decision);
  engine.apply();
  ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().now(), whole_seconds(5));
  const std::vector<Event> events(engine.events().begin(), engine.events().end());
  EXPECT_EQ(events, (std::vector<Event>{
                        {EventKind::finish, JobId{0}}, {EventKind::finish, JobId{1}}, {EventKind::submit, JobId{2}}}));
}

TEST(Engine, OrOneByOneSubmissionsFirst) {
  const JobTable jobs = table_of({{0, 10, 1}, {10, 5, 1}, {10, 3, 1}});
  Engine engine(jobs, Cluster::pool(1), {.one_event_a_step = true});
  Fifo policy;
  Decision decision = engine.decision();
  std::vector<std::pair<EventKind, std::uint32_t>> seen;
  while (engine.advance()) {
    ASSERT_EQ(engine.events().size(), 1u);
    seen.emplace_back(engine.events()[0].kind, index(engine.events()[0].job));
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  using enum EventKind;
  EXPECT_EQ(seen, (std::vector<std::pair<EventKind, std::uint32_t>>{
                      {submit, 0}, {submit, 1}, {submit, 2}, {finish, 0}, {finish, 1}, {finish, 2}}));
  EXPECT_EQ(engine.end(JobId{2}), whole_seconds(18));
}

TEST(Engine, AdvanceToStopsWhereItIsTold) {
  const JobTable jobs = table_of({{3, 5, 1}});
  Engine engine(jobs, Cluster::pool(1));
  EXPECT_FALSE(engine.advance_to(whole_seconds(2)));
  EXPECT_EQ(engine.next_event_time(), whole_seconds(3));
  EXPECT_TRUE(engine.advance_to(whole_seconds(3)));
  engine.decision().start(JobId{0});
  engine.apply();
  EXPECT_FALSE(engine.advance_to(whole_seconds(6)));
  EXPECT_EQ(engine.view().now(), whole_seconds(6));
  EXPECT_EQ(engine.view().ran(JobId{0}), whole_seconds(3));
  EXPECT_EQ(engine.view().remaining(JobId{0}), whole_seconds(2));
  EXPECT_TRUE(engine.advance_to(whole_seconds(100)));
  EXPECT_EQ(engine.view().now(), whole_seconds(8));
  EXPECT_FALSE(engine.advance_to(whole_seconds(100)));
  EXPECT_TRUE(engine.all_finished());
}

TEST(Engine, JobsThatNobodyStartsWaitForEver) {
  const JobTable jobs = table_of({{0, 5, 3}});
  Engine engine(jobs, Cluster::pool(2));
  Fifo policy;
  EXPECT_FALSE(simulate(engine, policy));
  EXPECT_EQ(engine.first_start(JobId{0}), Time::max());
}

TEST(Engine, NoJobsIsARunOfNothing) {
  const JobTable jobs = table_of({});
  Engine engine(jobs, Cluster::pool(2));
  Fifo policy;
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.events_seen(), 0u);
}

TEST(View, AttainedServiceCountsGpusAndShares) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 3},
                                  {.submit = 0, .work = 10, .shape = {.gpu_milli_per_task = 250}},
                                  {.submit = 4, .work = 1}});
  Engine engine(jobs, Cluster::homogeneous(1, 8));
  FifoSkip policy;
  Decision decision = engine.decision();
  for (int instant = 0; instant < 2; ++instant) {
    engine.advance();
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  EXPECT_EQ(engine.view().attained_gpu_us(JobId{0}), 12'000'000);
  EXPECT_EQ(engine.view().attained_gpu_us(JobId{1}), 1'000'000);
  std::uint32_t tasks = 0;
  engine.view().for_each_grant(JobId{0}, [&](const Grant& grant) { tasks += grant.tasks; });
  EXPECT_EQ(tasks, 3u);
}

TEST(HistoryHash, TellsRunsApart) {
  const JobTable jobs = table_of({{0, 10, 1}, {1, 5, 1}, {2, 3, 1}});
  const auto hash = [&](auto policy) {
    Engine engine(jobs, Cluster::pool(1));
    HistoryHash history;
    simulate(engine, policy, history);
    return history.value();
  };
  EXPECT_EQ(hash(Fifo{}), hash(Fifo{}));
  EXPECT_NE(hash(Fifo{}), hash(Sjf{}));
}

// Job 0 runs from 0, and at 4 s, when job 1 comes, a decision stops, starts and restores them.
class OpenDecision : public testing::Test {
 protected:
  OpenDecision() {
    engine.advance();
    engine.decision().start(first);
    engine.apply();
    engine.advance_to(whole_seconds(4));
  }

  JobTable jobs = table_of({{0, 10, 2}, {4, 5, 2}});
  Engine engine{jobs, Cluster::pool(2)};
  JobId first{0}, second{1};
};

TEST_F(OpenDecision, RunTimesAreExactWhileItStopsAndStartsJobs) {
  const OracleView view = engine.view();
  Decision decision = engine.decision();
  const auto expect = [&](std::int64_t ran_first_s, std::int64_t ran_second_s) {
    EXPECT_EQ(view.ran(first), whole_seconds(ran_first_s));
    EXPECT_EQ(view.attained_gpu_us(first), 2 * whole_seconds(ran_first_s).us);
    EXPECT_EQ(view.remaining(first), whole_seconds(10 - ran_first_s));
    EXPECT_EQ(view.ran(second), whole_seconds(ran_second_s));
    EXPECT_EQ(view.remaining(second), whole_seconds(5 - ran_second_s));
  };
  expect(4, 0);
  EXPECT_EQ(decision.preempt(first), Verdict::ok);
  expect(4, 0);
  EXPECT_EQ(decision.start(second), Verdict::ok);
  expect(4, 0);
  engine.apply();
  expect(4, 0);
  engine.advance_to(whole_seconds(6));
  expect(4, 2);
  EXPECT_EQ(decision.preempt(second), Verdict::ok);
  EXPECT_EQ(decision.start(first), Verdict::ok);
  expect(4, 2);
  engine.apply();
  engine.advance_to(whole_seconds(7));
  expect(5, 2);
}

TEST_F(OpenDecision, RunTimesAreExactWhenAJobIsStoppedAndStartedOrRestored) {
  const OracleView view = engine.view();
  Decision decision = engine.decision();
  EXPECT_EQ(decision.preempt(first), Verdict::ok);
  EXPECT_EQ(decision.restore(first), Verdict::ok);
  EXPECT_EQ(view.ran(first), whole_seconds(4));
  engine.apply();
  engine.advance_to(whole_seconds(5));
  EXPECT_EQ(view.ran(first), whole_seconds(5));
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(decision.preempt(first), Verdict::ok);
    EXPECT_EQ(view.ran(first), whole_seconds(5));
    EXPECT_EQ(decision.start(first), Verdict::ok);
    EXPECT_EQ(view.ran(first), whole_seconds(5));
    EXPECT_EQ(view.running_since(first), whole_seconds(0));
  }
  engine.apply();
  EXPECT_EQ(view.ran(first), whole_seconds(5));
  EXPECT_EQ(view.remaining(first), whole_seconds(5));
  engine.advance_to(whole_seconds(9));
  EXPECT_EQ(view.ran(first), whole_seconds(9));
  EXPECT_EQ(engine.ran(first), whole_seconds(9));
}

TEST_F(OpenDecision, ANewRunBeginsWhenItIsStarted) {
  const OracleView view = engine.view();
  Decision decision = engine.decision();
  decision.preempt(first);
  engine.apply();
  engine.advance_to(whole_seconds(6));
  decision.start(first);
  EXPECT_EQ(view.running_since(first), whole_seconds(6));
  EXPECT_EQ(view.ran(first), whole_seconds(4));
  decision.preempt(first);
  EXPECT_EQ(view.ran(first), whole_seconds(4));
  engine.apply();
  EXPECT_EQ(view.ran(first), whole_seconds(4));
}

TEST(EventKind, RetryAndKillLeaveTheClusterAndEnterTheQueue) {
  using enum EventKind;
  for (const EventKind kind : {finish, retry, wake, submit, start, preempt, move, kill, node_down, node_up}) {
    const bool returns = kind == retry || kind == kill;
    EXPECT_EQ(enters_queue(kind), kind == submit || returns);
    EXPECT_EQ(leaves_cluster(kind), kind == finish || returns);
    EXPECT_EQ(concerns_job(kind), kind != wake && kind != node_down && kind != node_up);
  }
}

}  // namespace
}  // namespace gpusched::test
