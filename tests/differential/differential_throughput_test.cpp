// SPDX-License-Identifier: Apache-2.0
// Gavel's rounds and AlloX against reference rules, where all GPUs are alike: the same starts and ends on random small
// cases. What speeds change is in tests/policies/throughput.
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

void expect_rounds(const std::string& policy, std::int64_t round, std::int64_t between, ReferenceShares shares) {
  check_many(1000, [&] {
    const std::vector<Row> rows = one_gpu_rows();
    const auto gpus = *rc::gen::inRange<std::uint32_t>(1, 4);
    RC_ASSERT(run_policy(policy, table_of(rows), Cluster::pool(gpus)) ==
              ReferenceRounds(gpus, round, between, shares).run(rows));
  });
}

TEST(ThroughputDifferential, GavelServesTheFirstJobsInRounds) {
  expect_rounds("gavel{objective=fifo,aware=false,round_s=6,reset_s=0}", 6, 0, ReferenceShares::first_come);
  expect_rounds("gavel{objective=fifo,round_s=4,reset_s=9}", 4, 9, ReferenceShares::first_come);
}

TEST(ThroughputDifferential, TheFifoOfGavelsArtifactLetsEverybodyTakeTurns) {
  expect_rounds("fifo@gavel{round_s=6,reset_s=0}", 6, 0, ReferenceShares::everybody);
  expect_rounds("fifo@gavel{round_s=4,reset_s=11}", 4, 11, ReferenceShares::everybody);
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
