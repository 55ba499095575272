// SPDX-License-Identifier: Apache-2.0
// Policies in which jobs take turns or shares: gandiva, themis, max-min, and Tiresias in rounds.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "src/policies/fair/max_min.hpp"
#include "src/policies/fair/themis.hpp"
#include "src/policies/preemptive/gandiva.hpp"
#include "src/policies/published/tiresias_pollux_lucid.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::run;
using test::Span;
using test::table_of;

TEST(Gandiva, JobsTakeTurnsOfASlice) {
  const JobTable jobs = table_of({{.work = 150}, {.work = 100}});
  // 0-60, 120-180, 220-250 and 60-120, 180-220.
  EXPECT_EQ(run(jobs, Cluster::pool(1), Gandiva(whole_seconds(60))), (std::vector<Span>{{0, 250}, {60, 220}}));
}

struct PreemptionCount {
  std::uint64_t count = 0;
  void observe(const OracleView&, std::span<const Event> events) {
    for (const Event& event : events) count += event.kind == EventKind::preempt ? 1 : 0;
  }
};

// A slice of 17 s does not even load a job's state. That was told after two thousand preemptions of each job: with
// 10,000 jobs, after minutes.
TEST(Gandiva, SlicesShorterThanARestartAreToldSoonAlthoughManyJobsWait) {
  constexpr std::uint32_t jobs_waiting = 3000;
  const JobTable jobs = table_of(std::vector<test::Row>(jobs_waiting, {.work = 100}));
  Engine engine(jobs, Cluster::pool(50), {.preemption = {.restart = whole_seconds(30)}});
  Gandiva policy(whole_seconds(17));
  PreemptionCount preemptions;
  EXPECT_FALSE(simulate(engine, policy, preemptions));
  EXPECT_TRUE(goes_on_for_ever(engine));
  EXPECT_LT(preemptions.count, 40u * jobs_waiting);
}

// A node fails once, long ago: no failure is to come that might disturb the turns.
TEST(Gandiva, SlicesShorterThanARestartAreToldSoonAfterTheLastFailure) {
  const JobTable jobs = table_of({{.work = 1000}, {.work = 1000}});
  const std::vector<NodeChange> changes{{whole_seconds(5), NodeId{0}, false}, {whole_seconds(6), NodeId{0}, true}};
  NodeFailures failures;
  failures.add_changes(changes);
  Engine engine(jobs, Cluster::pool(1), {.preemption = {.restart = whole_seconds(30)}}, {.failures = &failures});
  Gandiva policy(whole_seconds(17));
  PreemptionCount preemptions;
  EXPECT_FALSE(simulate(engine, policy, preemptions));
  EXPECT_TRUE(goes_on_for_ever(engine));
  EXPECT_LT(preemptions.count, 20'000u);
}

// Slices of 31 s of which 30 go into restarting: every turn brings a job a second further.
TEST(Gandiva, SlowProgressOfManyJobsIsNotTakenForNone) {
  const JobTable jobs = table_of(std::vector<test::Row>(4000, {.work = 60}));
  Engine engine(jobs, Cluster::pool(50), {.preemption = {.restart = whole_seconds(30)}});
  Gandiva policy(whole_seconds(31));
  EXPECT_TRUE(simulate(engine, policy));
}

TEST(Gandiva, AGangWaitsUntilEnoughJobsHaveHadTheirSlice) {
  const JobTable jobs = table_of({{.work = 500}, {.submit = 50, .work = 500}, {.submit = 55, .work = 30, .gpus = 2}});
  // At 60 only job 0 has run for a slice; at 120 both make room. They resume at 150.
  EXPECT_EQ(run(jobs, Cluster::pool(2), Gandiva(whole_seconds(60))),
            (std::vector<Span>{{0, 530}, {50, 580}, {120, 150}}));
}

TEST(Gandiva, HalfAGpuMakesRoomForAWholeOne) {
  const JobTable jobs = table_of({{.work = 150, .shape = {.gpu_milli_per_task = 500}}, {.submit = 10, .work = 30}});
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 1), Gandiva({.slice = whole_seconds(60), .migrates = false})),
            (std::vector<Span>{{0, 180}, {60, 90}}));
}

