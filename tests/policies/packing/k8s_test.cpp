// SPDX-License-Identifier: Apache-2.0
// The default scheduler of Kubernetes: its scores from their published formulas, its search for nodes, and what it does
// to gangs.
#include "src/policies/packing/k8s.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// A cluster of nodes of 8 GPUs with these thousandths of a core and MiB.
struct Machine {
  std::int64_t cpu_milli = unlimited, memory_mib = unlimited;
};
Cluster cluster_of(const std::vector<Machine>& machines) {
  Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(machines.size()), 8);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    cluster.nodes[i].cpu_milli = machines[i].cpu_milli;
    cluster.nodes[i].memory_mib = machines[i].memory_mib;
  }
  return cluster;
}

// Of one GPU.
Row pod(std::int64_t cpu_milli, std::int64_t memory_mib) {
  return {
      .work = 1000,
      .shape = {.gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = cpu_milli, .memory_mib_per_task = memory_mib}};
}

// The node of each pod; all come at 0, one after the other.
std::vector<std::uint32_t> nodes_of(const std::vector<Row>& pods, const Cluster& cluster,
                                    const std::string& policy_text = "k8s") {
  const JobTable jobs = table_of(pods);
  Engine engine(jobs, cluster);
  auto policy = make(policy_text, jobs, cluster);
  EXPECT_TRUE(policy);
  engine.advance();
  Decision decision = engine.decision();
  policy->decide(engine.view(), decision);
  engine.apply();
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    engine.view().for_each_grant(JobId{i}, [&](const Grant& grant) { nodes.push_back(index(grant.node)); });
  }
  return nodes;
}

std::string with_seed(int seed, const std::string& more = "") {
  return "k8s{seed=" + std::to_string(seed) + more + "}";
}

// ---- scores ----

// (capacity - requested) x 100 / capacity, rounded down.
TEST(K8s, LeastAllocatedIsThePartLeftOver) {
  EXPECT_EQ(least_allocated_score(0, 4000), 100);
  EXPECT_EQ(least_allocated_score(3000, 4000), 25);
  EXPECT_EQ(least_allocated_score(1, 3), 66);
  EXPECT_EQ(least_allocated_score(4000, 4000), 0);
  EXPECT_EQ(least_allocated_score(4001, 4000), 0);
  EXPECT_EQ(most_allocated_score(3000, 4000), 75);
  EXPECT_EQ(most_allocated_score(1, 3), 33);
  EXPECT_EQ(most_allocated_score(5000, 4000), 100);
}

// (1 - |part of CPU - part of memory| / 2) x 100, rounded down.
TEST(K8s, BalancedAllocationIsHowCloseThePartsAre) {
  EXPECT_EQ(balanced_allocation_score(3000, 4000, 5000, 10000), 87);  // 3/4 and 1/2
  EXPECT_EQ(balanced_allocation_score(3000, 6000, 5000, 10000), 100);
  EXPECT_EQ(balanced_allocation_score(6000, 6000, 0, 10000), 50);
  EXPECT_EQ(balanced_allocation_score(9000, 6000, 0, 10000), 50);  // a part is at most 1
  EXPECT_EQ(balanced_allocation_score(3000, 6000, 1, 0), 100);     // of one resource there is no deviation
}

