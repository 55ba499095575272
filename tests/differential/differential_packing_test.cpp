// SPDX-License-Identifier: Apache-2.0
// Packing policies against the reference world: the same node and card for every task, on random small cases.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_packing.hpp"
#include "tests/differential/reference_power.hpp"

namespace gpusched::test {
namespace {

/// The order in which the policy looks at so many nodes with this seed, found by filling equal nodes one after another.
std::vector<std::size_t> node_order(const std::string& policy, std::size_t nodes, std::uint64_t seed) {
  const Cluster equal = Cluster::homogeneous(static_cast<std::uint32_t>(nodes), 1);
  const JobTable jobs = table_of(std::vector<Row>(nodes, Row{.work = 10}));
  const History history =
      history_of(jobs, equal, make_policy(policy, jobs, equal, seed), EngineOptions{}, default_horizon_s);
  std::vector<std::size_t> order;
  for (const WorldStart& start : history.starts) {
    order.push_back(static_cast<std::size_t>(start.places.front().first));
  }
  return order;
}

Cluster packing_cluster() {
  Cluster cluster = random_cluster();
  for (Node& node : cluster.nodes) node.counts_only = false;
  return cluster;
}

void compare_packing(const std::string& policy, const PackRule& score) {
  check_many(3000, [&] {
    const Cluster cluster = packing_cluster();
    const auto rows = random_rows(cluster);
    EngineOptions options;
    options.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const auto order = node_order(policy, cluster.nodes.size(), options.seed);
    expect_same(policy, rows, cluster, packing_rule(order, score), options);
  });
}

TEST(DifferentialPacking, Fgd) { compare_packing("fgd", fgd_score); }

TEST(DifferentialPacking, BestFit) { compare_packing("bestfit", best_fit_score); }

TEST(DifferentialPacking, DotProd) { compare_packing("dotprod", dot_prod_score); }

TEST(DifferentialPacking, GpuPacking) { compare_packing("gpu-packing", gpu_packing_score); }

TEST(DifferentialPacking, GpuClustering) { compare_packing("gpu-clustering", gpu_clustering_score); }

// ---- PWR ----

WorldPower random_power(const Cluster& cluster) {
  WorldPower power;
  const std::int64_t more = *rc::gen::inRange<std::int64_t>(0, 200);
  for (const Node& node : cluster.nodes) {
    const auto type = static_cast<std::int64_t>(node.gpu_type);
    power.push_back({.idle_card = 10 + 20 * type,
                     .full_card = 70 + more * type,
                     .idle_cpu = *rc::gen::element<std::int64_t>(15, 40),
                     .full_cpu = *rc::gen::element<std::int64_t>(20, 120),
                     .cpus = *rc::gen::inRange<std::int64_t>(0, 4),
                     .milli_a_cpu = *rc::gen::element<std::int64_t>(1000, 2000),
                     .cpu_milli = node.cpu_milli == unlimited ? 0 : node.cpu_milli});
  }
  return power;
}

template <class Score>
void compare_by_power(const std::string& policy, bool has_gangs, Score score) {
  check_many(3000, [&] {
    const Cluster cluster = packing_cluster();
    auto rows = random_rows(cluster);
    if (!has_gangs) std::erase_if(rows, [](const Row& row) { return row.shape.tasks > 1; });
    RC_PRE(!rows.empty());
    EngineOptions options;
    options.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const WorldPower power = random_power(cluster);
    const PowerModel model = power_model(power, cluster);
    const JobTable jobs = table_of(rows);
    log_case(policy, rows, cluster);
    auto made =
        PolicyRegistry::standard().make(parse_policy_list(policy)->front(),
                                        {.jobs = &jobs, .cluster = &cluster, .seed = options.seed, .power = &model});
    RC_ASSERT(made.has_value());
    const auto order = node_order("fgd", cluster.nodes.size(), options.seed);
    const PackRule rule = [&](const World& world, const WorldNode& node, const WorldJob& job) {
      return score(world, node, job, power);
    };
    RC_ASSERT(history_of(jobs, cluster, *made, options, default_horizon_s) ==
              history_of(World(rows, cluster), packing_rule(order, rule), default_horizon_s));
  });
}

TEST(DifferentialPacking, Pwr) { compare_by_power("pwr", true, pwr_score); }

TEST(DifferentialPacking, PwrBesideFgd) { compare_by_power("pwr+fgd{alpha=0.25}", false, pwr_fgd_score); }

// Nothing of PWR in the sum is FGD; nothing of FGD is PWR, but for the card of a share.
TEST(DifferentialPacking, PwrBesideFgdHasBothAsItsEnds) {
  const auto fgd = [](const World& world, const WorldNode& node, const WorldJob& job, const WorldPower&) {
    return fgd_score(world, node, job);
  };
  compare_by_power("pwr+fgd{alpha=0}", true, fgd);
  const auto pwr = [](const World& world, const WorldNode& node, const WorldJob& job, const WorldPower& power) {
    return PackScore{pwr_score(world, node, job, power).value, fgd_score(world, node, job).card};
  };
  compare_by_power("pwr+fgd{alpha=1}", true, pwr);
}

// Which node is a matter of chance. That it is one that could be drawn, and everything else, is not.
TEST(DifferentialPacking, RandomNode) {
  check_many(3000, [] {
    const Cluster cluster = packing_cluster();
    const auto rows = random_rows(cluster);
    EngineOptions options;
    options.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const JobTable jobs = table_of(rows);
    const AnyPolicy policy = make_policy("random-node", jobs, cluster, options.seed);
    const auto drawn = history_of(jobs, cluster, policy, options, default_horizon_s).starts;
    expect_same("random-node", rows, cluster, random_node_rule(drawn), options);
  });
}

// Three nodes of two cards; a share goes to each of the six alike: 1000 of 6000 times, give or take five standard
// deviations of 29.
TEST(DifferentialPacking, RandomNodeDrawsEvenly) {
  const Cluster cluster = Cluster::homogeneous(3, 2);
  const JobTable jobs = table_of({{.work = 1, .shape = {.gpu_milli_per_task = 500}}});
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const AnyPolicy policy = make_policy("random-node", jobs, cluster, seed);
    ++counts[history_of(jobs, cluster, policy, EngineOptions{}, 10).starts.front().places.front()];
  }
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 1000, 145) << place.first << '/' << place.second;
}

}  // namespace
}  // namespace gpusched::test
