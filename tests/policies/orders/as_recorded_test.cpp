// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/as_recorded.hpp"

#include <gtest/gtest.h>

#include "tests/program/run_support.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {
namespace {

using test::Span;
using test::table_of;

std::vector<Span> run_as_recorded(const JobTable& jobs, std::uint32_t gpus) {
  return test::run(jobs, Cluster::pool(gpus), AsRecorded(jobs));
}

TEST(AsRecorded, StartsEveryJobWhenItsRecordSays) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .start = 7},
                                  {.submit = 1, .work = 10, .start = 1},
                                  {.submit = 2, .work = 10},                 // not recorded: at its submission
                                  {.submit = 30, .work = 5, .start = 20}});  // before it was submitted
  EXPECT_EQ(run_as_recorded(jobs, 4), (std::vector<Span>{{7, 17}, {1, 11}, {2, 12}, {30, 35}}));
}

TEST(AsRecorded, WhoFindsNoRoomGoesAsSoonAsThereIsTheEarliestRecordedFirst) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 2, .start = 0},
                                  {.submit = 0, .work = 5, .gpus = 2, .start = 4},
                                  {.submit = 0, .work = 5, .gpus = 2, .start = 3},
                                  {.submit = 0, .work = 3, .gpus = 1, .start = 5}});
  // Three GPUs: the last one fits beside the first, and waits for nobody.
  EXPECT_EQ(run_as_recorded(jobs, 3), (std::vector<Span>{{0, 10}, {15, 20}, {10, 15}, {5, 8}}));
}

TEST(AsRecorded, AScaledWindowKeepsEachRecordedWait) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .start = 5}, {.submit = 100, .work = 1, .start = 104}});
  const JobTable half = jobs.slice(0, 2, 0.5);
  EXPECT_EQ(run_as_recorded(half, 4), (std::vector<Span>{{5, 6}, {54, 55}}));
}

TEST(AsRecorded, NeedsATraceThatRecordsStarts) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1}});
  const auto policy = as_recorded_info().make(PolicyParameters({}), {.jobs = &jobs});
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message, "policy as-recorded: the trace has no recorded start times (column start)");
}

}  // namespace
}  // namespace gpusched
