// SPDX-License-Identifier: Apache-2.0
// Fair-share policies and the schedulers of the field, by examples worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/fair/lsf.hpp"
#include "src/policies/fair/share_queues.hpp"
#include "src/policies/fair/slurm.hpp"
#include "src/policies/queues/class_queues.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

/// Jobs started at the first instant, by user.
std::map<std::string, int> started_at_once(const std::string& policy, const JobTable& jobs, const Cluster& cluster) {
  std::map<std::string, int> started;
  const Spans spans = run_policy(policy, jobs, cluster);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (spans[i].start == 0) ++started[jobs.users()[jobs.user(JobId{i})]];
  }
  return started;
}
using Started = std::map<std::string, int>;

std::vector<Row> rows_of(int count, Row row) { return std::vector<Row>(static_cast<std::size_t>(count), row); }

std::vector<Row> join(std::vector<Row> a, const std::vector<Row>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// ---- dominant resource fairness ----

// The example of the paper (NSDI'11, section 4.1): 9 CPUs and 18 GB, A wants <1 CPU, 4 GB> a task, B <3 CPU, 1 GB>.
TEST(Drf, GivesThePapersWorkedExample) {
  Cluster cluster = Cluster::homogeneous(1, 0);
  cluster.nodes[0].cpu_milli = 9000;
  cluster.nodes[0].memory_mib = 18 * 1024;
  const Row a{.work = 100, .user = "A", .shape = {.cpu_milli_per_task = 1000, .memory_mib_per_task = 4 * 1024}};
  const Row b{.work = 100, .user = "B", .shape = {.cpu_milli_per_task = 3000, .memory_mib_per_task = 1024}};
  const JobTable jobs = table_of(join(rows_of(10, a), rows_of(10, b)));
  EXPECT_EQ(started_at_once("drf", jobs, cluster), (Started{{"A", 3}, {"B", 2}}));
}

TEST(Drf, WeightsDivideTheShares) {
  const JobTable jobs = table_of(join(rows_of(9, {.work = 10, .user = "A"}), rows_of(9, {.work = 10, .user = "B"})));
  EXPECT_EQ(started_at_once("drf", jobs, Cluster::pool(6)), (Started{{"A", 3}, {"B", 3}}));
  EXPECT_EQ(started_at_once("drf{weights=[2,1]}", jobs, Cluster::pool(6)), (Started{{"A", 4}, {"B", 2}}));
}

TEST(Drf, TheHierarchySharesBetweenVirtualClustersFirst) {
  const JobTable jobs = table_of(
      join(join(rows_of(9, {.work = 10, .user = "A", .vc = "x"}), rows_of(9, {.work = 10, .user = "B", .vc = "x"})),
           rows_of(9, {.work = 10, .user = "C", .vc = "y"})));
  EXPECT_EQ(started_at_once("drf", jobs, Cluster::pool(12)), (Started{{"A", 4}, {"B", 4}, {"C", 4}}));
  EXPECT_EQ(started_at_once("hdrf", jobs, Cluster::pool(12)), (Started{{"A", 3}, {"B", 3}, {"C", 6}}));
}

TEST(FairPolicies, SayInOneLineWhichColumnIsMissing) {
  const JobTable bare = table_of({{0, 1, 1}});
  const JobTable with_vcs = table_of({{.work = 1, .vc = "a"}});
  const Cluster cluster = Cluster::pool(1);
  for (const std::string name : {"drf", "slurm", "lsf"}) {
    const auto none = make(name, bare, cluster);
    ASSERT_FALSE(none) << name;
    EXPECT_EQ(none.error().message, "policy " + name + " shares between users, and the trace names none");
    const auto other = make(name, with_vcs, cluster);
    ASSERT_FALSE(other) << name;
    EXPECT_THAT(other.error().message, testing::HasSubstr("give by=vc"));
    EXPECT_TRUE(make(name + "{by=vc}", with_vcs, cluster)) << name;
  }
  for (const std::string name : {"yarn-capacity", "yarn-fair", "volcano"}) {
    const auto none = make(name, bare, cluster);
    ASSERT_FALSE(none) << name;
    EXPECT_THAT(none.error().message, testing::HasSubstr("virtual clusters, and the trace names none"));
  }
  EXPECT_THAT(make("hdrf", with_vcs, cluster).error().message, testing::HasSubstr("lacks users"));
}

TEST(FairPolicies, ShareBetweenGroupsToo) {
  JobTableBuilder builder;
  for (int i = 0; i < 18; ++i) {
    const std::string name = i < 9 ? "A" : "B";
    builder.add({.work = whole_seconds(10),
                 .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu},
                 .user = name,
                 .group = name,
                 .vc = name});
  }
  const JobTable jobs = *std::move(builder).build();
  for (const std::string name : {"drf", "lsf", "max-min", "yarn-capacity", "yarn-fair", "volcano"}) {
    EXPECT_EQ(started_at_once(name + "{by=group}", jobs, Cluster::pool(6)), (Started{{"A", 3}, {"B", 3}})) << name;
  }
}

