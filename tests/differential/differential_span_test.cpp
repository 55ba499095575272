// SPDX-License-Identifier: Apache-2.0
// Gangs that are slower when their tasks are apart, against the reference world, which looks at every pair of tasks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_fair.hpp"

namespace gpusched::test {
namespace {

// How slow families are: every product is a whole number of ticks for a tick of work, which rates in ppm hit exactly.
struct Slowness {
  std::array<std::int64_t, 2> on_type = {1, 1};
  std::array<std::array<std::int64_t, span_count>, 2> apart = {};  // by GPU type
};
using SlownessByFamily = std::map<std::string, Slowness>;

Slowness random_slowness() {
  Slowness slowness;
  for (std::size_t type = 0; type < 2; ++type) {
    slowness.on_type[type] = *rc::gen::element<std::int64_t>(1, 2);
    slowness.apart[type][0] = 1;
    for (std::size_t span = 1; span < span_count; ++span) {
      slowness.apart[type][span] = *rc::gen::element<std::int64_t>(1, 2, 4, 5, 10);
    }
  }
  return slowness;
}

RuntimeModel model_of(const SlownessByFamily& families, const JobTable& jobs) {
  RuntimeModel model(jobs.families().size(), 2);
  SpanModel spans(jobs.families().size(), 2);
  for (const auto& [name, slowness] : families) {
    const std::uint32_t family = jobs.families().find(name);
    if (family == no_index) continue;
    for (std::uint32_t type = 0; type < 2; ++type) {
      model.set(family, type, static_cast<RatePpm>(reference_rate / slowness.on_type[type]));
      SpanSpeeds speeds;
      for (std::size_t span = 0; span < span_count; ++span) {
        speeds[span] = static_cast<RatePpm>(reference_rate / slowness.apart[type][span]);
      }
      spans.set(family, type, speeds);
    }
  }
  model.set_spans(std::move(spans));
  return model;
}

// The widest span of any two cards, or any two tasks without.
std::size_t span_of(const WorldJob& job, const std::vector<WorldNode>& nodes) {
  std::vector<std::pair<std::size_t, std::size_t>> places;  // (node, island)
  for (const WorldTask& task : job.places) {
    const std::size_t island = nodes[task.node].island;
    if (task.cards.empty() || island == 0) places.emplace_back(task.node, 0);
    for (const std::size_t card : task.cards) {
      if (island > 0) places.emplace_back(task.node, card / island);
    }
  }
  std::size_t widest = 0;
  for (const auto& [a, a_island] : places) {
    for (const auto& [b, b_island] : places) {
      std::size_t span = 0;
      if (a_island != b_island) span = 1;
      if (a != b) span = 2;
      if (nodes[a].rack != nodes[b].rack) span = 3;
      if (nodes[a].site != nodes[b].site) span = 4;
      widest = std::max(widest, span);
    }
  }
  return widest;
}

// Two GPU types, up to three racks in up to two sites, islands.
Cluster random_apart_cluster() {
  using rc::gen::inRange;
  Cluster cluster = random_cluster();
  cluster.gpu_types = {"V100", "T4"};
  cluster.rack_sites = {0, *inRange<std::uint32_t>(0, 2), *inRange<std::uint32_t>(0, 2)};
  for (std::uint32_t more = *inRange<std::uint32_t>(0, 4); more > 0; --more) {
    cluster.nodes.push_back(cluster.nodes.front());
  }
  for (Node& node : cluster.nodes) {
    node.gpu_type = *inRange<std::uint32_t>(0, 2);
    node.rack = *inRange<std::uint32_t>(0, 3);
    if (node.gpus == 4 && !node.counts_only) node.island_gpus = *rc::gen::element<std::uint32_t>(0, 1, 2);
  }
  return cluster;
}

constexpr std::int64_t shrunk_second = 7;  // ticks to which a second of a random case shrinks; a tick is a microsecond

void expect_same_apart(const std::string& policy, const World::Rule& rule) {
  const Cluster cluster = random_apart_cluster();
  std::vector<Row> rows = random_rows(cluster, {.attempts = false});
  SlownessByFamily families;
  JobTableBuilder builder;
  for (Row& row : rows) {
    row.family = *rc::gen::element<std::string_view>("bert", "vgg", "");
    families.emplace(row.family, random_slowness());
    row.submit *= shrunk_second;
    row.work *= shrunk_second;
    if (row.shape == Shape{}) row.shape.gpu_milli_per_task = whole_gpu;
    builder.add({.submit = {row.submit},
                 .work = {row.work},
                 .shape = row.shape,
                 .user = row.user,
                 .vc = row.vc,
                 .family = row.family});
  }
  const JobTable jobs = *std::move(builder).build();
  const RuntimeModel model = model_of(families, jobs);
  const WorldCosts costs{
      .restart = *rc::gen::inRange<std::int64_t>(0, 4) * shrunk_second,
      .checkpoint_interval = *rc::gen::element<std::int64_t>(0, 0, shrunk_second, 3 * shrunk_second)};
  EngineOptions options;
  options.preemption = {.restart = {costs.restart}, .checkpoint_interval = {costs.checkpoint_interval}};
  const WorldSlowness slowness = [&](const WorldJob& job, const std::vector<WorldNode>& nodes) {
    const Slowness& own = families.at(std::string(rows[static_cast<std::size_t>(job.id)].family));
    const std::size_t span = span_of(job, nodes);
    std::int64_t slowest = 1;
    for (const WorldTask& task : job.places) {
      const std::size_t type = nodes[task.node].type;
      slowest = std::max(slowest, own.on_type[type] * own.apart[type][span]);
    }
    return slowest;
  };
  constexpr std::int64_t horizon = 1000 * shrunk_second;
  log_case(policy, rows, cluster);
  for (const Node& node : cluster.nodes) {
    RC_LOG() << "rack " << node.rack << " site " << cluster.site_of(node.rack) << " island " << node.island_gpus
             << " type " << node.gpu_type << '\n';
  }
  const History engine =
      history_of(jobs, cluster, make_policy(policy, jobs, cluster), options, horizon, Time{1}, &model);
  RC_ASSERT(engine == history_of(World(rows, cluster, costs, slowness), rule, horizon));
}

TEST(DifferentialSpan, Fifo) {
  check_many(3000, [] {
    expect_same_apart("fifo", [](World& world) {
      const auto key = [&](const WorldJob& job) {
        const std::string queue = world.queue_of(job);  // that of no virtual cluster comes last
        return std::vector<std::int64_t>{queue.empty() ? 1 : 0, queue.empty() ? 0 : queue.front(), job.submit};
      };
      start_in_order(world, key, false);
    });
  });
}

TEST(DifferentialSpan, MaxMinPreempts) {
  check_many(3000, [] {
    const WorldOwners owners{.by_user = *rc::gen::arbitrary<bool>()};
    expect_same_apart(std::string("max-min{preempt=true,by=") + (owners.by_user ? "user}" : "vc}"),
                      max_min_preempting_rule(owners));
  });
}

}  // namespace
}  // namespace gpusched::test
