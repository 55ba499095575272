// SPDX-License-Identifier: Apache-2.0
// Reservations on GPUs that are cut into MIG instances.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

// One A100 of 40 GiB, cut as jobs come, in no time.
Cluster dynamic_card() {
  Cluster cluster = Cluster::homogeneous(1, 1);
  cluster.migs = {{.model = find_mig_model("A100-40GB"), .layout = MigLayout::dynamic, .reconfigure = {}}};
  cluster.nodes[0].mig = 0;
  return cluster;
}

Row task(std::int64_t submit, std::int64_t work, MilliGpu milli) {
  return {.submit = submit, .work = work, .shape = {.gpu_milli_per_task = milli}, .estimate = work};
}

Result<AnyPolicy> fifo_with(const std::string& backfill, const JobTable& jobs, const Cluster& cluster) {
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster};
  return make_backfilled(PolicyRegistry::standard(), parse_policy_list("fifo")->front(), *parse_backfill(backfill),
                         context);
}

// The 3g (a) stands at slice 4, so that b's 1g stands in the way of a 4g, which c waits for. d's 1g would stand there
// too, although slices 4 to 7 will be free by then; e ends in time.
TEST(MigBackfill, EasyKeepsTheSlicesOfTheReservedJob) {
  const Cluster cluster = dynamic_card();
  const JobTable jobs =
      table_of({task(0, 100, 428), task(0, 100, 142), task(1, 50, 571), task(2, 300, 142), task(3, 20, 142)});
  const auto policy = fifo_with("easy{estimate=user}", jobs, cluster);
  ASSERT_TRUE(policy);
  EXPECT_EQ(run(jobs, cluster, *policy), (std::vector<Span>{{0, 100}, {0, 100}, {100, 150}, {100, 400}, {3, 23}}));
}

TEST(MigBackfill, ConservativeCannotPlanForInstances) {
  const Cluster cluster = dynamic_card();
  const JobTable jobs = table_of({task(0, 100, 428)});
  const auto policy = fifo_with("conservative", jobs, cluster);
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().to_string(),
            "backfill conservative plans by numbers of GPUs, which do not tell the MIG instances of cluster 1x1; take "
            "an order with easy, or a cluster without mig");
}

}  // namespace
}  // namespace gpusched::test
