// SPDX-License-Identifier: Apache-2.0
#include "gpusched/engine/cluster_state.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

constexpr std::uint32_t anyone = no_index;

NameTable specs(std::initializer_list<std::string_view> more = {}) {
  NameTable names;
  names.intern("");
  for (const std::string_view name : more) names.intern(name);
  return names;
}

ClusterState state_of(const Cluster& cluster, const NameTable& demands = specs()) { return {cluster, demands, Rng(1)}; }

Shape gang(std::uint32_t tasks, MilliGpu milli = whole_gpu) { return {.tasks = tasks, .gpu_milli_per_task = milli}; }

/// Node -> tasks of a grant list.
std::map<std::uint32_t, std::uint32_t> nodes_of(const ClusterState& state, std::uint32_t grants) {
  std::map<std::uint32_t, std::uint32_t> nodes;
  for (; grants != no_index; grants = state.grant(grants).next) {
    nodes[index(state.grant(grants).node)] += state.grant(grants).tasks;
  }
  return nodes;
}
using Nodes = std::map<std::uint32_t, std::uint32_t>;

/// Four nodes of 4 GPUs with 4, 1, 3 and 2 idle. With bounded CPU they are searched by a scan, not by the index.
ClusterState uneven(std::int64_t cpu_milli = unlimited) {
  Cluster cluster = Cluster::homogeneous(4, 4);
  for (Node& node : cluster.nodes) node.cpu_milli = cpu_milli;
  ClusterState state = state_of(cluster);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> held{{1, 3}, {2, 1}, {3, 2}};
  for (const auto& [node, tasks] : held) {
    const NodeTasks choice{.node = NodeId{node}, .tasks = tasks};
    EXPECT_NE(state.place_on(gang(tasks), anyone, &choice, 1), no_index);
  }
  return state;
}

TEST(Placement, ConsolidateTakesTheFullestNodeThatHoldsAll) {
  ClusterState state = uneven();
  EXPECT_EQ(nodes_of(state, state.place(gang(2), anyone, Placement::consolidate)), (Nodes{{3, 2}}));
  EXPECT_EQ(nodes_of(state, state.place(gang(1), anyone, Placement::consolidate)), (Nodes{{1, 1}}));
}

// An edge site: a CPU node, one FPGA, one GPU of 16 GiB, one of 40 GiB.
Cluster mixed_devices() {
  Cluster cluster = Cluster::homogeneous(4, 1);
  cluster.gpu_types = {std::string(any_gpu_type), "U50", "T4", "A100"};
  cluster.devices = {{}, {.kind = "fpga", .memory_mib = 8192}, {.memory_mib = 16384}, {.memory_mib = 40960}};
  cluster.nodes[0].gpus = 0;
  for (std::uint32_t node = 1; node < 4; ++node) cluster.nodes[node].gpu_type = node;
  return cluster;
}

// The nodes that a job of this demand may use.
std::string allowed(std::string_view demand, const Shape& shape = gang(1)) {
  const Cluster cluster = mixed_devices();
  const NameTable demands = specs({demand});
  const ClusterState state = state_of(cluster, demands);
  Shape asked = shape;
  asked.gpu_spec = demands.find(demand);
  std::string nodes;
  for (std::uint32_t node = 0; node < 4; ++node) {
    if (state.node_allowed(NodeId{node}, asked, anyone) && state.tasks_that_fit(NodeId{node}, asked) > 0)
      nodes += std::to_string(node);
  }
  return nodes;
}

TEST(Devices, AJobWithoutDemandGetsAGpu) { EXPECT_EQ(allowed(""), "23"); }

TEST(Devices, AJobThatAsksForNoDeviceRunsOnEveryNode) {
  EXPECT_EQ(allowed("", {.tasks = 1, .cpu_milli_per_task = 1}), "0123");
  EXPECT_EQ(allowed("T4", {.tasks = 1, .cpu_milli_per_task = 1}), "0123") << "whatever GPU it names";
  EXPECT_EQ(allowed("H100@99GiB", {.tasks = 1, .cpu_milli_per_task = 1}), "0123");
}

TEST(Devices, AKindMeansAllTypesOfIt) {
  EXPECT_EQ(allowed("kind:fpga"), "1");
  EXPECT_EQ(allowed("kind:gpu"), "23");
  EXPECT_EQ(allowed("kind:npu"), "");
  EXPECT_EQ(allowed("A100|kind:fpga"), "13");
}

TEST(Devices, MemoryIsAHardLimit) {
  EXPECT_EQ(allowed("@16GiB"), "23");
  EXPECT_EQ(allowed("@16385MiB"), "3");
  EXPECT_EQ(allowed("@41GiB"), "");
  EXPECT_EQ(allowed("T4|A100@17GiB"), "3");
  EXPECT_EQ(allowed("kind:fpga@9GiB"), "");
}