// ---- static partition ----

TEST(StaticPartition, NeverLendsAnIdlePartition) {
  const JobTable jobs =
      table_of(join(rows_of(4, {.work = 10, .user = "ann"}), {{.submit = 15, .work = 10, .user = "bob"}}));
  // Two of four GPUs are bob's and idle until 15; ann's four jobs run two by two all the same.
  EXPECT_EQ(run_policy("static-partition", jobs, Cluster::pool(4)),
            (Spans{{0, 10}, {0, 10}, {10, 20}, {10, 20}, {15, 25}}));
}

TEST(StaticPartition, RefusesAJobThatCanNeverRun) {
  const JobTable jobs = table_of({{.work = 1, .gpus = 3, .user = "ann"}, {.work = 1, .user = "bob"}});
  const auto policy = make("static-partition", jobs, Cluster::pool(4));
  ASSERT_FALSE(policy);
  EXPECT_THAT(policy.error().message, testing::HasSubstr("job 0 wants 3 GPUs, and the partition of 'ann' has 2"));
  EXPECT_TRUE(make("static-partition{weights=[3,1]}", jobs, Cluster::pool(4)));
}

TEST(StaticPartition, TakesWhicheverOwnerTheTraceNames) {
  const JobTable with_vcs =
      table_of(join(rows_of(4, {.work = 10, .vc = "a"}), {{.submit = 15, .work = 10, .vc = "b"}}));
  EXPECT_EQ(run_policy("static-partition", with_vcs, Cluster::pool(4)),
            (Spans{{0, 10}, {0, 10}, {10, 20}, {10, 20}, {15, 25}}));
  const JobTable bare = table_of({{.work = 1}});
  EXPECT_EQ(make("static-partition", bare, Cluster::pool(4)).error().message,
            "policy static-partition divides GPUs between users or virtual clusters, and the trace names neither "
            "(columns user, vc)");
}

TEST(StaticPartition, PartsByDemandHoldTheLargestJob) {
  // GPU time 60 (in 6 jobs), 20 and 4 (on 4 GPUs). Of 12 GPUs cat's share would be 0 and must be 4; the other 8 fall 6
  // to 2.
  const JobTable jobs =
      table_of(join(join(rows_of(6, {.work = 10, .user = "ann"}), rows_of(2, {.work = 10, .user = "bob"})),
                    {{.work = 1, .gpus = 4, .user = "cat"}}));
  EXPECT_EQ(run_policy("static-partition{parts=demand}", jobs, Cluster::pool(12)),
            (Spans{{0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 1}}));
  // Of 8 GPUs the other 4 fall 3 to 1.
  EXPECT_EQ(run_policy("static-partition{parts=demand}", jobs, Cluster::pool(8)),
            (Spans{{0, 10}, {0, 10}, {0, 10}, {10, 20}, {10, 20}, {10, 20}, {0, 10}, {10, 20}, {0, 1}}));
  const JobTable wide = table_of({{.work = 1, .gpus = 3, .user = "ann"}, {.work = 1, .gpus = 3, .user = "bob"}});
  EXPECT_EQ(make("static-partition{parts=demand}", wide, Cluster::pool(4)).error().message,
            "static-partition: parts that hold each owner's largest job add up to 6 GPUs, and the cluster has 4");
}

