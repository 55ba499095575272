// SPDX-License-Identifier: Apache-2.0
// Preemption under Slurm by examples worked out by hand, after slurm.schedmd.com/preempt.html.
#include "src/policies/fair/slurm_preemption.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

const std::string by_partition = "preempts_by=partition,preempts=[top>low]";

std::string error_of_slurm(const std::string& parameters, const JobTable& jobs) {
  return error_of_policy("slurm{" + parameters + "}", jobs, Cluster::pool(1));
}

JobTable low_then_top() {
  return table_of(
      {{.submit = 0, .work = 100, .user = "u", .vc = "low"}, {.submit = 10, .work = 20, .user = "u", .vc = "top"}});
}

TEST(SlurmPreemption, StopsWhomItHasARightOver) {
  const Cluster one = Cluster::pool(1);
  EXPECT_EQ(run_backfilled("slurm", low_then_top(), one), (Spans{{0, 100}, {100, 120}}));
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + "}", low_then_top(), one), (Spans{{0, 120}, {10, 30}}));
  EXPECT_EQ(run_backfilled("slurm{preempts_by=partition,preempts=[low>top]}", low_then_top(), one),
            (Spans{{0, 100}, {100, 120}}));
}

TEST(SlurmPreemption, AGraceIsRunToItsEnd) {
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + ",grace_s=[low=15]}", low_then_top(), Cluster::pool(1)),
            (Spans{{0, 120}, {25, 45}}));
  // A job that ends in its grace frees its place then.
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + ",grace_s=[low=95]}", low_then_top(), Cluster::pool(1)),
            (Spans{{0, 100}, {100, 120}}));
}

TEST(SlurmPreemption, ARunIsExemptForAWhile) {
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + ",exempt_s=[low=40]}", low_then_top(), Cluster::pool(1)),
            (Spans{{0, 120}, {40, 60}}));
}

// At once, or when its grace is over; what was planned for it is free.
TEST(SlurmPreemption, ACancelledJobIsDone) {
  const Cluster one = Cluster::pool(1);
  const std::string cancels = "slurm{" + by_partition + ",cancels=[low]";
  for (const char* const backfill : {"", "+easy"}) {
    EXPECT_EQ(run_backfilled(cancels + "}" + backfill, low_then_top(), one), (Spans{{0, 10}, {10, 30}}));
    EXPECT_EQ(run_backfilled(cancels + ",grace_s=[low=15]}" + backfill, low_then_top(), one),
              (Spans{{0, 25}, {25, 45}}));
    EXPECT_EQ(run_backfilled(cancels + ",grace_s=[low=95]}" + backfill, low_then_top(), one),
              (Spans{{0, 100}, {100, 120}}));
  }
}

// Job 1 is older and has a higher priority, but could be stopped at once by job 2, which goes first.
TEST(SlurmPreemption, WhoMayStopOthersGoesBeforeThem) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "u", .vc = "mid"},
                                  {.submit = 5, .work = 50, .user = "u", .vc = "low"},
                                  {.submit = 10, .work = 20, .user = "u", .vc = "top"}});
  const std::string slurm = "slurm{" + by_partition + ",weight_age=1e6,weight_fair_share=0";
  EXPECT_EQ(run_backfilled(slurm + ",cancels=[low]}", jobs, Cluster::pool(1)),
            (Spans{{0, 100}, {120, 170}, {100, 120}}));
  EXPECT_EQ(run_backfilled(slurm + ",partition_tiers=[1,3,1]}", jobs, Cluster::pool(1)),
            (Spans{{0, 100}, {120, 170}, {100, 120}}));
  EXPECT_EQ(run_backfilled("slurm{weight_age=1e6,weight_fair_share=0}", jobs, Cluster::pool(1)),
            (Spans{{0, 100}, {100, 150}, {150, 170}}));
}

// Job 1 is first and has no right over job 0: it starts in the room that this one leaves, cancelled, beside job 2.
TEST(SlurmPreemption, TheRoomThatACancelledJobLeavesIsTaken) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 8, .user = "u", .vc = "low"},
                                  {.submit = 5, .work = 50, .gpus = 4, .user = "u", .vc = "mid"},
                                  {.submit = 10, .work = 20, .gpus = 4, .user = "u", .vc = "top"},
                                  {.submit = 200, .work = 1, .user = "u", .vc = "rest"}});
  const std::string slurm =
      "slurm{preempts_by=partition,preempts=[top>low,mid>rest],weight_age=1e6,weight_fair_share=0,weight_size=0";
  EXPECT_EQ(run_backfilled(slurm + ",cancels=[low]}", jobs, Cluster::pool(8)),
            (Spans{{0, 10}, {10, 60}, {10, 30}, {200, 201}}));
  EXPECT_EQ(run_backfilled(slurm + "}", jobs, Cluster::pool(8)), (Spans{{0, 150}, {10, 60}, {10, 30}, {200, 201}}));
}