// Of a pod of 3 cores and 5000 MiB: (25 + 50) / 2 + 87 on the first, (50 + 50) / 2 + 100 on the second.
TEST(K8s, ScoresCpuAndMemoryByDefault) {
  const Cluster cluster = cluster_of({{4000, 10000}, {6000, 10000}});
  for (int seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(nodes_of({pod(3000, 5000)}, cluster, with_seed(seed)), (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(nodes_of({pod(3000, 5000)}, cluster, with_seed(seed, ",score=most-allocated")),
              (std::vector<std::uint32_t>{1}));  // (75 + 50) / 2 + 87 = 149 and (50 + 50) / 2 + 100 = 150
  }
}

// The first node has 4 of its 10 cores and next to no memory taken, the second 2 of both. With the third pod that is
// 8/10 and 4/10 against 6/10 and 6/10: (20 + 59) / 2 + 79 against (40 + 40) / 2 + 100.
TEST(K8s, BalancesCpuAndMemory) {
  const Cluster cluster = cluster_of({{10000, 10000}, {10000, 10000}});
  std::set<std::uint32_t> first;
  for (int seed = 0; seed < 20; ++seed) {
    const auto nodes = nodes_of({pod(4000, 1), pod(2000, 2000), pod(4000, 4000)}, cluster, with_seed(seed));
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_NE(nodes[0], nodes[1]) << seed;
    EXPECT_EQ(nodes[2], nodes[1]) << seed;
    first.insert(nodes[0]);
  }
  EXPECT_EQ(first.size(), 2u);  // the empty nodes tied
}

// A pod without requests counts as 100 thousandths of a core and 200 MiB: the second goes where the first is not,
// (97 + 95) / 2 against (95 + 90) / 2.
TEST(K8s, PodsWithoutRequestsCountAsSmallOnes) {
  const Cluster cluster = cluster_of({{4000, 4000}, {4000, 4000}});
  for (int seed = 0; seed < 20; ++seed) {
    const auto nodes = nodes_of({pod(0, 0), pod(0, 0)}, cluster, with_seed(seed));
    EXPECT_NE(nodes[0], nodes[1]) << seed;
  }
  // Not less and not more: beside it, a pod that asks for as much is equal, and the third may go to either.
  std::set<std::uint32_t> beside_the_first;
  for (int seed = 0; seed < 20; ++seed) {
    const auto nodes = nodes_of({pod(0, 0), pod(100, 200), pod(0, 0)}, cluster, with_seed(seed));
    beside_the_first.insert(nodes[2] == nodes[0] ? 1 : 0);
  }
  EXPECT_EQ(beside_the_first.size(), 2u);
}

// On nodes of 96 cores and 512 GiB nine pods of one GPU leave the score at 99: who asks for no CPU and no memory is
// spread at random.
TEST(K8s, WhereNothingIsAskedForTheNodeIsDrawn) {
  for (const Machine machine : {Machine{}, Machine{96'000, 512 * 1024}}) {
    const Cluster cluster = cluster_of({machine, machine, machine, machine});
    std::map<std::uint32_t, int> drawn;
    for (int seed = 0; seed < 400; ++seed) ++drawn[nodes_of({pod(0, 0)}, cluster, with_seed(seed)).front()];
    ASSERT_EQ(drawn.size(), 4u);
    for (const auto& [node, times] : drawn) {
      EXPECT_GT(times, 65) << node;  // 100 expected, 4 standard deviations are 35
      EXPECT_LT(times, 135) << node;
    }
    EXPECT_EQ(nodes_of({pod(0, 0), pod(0, 0)}, cluster, with_seed(3)),
              nodes_of({pod(0, 0), pod(0, 0)}, cluster, with_seed(3)));
  }
}

// ---- the search for nodes ----

// percentageOfNodesToScore: 50 less one for each 125 nodes, at least 5; never fewer than 100 nodes.
TEST(K8s, LooksForPartOfTheFeasibleNodes) {
  EXPECT_EQ(feasible_nodes_to_find(1, 0), 1u);
  EXPECT_EQ(feasible_nodes_to_find(99, 0), 99u);
  EXPECT_EQ(feasible_nodes_to_find(100, 0), 100u);
  EXPECT_EQ(feasible_nodes_to_find(1000, 0), 420u);
  EXPECT_EQ(feasible_nodes_to_find(5000, 0), 500u);
  EXPECT_EQ(feasible_nodes_to_find(6000, 0), 300u);
  EXPECT_EQ(feasible_nodes_to_find(100'000, 0), 5000u);
  EXPECT_EQ(feasible_nodes_to_find(1000, 100), 1000u);
  EXPECT_EQ(feasible_nodes_to_find(1000, 30), 300u);
  EXPECT_EQ(feasible_nodes_to_find(1000, 5), 100u);
}

// Of 200 nodes 100 are looked for at a time (50 %), each search from where the last ended.
TEST(K8s, EachSearchBeginsWhereTheLastEnded) {
  const Cluster cluster = cluster_of(std::vector<Machine>(200));
  for (int seed = 0; seed < 20; ++seed) {
    const auto nodes = nodes_of({pod(0, 0), pod(0, 0), pod(0, 0)}, cluster, with_seed(seed));
    EXPECT_LT(nodes[0], 100u);
    EXPECT_GE(nodes[1], 100u);
    EXPECT_LT(nodes[2], 100u);
  }
}

// Only the last node has room, far from the start, and a full node is passed over wherever it stands.
TEST(K8s, FindsTheOneNodeThatHasRoom) {
  std::vector<Machine> machines(300, Machine{1000, 1000});
  machines[277] = {64'000, 64'000};
  const std::vector<Row> pods(3, pod(16'000, 16'000));
  EXPECT_EQ(nodes_of(pods, cluster_of(machines)), (std::vector<std::uint32_t>{277, 277, 277}));
}

// Five tasks of 3 cores on nodes of 8, 5 and 8: two, one and two. A sixth has no place, and no task of it starts.
TEST(K8s, AGangTakesEveryPlaceOrNone) {
  const Cluster cluster = cluster_of({{8000, 8000}, {5000, 8000}, {8000, 8000}});
  Row gang = pod(3000, 100);
  gang.shape.tasks = 5;
  EXPECT_EQ(nodes_of({gang}, cluster), (std::vector<std::uint32_t>{2, 1, 0}));
  gang.shape.tasks = 6;
  EXPECT_EQ(nodes_of({gang}, cluster), (std::vector<std::uint32_t>{}));
}

// ---- gangs ----

TEST(K8s, ScoresOfGpusSpreadOrPack) {
  const JobTable jobs = table_of({{0, 10, 1}, {0, 10, 1}, {0, 10, 4}});
  const Cluster cluster = Cluster::homogeneous(2, 4);
  const auto nodes_used_by_two = [&](const std::string& text) {
    Engine engine(jobs, cluster);
    auto policy = make(text, jobs, cluster);
    engine.advance();
    Decision decision = engine.decision();
    policy->decide(engine.view(), decision);
    engine.apply();
    std::map<std::uint32_t, int> nodes;
    for (const JobId job : {JobId{0}, JobId{1}}) {
      engine.view().for_each_grant(job, [&](const Grant& grant) { ++nodes[index(grant.node)]; });
    }
    return nodes.size();
  };
  EXPECT_EQ(nodes_used_by_two("k8s{resources=gpu}"), 2u);
  EXPECT_EQ(nodes_used_by_two("k8s{resources=gpu,score=most-allocated}"), 1u);
}

// Two jobs of three pods on four GPUs, created side by side: each binds two pods and waits for ever for its third.
// Scheduled as gangs, one runs after the other.
TEST(K8s, PartialGangsDeadlockWhereGangSchedulingDoesNot) {
  const JobTable jobs = table_of({{0, 60, 3}, {0, 60, 3}});
  const Cluster cluster = Cluster::pool(4);
  EXPECT_EQ(run_policy("k8s", jobs, cluster), (Spans{{0, 60}, {60, 120}}));

  const JobTable pods = *split_into_pods(jobs, whole_seconds(1));
  ASSERT_EQ(pods.size(), 6u);
  Engine engine(pods, cluster);
  auto policy = make("k8s{pods=true}", pods, cluster);
  Decision decision = engine.decision();
  while (engine.advance_to(whole_seconds(86'400))) {
    policy->decide(engine.view(), decision);
    engine.apply();
  }
  EXPECT_EQ(engine.view().finished(), 0u);  // after a day
  EXPECT_EQ(engine.view().running().size(), 4u);
  EXPECT_EQ(engine.view().pending_count(), 2u);
  EXPECT_EQ(engine.view().cluster().idle_gpus(), 0);  // all GPUs are held and none works
}

// Four pods of two jobs, bound in turn on two GPUs: none of them ever works. Time ran backwards.
TEST(K8s, PodsThatLockEachOtherOutWaitForEver) {
  const JobTable jobs = table_of({{0, 100, 2}, {0, 1, 2}});
  const JobTable both = *split_into_pods(jobs, whole_seconds(0));
  JobTableBuilder in_turn;
  std::uint32_t pod = 0;
  for (const std::uint32_t i : {0u, 2u, 1u, 3u}) {
    const std::string id = std::to_string(pod++);  // pods of one instant come in order of their ids
    in_turn.add({.id = id,
                 .work = both.work(JobId{i}),
                 .shape = both.shape(JobId{i}),
                 .group = both.groups()[both.group(JobId{i})]});
  }
  const JobTable pods = *std::move(in_turn).build();
  const Cluster cluster = Cluster::homogeneous(1, 2);
  Engine engine(pods, cluster);
  auto policy = make("k8s{pods=true}", pods, cluster);
  EXPECT_FALSE(simulate(engine, *policy));
  EXPECT_EQ(engine.view().finished(), 0u);
}

TEST(K8s, PodsWorkFromWhenTheLastIsBound) {
  const JobTable jobs = table_of({{0, 60, 3}, {200, 5, 1}});
  const JobTable pods = *split_into_pods(jobs, whole_seconds(10));  // pods at 0, 10 and 20
  EXPECT_EQ(run_policy("k8s{pods=true}", pods, Cluster::pool(4)), (Spans{{0, 80}, {10, 80}, {20, 80}, {200, 205}}));
}

// Two halves of a GPU at 1/2 when side by side. The first pod waits for the second alone for 10 s; both then take 120
// s.
TEST(K8s, PodsThatWaitKeepTheirWorkAtAnyRate) {
  const JobTable jobs = table_of({{.work = 60, .family = "a", .shape = {.tasks = 2, .gpu_milli_per_task = 500}}});
  const JobTable pods = *split_into_pods(jobs, whole_seconds(10));
  RuntimeModel model(pods.families().size(), 1);
  const std::uint32_t a = pods.families().find("a");
  model.set_extra(a, a, 0, 1'000'000);
  const Cluster cluster = Cluster::homogeneous(1, 1);
  for (const std::uint32_t rate : {1'000'000u, 500'000u}) {
    model.set(a, 0, rate);
    auto policy = make("k8s{pods=true}", pods, cluster);
    const double end = 10 + 120.0 * 1'000'000 / rate;
    EXPECT_EQ(run(pods, cluster, *std::move(policy), {}, &model), (Spans{{0, end}, {10, end}}));
  }
}

}  // namespace
}  // namespace gpusched::test
