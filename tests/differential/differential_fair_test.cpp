// SPDX-License-Identifier: Apache-2.0
// Fair-share policies against the reference world: the same starts on the same nodes and cards, and the same ends, to
// the second, on random small cases.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/packing/k8s.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_fair.hpp"
#include "tests/differential/reference_queues.hpp"
#include "tests/differential/reference_slurm.hpp"

namespace gpusched::test {
namespace {

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
    const HdrfNumbers numbers{.rescale = *rc::gen::inRange(0, 4) > 0, .skip_empty = *rc::gen::arbitrary<bool>()};
    const std::string policy = "hdrf{" + weighed.text + ",rescale=" + (numbers.rescale ? "true" : "false") +
                               ",skip_empty=" + (numbers.skip_empty ? "true" : "false") + "}";
    expect_same(policy, rows, cluster, hdrf_rule(cluster, weighed.owners, numbers));
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

// Rights of some partitions over others, and how they are written.
std::string random_rights(const std::vector<Row>& rows, SlurmRights& rights) {
  if (*rc::gen::arbitrary<bool>()) return "";
  std::set<std::string> partitions;
  for (const Row& row : rows) partitions.insert(std::string(row.vc));
  rights.youngest_first = *rc::gen::arbitrary<bool>();
  std::string over, grace, exempt, cancelled, suspended;
  const auto add = [](std::string& list, const std::string& word) { list += (list.empty() ? "" : ",") + word; };
  for (const std::string& below : partitions) {
    for (const std::string& above : partitions) {
      if (above <= below || *rc::gen::inRange(0, 4) == 0) continue;
      rights.over.emplace(above, below);
      add(over, above + ">" + below);
    }
    const auto seconds = *rc::gen::element<std::int64_t>(0, 0, 1, 4, 9);
    if (seconds > 0) add(grace, below + "=" + std::to_string(rights.grace[below] = seconds));
    const auto least = *rc::gen::element<std::int64_t>(0, 0, 1, 5);
    if (least > 0) add(exempt, below + "=" + std::to_string(rights.exempt[below] = least));
    const auto mode = *rc::gen::inRange(0, 6);
    if (mode < 2) add(cancelled, *rights.cancelled.insert(below).first);
    if (mode == 2) add(suspended, *rights.suspended.insert(below).first);
  }
  return ",preempts_by=partition,preempts=[" + over + "],grace_s=[" + grace + "],exempt_s=[" + exempt + "],cancels=[" +
         cancelled + "],suspends=[" + suspended + "],youngest_first=" + (rights.youngest_first ? "true" : "false");
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
    std::string tiers;
    for (std::size_t i = *rc::gen::inRange<std::size_t>(0, 4); i > 0; --i) {
      numbers.partition_tiers.push_back(*rc::gen::inRange<std::int64_t>(0, 3));
      tiers += (tiers.empty() ? "" : ",") + std::to_string(numbers.partition_tiers.back());
    }
    const std::string text = "slurm{" + weighed.text + ",weight_age=" + std::to_string(numbers.weight_age) +
                             ",weight_fair_share=" + std::to_string(numbers.weight_fair_share) +
                             ",weight_size=" + std::to_string(numbers.weight_size) +
                             ",weight_partition=" + std::to_string(numbers.weight_partition) +
                             ",weight_qos=" + std::to_string(numbers.weight_qos) +
                             ",max_age_s=" + std::to_string(numbers.max_age_s) +
                             ",half_life_s=" + std::to_string(numbers.half_life_s) + ",partition_factors=[" + factors +
                             "],partition_tiers=[" + tiers + "],skip=" + (numbers.skip ? "true" : "false") +
                             random_rights(rows, numbers.rights) + "}";
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

// A job larger than its owner's part is refused when the policy is made.
TEST(DifferentialFair, StaticPartition) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const Weighed weighed = random_owners();
    const bool by_demand = *rc::gen::arbitrary<bool>();
    const auto parts = fixed_parts(World(rows, cluster), weighed.owners, by_demand);
    const std::string policy = "static-partition{" + weighed.text + (by_demand ? ",parts=demand}" : "}");
    const JobTable jobs = table_of(rows);
    if (parts) {
      expect_same(policy, rows, cluster, static_partition_rule(weighed.owners, *parts));
    } else {
      log_case(policy, rows, cluster);
      RC_ASSERT(!try_policy(policy, jobs, cluster));
    }
  });
}

