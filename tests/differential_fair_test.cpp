// SPDX-License-Identifier: Apache-2.0
// Fair-share policies against the reference world: the same starts on the same nodes and cards, and the same ends, to
// the second, on random small cases.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "src/policies/registry.hpp"
#include "tests/check_many.hpp"
#include "tests/random_cases.hpp"
#include "tests/reference_fair.hpp"
#include "tests/reference_world.hpp"
#include "tests/run_support.hpp"

namespace gpusched::test {
namespace {

/// What a run did: every start with its place, and the end of each job (-1 = none).
struct History {
  std::vector<WorldStart> starts = {};
  std::vector<std::int64_t> ends = {};
  friend bool operator==(const History&, const History&) = default;
};

std::ostream& operator<<(std::ostream& out, const History& history) {
  for (const WorldStart& start : history.starts) out << start;
  out << "\n  ends";
  for (const std::int64_t end : history.ends) out << ' ' << end;
  return out << '\n';
}

constexpr std::int64_t horizon = 100'000;

std::int64_t second(Time t) { return t == Time::max() ? -1 : t.us / microseconds_per_second; }

void log_places(const View& view, JobId job, WorldStart& start) {
  view.for_each_grant(job, [&](const Grant& grant) {
    const auto node = static_cast<std::int64_t>(index(grant.node));
    for (std::int64_t device = 0; device < 64; ++device) {
      if ((grant.devices >> device & 1) != 0) start.places.push_back({node, device});
    }
    if (grant.devices == 0) start.places.insert(start.places.end(), grant.tasks, {node, -1});
  });
  std::sort(start.places.begin(), start.places.end());
}

History history_of(const JobTable& jobs, const Cluster& cluster, AnyPolicy policy, const EngineOptions& options) {
  Engine engine(jobs, cluster, options);
  Decision decision = engine.decision();
  History history;
  while (engine.next_event_time() <= whole_seconds(horizon) && engine.advance()) {
    policy.decide(engine.view(), decision);
    engine.apply();
    for (const Event& event : engine.events()) {
      if (event.kind != EventKind::start) continue;
      history.starts.push_back({.second = second(engine.view().now()), .job = index(event.job)});
      log_places(engine.view(), event.job, history.starts.back());
    }
  }
  for (std::uint32_t i = 0; i < jobs.size(); ++i) history.ends.push_back(second(engine.end(JobId{i})));
  return history;
}

History history_of(World world, const World::Rule& rule) {
  world.run(rule, horizon);
  History history{.starts = std::move(world.starts)};
  for (const WorldJob& job : world.jobs) history.ends.push_back(job.end);
  return history;
}

AnyPolicy make_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const auto specs = parse_policy_list(text);
  RC_ASSERT(specs.has_value());
  auto policy = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
  if (!policy) RC_FAIL(policy.error().to_string());
  return *std::move(policy);
}

// ---- random cases ----

struct Demands {
  bool shares = true;  ///< of GPUs
  bool cpu_only = true;
  bool attempts = true;
};

Row random_row(const Demands& demands) {
  using rc::gen::inRange;
  Row row;
  row.submit = *inRange<std::int64_t>(0, 24);
  row.work = *inRange<std::int64_t>(0, 16);
  row.user = *rc::gen::element<std::string_view>("ann", "bob", "cid", "dan");
  row.vc = *rc::gen::element<std::string_view>("a", "b", "c");
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
Cluster random_cluster() {
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
std::vector<Row> random_rows(const Cluster& cluster, const Demands& demands = {}) {
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

Weighed random_owners(bool with_by = true) {
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

void log_case(const std::string& policy, const std::vector<Row>& rows, const Cluster& cluster) {
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

void expect_same(const std::string& policy, const std::vector<Row>& rows, const Cluster& cluster,
                 const World::Rule& rule, const EngineOptions& options = {}, WorldCosts costs = {}) {
  const JobTable jobs = table_of(rows);
  log_case(policy, rows, cluster);
  const History engine = history_of(jobs, cluster, make_policy(policy, jobs, cluster), options);
  RC_ASSERT(engine == history_of(World(rows, cluster, costs), rule));
}

// ---- the policies ----

TEST(DifferentialFair, Drf) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const Weighed weighed = random_owners();
    expect_same("drf{" + weighed.text + "}", rows, cluster, drf_rule(cluster, weighed.owners, weighed.product));
  });
}

TEST(DifferentialFair, HierarchicalDrf) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    Weighed weighed = random_owners(false);
    weighed.owners.by_user = false;
    expect_same("hdrf{" + weighed.text + "}", rows, cluster, hdrf_rule(cluster, weighed.owners, weighed.product));
  });
}

