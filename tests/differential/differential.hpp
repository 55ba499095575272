// SPDX-License-Identifier: Apache-2.0
/// What the differential tests share: one random case run by the engine and by the reference simulator.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/differential/reference_simulator.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

inline std::vector<ReferenceJob> reference_jobs(const std::vector<Row>& rows) {
  std::vector<ReferenceJob> jobs;
  for (const Row& row : rows) {
    ReferenceJob job;
    job.id = static_cast<std::int64_t>(jobs.size());
    job.submit = row.submit;
    job.attempts = row.attempts.empty() ? std::vector<std::int64_t>{row.work} : row.attempts;
    job.gpus = row.gpus;
    job.user = row.user.empty() ? 0 : row.user.front();
    job.vc = row.vc.empty() ? 0 : row.vc.front();
    job.estimate = row.estimate;
    job.priority = row.priority;
    job.deadline = row.deadline;
    job.recorded_start = row.start;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// The policy as the registry makes it, with backfilling around it unless `backfill` is empty.
inline AnyPolicy make_policy(const std::string& text, const std::string& backfill, const JobTable& jobs,
                             const Cluster& cluster) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster, .power = &signals_of_tests()};
  const auto specs = parse_policy_list(text);
  RC_ASSERT(specs.has_value());
  if (backfill.empty()) {
    auto policy = registry.make(specs->front(), context);
    if (!policy) RC_FAIL(policy.error().to_string());
    return *std::move(policy);
  }
  const auto way = parse_backfill(backfill);
  RC_ASSERT(way.has_value());
  auto policy = make_backfilled(registry, specs->front(), *way, context);
  if (!policy) RC_FAIL(policy.error().to_string());
  return *std::move(policy);
}

/// A policy and its reference.
struct Counterpart {
  std::string policy;
  std::string backfill = {};  ///< none
  ReferenceSimulator::Rule rule;
};

/// Fails the case unless both start and end every job in the same second.
inline void expect_agreement(const Counterpart& pair, const std::vector<Row>& rows, const Cluster& cluster,
                             const ReferenceCosts& costs = {}) {
  RC_PRE(!rows.empty());  // a trace of no jobs lacks every column
  RC_LOG() << pair.policy << ' ' << pair.backfill << " on " << cluster.name << ", restart " << costs.restart
           << " s, checkpoints every " << costs.checkpoint_interval << " s\n";
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(costs.restart),
                        .checkpoint_interval = whole_seconds(costs.checkpoint_interval)};
  const JobTable jobs = table_of(rows);
  const auto ours = run(jobs, cluster, make_policy(pair.policy, pair.backfill, jobs, cluster), options);
  ReferenceSimulator simulator(reference_jobs(rows), cluster.total_gpus(), pair.rule, costs);
  std::vector<Span> theirs;
  for (const ReferenceJob& job : simulator.run()) {
    theirs.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
  }
  RC_ASSERT(ours == theirs);
}

/// Clusters of 8 GPUs. One-GPU tasks go anywhere, so that nodes decide as a pool of as many GPUs, except that a job
/// that is preempted may have to move.
inline constexpr std::int64_t case_gpus = 8;
inline rc::Gen<Cluster> alike_clusters() {
  return rc::gen::element(Cluster::pool(case_gpus), Cluster::homogeneous(2, case_gpus / 2),
                          Cluster::homogeneous(case_gpus, 1));
}

/// Up to `most` jobs as gpu_rows() makes them: small cases, of which thousands take a second.
inline rc::Gen<std::vector<Row>> few_rows(int most, bool with_attempts = true) {
  return rc::gen::withSize(
      [=](int size) { return rc::gen::resize(std::min(size, most), gpu_rows(case_gpus, with_attempts)); });
}

inline rc::Gen<ReferenceCosts> preemption_costs() {
  return rc::gen::build<ReferenceCosts>(
      rc::gen::set(&ReferenceCosts::restart, rc::gen::inRange<std::int64_t>(0, 4)),
      rc::gen::set(&ReferenceCosts::checkpoint_interval, rc::gen::element<std::int64_t>(0, 0, 1, 3)));
}

}  // namespace gpusched::test