// ---- Slurm and LSF ----

TEST(Slurm, UsageHalvesWithEachHalfLife) {
  DecayingUsage usage(3600);
  usage.hold(Time{}, 2 * whole_gpu);
  usage.hold(whole_seconds(3600), -2 * whole_gpu);
  // The integral of 2 x 2^-(t/3600) over an hour: 2 x 3600 / ln 2 x (1 - 1/2).
  EXPECT_NEAR(usage.at(whole_seconds(3600)), 5193.70, 0.01);
  EXPECT_NEAR(usage.at(whole_seconds(7200)), 5193.70 / 2, 0.01);
}

TEST(Slurm, ThoseWhoUsedLessComeFirst) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "heavy"},
                                  {.submit = 10, .work = 10, .user = "heavy"},
                                  {.submit = 20, .work = 10, .user = "light"}});
  EXPECT_EQ(run_policy("slurm", jobs, Cluster::pool(1)), (Spans{{0, 100}, {110, 120}, {100, 110}}));
  // Without the fair-share term, age decides.
  EXPECT_EQ(run_policy("slurm{weight_fair_share=0,weight_age=1e9}", jobs, Cluster::pool(1)),
            (Spans{{0, 100}, {100, 110}, {110, 120}}));
}

// Alike but for their partitions, so that one queue must not hide the later job behind the earlier.
TEST(Slurm, ABetterPartitionOvertakesWithinAnOwner) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "ann", .vc = "slow"},
                                  {.submit = 10, .work = 10, .user = "ann", .vc = "slow"},
                                  {.submit = 20, .work = 10, .user = "ann", .vc = "fast"}});
  EXPECT_EQ(run_policy("slurm{partition_factors=[0.1,0.9]}", jobs, Cluster::pool(1)),
            (Spans{{0, 100}, {110, 120}, {100, 110}}));
}

TEST(Slurm, PrintsItsTerms) {
  const JobTable jobs = table_of({{.work = 10, .gpus = 2, .user = "ann", .vc = "fast", .priority = 3}});
  Engine engine(jobs, Cluster::pool(8));
  engine.advance();
  engine.advance_to(whole_seconds(302'400));
  const Slurm slurm({.partition_factors = {0.5}, .most_qos = 6});
  const SlurmTerms terms = slurm.terms(engine.view(), JobId{0});
  // Half of the maximum age, 2 of 8 GPUs, half of the best partition, half of the greatest QoS.
  EXPECT_EQ(terms.to_string(), "priority 12250 = age 500 + fair-share 10000 + size 250 + partition 500 + qos 1000");
}

// Job 1 wants both GPUs of which job 0 holds one. Its partition waits behind it; the other one does not.
TEST(Slurm, AJobThatStaysPendingKeepsBackItsPartition) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "ann", .vc = "a"},
                                  {.submit = 1, .work = 10, .gpus = 2, .user = "ann", .vc = "a"},
                                  {.submit = 2, .work = 10, .user = "ann", .vc = "a"},
                                  {.submit = 3, .work = 10, .user = "ann", .vc = "b"}});
  EXPECT_EQ(run_policy("slurm", jobs, Cluster::pool(2)), (Spans{{0, 100}, {100, 110}, {110, 120}, {3, 13}}));
  EXPECT_EQ(run_policy("slurm{skip=true}", jobs, Cluster::pool(2)), (Spans{{0, 100}, {100, 110}, {2, 12}, {12, 22}}));
}

