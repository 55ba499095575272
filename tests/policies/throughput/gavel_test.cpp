// SPDX-License-Identifier: Apache-2.0
// Gavel and AlloX on runs worked out by hand.
#include "src/policies/throughput/gavel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/policies/throughput/allocation.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// One GPU of type "fast" and one of type "slow", in any order in the cluster file.
Cluster fast_and_slow(bool slow_first = false) {
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"fast", "slow"};
  if (slow_first) std::swap(cluster.gpu_types[0], cluster.gpu_types[1]);
  cluster.nodes[1].gpu_type = 1;
  return cluster;
}

// On "slow" the family resnet runs at a half, lm at a quarter, and all others as fast.
Spans run_on(const Cluster& cluster, const std::string& policy, const std::vector<Row>& rows) {
  const JobTable jobs = table_of(rows);
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()),
                       static_cast<std::uint32_t>(cluster.gpu_types.size()));
  const auto type = static_cast<std::uint32_t>(std::find(cluster.gpu_types.begin(), cluster.gpu_types.end(), "slow") -
                                               cluster.gpu_types.begin());
  const auto slow = [&](const char* family, RatePpm rate) {
    const std::uint32_t number = jobs.families().find(family);
    if (number != no_index) runtime.set(number, type, rate);
  };
  slow("resnet", reference_rate / 2);
  slow("lm", reference_rate / 4);
  auto made = make(policy, jobs, cluster);
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? run(jobs, cluster, *std::move(made), {}, &runtime) : Spans{};
}

// The order of nodes never matters.
Spans run_here(const std::string& policy, const std::vector<Row>& rows) {
  Spans spans = run_on(fast_and_slow(), policy, rows);
  EXPECT_EQ(spans, run_on(fast_and_slow(true), policy, rows)) << policy;
  return spans;
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
  // An allocation holds for 100 s. Then 5 s of work are left.
  EXPECT_EQ(run_here("gavel{round_s=10,reset_s=100,objective=fifo}", rows), (Spans{{0, 20}, {0, 105}}));
}

// A job alone has the fast GPU, whatever the cluster file names first.
TEST(Gavel, NoGpuTypeTakesAJobThatIsToRunOnAnother) {
  GPUSCHED_NEEDS_SOLVER();
  EXPECT_EQ(run_here("gavel", {{.submit = 0, .work = 10'000, .family = "lm"}}), (Spans{{0, 10'000}}));
}

// The second job came after the allocation, which holds for 1,000 s: it has what is left, the faster first. The third
// is as fast on either GPU and gets the one that is still free.
TEST(Gavel, WhoIsLeftGetsTheFastestFreeGpu) {
  GPUSCHED_NEEDS_SOLVER();
  EXPECT_EQ(run_here("gavel{round_s=10,reset_s=1000}", {{.submit = 0, .work = 14, .gpu_spec = "slow"},
                                                        {.submit = 15, .work = 10, .family = "lm"},
                                                        {.submit = 15, .work = 20, .family = "recommendation"}}),
            (Spans{{0, 14}, {15, 25}, {15, 35}}));
}

// Half of its time on either GPU, by turns that begin with the type named first: 12.5 s of work in 20 s.
TEST(Gavel, UnawareAJobAloneTakesTurnsOnAllGpus) {
  GPUSCHED_NEEDS_SOLVER();
  EXPECT_EQ(run_here("gavel{round_s=10,aware=false}", {{.submit = 0, .work = 60, .family = "lm"}}), (Spans{{0, 90}}));
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

TEST(Gavel, SaysWhatItLacks) {
  if (has_lp_solver()) GTEST_SKIP() << "this build lacks nothing";
  EXPECT_EQ(
      make("gavel", table_of({{0, 1, 1}}), Cluster::pool(1)).error().message,
      "policy gavel solves linear programmes by CLP, which was not found: install coinor-libclp-dev, configure and "
      "build again");
}

// ---- what rounds make of allocations ----

// One-GPU jobs that never end, on two or three GPU types: the least normalised throughput that rounds give is that of
// the programme, to 2 %. Gangs cannot all be packed, which the programme does not know: they get half of it or more.
class RealisedShares : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Gavel, RealisedShares, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Gangs" : "OneGpuJobs"; });

TEST_P(RealisedShares, ComeUpToTheProgramme) {
  GPUSCHED_NEEDS_SOLVER();
  constexpr std::int64_t rounds = 400;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(rng.below(n)); };
    const std::uint32_t types = 2 + below(2);
    Cluster cluster = Cluster::homogeneous(types, 1);
    cluster.gpu_types.clear();
    AllocationProblem problem;
    for (std::uint32_t type = 0; type < types; ++type) {
      cluster.gpu_types.push_back(std::string(1, static_cast<char>('c' - type)));
      cluster.nodes[type] = {.gpus = 1 + below(4), .gpu_type = type, .counts_only = true};
      problem.gpus.push_back(cluster.nodes[type].gpus);
    }
    const auto least = static_cast<std::uint32_t>(*std::min_element(problem.gpus.begin(), problem.gpus.end()));
    std::vector<Row> rows;
    std::vector<std::string> families;
    const std::uint32_t count = 1 + below(3 * static_cast<std::uint32_t>(cluster.total_gpus()));
    for (std::uint32_t i = 0; i < count; ++i) families.push_back("f" + std::to_string(i));
    for (const std::string& family : families) {
      rows.push_back({.work = 1'000'000, .gpus = GetParam() ? 1 + below(least) : 1, .family = family});
    }
    const JobTable jobs = table_of(rows);
    RuntimeModel runtime(jobs.families().size(), types);
    for (std::uint32_t i = 0; i < count; ++i) {
      AllocationJob programmed{.throughput = {}, .gpus = static_cast<double>(rows[i].gpus)};
      for (std::uint32_t type = 0; type < types; ++type) {
        const RatePpm rate = reference_rate / 8 + below(reference_rate);
        runtime.set(jobs.family(JobId{i}), type, rate);
        programmed.throughput.push_back(static_cast<double>(rate) / static_cast<double>(reference_rate));
      }
      problem.jobs.push_back(programmed);
    }
    auto policy = make("gavel{round_s=10}", jobs, cluster);
    ASSERT_TRUE(policy);
    Engine engine(jobs, cluster, {}, {.runtime = &runtime});
    Decision decision = engine.decision();
    while (engine.advance() && engine.view().now() < whole_seconds(10 * rounds)) {
      policy->decide(engine.view(), decision);
      engine.apply();
    }
    const Allocation best = max_min_fair(problem);
    double promised = 1e9, realised = 1e9;
    for (std::uint32_t i = 0; i < count; ++i) {
      promised = std::min(promised, normalised_throughput(problem, best, i) * rows[i].gpus);
      const double done = to_seconds(jobs.work(JobId{i}) - engine.view().remaining(JobId{i}));
      double even = 0;
      for (std::uint32_t type = 0; type < types; ++type) {
        even += problem.jobs[i].throughput[type] * problem.gpus[type] / static_cast<double>(cluster.total_gpus());
      }
      realised = std::min(realised, done / (10 * rounds) / even * rows[i].gpus);
    }
    EXPECT_GE(realised, (GetParam() ? 0.5 : 0.98) * promised) << "seed " << seed;
  }
}

// ---- AlloX ----

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
