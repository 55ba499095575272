// SPDX-License-Identifier: Apache-2.0
/// What the differential tests share: a run of the engine and one of the reference world as histories, and random small
/// cases for both.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/differential/reference_fair.hpp"
#include "tests/differential/reference_world.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// What a run did: every start with its place, every preemption as (second, job), and the end of each job (-1 = none).
struct History {
  std::vector<WorldStart> starts = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> stops = {};  ///< sorted
  std::vector<std::int64_t> ends = {};
  friend bool operator==(const History&, const History&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const History& history) {
  for (const WorldStart& start : history.starts) out << start;
  for (const auto& [second, job] : history.stops) out << "\n  " << second << " s: job " << job << " stops";
  out << "\n  ends";
  for (const std::int64_t end : history.ends) out << ' ' << end;
  return out << '\n';
}

/// No case needs as long: jobs are few and take seconds.
inline constexpr std::int64_t default_horizon_s = 2000;

inline std::int64_t ticks(Time t, Time tick) { return t == Time::max() ? -1 : t.us / tick.us; }

inline void log_places(const View& view, JobId job, WorldStart& start) {
  view.for_each_grant(job, [&](const Grant& grant) {
    const auto node = static_cast<std::int64_t>(index(grant.node));
    for (std::int64_t device = 0; device < 64; ++device) {
      if ((grant.devices >> device & 1) != 0) start.places.push_back({node, device});
    }
    if (grant.devices == 0) start.places.insert(start.places.end(), grant.tasks, {node, -1});
  });
  std::sort(start.places.begin(), start.places.end());
}

/// The engine's run up to `horizon` ticks of the world.
inline History history_of(const JobTable& jobs, const Cluster& cluster, AnyPolicy policy, const EngineOptions& options,
                          std::int64_t horizon, Time tick = whole_seconds(1), const RuntimeModel* runtime = nullptr) {
  Engine engine(jobs, cluster, options, {.runtime = runtime});
  Decision decision = engine.decision();
  History history;
  while (engine.advance_to(Time{(horizon - 1) * tick.us})) {
    policy.decide(engine.view(), decision);
    engine.apply();
    RC_ASSERT(runtime == nullptr || engine.consistent());
    const auto events = engine.events();
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind == EventKind::preempt) {
        history.stops.push_back({ticks(engine.view().now(), tick), index(events[i].job)});
      }
      if (events[i].kind != EventKind::start) continue;
      history.starts.push_back({.second = ticks(engine.view().now(), tick), .job = index(events[i].job)});
      log_places(engine.view(), events[i].job, history.starts.back());
    }
  }
  for (std::uint32_t i = 0; i < jobs.size(); ++i) history.ends.push_back(ticks(engine.end(JobId{i}), tick));
  std::sort(history.stops.begin(), history.stops.end());
  return history;
}

/// The world's run.
inline History history_of(World world, const World::Rule& rule, std::int64_t horizon) {
  world.run(rule, horizon);
  History history{.starts = std::move(world.starts), .stops = std::move(world.stops)};
  std::sort(history.stops.begin(), history.stops.end());
  for (const WorldJob& job : world.jobs) history.ends.push_back(job.end);
  return history;
}

inline Result<AnyPolicy> try_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster,
                                    std::uint64_t seed = 0) {
  const auto specs = parse_policy_list(text);
  RC_ASSERT(specs.has_value());
  return PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = seed});
}

inline AnyPolicy make_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster,
                             std::uint64_t seed = 0) {
  auto policy = try_policy(text, jobs, cluster, seed);
  if (!policy) RC_FAIL(policy.error().to_string());
  return *std::move(policy);
}

// ---- random cases ----

struct Demands {
  bool shares = true;  ///< of GPUs
  bool cpu_only = true;
  bool attempts = true;
  std::vector<std::string_view> vcs = {"a", "b", "c"};
};

inline Row random_row(const Demands& demands) {
  using rc::gen::inRange;
  Row row;
  row.submit = *inRange<std::int64_t>(0, 24);
  row.work = *inRange<std::int64_t>(0, 16);
  row.user = *rc::gen::element<std::string_view>("ann", "bob", "cid", "dan");
  row.vc = *rc::gen::elementOf(demands.vcs);
  row.priority = *inRange(0, 3);
  row.shape.tasks = *inRange<std::uint32_t>(1, 4);
  row.shape.gpu_milli_per_task = *rc::gen::element<MilliGpu>(1000, 1000, 1000, 2000, 500, 300, 0);
  if (!demands.shares && row.shape.is_share()) row.shape.gpu_milli_per_task = whole_gpu;
  if (!demands.cpu_only && row.shape.gpu_milli_per_task == 0) row.shape.gpu_milli_per_task = whole_gpu;
  row.shape.cpu_milli_per_task = *rc::gen::element<std::int64_t>(500, 1000, 4000);
  row.shape.memory_mib_per_task = *rc::gen::element<std::int64_t>(0, 64, 512);
  if (demands.attempts && *inRange(0, 6) == 0) {
    row.attempts = {*inRange<std::int64_t>(0, 8), *inRange<std::int64_t>(0, 8)};
  }
  return row;
}