// Job 1 is planned at 100. Job 2 would delay it; job 3 ends before.
TEST(SlurmBackfill, StartsWhatDelaysNoJobOfHigherPriority) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "ann"},
                                  {.submit = 1, .work = 10, .gpus = 2, .user = "ann"},
                                  {.submit = 2, .work = 200, .user = "ann"},
                                  {.submit = 3, .work = 50, .user = "ann"}});
  const std::string order = "weight_fair_share=0,weight_size=0,weight_age=1e6";
  EXPECT_EQ(run_backfilled("slurm{" + order + ",bf_interval_s=0}+easy{estimate=exact}", jobs, Cluster::pool(2)),
            (Spans{{0, 100}, {100, 110}, {110, 310}, {3, 53}}));
  // The pass of second 1 puts off the next one to 31.
  EXPECT_EQ(run_backfilled("slurm{" + order + "}+easy{estimate=exact}", jobs, Cluster::pool(2)),
            (Spans{{0, 100}, {100, 110}, {110, 310}, {31, 81}}));
  // Only jobs 1 and 2 are tested.
  EXPECT_EQ(run_backfilled("slurm{" + order + ",bf_max_job_test=2}+easy{estimate=exact}", jobs, Cluster::pool(2)),
            (Spans{{0, 100}, {100, 110}, {110, 310}, {110, 160}}));
  // Job 1 begins beyond the window and has no reservation, so that job 2 starts before it.
  EXPECT_EQ(run_backfilled("slurm{" + order + ",bf_window_s=50,bf_interval_s=0}+easy{estimate=exact}", jobs,
                           Cluster::pool(2))[2],
            (Span{2, 202}));
}

TEST(SlurmBackfill, IsNamedEasyAlone) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  EXPECT_THAT(parse_policies(registry, "slurm+conservative").error().message, testing::HasSubstr("slurm"));
  EXPECT_THAT(parse_policies(registry, "lsf+easy").error().message, testing::HasSubstr("lsf"));
}

TEST(Lsf, DynamicPriorityFollowsTheFormula) {
  const JobTable jobs =
      table_of({{.work = 7200, .gpus = 2, .user = "ann"}, {.submit = 3600, .work = 1, .user = "bob"}});
  Engine engine(jobs, Cluster::pool(4));
  Lsf lsf({});
  const std::uint32_t ann = jobs.user(JobId{0}), bob = jobs.user(JobId{1});
  lsf.started(engine.view(), JobId{0}, ann);
  const Time hour = whole_seconds(3600);
  EXPECT_DOUBLE_EQ(lsf.dynamic_priority(bob, hour), 1.0 / 3);
  // Two GPUs for an hour, of which a history of 5 hours to a tenth keeps 2 x (1 - 10^-0.2) x 5 / ln 10.
  const double past = 2 * (1 - std::pow(10, -0.2)) * 5 / std::log(10.0);
  EXPECT_NEAR(lsf.dynamic_priority(ann, hour), 1 / (past * 0.7 + 1 * 0.7 + 3 * 3), 1e-9);
}

// Past usage is none before the first job, however long before time 0 that comes: bob goes before ann, as after time 0.
TEST(Lsf, SharesBeforeTimeZeroToo) {
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{-100'000'000}, std::int64_t{-4'000'000'000}}) {
    const JobTable jobs = table_of({{.submit = first, .work = 3600, .user = "ann"},
                                    {.submit = first + 10, .work = 100, .user = "ann"},
                                    {.submit = first + 20, .work = 100, .user = "bob"}});
    const auto begin = static_cast<double>(first);
    const Spans expected{{begin, begin + 3600}, {begin + 3700, begin + 3800}, {begin + 3600, begin + 3700}};
    EXPECT_EQ(run_policy("lsf", jobs, Cluster::pool(1)), expected) << first;
    EXPECT_EQ(run_policy("slurm", jobs, Cluster::pool(1)), expected) << first;
  }
}

