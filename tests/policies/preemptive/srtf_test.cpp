// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/srtf.hpp"

#include <gtest/gtest.h>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::Row;
using test::run;
using test::Span;
using test::table_of;

// At 10 s job 5 displaces job 4, the last in order, and job 3, whose place it takes; job 4 gets its own place back. Its
// first attempt ends at 60 s, the next event, and it waits for its second: once, so that job 6 has a turn behind it.
TEST(Srsf, AJobThatGotItsPlaceBackAndEndsAnAttemptWaitsOnce) {
  const Shape pair{.tasks = 1, .gpu_milli_per_task = 2 * whole_gpu};
  const Shape whole_node{.tasks = 1, .gpu_milli_per_task = 3 * whole_gpu};
  const Shape spread{.tasks = 3, .gpu_milli_per_task = whole_gpu};
  const std::vector<Row> rows{{.work = 65, .shape = pair},
                              {.work = 65, .shape = pair},
                              {.work = 65, .shape = pair},
                              {.work = 55, .shape = whole_node},
                              {.shape = spread, .attempts = {60, 500}},
                              {.submit = 10, .work = 60, .shape = pair},
                              {.submit = 5000, .work = 1000, .shape = spread}};
  EXPECT_EQ(run(table_of(rows), Cluster::homogeneous(4, 3), ShortestRemaining(true)),
            (std::vector<Span>{{0, 65}, {0, 65}, {0, 65}, {0, 110}, {0, 560}, {10, 70}, {5000, 6000}}));
}

}  // namespace
}  // namespace gpusched