TEST(DifferentialFair, MaxMin) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const WorldOwners owners{.by_user = *rc::gen::arbitrary<bool>()};
    expect_same(owners.by_user ? "max-min" : "max-min{by=vc}", rows, cluster, max_min_rule(owners));
  });
}

// Weights of the fair-share factor are powers of two: the factors 1, 1/2, 1/4 of equal shares are then no ties of
// rounding.
TEST(DifferentialFair, Slurm) {
  check_many(3000, [] {
    using rc::gen::element;
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const Weighed weighed = random_owners();
    SlurmNumbers numbers{.weight_age = *element<std::int64_t>(0, 10, 1000),
                         .weight_fair_share = *element<std::int64_t>(0, 64, 1 << 12, 1 << 20),
                         .weight_size = *element<std::int64_t>(0, 10, 1000),
                         .weight_partition = *element<std::int64_t>(0, 10, 1000),
                         .weight_qos = *element<std::int64_t>(0, 10, 2000),
                         .max_age_s = *element<std::int64_t>(1, 7, 30, 604'800),
                         .half_life_s = *element<std::int64_t>(1, 5, 60, 604'800),
                         .skip = *rc::gen::arbitrary<bool>()};
    std::string factors;
    for (std::size_t i = *rc::gen::inRange<std::size_t>(0, 4); i > 0; --i) {
      const auto tenths = *rc::gen::inRange(0, 11);
      numbers.partition_factors.push_back(tenths / 10.0);
      factors += (factors.empty() ? "" : ",") + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    }
    const std::string text = "slurm{" + weighed.text + ",weight_age=" + std::to_string(numbers.weight_age) +
                             ",weight_fair_share=" + std::to_string(numbers.weight_fair_share) +
                             ",weight_size=" + std::to_string(numbers.weight_size) +
                             ",weight_partition=" + std::to_string(numbers.weight_partition) +
                             ",weight_qos=" + std::to_string(numbers.weight_qos) +
                             ",max_age_s=" + std::to_string(numbers.max_age_s) +
                             ",half_life_s=" + std::to_string(numbers.half_life_s) + ",partition_factors=[" + factors +
                             "],skip=" + (numbers.skip ? "true" : "false") + "}";
    expect_same(text, rows, cluster, slurm_rule(weighed.owners, numbers));
  });
}

TEST(DifferentialFair, Lsf) {
  check_many(3000, [] {
    using rc::gen::element;
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const Weighed weighed = random_owners();
    // Small cases are short: the factors and the history bring seconds to the order of the job factor.
    const LsfNumbers numbers{.used_factor = *element(0.0, 0.7, 700.0, 5000.0),
                             .run_time_factor = *element(0.0, 0.7, 700.0, 5000.0),
                             .run_job_factor = *element(0.001, 3.0),
                             .history_hours = *element(0.001, 0.01, 5.0)};
    const std::string text = "lsf{" + weighed.text + ",used_factor=" + std::to_string(numbers.used_factor) +
                             ",run_time_factor=" + std::to_string(numbers.run_time_factor) +
                             ",run_job_factor=" + std::to_string(numbers.run_job_factor) +
                             ",history_hours=" + std::to_string(numbers.history_hours) + "}";
    expect_same(text, rows, cluster, lsf_rule(weighed.owners, numbers));
  });
}

TEST(DifferentialFair, StaticPartition) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    auto rows = random_rows(cluster);
    const Weighed weighed = random_owners();
    // A job larger than its owner's part is refused when the policy is made; without it the parts may change.
    for (bool refused = true; refused;) {
      const World world(rows, cluster);
      const auto quotas = fixed_quotas(world, weighed.owners);
      refused = false;
      for (const WorldJob& job : world.jobs) {
        if (job.gpus_milli() <= quotas.at(weighed.owners.of(job))) continue;
        rows.erase(rows.begin() + job.id);
        refused = true;
        break;
      }
      RC_PRE(!rows.empty());
    }
    expect_same("static-partition{" + weighed.text + "}", rows, cluster, static_partition_rule(weighed.owners));
  });
}

}  // namespace
}  // namespace gpusched::test
