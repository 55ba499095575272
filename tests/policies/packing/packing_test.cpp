// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/packing.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "gpusched/engine/engine.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::table_of;

test::Row pod(MilliGpu gpu_milli) { return {.work = 100, .shape = {.gpu_milli_per_task = gpu_milli}}; }

// Where each of the pods, which all come at 0, was put: node and devices.
struct Place {
  std::uint32_t node;
  std::uint64_t devices;
  friend bool operator==(const Place&, const Place&) = default;
};

std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << "node " << place.node << " devices " << place.devices;
}

std::vector<Place> places(const std::vector<test::Row>& pods, const Cluster& cluster, PackingRule rule,
                          std::vector<TypicalPod> typical = {}, std::optional<NodePacker::Power> power = {}) {
  const JobTable jobs = table_of(pods);
  Engine engine(jobs, cluster);
  Packing policy(rule, 7, std::move(typical), std::move(power));
  engine.advance();
  Decision decision = engine.decision();
  policy.decide(engine.view(), decision);
  engine.apply();
  std::vector<Place> found;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    engine.view().for_each_grant(JobId{i}, [&](const Grant& grant) {
      found.push_back({index(grant.node), grant.devices});
    });
  }
  return found;
}

Cluster nodes_of(const std::vector<std::uint32_t>& gpus) {
  Cluster cluster;
  for (const std::uint32_t count : gpus) cluster.nodes.push_back({.gpus = count, .name = {}});
  return cluster;
}

TEST(Packing, BestFitFillsTheNodeAndCardWithTheLeastLeft) {
  // The 500 goes to the smaller node; the 400 fits on its first card and joins it; the 200 no longer does.
  EXPECT_EQ(places({pod(500), pod(400), pod(200)}, nodes_of({4, 2}), PackingRule::best_fit),
            (std::vector<Place>{{1, 1}, {1, 1}, {1, 2}}));
}

TEST(Packing, DotProdPrefersTheNodeWithLessFree) {
  EXPECT_EQ(places({pod(2000)}, nodes_of({4, 2, 3}), PackingRule::dot_prod), (std::vector<Place>{{1, 3}}));
}

TEST(Packing, GpuPackingTakesCardsInUseThenNodesInUseThenSmallNodes) {
  // Idle nodes score 33 - 4 and 33 - 2; then one idle card of a node in use 49, and a card with 700 left 93.
  EXPECT_EQ(places({pod(300), pod(1000), pod(600)}, nodes_of({4, 2}), PackingRule::gpu_packing),
            (std::vector<Place>{{1, 1}, {1, 2}, {1, 1}}));
}

TEST(Packing, GpuClusteringKeepsClassesApart) {
  // The share takes the 2-GPU node (18 + 25 against 12 + 25). A whole GPU scores 20 there, among others only, and 12 +
  // 25 on the idle node; the second share 20 + 75 beside the first, against 15 beside the whole GPU.
  EXPECT_EQ(places({pod(500), pod(1000), pod(500)}, nodes_of({4, 2}), PackingRule::gpu_clustering),
            (std::vector<Place>{{1, 1}, {0, 1}, {1, 1}}));
}

TEST(Packing, FgdBreaksTheCardThatTypicalPodsMissLeast) {
  // Typical: half ask for a whole GPU, half for two on one node. After the first 500 one card of the 3-GPU node is
  // useless to both; the second 500 uses it up instead of breaking another.
  const std::vector<TypicalPod> typical = {{0, 1, 1000, 0, 0.5}, {0, 2, 1000, 0, 0.5}};
  const auto chosen = places({pod(500), pod(500)}, nodes_of({3}), PackingRule::fgd, typical);
  EXPECT_EQ(chosen, (std::vector<Place>{{0, 1}, {0, 1}}));
  // One GPU: from the 3-GPU node fragmentation does not grow; from the 2-GPU node pods of two lose the other 1000.
  EXPECT_EQ(places({pod(1000)}, nodes_of({2, 3}), PackingRule::fgd, typical), (std::vector<Place>{{1, 1}}));
}

// Two nodes of two GPUs that draw all they can as soon as they are touched: 10 to 70 W on the first, 30 to 300 W on the
// second. CPUs of 100 W for one core each, 20 W idle.
PowerModel two_kinds() {
  const LoadPower slow{.idle_w = 10, .full_w = 70, .touched_w = 70},
      fast{.idle_w = 30, .full_w = 300, .touched_w = 300};
  return {.gpus = {{.load = slow, .limits = {}}, {.load = fast, .limits = {}}},
          .kinds = {{.cpu = {.idle_w = 20, .full_w = 100}, .cpus = 2, .cores_per_cpu = 1}},
          .kind_of = {0, 0}};
}

Cluster two_types() {
  Cluster cluster = nodes_of({2, 2});
  cluster.nodes[1].gpu_type = 1;
  cluster.gpu_types = {"T4", "V100"};
  for (Node& node : cluster.nodes) node.cpu_milli = 2000;
  return cluster;
}

test::Row pod_with_cores(MilliGpu gpu_milli, std::int64_t cpu_milli) {
  return {.work = 100, .shape = {.gpu_milli_per_task = gpu_milli, .cpu_milli_per_task = cpu_milli}};
}

// The first goes to the cheaper GPU: 60 W and a core's 80. The second joins it, as a touched GPU and core draw no more.
// The third wakes the other GPU (60 W) and, with 1.2 cores, the other CPU (80). A whole GPU then fits on the second
// node alone. The last needs a card with 600 left and a core: the V100 left, for 270 W and a core's 80.
TEST(Packing, PwrTakesTheNodeAndCardWhoseDrawRisesLeast) {
  const PowerModel model = two_kinds();
  const NodePacker::Power power{.rises = PowerRises(model, two_types(), 1)};
  EXPECT_EQ(places({pod_with_cores(400, 500), pod_with_cores(400, 400), pod_with_cores(500, 300),
                    pod_with_cores(1000, 100), pod_with_cores(600, 1000)},
                   two_types(), PackingRule::pwr, {}, power),
            (std::vector<Place>{{0, 1}, {0, 1}, {0, 2}, {1, 1}, {1, 2}}));
}

