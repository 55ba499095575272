// SPDX-License-Identifier: Apache-2.0
// The engine under orders of jobs against the reference simulator: the same starts and ends, to the second, on random
// small cases.
#include "tests/differential/differential.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/reference_orders.hpp"

namespace gpusched::test {
namespace {

class Differential : public testing::TestWithParam<Counterpart> {};

std::vector<Counterpart> orders() {
  const auto id = by_key([](const ReferenceJob& job) { return job.id; });
  const auto remaining = by_key([](const ReferenceJob& job) { return job.remaining; });
  const auto area = by_key([](const ReferenceJob& job) { return job.estimate * job.gpus; });
  const auto longest = by_key([](const ReferenceJob& job) { return -job.estimate; });
  const auto widest = by_key([](const ReferenceJob& job) { return -job.gpus; });
  const auto deadline = by_key([](const ReferenceJob& job) { return job.deadline; });
  const auto believed_area =
      by_score([](const ReferenceJob& job, std::int64_t) { return believed_s(job) * static_cast<double>(job.gpus); });
  const auto shortest = by_key([](const ReferenceJob& job) { return job.believed_us; });
  const ReferenceEstimator requested("requested"), history("history");
  return {
      {.policy = "fifo", .rule = ReferenceList{.before = id}},
      {.policy = "fifo-skip", .rule = ReferenceList{.before = id, .skips = true}},
      {.policy = "sjf", .rule = ReferenceList{remaining}},
      {.policy = "sjf{best_speed=true}", .rule = ReferenceList{remaining}},
      {.policy = "sjf{skip=true}", .rule = ReferenceList{remaining, true}},
      {.policy = "sjf{estimate=history}", .rule = ReferenceList{shortest, false, history}},
      {.policy = "sjf{estimate=history,half_life_jobs=5}",
       .rule = ReferenceList{shortest, false, ReferenceEstimator("history", &ReferenceJob::believed_us, 5)}},
      {.policy = "sjf{estimate=history,half_life_jobs=0}",
       .rule = ReferenceList{shortest, false, ReferenceEstimator("history", &ReferenceJob::believed_us, 0)}},
      {.policy = "saf{estimate=user,skip=true}", .rule = ReferenceList{area, true}},
      {.policy = "saf", .rule = ReferenceList{area}},
      {.policy = "ljf{skip=true}", .rule = ReferenceList{longest, true}},
      {.policy = "lpjf{skip=true}", .rule = ReferenceList{widest, true}},
      {.policy = "as-recorded", .rule = ReferenceAsRecorded{}},
      {.policy = "edf{skip=true}", .rule = ReferenceList{deadline, true}},
      {.policy = "edf", .rule = ReferenceList{deadline}},
      {.policy = "weighted", .rule = ReferenceList{weighted(1, 1, 0.1), false, requested}},
      {.policy = "weighted{run_time=-0.5,gpus=2,wait=40,skip=true}",
       .rule = ReferenceList{weighted(-0.5, 2, 40), true, requested}},
      {.policy = "f1", .rule = ReferenceList{regressed(1), false, requested}},
      {.policy = "f2{skip=true}", .rule = ReferenceList{regressed(2), true, requested}},
      {.policy = "f3", .rule = ReferenceList{regressed(3), false, requested}},
      {.policy = "f4", .rule = ReferenceList{regressed(4), false, requested}},
      {.policy = "wfp3", .rule = ReferenceList{wfp3_order(), false, requested}},
      {.policy = "wfp3{skip=true}", .rule = ReferenceList{wfp3_order(), true, requested}},
      {.policy = "unicep", .rule = ReferenceList{unicep_order(), false, requested}},
      {.policy = "unicep{skip=true,estimate=history}", .rule = ReferenceList{unicep_order(), true, history}},
      {.policy = "wfp3@sc20", .rule = ReferenceList{wfp3_sc20_order(), false, requested}},
      {.policy = "unicep@sc20{skip=true}", .rule = ReferenceList{unicep_sc20_order(), true, requested}},
      {.policy = "qssf", .rule = ReferenceList{believed_area, false, history}},
      {.policy = "qssf{estimate=requested}", .rule = ReferenceList{believed_area, false, requested}},
      {.policy = "qssf{estimate=user-mean}",
       .rule = ReferenceList{believed_area, false, ReferenceEstimator("user-mean")}},
      {.policy = "qssf{estimate=user-gpu-mean,skip=true}",
       .rule = ReferenceList{believed_area, true, ReferenceEstimator("user-gpu-mean")}},
  };
}

std::string name_of_case(const testing::TestParamInfo<Counterpart>& instance) {
  return readable(instance.param.policy);
}

INSTANTIATE_TEST_SUITE_P(Orders, Differential, testing::ValuesIn(orders()), name_of_case);

TEST_P(Differential, StartsAndEndsAgreeWithTheReference) {
  check_many(1500, [] { expect_agreement(GetParam(), *gpu_rows(case_gpus), *alike_clusters()); });
}

class PreemptiveDifferential : public testing::TestWithParam<Counterpart> {};

std::vector<Counterpart> preemptive_orders() {
  const auto remaining = [](const ReferenceJob& job) { return job.remaining; };
  const auto service = [](const ReferenceJob& job) { return job.remaining * job.gpus; };
  return {
      {.policy = "srtf", .rule = ReferencePreemptive{remaining}},
      {.policy = "srsf", .rule = ReferencePreemptive{service}},
      {.policy = "priority{aging_s=7}", .rule = ReferencePriority{.aging = 7}},
      {.policy = "priority{aging_s=0}", .rule = ReferencePriority{.aging = 0}},
      {.policy = "priority{aging_s=20,preempt=false}", .rule = ReferencePriority{.aging = 20, .preempts = false}},
  };
}

INSTANTIATE_TEST_SUITE_P(Orders, PreemptiveDifferential, testing::ValuesIn(preemptive_orders()), name_of_case);

TEST_P(PreemptiveDifferential, StartsAndEndsAgreeWithTheReference) {
  check_many(3000, [] {
    const auto rows = *gpu_rows(case_gpus);
    // Jobs that move pay what a preemption costs, and `priority` lets nobody move.
    const bool pool = *rc::gen::arbitrary<bool>() || GetParam().policy.starts_with("priority");
    const Cluster cluster = pool ? Cluster::pool(case_gpus) : *alike_clusters();
    expect_agreement(GetParam(), rows, cluster, pool ? *preemption_costs() : ReferenceCosts{});
  });
}

}  // namespace
}  // namespace gpusched::test
