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
