// SPDX-License-Identifier: Apache-2.0
// Fragmentation of runs worked out by hand.
#include "gpusched/watch/fragmentation.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

template <Policy P>
double fragmentation_of(const std::vector<Row>& rows, const Cluster& cluster, P policy, MeasureWindow window = {}) {
  const JobTable jobs = table_of(rows);
  Engine engine(jobs, cluster);
  FragmentationLog log(window);
  EXPECT_TRUE(simulate(engine, policy, log));
  return log.share();
}

// Two nodes of 4 GPUs. Until 5 the first has 2 idle GPUs and the second none; then 2 and 4.
TEST(Fragmentation, IsTheShareOfIdleGpusOnNodesInUse) {
  const std::vector<Row> rows{{0, 5, 4}, {0, 10, 2}};
  EXPECT_DOUBLE_EQ(fragmentation_of(rows, Cluster::homogeneous(2, 4), Fifo{}), (2 * 5 + 2 * 5) / (2 * 5 + 6 * 5.0));
}

TEST(Fragmentation, IsNothingWhereNodesAreFullOrEmpty) {
  EXPECT_EQ(fragmentation_of({{0, 10, 4}, {0, 4, 4}}, Cluster::homogeneous(2, 4), Fifo{}), 0);
  EXPECT_EQ(fragmentation_of({{0, 10, 4}}, Cluster::homogeneous(1, 4), Fifo{}), 0);  // no GPU is ever idle
}

// The first job runs from 0 to 2 and from 5 to 12, the second, on all GPUs, in between.
TEST(Fragmentation, FollowsPreemptions) {
  EXPECT_DOUBLE_EQ(fragmentation_of({{0, 9, 2}, {2, 3, 8}}, Cluster::homogeneous(2, 4), ShortestRemaining(false)),
                   2 / 6.0);
}

// Measured: the second job, from 5 to 15, with 3 idle GPUs on its node.
TEST(Fragmentation, CountsTheMeasuredSpanOnly) {
  const std::vector<Row> rows{{0, 5, 2}, {5, 10, 1}, {30, 1, 3}};
  EXPECT_DOUBLE_EQ(fragmentation_of(rows, Cluster::homogeneous(2, 4), Fifo{}, {.first = 1, .count = 1}),
                   3 * 10 / (7 * 10.0));
}

}  // namespace
}  // namespace gpusched::test