// Two cards of 16 GiB; every task wants a tenth of one and 6 GiB.
TEST(Devices, SharesOfACardNeverNeedMoreMemoryThanItHas) {
  Cluster cluster = Cluster::homogeneous(1, 2);
  cluster.devices = {{.memory_mib = 16384}};
  const NameTable demands = specs({"@6GiB", "@16GiB", "@1GiB"});
  ClusterState state = state_of(cluster, demands);
  const Shape share{.tasks = 1, .gpu_milli_per_task = 100, .gpu_spec = 1};
  Shape gang_of_shares = share;
  gang_of_shares.tasks = 5;
  EXPECT_EQ(state.place(gang_of_shares, anyone, Placement::consolidate), no_index);
  std::vector<std::uint32_t> held;
  for (int i = 0; i < 4; ++i) held.push_back(state.place(share, anyone, Placement::consolidate));
  EXPECT_EQ(state.grant(held[1]).devices, 1u);
  EXPECT_EQ(state.grant(held[2]).devices, 2u) << "12 of 16 GiB of the first card are taken";
  EXPECT_EQ(state.place(share, anyone, Placement::consolidate), no_index);
  const NodeTasks first{.node = NodeId{0}, .tasks = 1, .device = 0};
  EXPECT_EQ(state.place_on(share, anyone, &first, 1), no_index);
  const Shape small{.tasks = 1, .gpu_milli_per_task = 100, .gpu_spec = 3}, plain{.tasks = 1, .gpu_milli_per_task = 100};
  held.push_back(state.place_on(small, anyone, &first, 1));
  EXPECT_NE(held.back(), no_index);
  const std::uint32_t untold = state.place_on(plain, anyone, &first, 1);
  EXPECT_NE(untold, no_index) << "a job that tells no need takes no memory";
  state.release(held[0], share, anyone);
  EXPECT_TRUE(state.retake(held[0], share, anyone));
  for (int i = 0; i < 4; ++i) state.release(held[static_cast<std::size_t>(i)], share, anyone);
  EXPECT_FALSE(state.all_free());
  state.release(held[4], small, anyone);
  state.release(untold, plain, anyone);
  EXPECT_TRUE(state.all_free());
}

TEST(Devices, WhatIsNoAmountOfMemoryIsPartOfAName) {
  EXPECT_EQ(GpuDemand("T4@home").names(), std::vector<std::string_view>{"T4@home"});
  EXPECT_EQ(GpuDemand("T4@1.5GiB").memory_mib(), 0);
  EXPECT_EQ(GpuDemand("T4@99999999999999999999GiB").names().front(), "T4@99999999999999999999GiB");
  EXPECT_EQ(GpuDemand("T4@-1MiB").memory_mib(), 0);
}

TEST(Placement, ConsolidateSplitsOverTheEmptiestNodes) {
  ClusterState state = uneven();
  // 6 fit no node: the emptiest (node 0, 4 GPUs) first, then the fullest that holds the remaining 2.
  EXPECT_EQ(nodes_of(state, state.place(gang(6), anyone, Placement::consolidate)), (Nodes{{0, 4}, {3, 2}}));
}

// Nodes 0 and 2 are of type 0, 1 and 3 of type 1.
TEST(Placement, FastestTakesAsFewSlowerTypesAsHoldTheGang) {
  Cluster cluster = Cluster::homogeneous(4, 4);
  cluster.gpu_types = {"a", "b"};
  cluster.nodes[1].gpu_type = cluster.nodes[3].gpu_type = 1;
  const std::vector<RatePpm> a_fast{200, 100}, b_fast{100, 200}, alike{100, 100};
  const auto placed = [&](std::uint32_t tasks, const std::vector<RatePpm>& speeds) {
    ClusterState state = state_of(cluster);
    const NodeTasks held{.node = NodeId{1}, .tasks = 2};
    EXPECT_NE(state.place_on(gang(2), anyone, &held, 1), no_index);
    return nodes_of(state, state.place(gang(tasks), anyone, Placement::fastest, speeds));
  };
  EXPECT_EQ(placed(2, a_fast), (Nodes{{0, 2}}));
  EXPECT_EQ(placed(2, b_fast), (Nodes{{1, 2}}));  // the fullest of its type that holds all
  EXPECT_EQ(placed(2, alike), (Nodes{{1, 2}}));   // as consolidate
  EXPECT_EQ(placed(2, {}), (Nodes{{1, 2}}));
  EXPECT_EQ(placed(4, alike), (Nodes{{0, 4}}));
  EXPECT_EQ(placed(6, b_fast), (Nodes{{1, 2}, {3, 4}}));
  EXPECT_EQ(placed(8, a_fast), (Nodes{{0, 4}, {2, 4}}));
  EXPECT_EQ(placed(8, b_fast), (Nodes{{0, 4}, {2, 4}}));  // 6 of type b: all types, as consolidate
  EXPECT_EQ(placed(14, b_fast), (Nodes{{0, 4}, {1, 2}, {2, 4}, {3, 4}}));
  EXPECT_EQ(placed(15, b_fast), Nodes{});
}