// At 10 s each of two nodes of 4 has one GPU in use. Job 3 wants all GPUs of one; at the slice job 0 makes way.
TEST(Gandiva, MovesJobsTogetherForOneThatWantsANode) {
  const JobTable jobs = table_of({{.work = 200},
                                  {.work = 10, .gpus = 3},
                                  {.work = 300},
                                  {.submit = 20, .work = 30, .shape = {.gpu_milli_per_task = 4 * whole_gpu}}});
  for (const bool migrates : {true, false}) {
    Gandiva policy({.slice = whole_seconds(60), .migrates = migrates, .migration = whole_seconds(5)});
    Engine engine(jobs, Cluster::homogeneous(2, 4));
    simulate(engine, policy);
    // Suspended, it resumes on the other node at once, for nothing; moved, it pays 5 s.
    EXPECT_EQ(test::spans_of(engine), (std::vector<Span>{{0, migrates ? 205.0 : 200.0}, {0, 10}, {0, 300}, {60, 90}}));
    EXPECT_EQ(engine.preemptions(JobId{0}), migrates ? 0u : 1u);
    EXPECT_TRUE(engine.consistent());
  }
}

TEST(Themis, TheJobThatSharingSlowsMostGetsTheLease) {
  // Job 1 would take 100 s alone; at 1000 its rho is (900 + 100) / 100 = 10, that of job 0 (1000 + 9000) / 10000 = 1.
  const JobTable jobs = table_of({{.work = 10000}, {.submit = 100, .work = 100}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), Themis(whole_seconds(1000))), (std::vector<Span>{{0, 10100}, {1000, 1100}}));
}

TEST(Themis, TheIdealIsAShareOfTheCluster) {
  // Two jobs are in the system when job 1 comes: its share is two GPUs of four, and alone it would take 200 s. At 1000
  // its rho is (900 + 100) / 200 = 5, and that of the one-GPU job 2 (900 + 100) / 100 = 10: job 2 has the lease, and
  // job 1 the GPUs when it ends.
  const JobTable jobs = table_of(
      {{.work = 5000, .gpus = 4}, {.submit = 100, .work = 100, .gpus = 4}, {.submit = 100, .work = 100, .gpus = 1}});
  const auto spans = run(jobs, Cluster::pool(4), Themis(whole_seconds(1000)));
  EXPECT_EQ(spans[2], (Span{1000, 1100}));
  EXPECT_EQ(spans[1], (Span{1100, 1200}));
}

// At 1000 s both jobs bid: a lease raises log V of job 0 by log(11000/10000) and of job 1 by log(2850/1850). Job 1
// wins, and keeps 10000/11000 of its lease for what it takes from job 0. At 1909.09 s job 0 takes over; at 2000 s job 1
// wins again, with 40.9 s to go.
TEST(Themis, AWinnerPaysWithPartOfItsLease) {
  const JobTable jobs = table_of({{.work = 10000}, {.submit = 100, .work = 950}});
  const Themis::Options all_bid{.lease = whole_seconds(1000), .auction = true, .filter = 0};
  EXPECT_EQ(run(jobs, Cluster::pool(1), Themis(all_bid)), (std::vector<Span>{{0, 10950}, {1000, 2040.909091}}));
  // With the filter at 0.8 one job of two bids, nobody is kept out, and nothing is paid. Job 1 came to half a cluster,
  // so that its rho is (900 + 950) / 1900 at 1000, below job 0's 1, and above it at 2000.
  const Themis::Options few_bid{.lease = whole_seconds(1000), .auction = true};
  EXPECT_EQ(run(jobs, Cluster::pool(1), Themis(few_bid)), (std::vector<Span>{{0, 10950}, {2000, 2950}}));
}

TEST(Themis, EstimatesDecideInPlaceOfRunTimes) {
  // Both short jobs take 100 s, and were slowed alike; job 1 asked for 5000 s, so that its rho is below that of job 0.
  const JobTable jobs = table_of({{.work = 10000, .estimate = 10000},
                                  {.submit = 100, .work = 100, .estimate = 5000},
                                  {.submit = 100, .work = 100, .estimate = 100}});
  const Cluster cluster = Cluster::pool(1);
  const auto themis = [&](const char* text) {
    const auto specs = parse_policy_list(text);
    auto made = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
    EXPECT_TRUE(made);
    EXPECT_EQ(made->clairvoyant(), std::string_view(text).find("user") == std::string_view::npos);
    return run(jobs, cluster, *std::move(made));
  };
  EXPECT_EQ(themis("themis{lease_s=1000,auction=false}"), (std::vector<Span>{{0, 10200}, {1000, 1100}, {1100, 1200}}));
  EXPECT_EQ(themis("themis{lease_s=1000,auction=false,estimate=user}"),
            (std::vector<Span>{{0, 10100}, {10100, 10200}, {1000, 1100}}));
}