// Queues two deep; some queues have jobs of their own and queues below them.
void compare_queues(const std::string& policy, bool among_active) {
  check_many(3000, [&] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster, {.vcs = {"a", "b", "b.x", "b.y", "c.z"}});
    const Weighed weighed = random_owners();
    const QueueNumbers numbers{.interval_s = *rc::gen::inRange<std::int64_t>(1, 9),
                               .among_active = among_active,
                               .reclaim = *rc::gen::inRange(0, 4) > 0};
    const WorldCosts costs = random_costs();
    expect_same(policy + "{" + weighed.text + ",preemption_interval_s=" + std::to_string(numbers.interval_s) +
                    ",preemption=" + (numbers.reclaim ? "true}" : "false}"),
                rows, cluster, QueueRule(weighed.owners, numbers), options_of(costs), costs);
  });
}

TEST(DifferentialFair, YarnCapacity) { compare_queues("yarn-capacity", false); }

TEST(DifferentialFair, YarnFair) { compare_queues("yarn-fair", true); }

// Every plugin and action that can be switched, on and off.
void compare_volcano(bool drf) {
  check_many(3000, [&] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster, {.vcs = {"a", "b", "c"}});
    const Weighed weighed = random_owners();
    const QueueNumbers numbers{.interval_s = *rc::gen::inRange<std::int64_t>(1, 9),
                               .among_active = true,
                               .reclaim = *rc::gen::inRange(0, 4) > 0};
    const VolcanoNumbers volcano{.proportion = *rc::gen::inRange(0, 4) > 0,
                                 .priority = *rc::gen::inRange(0, 4) > 0,
                                 .binpack = *rc::gen::inRange(0, 4) > 0,
                                 .preempt = *rc::gen::inRange(0, 4) > 0,
                                 .drf = drf};
    const auto flag = [](const char* name, bool on) { return std::string(",") + name + (on ? "=true" : "=false"); };
    const std::string policy =
        "volcano{" + weighed.text + ",preemption_interval_s=" + std::to_string(numbers.interval_s) +
        flag("proportion", volcano.proportion) + flag("priority", volcano.priority) + flag("binpack", volcano.binpack) +
        flag("preempt", volcano.preempt) + flag("reclaim", numbers.reclaim) + flag("drf", volcano.drf) + "}";
    const WorldCosts costs = random_costs();
    expect_same(policy, rows, cluster, QueueRule(weighed.owners, numbers, volcano, cluster), options_of(costs), costs);
  });
}

TEST(DifferentialFair, Volcano) { compare_volcano(false); }

TEST(DifferentialFair, VolcanoDrf) { compare_volcano(true); }

std::pair<std::string, K8sNumbers> random_k8s() {
  const K8sNumbers numbers{.least_allocated = *rc::gen::arbitrary<bool>(), .gpus = *rc::gen::arbitrary<bool>()};
  return {std::string("score=") + (numbers.least_allocated ? "least" : "most") +
              "-allocated,resources=" + (numbers.gpus ? "gpu" : "cpu-memory"),
          numbers};
}

TEST(DifferentialFair, KubernetesWithGangs) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const auto [text, numbers] = random_k8s();
    expect_same("k8s{" + text + "}", rows, cluster, k8s_rule(cluster, numbers));
  });
}

// Every task a pod of its own, created a second after the last; jobs that wait for one another for ever are part of it.
TEST(DifferentialFair, KubernetesPodByPod) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster, {.attempts = false});
    const std::int64_t interval = *rc::gen::inRange<std::int64_t>(0, 3);
    const auto [text, numbers] = random_k8s();
    std::vector<std::pair<Row, std::string>> pods;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::uint32_t k = 0; k < rows[i].shape.tasks; ++k) {
        pods.push_back({rows[i], std::to_string(i)});
        pods.back().first.shape.tasks = 1;
        pods.back().first.submit += interval * k;
      }
    }
    std::stable_sort(pods.begin(), pods.end(), [](auto& a, auto& b) { return a.first.submit < b.first.submit; });
    std::vector<Row> pod_rows;
    std::map<std::int64_t, std::string> group_of;
    for (const auto& [row, group] : pods) {
      group_of[static_cast<std::int64_t>(pod_rows.size())] = group;
      pod_rows.push_back(row);
    }
    const JobTable jobs = *split_into_pods(table_of(rows), whole_seconds(interval));
    const std::string policy = "k8s{pods=true," + text + "}";
    log_case(policy, pod_rows, cluster);
    constexpr std::int64_t long_enough = 200;  // nine jobs of less than 16 s each, one after the other
    const History engine = history_of(jobs, cluster, make_policy(policy, jobs, cluster), EngineOptions{}, long_enough);
    RC_ASSERT(engine == history_of(World(pod_rows, cluster), k8s_rule(cluster, numbers, group_of), long_enough));
  });
}

}  // namespace
}  // namespace gpusched::test