// ---- queues with shares ----

TEST(QueueTree, SharesMultiplyDownTheTree) {
  QueueTree tree({"", "prod", "dev.a", "dev.b"}, OwnerWeights({1, 3, 1}));
  const std::vector<std::int64_t> much(4, 1000);
  EXPECT_EQ(tree.divide(800, much), (std::vector<std::int64_t>{0, 400, 300, 100}));
  // dev.a asks for little: its part goes to its sibling first, and only what both leave goes to prod.
  EXPECT_EQ(tree.divide(800, {0, 1000, 100, 250}), (std::vector<std::int64_t>{0, 450, 100, 250}));
  EXPECT_EQ(tree.divide(800, {0, 1000, 100, 1000}), (std::vector<std::int64_t>{0, 400, 100, 300}));
}

class Yarn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Schedulers, Yarn,
                         testing::Values("yarn-capacity{preemption=true", "yarn-fair{preemption=true",
                                         "volcano{reclaim=true"));

TEST_P(Yarn, AShareIsRestoredWithinOnePreemptionInterval) {
  // a fills 8 GPUs; b is due four and gets them 15 s after it asked, from a's newest jobs, which finish later.
  const JobTable jobs =
      table_of(join(rows_of(8, {.work = 100, .vc = "a"}), {{.submit = 10, .work = 20, .gpus = 4, .vc = "b"}}));
  const Spans spans = run_policy(GetParam() + ",preemption_interval_s=15}", jobs, Cluster::pool(8));
  EXPECT_EQ(spans[8], (Span{25, 45}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(spans[i], (Span{0, 100})) << i;
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(spans[i], (Span{0, 120})) << i;
}

TEST_P(Yarn, WhatNobodyElseWantsIsLent) {
  const JobTable jobs =
      table_of(join(rows_of(8, {.work = 100, .vc = "a"}), {{.submit = 500, .work = 20, .gpus = 4, .vc = "b"}}));
  const Spans spans = run_policy(GetParam() + "}", jobs, Cluster::pool(8));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(spans[i], (Span{0, 100})) << i;
}

// As the systems ship: YARN's monitor and fair-share preemption are off, and Volcano's actions are enqueue, allocate
// and backfill.
TEST(Yarn, PreemptsNothingByDefault) {
  const JobTable jobs =
      table_of(join(rows_of(8, {.work = 100, .vc = "a"}), {{.submit = 10, .work = 20, .gpus = 4, .vc = "b"}}));
  for (const std::string name : {"yarn-capacity", "yarn-fair", "volcano", "yarn-capacity{preemption=false}"}) {
    EXPECT_EQ(run_policy(name, jobs, Cluster::pool(8))[8], (Span{100, 120})) << name;
  }
}

TEST(Volcano, PreemptsLowerPrioritiesOfTheSameQueue) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a", .priority = 1},
                                  {.submit = 0, .work = 100, .gpus = 4, .vc = "a", .priority = 2},
                                  {.submit = 10, .work = 20, .gpus = 4, .vc = "a", .priority = 3}});
  EXPECT_EQ(run_policy("volcano{preempt=true}", jobs, Cluster::pool(8)), (Spans{{0, 120}, {0, 100}, {10, 30}}));
  EXPECT_EQ(run_policy("volcano", jobs, Cluster::pool(8)), (Spans{{0, 100}, {0, 100}, {100, 120}}));
}

