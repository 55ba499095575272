// SPDX-License-Identifier: Apache-2.0
// Gavel and AlloX on runs worked out by hand.
#include "src/policies/throughput/gavel.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/policies/throughput/linear_program.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// One GPU of type "fast" and one of type "slow", where the family resnet runs at a half, lm at a quarter, and all
// others as fast.
Cluster fast_and_slow() {
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"fast", "slow"};
  cluster.nodes[1].gpu_type = 1;
  return cluster;
}

Spans run_here(const std::string& policy, const std::vector<Row>& rows) {
  const JobTable jobs = table_of(rows);
  const Cluster cluster = fast_and_slow();
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  const auto slow = [&](const char* family, RatePpm rate) {
    const std::uint32_t number = jobs.families().find(family);
    if (number != no_index) runtime.set(number, 1, rate);
  };
  slow("resnet", reference_rate / 2);
  slow("lm", reference_rate / 4);
  auto made = make(policy, jobs, cluster);
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? run(jobs, cluster, *std::move(made), {}, &runtime) : Spans{};
}

#define GPUSCHED_NEEDS_SOLVER() \
  if (!has_lp_solver()) GTEST_SKIP() << "this build has no solver of linear programmes"

// Each is promised half of either GPU; they swap after every round, and do 15 s of work in 20.
TEST(Gavel, JobsTakeTurnsOnTheFastGpu) {
  GPUSCHED_NEEDS_SOLVER();
  EXPECT_EQ(run_here("gavel{round_s=10}",
                     {{.submit = 0, .work = 60, .family = "resnet"}, {.submit = 0, .work = 60, .family = "resnet"}}),
            (Spans{{0, 80}, {0, 80}}));
}

// The job that is as fast on the slow GPU stays there.
TEST(Gavel, LeavesTheFastGpuToWhomItServes) {
  GPUSCHED_NEEDS_SOLVER();
  const std::vector<Row> rows{{.submit = 0, .work = 60, .family = "recommendation"},
                              {.submit = 0, .work = 60, .family = "lm"}};
  EXPECT_EQ(run_here("gavel{round_s=10}", rows), (Spans{{0, 60}, {0, 60}}));
  EXPECT_EQ(run_here("gavel{round_s=10,objective=water-filling,by=user}",
                     {{.submit = 0, .work = 60, .user = "a", .family = "recommendation"},
                      {.submit = 0, .work = 60, .user = "b", .family = "lm"}}),
            (Spans{{0, 60}, {0, 60}}));
  // Unaware, both take turns: the second does 12.5 s of work in 20, and is alone from 60 s on.
  EXPECT_EQ(run_here("gavel{round_s=10,aware=false}", rows).front(), (Span{0, 60}));
  EXPECT_GT(run_here("gavel{round_s=10,aware=false}", rows).back().end, 60);
}

// The long job needs the fast GPU all the time; the short one is done sooner on the slow GPU.
TEST(Gavel, MakespanGivesTheLongestJobTheFastGpu) {
  GPUSCHED_NEEDS_SOLVER();
  EXPECT_EQ(run_here("gavel{round_s=10,objective=makespan}",
                     {{.submit = 0, .work = 10, .family = "resnet"}, {.submit = 0, .work = 40, .family = "resnet"}}),
            (Spans{{0, 20}, {0, 40}}));
}

// A share is half of the time on the fast GPU. At 40 s the first job has done 40 s of 60, 80 s on its share, which
// would end it at 120 s; the second, after 5 s, has 10 s to do, 20 s on its share. With ratio R they need 20 / (120 R -
// 40) + 10 / (20 R - 5) = 1 of the GPU: R is 0.94 and the second's fraction 0.72. It has the next round, and ends.
TEST(Gavel, FinishTimeFairnessServesWhoLosesMore) {
  GPUSCHED_NEEDS_SOLVER();
  const std::vector<Row> rows{{.submit = 0, .work = 60, .gpu_spec = "fast"},
                              {.submit = 35, .work = 10, .gpu_spec = "fast"}};
  EXPECT_EQ(run_here("gavel{round_s=10,reset_s=0,objective=finish-time-fairness}", rows), (Spans{{0, 70}, {40, 50}}));
}

