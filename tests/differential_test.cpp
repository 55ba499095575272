// SPDX-License-Identifier: Apache-2.0
// The engine against the reference simulator: the same starts and ends, to the second, on random small cases.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "src/policies/registry.hpp"
#include "tests/check_many.hpp"
#include "tests/random_cases.hpp"
#include "tests/reference_simulator.hpp"
#include "tests/run_support.hpp"

namespace gpusched::test {
namespace {

constexpr std::int64_t gpus = 8;

std::vector<ReferenceJob> reference_jobs(const std::vector<Row>& rows) {
  std::vector<ReferenceJob> jobs;
  for (const Row& row : rows) {
    ReferenceJob job;
    job.id = static_cast<std::int64_t>(jobs.size());
    job.submit = row.submit;
    job.attempts = row.attempts.empty() ? std::vector<std::int64_t>{row.work} : row.attempts;
    job.gpus = row.gpus;
    job.user = row.user.empty() ? 0 : row.user.front();
    job.estimate = row.estimate;
    job.priority = row.priority;
    job.deadline = row.deadline;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<Span> reference_spans(const std::vector<Row>& rows, const ReferenceRule& rule,
                                  const ReferenceCosts& costs) {
  ReferenceSimulator simulator(reference_jobs(rows), gpus, rule, costs);
  std::vector<Span> spans;
  for (const ReferenceJob& job : simulator.run()) {
    spans.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
  }
  return spans;
}

AnyPolicy make_policy(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const auto specs = parse_policy_list(text);
  RC_ASSERT(specs.has_value());
  auto policy = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
  if (!policy) RC_DISCARD(policy.error().to_string());  // a trace of no jobs lacks every column
  return *std::move(policy);
}

/// A policy as the registry writes it, and the same as a reference rule.
struct Pair {
  std::string policy;
  ReferenceRule rule;
  bool attempts = true;
};

class Differential : public testing::TestWithParam<Pair> {};

std::vector<Pair> pairs() {
  const auto remaining = [](const ReferenceJob& job) { return job.remaining; };
  const auto service = [](const ReferenceJob& job) { return job.remaining * job.gpus; };
  const auto area = [](const ReferenceJob& job) { return job.estimate * job.gpus; };
  const auto longest = [](const ReferenceJob& job) { return -job.estimate; };
  const auto widest = [](const ReferenceJob& job) { return -job.gpus; };
  const auto deadline = [](const ReferenceJob& job) { return job.deadline; };
  return {
      {"fifo", {}},
      {"fifo-skip", {.key = [](const ReferenceJob& job) { return job.id; }, .skips = true}},
      {"sjf", {.key = remaining, .by_id = true}},
      {"sjf{skip=true}", {.key = remaining, .skips = true, .by_id = true}},
      {"saf{estimate=user,skip=true}", {.key = area, .skips = true, .by_id = true}},
      {"saf{estimate=user,skip=false}", {.key = area, .by_id = true}},
      {"ljf{estimate=user,skip=true}", {.key = longest, .skips = true, .by_id = true}},
      {"lpjf{skip=true}", {.key = widest, .skips = true, .by_id = true}},
      {"edf{skip=true}", {.key = deadline, .skips = true, .by_id = true}},
      {"edf{skip=false}", {.key = deadline, .by_id = true}},
      {"drf", {.by_share = true}},
      {"srtf", {.key = remaining, .skips = true, .preempts = true}},
      {"srsf", {.key = service, .skips = true, .preempts = true}},
  };
}

INSTANTIATE_TEST_SUITE_P(Policies, Differential, testing::ValuesIn(pairs()),
                         [](const auto& instance) { return readable(instance.param.policy); });

TEST_P(Differential, StartsAndEndsAgreeWithTheReference) {
  const Pair& pair = GetParam();
  check_many(3000, [&] {
    const auto rows = *gpu_rows(gpus, pair.attempts);
    // One-GPU tasks go anywhere, so that nodes decide as a pool of as many GPUs, except that a job may have to move,
    // which costs what a preemption costs.
    const Cluster cluster =
        *rc::gen::element(Cluster::pool(gpus), Cluster::homogeneous(2, gpus / 2), Cluster::homogeneous(gpus, 1));
    ReferenceCosts costs;
    if (cluster.nodes.size() == 1) {
      costs.restart = *rc::gen::inRange<std::int64_t>(0, 4);
      costs.checkpoint_interval = *rc::gen::element<std::int64_t>(0, 0, 1, 3);
    }
    EngineOptions options;
    options.preemption = {.restart = whole_seconds(costs.restart),
                          .checkpoint_interval = whole_seconds(costs.checkpoint_interval)};
    const JobTable jobs = table_of(rows);
    const auto ours = run(jobs, cluster, make_policy(pair.policy, jobs, cluster), options);
    RC_ASSERT(ours == reference_spans(rows, pair.rule, costs));
  });
}

}  // namespace
}  // namespace gpusched::test