// Nodes of 1, 2 and 2 GPUs. Job 0 lies on the second; job 1 stops it and is packed: the first node, the second, and one
// GPU of the third. Consolidated it would leave the first idle.
TEST(Volcano, BinpackPacksWhatPreemptStarts) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 2, .vc = "a", .priority = 1},
                                  {.submit = 10, .work = 20, .gpus = 4, .vc = "a", .priority = 2}});
  Cluster cluster = Cluster::homogeneous(3, 2);
  cluster.nodes[0].gpus = 1;
  const auto idle_at_ten = [&](const std::string& text) {
    Engine engine(jobs, cluster);
    auto policy = make(text, jobs, cluster);
    Decision decision = engine.decision();
    while (engine.advance_to(whole_seconds(10))) {
      policy->decide(engine.view(), decision);
      engine.apply();
    }
    std::vector<std::uint32_t> idle;
    for (std::uint32_t n = 0; n < 3; ++n) idle.push_back(engine.view().cluster().node_idle_gpus(NodeId{n}));
    return idle;
  };
  EXPECT_EQ(idle_at_ten("volcano{preempt=true}"), (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_EQ(idle_at_ten("volcano{binpack=false,preempt=true}"), (std::vector<std::uint32_t>{1, 0, 0}));
}

// ---- Volcano's plugin drf ----

TEST(Volcano, DrfServesThePoorerUserOfAQueueFirst) {
  const JobTable jobs = table_of({{.work = 100, .gpus = 3, .user = "A", .vc = "q"},
                                  {.submit = 1, .work = 50, .user = "A", .vc = "q"},
                                  {.submit = 1, .work = 50, .user = "B", .vc = "q"}});
  EXPECT_EQ(run_policy("volcano{drf=false}", jobs, Cluster::pool(4)), (Spans{{0, 100}, {1, 51}, {51, 101}}));
  EXPECT_EQ(run_policy("volcano", jobs, Cluster::pool(4)), (Spans{{0, 100}, {51, 101}, {1, 51}}));
}

TEST(Volcano, DrfPreemptsWhereTheOtherKeepsAsMuch) {
  // At 10 s B would have 1/2 and A 1/2: job 1, the newer, goes. At 20 s B would have all and A nothing: job 3 waits,
  // and goes first at 60 s as B then holds nothing.
  const JobTable jobs = table_of({{.work = 100, .gpus = 2, .user = "A", .vc = "q"},
                                  {.work = 100, .gpus = 2, .user = "A", .vc = "q"},
                                  {.submit = 10, .work = 50, .gpus = 2, .user = "B", .vc = "q"},
                                  {.submit = 20, .work = 10, .gpus = 2, .user = "B", .vc = "q"}});
  EXPECT_EQ(run_policy("volcano{preempt=true}", jobs, Cluster::pool(4)),
            (Spans{{0, 100}, {0, 160}, {10, 60}, {60, 70}}));
  EXPECT_EQ(run_policy("volcano", jobs, Cluster::pool(4)), (Spans{{0, 100}, {0, 100}, {100, 150}, {100, 110}}));
  // Where the trace names no users, all jobs are of one namespace, and the plugin has nothing to order.
  const JobTable nobody = table_of({{.work = 10, .vc = "q"}, {.work = 10, .vc = "q"}});
  EXPECT_EQ(run_policy("volcano", nobody, Cluster::pool(1)), (Spans{{0, 10}, {10, 20}}));
}

TEST(Volcano, DrfLooksAtTheDominantResource) {
  Cluster cluster = Cluster::homogeneous(1, 4);
  cluster.nodes[0].cpu_milli = 10'000;
  DominantShares shares(cluster);
  const Shape gpu{.gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = 1000};
  const Shape cores{.cpu_milli_per_task = 6000, .memory_mib_per_task = 512};
  shares.add(1, gpu, +1);
  EXPECT_EQ(shares.share(1), DominantShares::whole / 4);
  EXPECT_EQ(shares.share_after(1, cores, +1), DominantShares::whole * 7 / 10);  // memory is not bounded
  EXPECT_EQ(shares.share(1), DominantShares::whole / 4);
  shares.add(1, gpu, -1);
  EXPECT_EQ(shares.share(1), 0);
}

// vol.csv: a job that one action starts and the next stops in the same instant has not run.
TEST(Volcano, AStartThatAnotherActionTakesBackCostsNothing) {
  const JobTable jobs = table_of({{.submit = 10, .work = 200, .gpus = 4, .user = "u1"},
                                  {.submit = 20, .work = 200, .gpus = 2, .user = "u2", .priority = 2},
                                  {.submit = 20, .work = 10, .gpus = 2, .user = "u0"},
                                  {.submit = 30, .work = 10, .gpus = 4, .user = "u2"},
                                  {.submit = 30, .work = 10, .gpus = 1, .user = "u2", .priority = 2},
                                  {.submit = 30, .work = 50, .gpus = 1, .user = "u0"},
                                  {.submit = 30, .work = 200, .gpus = 3, .user = "u2", .priority = 1},
                                  {.submit = 30, .work = 50, .gpus = 8, .user = "u2", .priority = 2}});
  const Cluster cluster = Cluster::pool(8);
  Engine engine(jobs, cluster, {.preemption = {.restart = whole_seconds(7)}});
  auto policy = make("volcano{by=user,drf=false,preempt=true,reclaim=true}", jobs, cluster);
  IntervalLog intervals;
  ASSERT_TRUE(simulate(engine, *policy, intervals));
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    EXPECT_EQ(engine.ran(job), jobs.work(job) + Time{engine.preemptions(job) * whole_seconds(7).us}) << i;
    const auto first = std::find_if(intervals.intervals().begin(), intervals.intervals().end(),
                                    [&](const Interval& interval) { return interval.job == job; });
    ASSERT_NE(first, intervals.intervals().end());
    EXPECT_EQ(first->start, engine.first_start(job)) << i;
  }
}

