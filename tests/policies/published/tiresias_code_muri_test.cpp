// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/tiresias_code_muri.hpp"

#include <gtest/gtest.h>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::run;
using test::Span;
using test::table_of;

const TiresiasCode code_form({3250, 7200}, 0);
const TiresiasMuri muri_form({3250, 7200}, 0);

TEST(TiresiasQueues, ADemotedJobStandsBehindThePendingJobsOfItsNewQueue) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5000}, {.submit = 0, .work = 4000}});
  // 3250: job 0 is demoted, job 1 starts. 6500: job 1 is demoted behind the pending job 0, which resumes and ends after
  // its last 1750 s.
  EXPECT_EQ(run(jobs, Cluster::pool(1), code_form), (std::vector<Span>{{0, 8250}, {3250, 9000}}));
}

TEST(TiresiasQueues, TheTiresiasCheckOfAJobOnSeveralGpusComesLate) {
  const JobTable jobs = table_of({{.submit = 0, .work = 3000, .gpus = 4}, {.submit = 0, .work = 10, .gpus = 4}});
  // floor(3250 / 4) = 812 s are 3248 GPU-seconds, too few; the next check is floor((3250 - 812) / 4) = 609 s later.
  EXPECT_EQ(run(jobs, Cluster::pool(4), code_form), (std::vector<Span>{{0, 3010}, {1421, 1431}}));
}

TEST(TiresiasQueues, TheMuriCheckIsOnTimeAndOverheadCountsAsExecuted) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5000, .family = "bert"}, {.submit = 100, .work = 50}});
  // Overhead 10 s at 100 and at 3250: job 0 has done 3230 s when it is demoted, and resumes when job 1 ends.
  EXPECT_EQ(run(jobs, Cluster::pool(1), muri_form), (std::vector<Span>{{0, 5070}, {3250, 3300}}));
}

// Four times 3e18 us pass 64 bits: job 0 is never promoted and waits in the last queue while job 1 runs.
TEST(TiresiasQueues, AJobThatRanForAgesIsNotPromoted) {
  const JobTable jobs =
      table_of({{.submit = 0, .work = 3'100'000'000'000}, {.submit = 3'000'000'000'000, .work = 4000}});
  EXPECT_EQ(run(jobs, Cluster::pool(1), TiresiasCode({3250, 7200}, 4)),
            (std::vector<Span>{{0, 3'100'000'004'000}, {3'000'000'000'000, 3'000'000'004'000}}));
}

TEST(TiresiasQueues, AStarvedJobReturnsToTheFirstQueue) {
  const JobTable jobs =
      table_of({{.submit = 0, .work = 4000}, {.submit = 10, .work = 3000}, {.submit = 20, .work = 3000}});
  // Job 0 is demoted at 3250 and, with the knob at 1, back in queue 0 at 6500, behind the running job 2 of that queue.
  EXPECT_EQ(run(jobs, Cluster::pool(1), TiresiasCode({3250, 7200}, 1)),
            (std::vector<Span>{{0, 10000}, {3250, 6250}, {6250, 9250}}));
}

}  // namespace
}  // namespace gpusched
