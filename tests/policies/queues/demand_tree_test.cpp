// SPDX-License-Identifier: Apache-2.0
#include "gpusched/policy/demand_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/engine.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

using test::Row;
using test::table_of;

// Two GPU types, gangs, shares and jobs without a GPU, few values of CPU and many of memory.
JobTable random_demands(Rng& rng, std::uint32_t count) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    constexpr MilliGpu gpus[] = {0, 250, 500, 1000, 2000, 8000};
    rows.push_back({.work = 1,
                    .gpu_spec = rng.below(3) == 0 ? "V100" : "",
                    .shape = {.tasks = 1 + static_cast<std::uint32_t>(rng.below(3)),
                              .gpu_milli_per_task = gpus[rng.below(6)],
                              .cpu_milli_per_task = static_cast<std::int64_t>(1000 * rng.below(4)),
                              .memory_mib_per_task = static_cast<std::int64_t>(1 + rng.below(500))}});
  }
  return table_of(rows);
}

bool asks_as_much(const Shape& more, const Shape& than) {
  return more.gpu_spec == than.gpu_spec && more.tasks >= than.tasks &&
         more.gpu_milli_per_task >= than.gpu_milli_per_task && more.cpu_milli_per_task >= than.cpu_milli_per_task &&
         more.memory_mib_per_task >= than.memory_mib_per_task;
}

// All demands asked one by one.
struct PlainDemands {
  std::vector<std::uint32_t> keys;
  std::vector<bool> waits, passed;

  [[nodiscard]] std::uint32_t first() const {
    std::uint32_t best = no_index;
    for (std::uint32_t demand = 0; demand < keys.size(); ++demand) {
      if (!waits[demand] || passed[demand]) continue;
      if (best == no_index || keys[demand] < keys[best]) best = demand;
    }
    return best;
  }
};

TEST(DemandTree, FindsWhatASearchOfAllDemandsFinds) {
  Rng rng(7);
  for (std::uint64_t round = 0; round < test::random_runs(60); ++round) {
    const JobTable jobs = random_demands(rng, 1 + static_cast<std::uint32_t>(rng.below(90)));
    Cluster cluster = Cluster::homogeneous(2, 8);
    for (Node& node : cluster.nodes) node.cpu_milli = node.memory_mib = 1'000'000;
    const Engine engine(jobs, cluster);
    const View view = engine.view();
    const std::uint32_t demands = view.demand_count();
    PlainDemands plain{.keys = std::vector<std::uint32_t>(demands),
                       .waits = std::vector<bool>(demands),
                       .passed = std::vector<bool>(demands)};
    for (std::uint32_t demand = 0; demand < demands; ++demand) plain.keys[demand] = demand;
    rng.shuffle(plain.keys.data(), plain.keys.size());
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return plain.keys[a] < plain.keys[b]; };
    DemandTree tree;
    tree.prepare(view);
    for (int pass = 0; pass < 20; ++pass) {
      tree.begin_pass(0, before);
      plain.passed.assign(demands, false);
      for (std::uint32_t demand = 0; demand < demands; ++demand) {
        if (rng.below(3) != 0) continue;
        plain.waits[demand] = !plain.waits[demand];
        tree.update(0, demand, plain.waits[demand], before);
      }
      if (rng.below(4) == 0) {
        rng.shuffle(plain.keys.data(), plain.keys.size());
        tree.reorder(0, before);
      }
      for (std::uint32_t first = plain.first(); first != no_index; first = plain.first()) {
        ASSERT_EQ(tree.first(0), first) << "round " << round << ", pass " << pass;
        if (rng.below(3) == 0) {  // it starts
          plain.waits[first] = false;
          tree.update(0, first, false, before);
          continue;
        }
        const bool larger = rng.below(2) == 0;
        tree.pass_over(0, first, larger, before);
        for (std::uint32_t demand = 0; demand < demands; ++demand) {
          const bool settled =
              demand == first || (larger && asks_as_much(view.shape_of_demand(demand), view.shape_of_demand(first)));
          if (settled) plain.passed[demand] = true;
        }
      }
      ASSERT_EQ(tree.first(0), no_index);
    }
  }
}

// A gang of many, a share and whole GPUs, on one axis; on the other GPU type nothing is settled.
TEST(DemandTree, WhatDoesNotFitSettlesWhatAsksForMoreOfTheSameGpuType) {
  const auto shape = [](std::uint32_t tasks, MilliGpu gpu_milli, std::int64_t memory_mib) {
    return Shape{.tasks = tasks, .gpu_milli_per_task = gpu_milli, .memory_mib_per_task = memory_mib};
  };
  const JobTable jobs = table_of({{.shape = shape(1, 500, 10)},
                                  {.shape = shape(2, 500, 10)},
                                  {.shape = shape(1, 1000, 11)},
                                  {.shape = shape(4, 2000, 9)},
                                  {.gpu_spec = "A100", .shape = shape(4, 2000, 99)}});
  Cluster cluster = Cluster::homogeneous(1, 8);
  cluster.nodes[0].memory_mib = 1000;
  const Engine engine(jobs, cluster);
  const auto before = [](std::uint32_t a, std::uint32_t b) { return a < b; };
  DemandTree tree;
  tree.prepare(engine.view());
  for (std::uint32_t demand = 0; demand < 5; ++demand) tree.update(0, demand, true, before);
  EXPECT_EQ(tree.first(0), 0u);
  tree.pass_over(0, 0, true, before);
  EXPECT_EQ(tree.first(0), 3u);  // less memory
  tree.pass_over(0, 3, true, before);
  EXPECT_EQ(tree.first(0), 4u);
  tree.begin_pass(0, before);
  EXPECT_EQ(tree.first(0), 0u);
}

}  // namespace
}  // namespace gpusched
