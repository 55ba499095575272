// SPDX-License-Identifier: Apache-2.0
// Gavel's rounds and AlloX, and those of Gavel's artifact, against reference rules where all GPUs are alike: the same
// starts and ends on random small cases. What speeds change is in tests/policies/throughput.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/differential/differential.hpp"
#include "tests/differential/reference_orders.hpp"
#include "tests/differential/reference_throughput.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

std::vector<Row> one_gpu_rows() {
  std::vector<Row> rows = *few_rows(12, false);
  for (Row& row : rows) {
    row.gpus = 1;
    row.work += 1;
  }
  return rows;
}

TEST(ThroughputDifferential, GavelServesTheFirstJobsInRounds) {
  const auto expect = [](const std::string& policy, std::int64_t round, std::int64_t between) {
    check_many(1000, [&] {
      const std::vector<Row> rows = one_gpu_rows();
      const auto gpus = *rc::gen::inRange<std::uint32_t>(1, 4);
      RC_ASSERT(run_policy(policy, table_of(rows), Cluster::pool(gpus)) ==
                ReferenceGavelRounds(gpus, round, between).run(rows));
    });
  };
  expect("gavel{objective=fifo,aware=false,round_s=6,reset_s=0}", 6, 0);
  expect("gavel{objective=fifo,round_s=4,reset_s=9}", 4, 9);
}

void expect_artifact(const std::string& policy, std::uint32_t most_gpus, std::int64_t round, std::int64_t between,
                     ReferenceShares shares) {
  check_many(1000, [&] {
    std::vector<Row> rows = one_gpu_rows();
    // What is left differs from job to job by other than whole rounds, so that one is the shortest.
    if (shares == ReferenceShares::shortest) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i].work = rows[i].work % 4 * round + 1 + static_cast<std::int64_t>(i);
    }
    const auto gpus = *rc::gen::inRange<std::uint32_t>(1, most_gpus + 1);
    RC_ASSERT(run_policy(policy, table_of(rows), Cluster::pool(gpus)) ==
              ReferenceArtifact(gpus, round, between, shares).run(rows));
  });
}

TEST(ThroughputDifferential, TheArtifactOfGavelServesTheFirstJobsInItsRounds) {
  expect_artifact("gavel@gavel{objective=fifo,round_s=6,reset_s=0}", 3, 6, 0, ReferenceShares::first_come);
  expect_artifact("gavel@gavel{objective=fifo,round_s=4,reset_s=9}", 3, 4, 9, ReferenceShares::first_come);
}

TEST(ThroughputDifferential, TheFifoOfGavelsArtifactLetsEverybodyTakeTurns) {
  expect_artifact("fifo@gavel{round_s=6,reset_s=0}", 3, 6, 0, ReferenceShares::everybody);
  expect_artifact("fifo@gavel{round_s=4,reset_s=11}", 3, 4, 11, ReferenceShares::everybody);
}

TEST(ThroughputDifferential, TheAlloxOfGavelsArtifactHoldsTheGpuForTheShortest) {
  expect_artifact("allox@gavel{alpha=1,round_s=26,reset_s=0}", 1, 26, 0, ReferenceShares::shortest);
  expect_artifact("allox@gavel{alpha=1,round_s=14,reset_s=33}", 1, 14, 33, ReferenceShares::shortest);
}

// On alike GPUs the least sum of completion times starts the shortest jobs first. Run times differ, so that there is
// one least sum.
TEST(ThroughputDifferential, AlloxStartsTheShortestOnAlikeGpus) {
  const Counterpart pair{.policy = "allox{window_jobs=64}",
                         .rule = ReferenceList{by_key([](const ReferenceJob& job) { return job.remaining; }), true}};
  check_many(1000, [&] {
    std::vector<Row> rows = one_gpu_rows();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].work = static_cast<std::int64_t>(rows.size()) * rows[i].work + static_cast<std::int64_t>(i);
    }
    expect_agreement(pair, rows, *alike_clusters());
  });
}

}  // namespace
}  // namespace gpusched::test