// Both GPUs of the node with typical pods of two cards are worth 50 to FGD, which keeps them together for any part of
// its own; PWR alone takes the cheaper ones.
TEST(Packing, PwrBesideFgdWeighsBoth) {
  const PowerModel model = two_kinds();
  const auto chosen = [&](double alpha) {
    Cluster cluster = two_types();
    cluster.nodes[1].gpus = 3;
    const std::vector<TypicalPod> typical = {{.cards = 2, .card_milli = 1000, .share = 1}};
    return places({pod_with_cores(1000, 0)}, cluster, PackingRule::pwr_fgd, typical,
                  NodePacker::Power{.rises = PowerRises(model, cluster, 1), .alpha = alpha})
        .front()
        .node;
  };
  EXPECT_EQ(chosen(0), 1u) << "a third card is useless to typical pods";
  EXPECT_EQ(chosen(0.1), 1u) << "FGD: 50 against 26 points of 90 %; PWR: 0 against 100 of 10 %";
  EXPECT_EQ(chosen(0.3), 0u);
  EXPECT_EQ(chosen(1), 0u);
}

TEST(Packing, RandomUsesEveryNodeThatFits) {
  const std::vector<test::Row> pods(64, pod(1000));
  const auto chosen = places(pods, nodes_of({32, 0, 32}), PackingRule::random);
  EXPECT_EQ(chosen.size(), 64u);
  std::uint32_t first_node = 0;
  for (std::size_t i = 0; i < 32; ++i) first_node += chosen[i].node == 0;
  EXPECT_GT(first_node, 4u);
  EXPECT_LT(first_node, 28u);
}

TEST(Packing, AWaitingPodStartsWhenOneLeaves) {
  const JobTable jobs = table_of({pod(700), {.submit = 10, .work = 5, .shape = {.gpu_milli_per_task = 700}}});
  EXPECT_EQ(test::run(jobs, nodes_of({1}), Packing(PackingRule::best_fit, 0, {})),
            (std::vector<test::Span>{{0, 100}, {100, 105}}));
}

TEST(Fragmentation, CountsWhatTypicalPodsCannotUse) {
  const Cluster cluster = nodes_of({2});
  const ClusterState state(cluster, NameTable{}, Rng{});
  const std::vector<MilliGpu> cards = {500, 1000};
  const NodeCapacity node{.cpu_milli = 4000, .card_left = cards, .node = NodeId{0}};
  const auto of_one = [&](TypicalPod pod_kind) {
    pod_kind.share = 1;
    return fragmentation({pod_kind}, node, state);
  };
  EXPECT_EQ(of_one({.cpu_milli = 1000, .cards = 1, .card_milli = 1000}), 500) << "the card that is too small";
  EXPECT_EQ(of_one({.cpu_milli = 1000, .cards = 1, .card_milli = 300}), 0);
  EXPECT_EQ(of_one({.cpu_milli = 1000, .cards = 2, .card_milli = 1000}), 1500) << "finds too few cards";
  EXPECT_EQ(of_one({.cpu_milli = 5000, .cards = 1, .card_milli = 300}), 1500) << "lacks CPU";
  EXPECT_EQ(of_one({.cpu_milli = 1000}), 1500) << "asks for no GPU";
}

TEST(Fragmentation, TypicalPodsCoverMostOfTheListMostFrequentFirst) {
  std::vector<test::Row> pods(12, pod(1000));
  pods.resize(16, pod(300));  // four
  pods.resize(20, pod(500));  // four: a tie, the larger first
  const auto typical = typical_pods(table_of(pods), 0.8);
  ASSERT_EQ(typical.size(), 2u);
  EXPECT_EQ(typical[0].card_milli, 1000);
  EXPECT_EQ(typical[1].card_milli, 500);
  EXPECT_EQ(typical[0].share, 0.75);
}

// A node that took a pod is scored again, and no other: this took as many scores as there are nodes for each pod.
TEST(Packing, APodCostsTheScoresOfTheNodesThatChanged) {
  constexpr std::uint32_t nodes = 2000, pods = 4000;
  PowerModel model = two_kinds();
  model.kind_of.assign(nodes, 0);
  for (const PackingRule rule :
       {PackingRule::fgd, PackingRule::best_fit, PackingRule::gpu_clustering, PackingRule::pwr, PackingRule::pwr_fgd}) {
    const JobTable jobs = table_of(std::vector<test::Row>(pods, pod(1000)));
    const Cluster cluster = Cluster::homogeneous(nodes, 8);
    Engine engine(jobs, cluster);
    engine.advance();
    Decision decision = engine.decision();
    NodePacker packer(rule, 7, typical_pods(jobs), NodePacker::Power{.rises = PowerRises(model, cluster, 1)});
    for (std::uint32_t i = 0; i < pods; ++i) {
      const NodePacker::Choice choice = packer.choose(engine.view(), JobId{i}, {});
      const NodeTasks there{.node = choice.node, .tasks = 1, .device = choice.device};
      ASSERT_EQ(decision.start_on(JobId{i}, {&there, 1}), Verdict::ok);
      packer.began(engine.view(), JobId{i});
      packer.changed(choice.node, jobs.shape(JobId{i}), +1);
    }
    EXPECT_LE(packer.scored(), 3u * pods) << static_cast<int>(rule);
  }
}

}  // namespace
}  // namespace gpusched