// The second job moves to the fast GPU at the allocation after the first one's end, 20 s, with 25 s of work left.
TEST(Gavel, FifoServesTheEarliestWhereItIsFastest) {
  const std::vector<Row> rows{{.submit = 0, .work = 20, .family = "lm"}, {.submit = 0, .work = 30, .family = "lm"}};
  EXPECT_EQ(run_here("gavel{round_s=10,reset_s=0,objective=fifo}", rows), (Spans{{0, 20}, {0, 45}}));
  // An allocation holds for 100 s, but for the first, which the artifact takes for none: at 10 s, where nothing
  // changed.
  EXPECT_EQ(run_here("gavel{round_s=10,reset_s=100,objective=fifo}", rows), (Spans{{0, 20}, {0, 45}}));
}

// Round of 10 s: a job that arrives in it waits for its end, as does a GPU that becomes idle.
TEST(Gavel, RoundsEndWithTheirLastJob) {
  EXPECT_EQ(run_here("gavel{round_s=10,objective=fifo,reset_s=0}", {{.submit = 0, .work = 4, .gpu_spec = "fast"},
                                                                    {.submit = 0, .work = 13, .gpu_spec = "slow"},
                                                                    {.submit = 1, .work = 5, .gpu_spec = "fast"}}),
            (Spans{{0, 4}, {0, 13}, {10, 15}}));
  EXPECT_EQ(run_here("gavel{round_s=10,objective=fifo,reset_s=0}",
                     {{.submit = 0, .work = 4, .gpu_spec = "fast"}, {.submit = 1, .work = 5, .gpu_spec = "fast"}}),
            (Spans{{0, 4}, {4, 9}}));
}

// No GPU type holds the gang, so that it runs over both when both are idle, at the speed of the slow one. The job
// without GPUs needs none to be idle. The last job does 5 s of work on the slow GPU from 10 s on, and the rest on the
// fast one.
TEST(Gavel, JobsOfNoTypeStartWhereThereIsRoom) {
  EXPECT_EQ(run_here("gavel{round_s=10,objective=fifo,reset_s=0}",
                     {{.submit = 0, .work = 20, .gpus = 1, .family = "resnet"},
                      {.submit = 1, .work = 10, .gpus = 2, .family = "resnet"},
                      {.submit = 2, .work = 7, .shape = {.cpu_milli_per_task = 1000}},
                      {.submit = 3, .work = 10, .gpus = 1, .family = "resnet"}}),
            (Spans{{0, 20}, {25, 45}, {10, 17}, {10, 25}}));
}

// By name "slow" comes last. Both jobs are promised all of it and take turns; the fast GPU idles.
TEST(Gavel, TheFifoOfTheArtifactUsesOneGpuType) {
  EXPECT_EQ(run_here("fifo@gavel{round_s=10}", {{.submit = 0, .work = 20}, {.submit = 0, .work = 20}}),
            (Spans{{0, 30}, {10, 40}}));
}

TEST(Gavel, SaysWhatItLacks) {
  if (has_lp_solver()) GTEST_SKIP() << "this build lacks nothing";
  EXPECT_EQ(
      make("gavel", table_of({{0, 1, 1}}), Cluster::pool(1)).error().message,
      "policy gavel solves linear programmes by CLP, which was not found: install coinor-libclp-dev, configure and "
      "build again");
}

// 10 + 12 s instead of 20 + 12 (the other way round).
TEST(Allox, MatchesJobsToTheGpusThatTheyAreFastOn) {
  EXPECT_EQ(run_here("allox", {{.submit = 0, .work = 12, .family = "recommendation"},
                               {.submit = 0, .work = 10, .family = "resnet"}}),
            (Spans{{0, 12}, {0, 10}}));
}

TEST(Allox, QueuesTheShortestFirst) {
  EXPECT_EQ(run_here("allox", {{.submit = 0, .work = 30, .gpu_spec = "fast"},
                               {.submit = 0, .work = 10, .gpu_spec = "fast"},
                               {.submit = 0, .work = 20, .gpu_spec = "fast"}}),
            (Spans{{30, 60}, {0, 10}, {10, 30}}));
}

// Only the first two jobs are looked at while they wait.
TEST(Allox, LooksAtAWindowOfJobs) {
  EXPECT_EQ(run_here("allox{window_jobs=2}", {{.submit = 0, .work = 30, .gpu_spec = "fast"},
                                              {.submit = 0, .work = 20, .gpu_spec = "fast"},
                                              {.submit = 0, .work = 10, .gpu_spec = "fast"}}),
            (Spans{{30, 60}, {0, 20}, {20, 30}}));
}

}  // namespace
}  // namespace gpusched::test