// Two idle GPUs each; on node 0 half a GPU more is free, which a whole-GPU task cannot use.
TEST(Placement, FullnessCountsIdleGpusWhetherOrNotCpuIsBounded) {
  for (const std::int64_t cpu_milli : {unlimited, std::int64_t{64'000}}) {
    Cluster cluster = Cluster::homogeneous(2, 3);
    for (Node& node : cluster.nodes) node.cpu_milli = cpu_milli;
    ClusterState state = state_of(cluster);
    const NodeTasks first{.node = NodeId{0}, .tasks = 1}, second{.node = NodeId{1}, .tasks = 1};
    ASSERT_NE(state.place_on(gang(1, 500), anyone, &first, 1), no_index);
    ASSERT_NE(state.place_on(gang(1), anyone, &second, 1), no_index);
    EXPECT_EQ(nodes_of(state, state.place(gang(2), anyone, Placement::consolidate)), (Nodes{{0, 2}}));
  }
}

TEST(Placement, FirstFitTakesNodesInOrder) {
  ClusterState state = uneven();
  EXPECT_EQ(nodes_of(state, state.place(gang(6), anyone, Placement::first_fit)), (Nodes{{0, 4}, {1, 1}, {2, 1}}));
}

TEST(Placement, BestFitSplitsOverTheFullestNodes) {
  ClusterState state = uneven();
  EXPECT_EQ(nodes_of(state, state.place(gang(6), anyone, Placement::best_fit)), (Nodes{{1, 1}, {2, 3}, {3, 2}}));
  ClusterState again = uneven();
  EXPECT_EQ(nodes_of(again, again.place(gang(3), anyone, Placement::best_fit)), (Nodes{{2, 3}}));
}

TEST(Placement, WorstFitSpreadsTaskByTask) {
  ClusterState state = uneven();
  // Idle 4,1,3,2: 0, then 0 (3 against 3: the lower id), then 2, then 0 (2 against 2 and 2).
  EXPECT_EQ(nodes_of(state, state.place(gang(4), anyone, Placement::worst_fit)), (Nodes{{0, 3}, {2, 1}}));
}

TEST(Placement, YarnTakesTheFirstNodeOrIdleNodesWhole) {
  const auto yarn = [](std::uint32_t tasks) {
    ClusterState state = uneven();
    return nodes_of(state, state.place(gang(tasks), anyone, Placement::yarn));
  };
  EXPECT_EQ(yarn(2), (Nodes{{0, 2}}));
  EXPECT_EQ(yarn(4), (Nodes{{0, 4}}));
  EXPECT_EQ(yarn(5), (Nodes{{0, 4}, {1, 1}}));
  EXPECT_EQ(yarn(6), (Nodes{{0, 4}, {2, 2}}));
  EXPECT_EQ(yarn(8), Nodes{});  // 10 GPUs are idle, but one node only is whole
}

TEST(Placement, HeliosTakesTheFullestNodeOrIdleNodesAndTheEmptiest) {
  for (const std::int64_t cpu_milli : {unlimited, std::int64_t{64'000}}) {
    const auto helios = [cpu_milli](std::uint32_t tasks) {
      ClusterState state = uneven(cpu_milli);
      return nodes_of(state, state.place(gang(tasks), anyone, Placement::helios));
    };
    EXPECT_EQ(helios(2), (Nodes{{3, 2}}));
    EXPECT_EQ(helios(1), (Nodes{{1, 1}}));
    EXPECT_EQ(helios(5), (Nodes{{0, 4}, {2, 1}}));
    EXPECT_EQ(helios(6), (Nodes{{0, 4}, {2, 2}}));
    EXPECT_EQ(helios(8), Nodes{});
  }
}

TEST(Placement, AGangOfSharesIsSmallWhenOneNodesGpusHoldIt) {
  ClusterState state = state_of(Cluster::homogeneous(2, 2));
  const NodeTasks half{.node = NodeId{1}, .tasks = 1};
  ASSERT_NE(state.place_on(gang(1, 500), anyone, &half, 1), no_index);
  EXPECT_EQ(nodes_of(state, state.place(gang(3, 500), anyone, Placement::helios)), (Nodes{{1, 3}}));
}

TEST(Placement, WholeNodesMayDifferInSize) {
  Cluster cluster = Cluster::homogeneous(3, 8);
  cluster.nodes[0].gpus = 4;
  for (const Placement rule : {Placement::yarn, Placement::helios}) {
    ClusterState state = state_of(cluster);
    // No node holds 16. Nodes 0 and 1 are filled; 4 are left, less than node 2 has.
    EXPECT_EQ(nodes_of(state, state.place(gang(16), anyone, rule)), (Nodes{{0, 4}, {1, 8}, {2, 4}}));
  }
}

TEST(Placement, WhatIsLeftFillsAnIdleNodeBeforeItSharesAnother) {
  Cluster cluster = Cluster::homogeneous(3, 8);
  cluster.nodes[2].gpus = 4;
  for (const Placement rule : {Placement::yarn, Placement::helios}) {
    ClusterState state = state_of(cluster);
    const NodeTasks half{.node = NodeId{0}, .tasks = 4};
    ASSERT_NE(state.place_on(gang(4), anyone, &half, 1), no_index);
    EXPECT_EQ(nodes_of(state, state.place(gang(12), anyone, rule)), (Nodes{{1, 8}, {2, 4}}));
  }
}

/// Four nodes of 4 GPUs with 1, 4, 3 and 3 idle; two racks of two.
ClusterState two_racks() {
  Cluster cluster = Cluster::homogeneous(4, 4);
  cluster.nodes[2].rack = cluster.nodes[3].rack = 1;
  ClusterState state = state_of(cluster);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> held{{0, 3}, {2, 1}, {3, 1}};
  for (const auto& [node, tasks] : held) {
    const NodeTasks choice{.node = NodeId{node}, .tasks = tasks};
    EXPECT_NE(state.place_on(gang(tasks), anyone, &choice, 1), no_index);
  }
  return state;
}

TEST(Placement, RackStaysWithinOneRackWhereItCan) {
  const auto placed = [](std::uint32_t tasks, Placement rule) {
    ClusterState state = two_racks();
    return nodes_of(state, state.place(gang(tasks), anyone, rule));
  };
  EXPECT_EQ(placed(3, Placement::rack), (Nodes{{2, 3}}));  // one node: the fullest that holds all
  EXPECT_EQ(placed(5, Placement::rack), (Nodes{{0, 1}, {1, 4}}));
  EXPECT_EQ(placed(6, Placement::rack), (Nodes{{2, 3}, {3, 3}}));  // rack 0 has 5
  EXPECT_EQ(placed(6, Placement::consolidate), (Nodes{{1, 4}, {2, 2}}));
  EXPECT_EQ(placed(8, Placement::rack), (Nodes{{1, 2}, {2, 3}, {3, 3}}));  // the roomier rack first
}

// The index and the scan of nodes with bounded CPU are two ways to the same choice; bounds that never bind force the
// scan.
RC_GTEST_PROP(Placement, IndexAndScanChooseTheSameNodes, ()) {
  Cluster cluster =
      Cluster::homogeneous(*rc::gen::inRange<std::uint32_t>(1, 6), *rc::gen::inRange<std::uint32_t>(1, 9));
  cluster.nodes.front().gpus = *rc::gen::inRange<std::uint32_t>(1, 9);
  Cluster bounded = cluster;
  for (Node& node : bounded.nodes) node.cpu_milli = 1'000'000;
  ClusterState indexed = state_of(cluster), scanned = state_of(bounded);
  const auto rule = *rc::gen::element(Placement::first_fit, Placement::best_fit, Placement::worst_fit,
                                      Placement::consolidate, Placement::yarn, Placement::helios);
  for (int step = 0; step < 12; ++step) {
    const Shape shape = gang(*rc::gen::inRange<std::uint32_t>(1, 20), *rc::gen::element<MilliGpu>(1000, 1000, 2000));
    const std::uint32_t a = indexed.place(shape, anyone, rule), b = scanned.place(shape, anyone, rule);
    RC_ASSERT(nodes_of(indexed, a) == nodes_of(scanned, b));
    if (a == no_index || *rc::gen::arbitrary<bool>()) continue;
    indexed.release(a, shape, anyone);
    scanned.release(b, shape, anyone);
  }
}

// So are the indices of shares and racks, and the look at all nodes: on clusters of several types, in racks of several
// sites, of which some nodes are out of service.
TEST(Placement, IndicesOfSharesAndRacksAndScansChooseTheSameNodes) {
  constexpr std::uint64_t usual_clusters = 60, steps = 150;
  const NameTable demands = specs({"a", "b|c"});
  for (std::uint64_t seed = 1; seed <= test::random_runs(usual_clusters); ++seed) {
    Rng rng(seed);
    const auto below = [&rng](std::uint64_t n) { return static_cast<std::uint32_t>(rng.below(n)); };
    Cluster cluster;
    cluster.gpu_types = {"a", "b", "c"};
    cluster.rack_sites = {0, 0, 1, 1, 2};
    const std::uint32_t sizes[] = {1 + below(8), 1 + below(8), 1 + below(8)}, racks = 1 + below(5);
    for (std::uint32_t i = 0, count = 16 + below(40); i < count; ++i) {
      const std::uint32_t type = below(3);
      cluster.nodes.push_back(
          {.gpus = sizes[type], .gpu_type = type, .rack = below(racks), .counts_only = below(9) == 0});
    }
    Cluster bounded = cluster;
    for (Node& node : bounded.nodes) node.cpu_milli = 1'000'000'000;
    ClusterState indexed = state_of(cluster, demands), scanned = state_of(bounded, demands);
    if (below(2) == 0) {
      indexed.keep_gangs_near();
      scanned.keep_gangs_near();
    }
    struct Held {
      Shape shape;
      std::uint32_t in_indexed, in_scanned;
    };
    std::vector<Held> held;
    std::vector<bool> is_out(cluster.nodes.size());
    for (std::uint64_t step = 0; step < steps; ++step) {
      const Placement rules[] = {Placement::consolidate, Placement::rack, Placement::best_fit, Placement::fastest};
      const Placement rule = rules[below(4)];
      const MilliGpu sizes_of_tasks[] = {100, 250, 300, 700, 1000, 1000, 2000};
      Shape shape = gang(below(3) > 0 ? 1 : 1 + below(20), sizes_of_tasks[below(7)]);
      shape.gpu_spec = below(3);
      const std::vector<RatePpm> speeds{1'000'000, 500'000, 500'000};
      const bool fits = indexed.fits(shape, anyone, rule, speeds);
      const std::uint32_t a = indexed.place(shape, anyone, rule, speeds),
                          b = scanned.place(shape, anyone, rule, speeds);
      ASSERT_EQ(fits, a != no_index) << "seed " << seed << ", step " << step;
      ASSERT_EQ(nodes_of(indexed, a), nodes_of(scanned, b)) << "seed " << seed << ", step " << step;
      if (a != no_index) held.push_back({shape, a, b});
      if (!held.empty() && below(5) < 2) {
        std::swap(held[below(held.size())], held.back());
        indexed.release(held.back().in_indexed, held.back().shape, anyone);
        scanned.release(held.back().in_scanned, held.back().shape, anyone);
        held.pop_back();
      }
      if (below(4) == 0) {
        const NodeId node{below(cluster.nodes.size())};
        for (ClusterState* state : {&indexed, &scanned}) {
          is_out[index(node)] ? state->reinstate(node) : state->withhold(node);
        }
        is_out[index(node)] = !is_out[index(node)];
      }
      if (below(40) == 0) indexed = ClusterState(indexed);  // a copy makes indices of its own
    }
  }
}

TEST(Placement, RandomUsesEveryNodeThatFitsAndNoOther) {
  Nodes seen;
  ClusterState state = uneven();
  const Shape pair = gang(1, 2 * whole_gpu);  // one task of two GPUs: nodes 0, 2, 3
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t grants = state.place(pair, anyone, Placement::random);
    ++seen[index(state.grant(grants).node)];
    state.release(grants, pair, anyone);
    state.free_grants(grants);
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.count(1), 0u);
  for (const auto& [node, count] : seen) EXPECT_NEAR(count, 100, 41) << node;  // five standard deviations
}

TEST(ClusterState, TasksDoNotSpanNodesButGangsDo) {
  ClusterState state = uneven();
  EXPECT_EQ(state.place(gang(2, 4 * whole_gpu), anyone, Placement::consolidate), no_index);
  EXPECT_EQ(state.free_gpu_milli(), 10 * whole_gpu);  // a refusal leaves nothing behind
  EXPECT_NE(state.place(gang(10), anyone, Placement::consolidate), no_index);
  EXPECT_EQ(state.idle_gpus(), 0);
}

TEST(ClusterState, DevicesAreTheLowestIdleOnes) {
  ClusterState state = state_of(Cluster::homogeneous(1, 4));
  const std::uint32_t a = state.place(gang(1), anyone, Placement::first_fit);
  const std::uint32_t b = state.place(gang(2), anyone, Placement::first_fit);
  EXPECT_EQ(state.grant(a).devices, 0b0001u);
  EXPECT_EQ(state.grant(b).devices, 0b0110u);
  state.release(a, gang(1), anyone);
  const std::uint32_t c = state.place(gang(1, 2 * whole_gpu), anyone, Placement::first_fit);
  EXPECT_EQ(state.grant(c).devices, 0b1001u);
}

TEST(ClusterState, SharesPackTheFullestGpuAndBreakItsWholeness) {
  ClusterState state = state_of(Cluster::homogeneous(1, 2));
  const std::uint32_t a = state.place(gang(1, 600), anyone, Placement::first_fit);
  const std::uint32_t b = state.place(gang(1, 700), anyone, Placement::first_fit);
  const std::uint32_t c = state.place(gang(1, 300), anyone, Placement::first_fit);
  EXPECT_EQ(state.grant(a).devices, 0b01u);
  EXPECT_EQ(state.grant(b).devices, 0b10u);
  EXPECT_EQ(state.grant(c).devices, 0b10u);  // 300 are left there, 400 on the other
  EXPECT_EQ(state.free_gpu_milli(), 400);
  EXPECT_EQ(state.idle_gpus(), 0);
  EXPECT_EQ(state.place(gang(1, 500), anyone, Placement::first_fit), no_index);
  EXPECT_EQ(state.place(gang(1), anyone, Placement::first_fit), no_index);
  state.release(a, gang(1, 600), anyone);
  EXPECT_EQ(state.idle_gpus(), 1);
  EXPECT_NE(state.place(gang(1), anyone, Placement::first_fit), no_index);
}

TEST(ClusterState, AChosenDeviceIsTakenOrRefused) {
  ClusterState state = state_of(Cluster::homogeneous(1, 2));
  const NodeTasks second{.node = NodeId{0}, .tasks = 1, .device = 1};
  const std::uint32_t a = state.place_on(gang(1, 700), anyone, &second, 1);
  ASSERT_NE(a, no_index);
  EXPECT_EQ(state.node_device_left(NodeId{0}, 1), 300);
  EXPECT_EQ(state.place_on(gang(1, 700), anyone, &second, 1), no_index);
  const NodeTasks none{.node = NodeId{0}, .tasks = 1, .device = 2};
  EXPECT_EQ(state.place_on(gang(1, 100), anyone, &none, 1), no_index);
  // A device is chosen for one task.
  const NodeTasks two{.node = NodeId{0}, .tasks = 2, .device = 0};
  EXPECT_EQ(state_of(Cluster::homogeneous(1, 2)).place_on(gang(2, 400), anyone, &two, 1), no_index);
}

TEST(ClusterState, ChosenNodesMustAddUpAndFit) {
  ClusterState state = uneven();
  const std::vector<NodeTasks> good{{.node = NodeId{0}, .tasks = 2}, {.node = NodeId{1}, .tasks = 1}};
  const std::vector<NodeTasks> full{{.node = NodeId{0}, .tasks = 1}, {.node = NodeId{1}, .tasks = 2}};
  const std::vector<NodeTasks> short_of{{.node = NodeId{0}, .tasks = 2}};
  const std::vector<NodeTasks> stranger{{.node = NodeId{9}, .tasks = 3}};
  const std::vector<NodeTasks> twice{{.node = NodeId{1}, .tasks = 1}, {.node = NodeId{1}, .tasks = 1}};
  EXPECT_EQ(state.place_on(gang(3), anyone, full.data(), full.size()), no_index);
  EXPECT_EQ(state.place_on(gang(3), anyone, short_of.data(), short_of.size()), no_index);
  EXPECT_EQ(state.place_on(gang(3), anyone, stranger.data(), stranger.size()), no_index);
  EXPECT_EQ(state.place_on(gang(2), anyone, twice.data(), twice.size()), no_index);
  EXPECT_EQ(state.free_gpu_milli(), 10 * whole_gpu);
  EXPECT_EQ(nodes_of(state, state.place_on(gang(3), anyone, good.data(), good.size())), (Nodes{{0, 2}, {1, 1}}));
}

TEST(ClusterState, CpuAndMemoryLimitAsGpusDo) {
  Cluster cluster = Cluster::homogeneous(2, 4);
  for (Node& node : cluster.nodes) {
    node.cpu_milli = 8000;
    node.memory_mib = 1000;
  }
  ClusterState state = state_of(cluster);
  const Shape hungry{.tasks = 2, .gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = 5000};
  EXPECT_EQ(nodes_of(state, state.place(hungry, anyone, Placement::consolidate)), (Nodes{{0, 1}, {1, 1}}));
  // Six GPUs are idle and none can be used by a task of 5 cores: CPU starvation.
  EXPECT_EQ(state.idle_gpus(), 6);
  EXPECT_EQ(state.place(hungry, anyone, Placement::consolidate), no_index);
  const Shape cpu_only{.tasks = 2, .cpu_milli_per_task = 3000, .memory_mib_per_task = 900};
  EXPECT_EQ(nodes_of(state, state.place(cpu_only, anyone, Placement::consolidate)), (Nodes{{0, 1}, {1, 1}}));
  const Shape memory_hog{.tasks = 1, .gpu_milli_per_task = whole_gpu, .memory_mib_per_task = 101};
  EXPECT_EQ(state.place(memory_hog, anyone, Placement::consolidate), no_index);
}

TEST(ClusterState, ServesTheGpuTypesThatAJobAllows) {
  Cluster cluster = Cluster::homogeneous(3, 2);
  cluster.gpu_types = {"V100", "A100", "T4"};
  for (std::uint32_t i = 0; i < 3; ++i) cluster.nodes[i].gpu_type = i;
  ClusterState state = state_of(cluster, specs({"A100", "T4|A100", "H100"}));
  Shape shape = gang(2);
  shape.gpu_spec = 1;
  EXPECT_EQ(nodes_of(state, state.place(shape, anyone, Placement::first_fit)), (Nodes{{1, 2}}));
  EXPECT_EQ(state.place(shape, anyone, Placement::first_fit), no_index);
  const NodeTasks on_t4{.node = NodeId{2}, .tasks = 2};
  EXPECT_EQ(state.place_on(shape, anyone, &on_t4, 1), no_index);
  shape.gpu_spec = 2;
  EXPECT_EQ(nodes_of(state, state.place(shape, anyone, Placement::first_fit)), (Nodes{{2, 2}}));
  shape.gpu_spec = 3;
  EXPECT_EQ(state.place(shape, anyone, Placement::first_fit), no_index);
  shape.gpu_spec = 0;
  EXPECT_EQ(nodes_of(state, state.place(shape, anyone, Placement::first_fit)), (Nodes{{0, 2}}));
}

TEST(ClusterState, VirtualClustersKeepTheirNodesAndQuotas) {
  Cluster cluster = Cluster::homogeneous(3, 4);
  cluster.vcs = {{.name = "owner"}, {.name = "guest", .quota = 3 * whole_gpu}};
  cluster.nodes[0].vc = 0;
  ClusterState state = state_of(cluster);
  EXPECT_EQ(state.available_gpu_milli(gang(1), 0), 12 * whole_gpu);
  EXPECT_EQ(state.available_gpu_milli(gang(1), 1), 3 * whole_gpu);
  EXPECT_EQ(state.place(gang(4), 1, Placement::first_fit), no_index);
  const std::uint32_t held = state.place(gang(3), 1, Placement::first_fit);
  EXPECT_EQ(nodes_of(state, held), (Nodes{{1, 3}}));
  EXPECT_EQ(state.vc_free(1), 0);
  EXPECT_EQ(state.place(gang(1), 1, Placement::first_fit), no_index);
  state.release(held, gang(3), 1);
  EXPECT_EQ(state.vc_free(1), 3 * whole_gpu);
  EXPECT_EQ(nodes_of(state, state.place(gang(9), 0, Placement::first_fit)), (Nodes{{0, 4}, {1, 4}, {2, 1}}));
}

TEST(ClusterState, RetakeNeedsExactlyWhatWasHeld) {
  ClusterState state = state_of(Cluster::homogeneous(1, 2));
  const std::uint32_t a = state.place(gang(1), anyone, Placement::first_fit);
  state.release(a, gang(1), anyone);
  const std::uint32_t b = state.place(gang(1), anyone, Placement::first_fit);  // the same device
  EXPECT_FALSE(state.retake(a, gang(1), anyone));
  EXPECT_EQ(state.free_gpu_milli(), whole_gpu);
  state.release(b, gang(1), anyone);
  EXPECT_TRUE(state.retake(a, gang(1), anyone));
}

TEST(ClusterState, ARetakeNeedsItsCpuAndMemoryToo) {
  Cluster cluster = Cluster::homogeneous(1, 2);
  cluster.nodes[0].cpu_milli = 4000;
  cluster.nodes[0].memory_mib = 64;
  const Shape of_cores{.gpu_milli_per_task = 0, .cpu_milli_per_task = 3000, .memory_mib_per_task = 1};
  const Shape of_memory{.gpu_milli_per_task = 0, .cpu_milli_per_task = 1, .memory_mib_per_task = 40};
  for (const Shape& shape : {of_cores, of_memory}) {
    ClusterState state = state_of(cluster);
    const std::uint32_t held = state.place(shape, anyone, Placement::first_fit);
    state.release(held, shape, anyone);
    ASSERT_NE(state.place(shape, anyone, Placement::first_fit), no_index);
    EXPECT_FALSE(state.retake(held, shape, anyone));
  }
}

TEST(ClusterState, ARetakeThatFailsHalfWayChangesNothing) {
  ClusterState state = state_of(Cluster::homogeneous(2, 2));
  const std::uint32_t both = state.place(gang(4), anyone, Placement::consolidate);
  state.release(both, gang(4), anyone);
  // Where the list ends, so that its first grant is taken before the second is found gone.
  const NodeTasks last{.node = state.grant(state.grant(both).next).node, .tasks = 1};
  const std::uint32_t other = state.place_on(gang(1), anyone, &last, 1);
  EXPECT_FALSE(state.retake(both, gang(4), anyone));
  EXPECT_EQ(state.idle_gpus(), 3);
  state.release(other, gang(1), anyone);
  EXPECT_TRUE(state.all_free());
}

TEST(ClusterState, FindsWhatWasMovedWhileItsIndexWasLeftAlone) {
  ClusterState state = state_of(Cluster::homogeneous(2, 4));
  const NodeTasks first{NodeId{0}, 3}, second{NodeId{1}, 3};
  const std::uint32_t a = state.place_on(gang(3), anyone, &first, 1);
  state.defer_index();
  state.release(a, gang(3), anyone);
  state.free_grants(a);
  const std::uint32_t b = state.place_on(gang(3), anyone, &second, 1);
  EXPECT_EQ(state.idle_gpus(), 5);
  EXPECT_EQ(nodes_of(state, state.place(gang(1, 4 * whole_gpu), anyone, Placement::first_fit)), (Nodes{{0, 1}}));
  EXPECT_EQ(nodes_of(state, state.place(gang(1), anyone, Placement::first_fit)), (Nodes{{1, 1}}));

  state.defer_index();
  state.release(b, gang(3), anyone);
  state.refresh_index();
  std::map<std::uint32_t, std::uint32_t> nodes_by_idle;
  state.for_each_idle_level(
      [&](std::uint32_t, std::uint32_t, std::uint32_t idle, std::uint32_t nodes) { nodes_by_idle[idle] += nodes; });
  EXPECT_EQ(nodes_by_idle, (std::map<std::uint32_t, std::uint32_t>{{0, 1}, {3, 1}}));
}

TEST(ClusterState, APoolOnlyCounts) {
  ClusterState state = state_of(Cluster::pool(600));
  EXPECT_FALSE(state.node_has_devices(NodeId{0}));
  EXPECT_NE(state.place(gang(1, 600 * whole_gpu), anyone, Placement::consolidate), no_index);
  EXPECT_EQ(state.free_gpu_milli(), 0);
}

TEST(ClusterState, FitsWhenEmptyAsksForTheWholeGang) {
  const Cluster cluster = Cluster::homogeneous(2, 4);
  EXPECT_TRUE(ClusterState::fits_when_empty(cluster, specs(), gang(8), anyone));
  EXPECT_FALSE(ClusterState::fits_when_empty(cluster, specs(), gang(9), anyone));
  EXPECT_FALSE(ClusterState::fits_when_empty(cluster, specs(), gang(1, 5 * whole_gpu), anyone));
}

TEST(Cluster, PooledMergesNodesOfOneOwnerAndType) {
  Cluster cluster = Cluster::homogeneous(4, 8);
  cluster.gpu_types = {"A", "B"};
  cluster.nodes[3].gpu_type = 1;
  cluster.nodes[0].cpu_milli = 1000;
  const Cluster merged = cluster.pooled();
  ASSERT_EQ(merged.nodes.size(), 2u);
  EXPECT_EQ(merged.nodes[0].gpus, 24u);
  EXPECT_EQ(merged.nodes[0].cpu_milli, unlimited);
  EXPECT_EQ(merged.nodes[1].gpus, 8u);
  EXPECT_EQ(merged.total_gpus(), cluster.total_gpus());
  EXPECT_TRUE(merged.nodes[0].counts_only);
}

// Any sequence of placements and releases, under every rule: what fits is what the nodes say, and all comes back.
RC_GTEST_PROP(ClusterState, PlacesExactlyWhenTheTasksFitAndGivesAllBack, ()) {
  const auto nodes = *rc::gen::inRange<std::uint32_t>(1, 6);
  Cluster cluster = Cluster::homogeneous(nodes, *rc::gen::inRange<std::uint32_t>(1, 9));
  if (*rc::gen::arbitrary<bool>()) cluster.nodes[0].gpus = *rc::gen::inRange<std::uint32_t>(0, 80);
  if (*rc::gen::arbitrary<bool>()) cluster.nodes[0].counts_only = true;
  if (*rc::gen::arbitrary<bool>()) {
    for (Node& node : cluster.nodes) node.cpu_milli = *rc::gen::inRange<std::int64_t>(1, 20) * 1000;
  }
  ClusterState state = state_of(cluster);
  struct Held {
    Shape shape;
    std::uint32_t grants;
  };
  std::vector<Held> held;
  const auto steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    if (!held.empty() && *rc::gen::inRange(0, 3) == 0) {
      const auto victim = *rc::gen::inRange<std::size_t>(0, held.size());
      state.release(held[victim].grants, held[victim].shape, anyone);
      state.free_grants(held[victim].grants);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      continue;
    }
    const MilliGpu milli = *rc::gen::element<MilliGpu>(0, 100, 300, 500, 900, 1000, 2000, 4000);
    const Shape shape{.tasks = *rc::gen::inRange<std::uint32_t>(1, 7),
                      .gpu_milli_per_task = milli,
                      .cpu_milli_per_task = *rc::gen::element<std::int64_t>(0, 1000, 3000)};
    std::uint64_t room = 0;
    for (std::uint32_t node = 0; node < nodes; ++node) room += state.tasks_that_fit(NodeId{node}, shape);
    const auto rule = *rc::gen::elementOf(placement_names);
    const MilliGpu free_before = state.free_gpu_milli();
    const std::uint32_t grants = state.place(shape, anyone, rule.placement);
    // Rules that use no remnants wait for whole nodes, of which the empty cluster has enough.
    const bool never_refuses = uses_remnants(rule.placement) || held.empty();
    if (grants != no_index || never_refuses) RC_ASSERT((grants != no_index) == (room >= shape.tasks));
    RC_ASSERT(free_before - state.free_gpu_milli() == (grants == no_index ? 0 : shape.gpu_milli()));
    if (grants != no_index) held.push_back({shape, grants});
  }
  for (const Held& job : held) {
    state.release(job.grants, job.shape, anyone);
    state.free_grants(job.grants);
  }
  RC_ASSERT(state.all_free());
}

// It hung: the index of idle GPUs offered a node on which no task fitted.
TEST(ClusterState, ANodeWithoutBoundHoldsAnyNumberOfCores) {
  NameTable specs;
  specs.intern("");
  ClusterState state(Cluster::pool(4), specs, Rng{});
  const Shape shape{.tasks = 4, .gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = 1'000'000'000'000'000'000};
  EXPECT_NE(state.place(shape, no_index, Placement::consolidate), no_index);
}

}  // namespace
}  // namespace gpusched