// Suspended jobs keep their GPUs, and their cores only if they have none.
TEST(SlurmPreemption, ASuspendedJobKeepsItsGpus) {
  const std::string suspends = "slurm{" + by_partition + ",suspends=[low]}";
  EXPECT_EQ(run_backfilled(suspends, low_then_top(), Cluster::pool(1)), (Spans{{0, 100}, {100, 120}}));
  Cluster cores = Cluster::homogeneous(1, 1);
  cores.nodes.front().cpu_milli = 1000;
  const auto jobs = [](std::int64_t gpu_milli) {
    const Shape low{.tasks = 1, .gpu_milli_per_task = gpu_milli, .cpu_milli_per_task = 1000};
    const Shape top{.tasks = 1, .gpu_milli_per_task = 0, .cpu_milli_per_task = 1000};
    return table_of({{.submit = 0, .work = 100, .user = "u", .vc = "low", .shape = low},
                     {.submit = 10, .work = 20, .user = "u", .vc = "top", .shape = top}});
  };
  EXPECT_EQ(run_backfilled(suspends, jobs(0), cores), (Spans{{0, 120}, {10, 30}}));
  EXPECT_EQ(run_backfilled(suspends, jobs(whole_gpu), cores), (Spans{{0, 100}, {100, 120}}));
}

// Of one GPU and of two: the second one has to go, and makes room enough for the first to stay.
TEST(SlurmPreemption, WhoNeedNotGoStays) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .user = "u", .vc = "low"},
                                  {.submit = 0, .work = 100, .gpus = 2, .user = "u", .vc = "low"},
                                  {.submit = 10, .work = 20, .gpus = 2, .user = "u", .vc = "top"}});
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + "}", jobs, Cluster::pool(3)),
            (Spans{{0, 100}, {0, 120}, {10, 30}}));
}

// On fewer nodes, that is.
TEST(SlurmPreemption, TheSmallestGoFirst) {
  const Cluster cluster = Cluster::homogeneous(3, 1);
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 2, .user = "u", .vc = "low"},
                                  {.submit = 0, .work = 100, .gpus = 1, .user = "u", .vc = "low"},
                                  {.submit = 10, .work = 20, .gpus = 1, .user = "u", .vc = "top"}});
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + "}", jobs, cluster), (Spans{{0, 100}, {0, 120}, {10, 30}}));
}

// Job 1 started last, but is on two nodes.
TEST(SlurmPreemption, TheYoungestGoFirstIfSo) {
  const Cluster cluster = Cluster::homogeneous(3, 1);
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "u", .vc = "low"},
                                  {.submit = 5, .work = 100, .gpus = 2, .user = "u", .vc = "low"},
                                  {.submit = 10, .work = 20, .user = "u", .vc = "top"}});
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + "}", jobs, cluster), (Spans{{0, 120}, {5, 105}, {10, 30}}));
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + ",youngest_first=true}", jobs, cluster),
            (Spans{{0, 100}, {5, 125}, {10, 30}}));
}

// Of two alike the one that came last goes.
TEST(SlurmPreemption, WhoCameLastGoesFirst) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "u", .vc = "low"},
                                  {.submit = 0, .work = 100, .user = "u", .vc = "low"},
                                  {.submit = 10, .work = 20, .user = "u", .vc = "top"}});
  EXPECT_EQ(run_backfilled("slurm{" + by_partition + "}", jobs, Cluster::pool(2)),
            (Spans{{0, 100}, {0, 120}, {10, 30}}));
}

// Job 2 may stop job 1, not job 0: it is planned from 100 to 110 on both GPUs. Job 3, of 200 s, would run on the GPU of
// job 1 until 210 and delay it, so that it stops nobody; of 50 s it ends before. Job 1 then runs from 60 to 100 too.
TEST(SlurmPreemption, ABackfilledJobKeepsTheHolesOfThoseBefore) {
  const std::string slurm =
      "slurm{" + by_partition + ",bf_interval_s=0,weight_age=1e6,weight_size=0,weight_fair_share=0}";
  const auto jobs = [](std::int64_t work) {
    return table_of({{.submit = 0, .work = 100, .user = "u", .vc = "mid"},
                     {.submit = 0, .work = 100, .user = "u", .vc = "low"},
                     {.submit = 1, .work = 10, .gpus = 2, .user = "u", .vc = "top"},
                     {.submit = 10, .work = work, .user = "u", .vc = "top"}});
  };
  EXPECT_EQ(run_backfilled(slurm + "+easy{estimate=exact}", jobs(200), Cluster::pool(2)),
            (Spans{{0, 100}, {0, 100}, {100, 110}, {110, 310}}));
  EXPECT_EQ(run_backfilled(slurm + "+easy{estimate=exact}", jobs(50), Cluster::pool(2)),
            (Spans{{0, 100}, {0, 160}, {100, 110}, {10, 60}}));
}

TEST(SlurmPreemption, SaysWhatIsWrong) {
  const JobTable jobs = low_then_top();
  EXPECT_NE(error_of_slurm("preempts_by=partition,preempts=[top]", jobs).find("A>B"), std::string::npos);
  EXPECT_NE(error_of_slurm("preempts_by=partition,preempts=[top>loww]", jobs).find("'loww'"), std::string::npos);
  EXPECT_NE(error_of_slurm("preempts=[top>low]", jobs).find("'top'"), std::string::npos) << "no job has a QOS";
  EXPECT_NE(error_of_slurm("preempts_by=partition,preempts=[top>low,low>top]", jobs).find("circle"), std::string::npos);
  EXPECT_NE(error_of_slurm(by_partition + ",cancels=[low],suspends=[low]", jobs).find("low stands under cancels and"),
            std::string::npos);
  EXPECT_NE(error_of_slurm(by_partition + ",cancels=[loww]", jobs).find("'loww'"), std::string::npos);
  EXPECT_NE(error_of_slurm(by_partition + ",grace_s=[low=x]", jobs).find("NAME=SECONDS"), std::string::npos);
}

}  // namespace
}  // namespace gpusched::test