// ---- changes at the instant of something else ----

// At 10 the first attempt of ann's job ends, and its user gives it another priority: it waits in the class of that
// since it came back.
TEST(FairPolicies, ANewPriorityAtTheEndOfAnAttempt) {
  const JobTable jobs =
      table_of({{.gpus = 2, .user = "ann", .vc = "a", .attempts = {10, 10}}, {.work = 30, .user = "bob", .vc = "a"}});
  const JobChanges changes(
      {{.time = whole_seconds(10), .job = JobId{0}, .kind = JobChange::Kind::priority, .priority = 7}}, jobs.size());
  const Cluster cluster = Cluster::pool(4);
  for (const char* policy : {"static-partition", "max-min", "drf", "hdrf", "slurm", "yarn-fair", "k8s"}) {
    Engine engine(jobs, cluster, {}, {.changes = &changes});
    auto made = make(policy, jobs, cluster);
    ASSERT_TRUE(made) << policy;
    EXPECT_TRUE(simulate(engine, *made)) << policy;
    EXPECT_EQ(engine.end(JobId{0}), whole_seconds(20)) << policy;
  }
}

// The lease at 10 goes to bob's job (rho = (5 + 4) / 8, ann's 1), and ann's waits until 14. Its user gives it another
// size meanwhile, before anything else happens.
TEST(FairPolicies, ANewSizeAfterALostLease) {
  JobTable jobs = table_of({{.work = 100, .user = "ann"}, {.submit = 5, .work = 4, .gpus = 2, .user = "bob"}});
  const std::uint32_t two = jobs.number_of_shape({.tasks = 2, .gpu_milli_per_task = whole_gpu});
  const JobChanges changes({{.time = whole_seconds(12), .job = JobId{0}, .kind = JobChange::Kind::size, .shape = two}},
                           jobs.size());
  const Cluster cluster = Cluster::pool(2);
  Engine engine(jobs, cluster, {}, {.changes = &changes});
  auto policy = make("themis{auction=false,lease_s=10}", jobs, cluster);
  ASSERT_TRUE(policy && simulate(engine, *policy));
  EXPECT_EQ(engine.end(JobId{1}), whole_seconds(14));
  EXPECT_EQ(engine.preemptions(JobId{0}), 1u);
  EXPECT_EQ(engine.end(JobId{0}), whole_seconds(104));
}

}  // namespace
}  // namespace gpusched::test
