// SPDX-License-Identifier: Apache-2.0
// Policies in which jobs take turns or take from one another against the reference world: themis, gandiva, max-min.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_fair.hpp"
#include "tests/differential/reference_sharing.hpp"

namespace gpusched::test {
namespace {

TEST(DifferentialSharing, Themis) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const std::int64_t lease = *rc::gen::inRange<std::int64_t>(1, 12);
    const WorldCosts costs = random_costs();
    expect_same("themis{auction=false,lease_s=" + std::to_string(lease) + "}", rows, cluster,
                ThemisRule({.lease = lease}), options_of(costs), costs);
  });
}

// ---- where time is paid with: ticks of a microsecond ----

constexpr std::int64_t unit = 1000;  // ticks to which a second of a random case shrinks

JobTable microsecond_table(const std::vector<Row>& rows) {
  JobTableBuilder builder;
  for (const Row& row : rows) {
    std::vector<Time> attempts;
    Time work{row.work};
    if (!row.attempts.empty()) work = {};
    for (const std::int64_t attempt : row.attempts) {
      attempts.push_back({attempt});
      work += attempts.back();
    }
    builder.add({.submit = {row.submit},
                 .work = work,
                 .estimate = {row.estimate},
                 .shape = row.shape,
                 .user = row.user,
                 .vc = row.vc,
                 .priority = row.priority,
                 .attempts = attempts});
  }
  return *std::move(builder).build();
}

std::vector<Row> microsecond_rows(const Cluster& cluster) {
  auto rows = random_rows(cluster);
  for (Row& row : rows) {
    row.submit *= unit;
    row.work *= unit;
    for (std::int64_t& attempt : row.attempts) attempt *= unit;
    row.estimate = *rc::gen::inRange<std::int64_t>(0, 24) * unit;
    if (row.shape == Shape{}) row.shape.gpu_milli_per_task = whole_gpu;
  }
  return rows;
}

// Jobs whose restarts take longer than what is left of a lease may never end; both sides stop at the horizon.
void compare_themis(bool auction) {
  check_many(2000, [=] {
    const Cluster cluster = random_cluster();
    const auto rows = microsecond_rows(cluster);
    const std::int64_t lease_units = *rc::gen::inRange<std::int64_t>(1, 12);
    ThemisNumbers numbers{.lease = lease_units * unit,
                          .second = microseconds_per_second,
                          .auction = auction,
                          .filter = *rc::gen::element(0.0, 0.25, 0.5, 0.8, 0.9)};
    const bool estimates = !auction || *rc::gen::arbitrary<bool>();
    for (const Row& row : rows) {
      if (estimates) numbers.estimates.push_back(row.estimate);
    }
    const WorldCosts costs{.restart = *rc::gen::inRange<std::int64_t>(0, 4) * unit,
                           .checkpoint_interval = *rc::gen::element<std::int64_t>(0, 0, unit, 3 * unit)};
    EngineOptions options;
    options.preemption = {.restart = {costs.restart}, .checkpoint_interval = {costs.checkpoint_interval}};
    const std::string policy = "themis{lease_s=" + std::to_string(static_cast<double>(lease_units) * unit / 1e6) +
                               ",filter=" + std::to_string(numbers.filter) + (auction ? "" : ",auction=false") +
                               (estimates ? ",estimate=user}" : "}");
    constexpr std::int64_t horizon = 200 * unit;
    const JobTable jobs = microsecond_table(rows);
    log_case(policy, rows, cluster);
    RC_LOG() << "restart " << costs.restart << ", checkpoints every " << costs.checkpoint_interval << '\n';
    const History engine = history_of(jobs, cluster, make_policy(policy, jobs, cluster), options, horizon, Time{1});
    RC_ASSERT(engine == history_of(World(rows, cluster, costs), ThemisRule(numbers), horizon));
  });
}

TEST(DifferentialSharing, ThemisByEstimates) { compare_themis(false); }

TEST(DifferentialSharing, ThemisAuction) { compare_themis(true); }

// ---- gandiva ----

TEST(DifferentialSharing, Gandiva) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const std::int64_t slice = *rc::gen::inRange<std::int64_t>(1, 12);
    const WorldCosts costs = random_costs();
    expect_same("gandiva{slice_s=" + std::to_string(slice) + "}", rows, cluster, GandivaRule(slice), options_of(costs),
                costs);
  });
}

// Most jobs want GPUs and nothing else, as only those are moved, and some want several on one node.
TEST(DifferentialSharing, GandivaMigrates) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    auto rows = random_rows(cluster);
    for (Row& row : rows) {
      if (*rc::gen::inRange(0, 5) > 0) row.shape.cpu_milli_per_task = row.shape.memory_mib_per_task = 0;
      if (row.shape == Shape{}) row.shape.gpu_milli_per_task = whole_gpu;
    }
    const std::int64_t slice = *rc::gen::inRange<std::int64_t>(1, 12);
    const std::int64_t migration = *rc::gen::inRange<std::int64_t>(0, 5);
    const WorldCosts costs = random_costs();
    expect_same(
        "gandiva{slice_s=" + std::to_string(slice) + ",migrate=true,migration_s=" + std::to_string(migration) + "}",
        rows, cluster, GandivaRule(slice, migration), options_of(costs), costs);
  });
}

// ---- max-min ----

TEST(DifferentialSharing, MaxMinPreempts) {
  check_many(3000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = random_rows(cluster);
    const WorldOwners owners{.by_user = *rc::gen::arbitrary<bool>()};
    const WorldCosts costs = random_costs();
    expect_same(std::string("max-min{preempt=true,by=") + (owners.by_user ? "user}" : "vc}"), rows, cluster,
                max_min_preempting_rule(owners), options_of(costs), costs);
  });
}

}  // namespace
}  // namespace gpusched::test
