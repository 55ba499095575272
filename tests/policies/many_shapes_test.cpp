// SPDX-License-Identifier: Apache-2.0
// Accounting logs have a memory column of nearly as many values as jobs. Where no node bounds memory, or all bound it
// and it is enough, it changes neither what policies do nor, but for a factor, what they cost: these runs took 3 to 30
// s each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint32_t job_count = 2500;

// More work than 320 GPUs do, so that the queue grows all the time.
JobTable backlog(bool with_memory) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < job_count; ++i) {
    constexpr std::uint32_t gpus[] = {1, 4, 8, 16};
    rows.push_back({.submit = i,
                    .work = 100,
                    .user = "ann",
                    .shape = {.tasks = gpus[i % 4],
                              .gpu_milli_per_task = whole_gpu,
                              .memory_mib_per_task = with_memory ? std::int64_t{1000} + i : 0}});
  }
  return table_of(rows);
}

class ManyShapes : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Policies, ManyShapes,
                         testing::Values("fifo-skip", "sjf{skip=true}", "srtf", "srsf", "las", "tiresias", "gandiva",
                                         "k8s", "fgd", "pwr", "pwr+fgd", "max-min", "drf", "lsf", "slurm",
                                         "volcano{by=user}"),
                         [](const auto& instance) { return readable(instance.param); });

TEST_P(ManyShapes, OfWhatNobodyBoundsAreOneDemand) {
  const Cluster cluster = Cluster::homogeneous(40, 8);
  const JobTable with_memory = backlog(true);
  ASSERT_EQ(with_memory.shapes().size(), job_count);
  EXPECT_EQ(Engine(with_memory, cluster).view().demand_count(), 4u);
  EXPECT_EQ(run_policy(GetParam(), with_memory, cluster), run_policy(GetParam(), backlog(false), cluster));
}

class ManyDemands : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Policies, ManyDemands,
                         testing::Values("fifo-skip", "sjf{skip=true}", "srtf", "srsf", "las", "tiresias", "fgd", "pwr",
                                         "pwr+fgd", "max-min"),
                         [](const auto& instance) { return readable(instance.param); });

TEST_P(ManyDemands, ThatAlwaysFindTheirMemoryRunAsOne) {
  Cluster cluster = Cluster::homogeneous(40, 8);
  for (Node& node : cluster.nodes) node.memory_mib = std::int64_t{1} << 40;
  const JobTable with_memory = backlog(true);
  EXPECT_EQ(Engine(with_memory, cluster).view().demand_count(), job_count);
  EXPECT_EQ(run_policy(GetParam(), with_memory, cluster), run_policy(GetParam(), backlog(false), cluster));
}

}  // namespace
}  // namespace gpusched::test
