// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/muri_shortest.hpp"

#include <gtest/gtest.h>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::run;
using test::Span;
using test::table_of;

TEST(MuriShortest, ARunningJobLosesItsOverheadAtEveryEventButItsPredictedEndDoesNot) {
  const JobTable jobs =
      table_of({{.submit = 0, .work = 100, .family = "dqn"}, {.submit = 10, .work = 50, .family = "dqn"}});
  // dqn on one GPU: 5 s. Job 0 has 95 s left at 10 and 95 - (50 - 5) = 50 s at 60, when job 1 ends as predicted.
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 2), MuriShortest(false)), (std::vector<Span>{{0, 110}, {10, 60}}));
}

TEST(MuriShortest, NothingIsDoneBetweenEventsCloserThanTheOverhead) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .family = "dqn"}, {.submit = 3, .work = 10}});
  EXPECT_EQ(run(jobs, Cluster::homogeneous(1, 2), MuriShortest(false)), (std::vector<Span>{{0, 108}, {3, 13}}));
}

TEST(MuriShortest, EndsWithinOneInTenToTheNineAreOne) {
  JobTableBuilder builder;
  const Time far = whole_seconds(20'000'000);  // where the tolerance is 0.02 s
  for (const std::int64_t work_us : {100'000'000, 100'010'000, 100'030'000}) {
    builder.add({.submit = far, .work = Time{work_us}, .shape = {.gpu_milli_per_task = whole_gpu}});
  }
  const JobTable jobs = *std::move(builder).build();
  const auto spans = run(jobs, Cluster::homogeneous(1, 3), MuriShortest(false));
  EXPECT_EQ(spans[0].end, 20'000'100);
  EXPECT_EQ(spans[1].end, 20'000'100) << "joins the first";
  // The merge is an event, at which job 2 loses 10 s of overhead.
  EXPECT_EQ(spans[2].end, 20'000'110.03);
}

TEST(MuriShortest, RunningJobsMoveToOtherNodesAtNoCost) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1000, .gpus = 2},
                                  {.submit = 0, .work = 2000, .gpus = 2},
                                  {.submit = 100, .work = 20, .gpus = 2}});
  // At 100 job 2, now the shortest, takes node 0; job 0 moves from there to node 1, and job 1 is preempted with
  // 2000 - 90 s left.
  // At 120 job 0 has 900 + 10 - 10 s left, and job 1 resumes.
  const auto spans = run(jobs, Cluster::homogeneous(2, 2), MuriShortest(false));
  EXPECT_EQ(spans[2], (Span{100, 120}));
  EXPECT_EQ(spans[0], (Span{0, 1020}));
  // Job 1 runs from 120 to 1020, less 10 s, and then to its end.
  EXPECT_EQ(spans[1], (Span{0, 2040}));
}

}  // namespace
}  // namespace gpusched
