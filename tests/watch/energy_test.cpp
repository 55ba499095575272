// SPDX-License-Identifier: Apache-2.0
// Energy of runs worked out by hand.
#include "gpusched/watch/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

/// One GPU type that idles at 50 W. Families in order of the table: "" draws 100 W, "a" 250 W and "b" 150 W but half of
/// the time.
PowerTable table_with(const JobTable& jobs, double beta) {
  PowerTable table{.types = {{.idle_w = 50, .beta = beta}}, .families = std::vector<PowerTable::FamilyOnType>(3)};
  const auto set = [&](const char* family, PowerTable::FamilyOnType value) {
    const std::uint32_t at = jobs.families().find(family);
    if (at != no_index) table.families[at] = value;
  };
  set("", {.active_w = 100});
  set("a", {.active_w = 250});
  set("b", {.active_w = 150, .busy_share = 0.5});
  return table;
}

template <Policy P>
double joules(const std::vector<Row>& rows, const Cluster& cluster, P policy, double beta, MeasureWindow window = {}) {
  const JobTable jobs = table_of(rows);
  const PowerTable table = table_with(jobs, beta);
  Engine engine(jobs, cluster);
  EnergyLog log(&table, window);
  EXPECT_TRUE(simulate(engine, policy, log));
  return log.kwh() * joules_per_kwh;
}

TEST(Energy, IdleOfEveryGpuAndWhatJobsAddToIt) {
  // Two GPUs for 10 s at 50 W; one of them 200 W more for 10 s, the other 100 W x 0.5 more for 4 s.
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a"}, {.submit = 0, .work = 4, .family = "b"}};
  EXPECT_NEAR(joules(rows, Cluster::homogeneous(1, 2), Fifo{}, 1), 1000 + 2000 + 200, 1e-6);
  EXPECT_NEAR(joules(rows, Cluster::pool(2), Fifo{}, 1), 1000 + 2000 + 200, 1e-6);
  EXPECT_NEAR(joules(rows, Cluster::homogeneous(1, 2), Fifo{}, 2), 1000 + 2000 + 4 * 100 * 0.25, 1e-6);
}

TEST(Energy, SharesOfACardAddUpToOneUtilisation) {
  const Shape half{.gpu_milli_per_task = 500};
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a", .shape = half},
                                 {.submit = 0, .work = 4, .family = "b", .shape = half}};
  // u = 0.5 of a and 0.25 of b for 4 s, then 0.5 for 6 s; beta 0.5.
  const double together = (0.5 * 200 + 0.25 * 100) / 0.75 * std::sqrt(0.75);
  const double alone = 200 * std::sqrt(0.5);
  EXPECT_NEAR(joules(rows, Cluster::homogeneous(1, 1), Fifo{}, 0.5), 500 + 4 * together + 6 * alone, 0.01);
  // Linear: each adds its own.
  EXPECT_NEAR(joules(rows, Cluster::homogeneous(1, 1), Fifo{}, 1), 500 + 4 * 25 + 10 * 100, 1e-6);
}

TEST(Energy, FollowsPreemptionsAndTheMeasureWindow) {
  // SRTF: a runs [0,2) and [5,13) around the other job's [2,5), which draws 50 W above idle.
  const std::vector<Row> rows = {{.submit = 0, .work = 10, .family = "a"}, {.submit = 2, .work = 3}};
  EXPECT_NEAR(joules(rows, Cluster::pool(1), ShortestRemaining(true), 1), 13 * 50 + 10 * 200 + 3 * 50, 1e-6);
  // From the submission of the second at 2 to its end at 5.
  EXPECT_NEAR(joules(rows, Cluster::pool(1), ShortestRemaining(true), 1, {.first = 1}), 3 * 50 + 3 * 50, 1e-6);
}

TEST(Energy, NothingIsWatchedWithoutATable) {
  const JobTable jobs = table_of({{0, 10, 1}});
  Engine engine(jobs, Cluster::pool(1));
  EnergyLog log(nullptr);
  Fifo policy;
  EXPECT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.kwh(), 0);
}

}  // namespace
}  // namespace gpusched::test