TEST(MaxMin, TheUserWithTheFewestGpusGoesNext) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 2, .user = "a"},
                                  {.work = 100, .gpus = 2, .user = "a"},
                                  {.work = 100, .user = "b"},
                                  {.work = 100, .user = "b"}});
  // a 2, b 1, b 2; then nobody's job fits but at 100.
  EXPECT_EQ(run(jobs, Cluster::pool(4), MaxMin(OwnerColumn::user)),
            (std::vector<Span>{{0, 100}, {100, 200}, {0, 100}, {0, 100}}));
}

TEST(MaxMin, TakesFromTheRicherWhatLeavesThemAsMuch) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 2, .user = "a"},
                                  {.work = 100, .gpus = 2, .user = "a"},
                                  {.submit = 10, .work = 100, .user = "b"},
                                  {.submit = 12, .work = 10, .gpus = 2, .user = "b"}});
  // At 10 s a keeps 2 against b's 1: the newer of its jobs goes. For job 3 b would have 3 and a 0, so that it waits.
  EXPECT_EQ(run(jobs, Cluster::pool(4), MaxMin(OwnerColumn::user, true)),
            (std::vector<Span>{{0, 100}, {0, 190}, {10, 110}, {110, 120}}));
  EXPECT_EQ(run(jobs, Cluster::pool(4), MaxMin(OwnerColumn::user)),
            (std::vector<Span>{{0, 100}, {0, 100}, {100, 200}, {100, 110}}));
}

// At 10 s a holds 3/10 of one card and all of the other. What b wants is a whole card, and a keeps as much without the
// share.
TEST(MaxMin, TakesAShareFromTheRicherWhereTheCardIsWanted) {
  const JobTable jobs = table_of({{.work = 20, .user = "a", .shape = {.gpu_milli_per_task = 300}},
                                  {.work = 20, .user = "a"},
                                  {.submit = 10, .work = 5, .user = "b"}});
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 2), MaxMin(OwnerColumn::user, true)),
            (std::vector<Span>{{0, 25}, {0, 20}, {10, 15}}));
}

// At 8 s c's job 1 takes the cores that a's job 2 wants: c holds 3/10 of a GPU, and may keep them. With its job 3 it
// holds 1.3, and job 2 takes the place of job 1, whose start in the same instant is taken back.
TEST(MaxMin, WhoGrowsRicherInTheSameInstantIsTakenFrom) {
  Cluster cluster = Cluster::pool(2);
  cluster.nodes[0].cpu_milli = 5000;
  const JobTable jobs = table_of(
      {{.work = 8, .user = "c", .shape = {.cpu_milli_per_task = 4000}},
       {.submit = 8, .work = 20, .user = "c", .shape = {.gpu_milli_per_task = 300, .cpu_milli_per_task = 4000}},
       {.submit = 8, .work = 10, .user = "a", .shape = {.gpu_milli_per_task = 500, .cpu_milli_per_task = 4000}},
       {.submit = 8, .work = 30, .user = "c", .shape = {.gpu_milli_per_task = 1000, .cpu_milli_per_task = 500}}});
  EXPECT_EQ(run(jobs, cluster, MaxMin(OwnerColumn::user, true)),
            (std::vector<Span>{{0, 8}, {18, 38}, {8, 18}, {8, 38}}));
}

TEST(MaxMin, SaysThatTheTraceHasNoUsers) {
  const JobTable jobs = table_of({{.work = 1}});
  const Cluster cluster = Cluster::pool(1);
  const auto specs = parse_policy_list("max-min");
  ASSERT_TRUE(specs);
  const auto made = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("the trace names none"), std::string::npos);
}

TEST(TiresiasPolluxLucid, PolluxDecidesEveryMinuteAndChargesEveryStart) {
  const JobTable jobs = table_of({{.work = 100}, {.submit = 10, .work = 50}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), TiresiasPolluxLucid(PolluxLucidForm::pollux)),
            (std::vector<Span>{{0, 130}, {180, 260}}));
}

TEST(TiresiasPolluxLucid, LucidDemotesAt18000GpuSecondsAndChargesThePreemption) {
  const JobTable jobs = table_of({{.work = 20000}, {.submit = 30, .work = 100}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), TiresiasPolluxLucid(PolluxLucidForm::lucid)),
            (std::vector<Span>{{0, 20160}, {18000, 18100}}));
}

}  // namespace
}  // namespace gpusched