/// Two to five nodes or a pool, CPU and memory bounded or not, virtual clusters with a quota or a node of their own.
inline Cluster random_cluster() {
  using rc::gen::inRange;
  Cluster cluster = *inRange(0, 4) == 0
                        ? Cluster::pool(*inRange<std::uint32_t>(2, 9))
                        : Cluster::homogeneous(*inRange<std::uint32_t>(1, 4), *inRange<std::uint32_t>(1, 5));
  if (*rc::gen::arbitrary<bool>()) cluster.nodes.back().gpus = *inRange<std::uint32_t>(1, 5);
  if (*rc::gen::arbitrary<bool>()) {
    for (Node& node : cluster.nodes) {
      node.cpu_milli = *inRange<std::int64_t>(2, 13) * 1000;
      node.memory_mib = *inRange<std::int64_t>(2, 13) * 128;
    }
  }
  if (*inRange(0, 3) == 0) {
    cluster.vcs = {{.name = "a"}, {.name = "b", .quota = *inRange<MilliGpu>(1, 9) * whole_gpu}};
    if (*rc::gen::arbitrary<bool>()) cluster.nodes.back().vc = 0;
  }
  return cluster;
}

/// One to nine jobs, in order of submission, that fit the empty cluster.
inline std::vector<Row> random_rows(const Cluster& cluster, const Demands& demands = {}) {
  std::vector<Row> rows(*rc::gen::inRange<std::size_t>(1, 10));
  for (Row& row : rows) row = random_row(demands);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
  std::erase_if(rows, [&](const Row& row) {
    World world({row}, cluster);
    return !world.start(world.jobs.front());
  });
  RC_PRE(!rows.empty());
  return rows;
}

/// Whose shares are kept, with weights: what a policy is told and what its reference rule is.
struct Weighed {
  WorldOwners owners = {};
  std::string text = {};  ///< "by=user,weights=[1,2]"
  std::int64_t product = 1;
};

inline Weighed random_owners(bool with_by = true) {
  Weighed weighed;
  weighed.owners.by_user = *rc::gen::arbitrary<bool>();
  for (std::size_t i = *rc::gen::inRange<std::size_t>(0, 4); i > 0; --i) {
    weighed.owners.weights.push_back(*rc::gen::element<std::int64_t>(1, 1, 2, 3, 5));
    weighed.product *= weighed.owners.weights.back();
  }
  if (with_by) weighed.text = std::string("by=") + (weighed.owners.by_user ? "user" : "vc") + ",";
  weighed.text += "weights=[";
  for (std::size_t i = 0; i < weighed.owners.weights.size(); ++i) {
    weighed.text += (i > 0 ? "," : "") + std::to_string(weighed.owners.weights[i]);
  }
  weighed.text += "]";
  return weighed;
}

inline WorldCosts random_costs() {
  return {.restart = *rc::gen::inRange<std::int64_t>(0, 4),
          .checkpoint_interval = *rc::gen::element<std::int64_t>(0, 0, 1, 3)};
}

inline EngineOptions options_of(const WorldCosts& costs) {
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(costs.restart),
                        .checkpoint_interval = whole_seconds(costs.checkpoint_interval)};
  return options;
}

inline void log_case(const std::string& policy, const std::vector<Row>& rows, const Cluster& cluster) {
  std::ostream& out = RC_LOG();
  out << policy;
  for (const Node& node : cluster.nodes) {
    out << "\n  node of " << node.gpus << (node.counts_only ? " counted" : "") << " GPUs";
    if (node.cpu_milli < unlimited) out << ", " << node.cpu_milli << " CPU, " << node.memory_mib << " MiB";
    if (node.vc != no_index) out << ", of " << cluster.vcs[node.vc].name;
  }
  for (const VirtualCluster& vc : cluster.vcs) out << "\n  vc " << vc.name << ", quota " << vc.quota;
  for (const Row& row : rows) out << row;
  out << '\n';
}

inline void expect_same(const std::string& policy, const std::vector<Row>& rows, const Cluster& cluster,
                        const World::Rule& rule, const EngineOptions& options = {}, WorldCosts costs = {}) {
  const JobTable jobs = table_of(rows);
  log_case(policy, rows, cluster);
  const History engine =
      history_of(jobs, cluster, make_policy(policy, jobs, cluster, options.seed), options, default_horizon_s);
  RC_ASSERT(engine == history_of(World(rows, cluster, costs), rule, default_horizon_s));
}

}  // namespace gpusched::test
