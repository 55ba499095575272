// SPDX-License-Identifier: Apache-2.0
// Hierarchical DRF by the examples of its paper (Bhattacharya et al., SoCC'13), as Volcano's design note on HDRF
// repeats them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/policies/fair/hierarchical_shares.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// One machine of so many cores and GPUs.
Cluster machine(std::uint32_t cores, std::uint32_t gpus) {
  Cluster cluster = Cluster::homogeneous(1, gpus);
  cluster.nodes[0].cpu_milli = std::int64_t{cores} * 1000;
  return cluster;
}

Shape task(std::int64_t cores, std::int64_t gpus) {
  return {.gpu_milli_per_task = gpus * whole_gpu, .cpu_milli_per_task = cores * 1000};
}

void add_tasks(std::vector<Row>& rows, int count, std::string_view vc, std::string_view user, const Shape& shape) {
  for (int i = 0; i < count; ++i) rows.push_back({.work = 100, .user = user, .vc = vc, .shape = shape});
}

// Tasks started at the first instant, by user.
std::map<std::string, int> started_first(const std::string& policy, const std::vector<Row>& rows,
                                         const Cluster& cluster) {
  const JobTable jobs = table_of(rows);
  std::map<std::string, int> started;
  const Spans spans = run_policy(policy, jobs, cluster);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (spans[i].start == 0) ++started[jobs.users()[jobs.user(JobId{i})]];
  }
  return started;
}
using Tasks = std::map<std::string, int>;

// n1 wants <1 CPU, 1 GPU>, n2,1 <1 CPU, 0> and n2,2 <0, 1 GPU>, of 10 and 10: everyone gets five tasks. n2,1 is
// rescaled to n2,2, so that n2 counts for no more than either.
TEST(Hdrf, RescalesToTheLeastShare) {
  std::vector<Row> rows;
  add_tasks(rows, 10, "n1", "1", task(1, 1));
  add_tasks(rows, 10, "n2", "21", task(1, 0));
  add_tasks(rows, 10, "n2", "22", task(0, 1));
  for (const std::string policy : {"hdrf", "hdrf{skip_empty=false}"}) {
    EXPECT_EQ(started_first(policy, rows, machine(10, 10)), (Tasks{{"1", 5}, {"21", 5}, {"22", 5}})) << policy;
  }
}

// Of 30 CPUs and 30 GPUs, n1, n2 and n3,1 want CPUs, n3,2 and n4 GPUs. All CPUs are held at a third each; n3,1, which
// is blocked from then on, must not hold the share of n3 at a third while n3,2 takes two thirds of the GPUs.
TEST(Hdrf, LeavesBlockedNodesOut) {
  std::vector<Row> rows;
  add_tasks(rows, 30, "n1", "1", task(1, 0));
  add_tasks(rows, 30, "n2", "2", task(1, 0));
  add_tasks(rows, 30, "n3", "31", task(1, 0));
  add_tasks(rows, 30, "n3", "32", task(0, 1));
  add_tasks(rows, 30, "n4", "4", task(0, 1));
  for (const std::string policy : {"hdrf", "hdrf{skip_empty=false}"}) {
    EXPECT_EQ(started_first(policy, rows, machine(30, 30)),
              (Tasks{{"1", 10}, {"2", 10}, {"31", 10}, {"32", 15}, {"4", 15}}))
        << policy;
  }
}

// n1 and n2,2 want GPUs, n2,1 CPUs, of which it has all. GPUs come free one at a time. In the naive form n2 counts for
// all of the CPUs, so that n1 takes every GPU and n2,2 starves; in H-DRF n2,2 is given GPUs until it has half of them.
TEST(Hdrf, StarvesNobodyAsTheNaiveFormDoes) {
  constexpr std::int64_t tasks = 10;
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < tasks; ++i) {
    rows.push_back({.work = 10'000, .user = "21", .vc = "n2", .shape = task(1, 0)});
    rows.push_back({.work = 100 + i, .user = "1", .vc = "n1", .shape = task(0, 1)});
  }
  for (std::int64_t i = 0; i < 4 * tasks; ++i) {  // who waits
    rows.push_back({.submit = 1, .work = 100, .user = "21", .vc = "n2", .shape = task(1, 0)});
    rows.push_back({.submit = 1, .work = 100, .user = "1", .vc = "n1", .shape = task(0, 1)});
    rows.push_back({.submit = 1, .work = 100, .user = "22", .vc = "n2", .shape = task(0, 1)});
  }
  const JobTable jobs = table_of(rows);
  const auto started_before_200 = [&](const std::string& policy) {
    std::map<std::string, int> started;
    const Spans spans = run_policy(policy, jobs, machine(10, 10));
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      if (spans[i].start > 1 && spans[i].start < 200) ++started[jobs.users()[jobs.user(JobId{i})]];
    }
    return started;
  };
  EXPECT_EQ(started_before_200("hdrf{rescale=false}"), (Tasks{{"1", 10}}));
  EXPECT_EQ(started_before_200("hdrf"), (Tasks{{"1", 5}, {"22", 5}}));
  EXPECT_EQ(started_before_200("hdrf{skip_empty=false}"), (Tasks{{"1", 5}, {"22", 5}}));
}

// Weights: x is due two thirds of 12 GPUs, whose users share equally.
TEST(Hdrf, WeighsQueues) {
  std::vector<Row> rows;
  add_tasks(rows, 12, "x", "A", task(0, 1));
  add_tasks(rows, 12, "x", "B", task(0, 1));
  add_tasks(rows, 12, "y", "C", task(0, 1));
  EXPECT_EQ(started_first("hdrf", rows, machine(1, 12)), (Tasks{{"A", 3}, {"B", 3}, {"C", 6}}));
  EXPECT_EQ(started_first("hdrf{weights=[2,1]}", rows, machine(1, 12)), (Tasks{{"A", 4}, {"B", 4}, {"C", 4}}));
}

// Dots in the names of queues are levels: x.a and x.b share what x is due.
TEST(Hdrf, DotsAreLevels) {
  std::vector<Row> rows;
  add_tasks(rows, 12, "x.a", "A", task(0, 1));
  add_tasks(rows, 12, "x.b", "B", task(0, 1));
  add_tasks(rows, 12, "y", "C", task(0, 1));
  EXPECT_EQ(started_first("hdrf", rows, machine(1, 12)), (Tasks{{"A", 3}, {"B", 3}, {"C", 6}}));
  // A queue's own users compete with the queues below it.
  add_tasks(rows, 12, "x", "D", task(0, 1));
  EXPECT_EQ(started_first("hdrf", rows, machine(1, 12)), (Tasks{{"A", 2}, {"B", 2}, {"C", 6}, {"D", 2}}));
  const JobTable deep = table_of({{.work = 1, .user = "A", .vc = "a.b.c.d.e.f.g.h.i"}});
  EXPECT_THAT(make("hdrf", deep, machine(1, 1)).error().message, testing::HasSubstr("at most 8 queues"));
}

// Twenty users who want two tasks each are due no more than the one user of the other queue. By the letter of the rule,
// whoever holds nothing yet brings the share of the queue to nothing: all twenty come before the other's second task.
TEST(Hdrf, ManyUsersGetNoMoreForTheirQueue) {
  std::vector<Row> rows;
  add_tasks(rows, 20, "one", "A", task(0, 1));
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("B" + std::to_string(i));
  for (const std::string& name : names) add_tasks(rows, 2, "many", name, task(0, 1));
  EXPECT_EQ(started_first("hdrf", rows, machine(1, 10)).at("A"), 5);
  EXPECT_EQ(started_first("hdrf{skip_empty=false}", rows, machine(1, 10)).at("A"), 1);
}

// ---- the shares themselves ----

constexpr std::int64_t percent = 10'000'000'000;

class Shares : public testing::Test {
 protected:
  // Holds so many tasks, and waits for another.
  void run(std::uint32_t leaf, const Shape& shape, int tasks) {
    for (int i = 0; i < tasks; ++i) {
      shares.submitted(leaf, shape);
      shares.started(leaf, shape);
    }
    shares.submitted(leaf, shape);
  }

  Cluster cluster = machine(10, 10);
  HierarchicalShares shares{cluster, {}};
  std::uint32_t n2 = shares.add(HierarchicalShares::root, 1000);
  std::uint32_t n21 = shares.add(n2, 1000);
  std::uint32_t n22 = shares.add(n2, 1000);
};

// As in the paper's example: with n2,1 at 80 % of the CPUs and n2,2 at half of the GPUs, n2,1 counts as (5, 0) of
// (10, 10), and n2 has 50 %.
TEST_F(Shares, ChildrenAreRescaledToTheLeast) {
  run(n21, task(1, 0), 8);
  run(n22, task(0, 1), 5);
  EXPECT_FALSE(shares.refresh());
  EXPECT_EQ(shares.share(n21), 80 * percent);
  EXPECT_EQ(shares.share(n22), 50 * percent);
  EXPECT_EQ(shares.share(n2), 50 * percent);
}

// Two children of the same resource add up: 2 + 2 of 10.
TEST_F(Shares, RescaledChildrenAddUp) {
  run(n21, task(1, 0), 6);
  run(n22, task(1, 0), 2);
  EXPECT_EQ(shares.share(n2), 40 * percent);
}

// A child without waiting jobs is blocked: it counts in full, and not for the least.
TEST_F(Shares, ChildrenThatWantNothingCountInFull) {
  run(n21, task(1, 0), 6);
  run(n22, task(1, 0), 1);
  shares.started(n22, task(1, 0));  // its last: 2 in full and 6 rescaled to 6
  EXPECT_EQ(shares.share(n2), 80 * percent);
  shares.left(n22, task(1, 0));
  EXPECT_EQ(shares.share(n2), 70 * percent);
}

// Once all CPUs are held, n2,1 is blocked and the CPUs do not count: n2 has what n2,2 has.
TEST_F(Shares, SaturatedResourcesDoNotCount) {
  run(n21, task(1, 0), 10);
  run(n22, task(0, 1), 3);
  EXPECT_TRUE(shares.refresh());
  EXPECT_EQ(shares.share(n2), 30 * percent);
  shares.left(n21, task(1, 0));
  EXPECT_TRUE(shares.refresh());
  EXPECT_EQ(shares.share(n2), 30 * percent);  // rescaled from 90 %
}

}  // namespace
}  // namespace gpusched::test
