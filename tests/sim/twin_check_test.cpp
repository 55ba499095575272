// SPDX-License-Identifier: Apache-2.0
#include "src/sim/twin_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/golden/golden_support.hpp"
#include "tests/program/run_support.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/trace_fit.hpp"

namespace gpusched {
namespace {

// A stretch of the real Philly trace, days since its beginning, on as many nodes as give it that offered load.
struct Stretch {
  int from_day, to_day;
  double load;
  std::uint64_t seed;
};

void PrintTo(const Stretch& stretch, std::ostream* out) {
  *out << "days " << stretch.from_day << " to " << stretch.to_day << ", load " << stretch.load << ", seed "
       << stretch.seed;
}

JobTable stretch_of(const JobTable& all, const Stretch& stretch) {
  const auto day = [](int days) { return whole_seconds(std::int64_t{days} * 86400); };
  std::uint32_t first = 0, end = 0;
  while (first < all.size() && all.submit(JobId{first}) < day(stretch.from_day)) ++first;
  for (end = first; end < all.size() && all.submit(JobId{end}) < day(stretch.to_day);) ++end;
  return all.slice(first, end - first);
}

class Twins : public testing::TestWithParam<Stretch> {};

// The twin of each waits as the real jobs do, within a factor of 1.5, under policies that wait very differently. A
// model of weekly means gave 949 s for 64,870 s.
TEST_P(Twins, WaitAsTheRealTraceDoesAtEqualLoad) {
  const std::string path = test::real_trace("philly/philly_jobs.csv");
  GPUSCHED_NEEDS_TRACE(path, "philly/philly_jobs.csv");
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const JobTable real = fitted_jobs(stretch_of(trace->jobs, GetParam()));
  const auto model = fit_model(real);
  ASSERT_TRUE(model) << model.error().to_string();
  const auto twin = generate_synthetic(*model, {.jobs = real.size(), .seed = GetParam().seed});
  ASSERT_TRUE(twin) << twin.error().to_string();
  const auto nodes = static_cast<std::uint32_t>(std::lround(offered_load(real, 8) / GetParam().load));
  const auto check = check_twin(real, *twin, Cluster::homogeneous(nodes, 8));
  ASSERT_TRUE(check) << check.error().to_string();
  for (const TwinWait& wait : check->waits) {
    EXPECT_GT(wait.real_s, 100) << "a stretch without queues tests nothing";
    EXPECT_TRUE(wait.alike()) << twin_check_text(*check);
  }
}

INSTANTIATE_TEST_SUITE_P(Philly, Twins,
                         testing::Values(Stretch{50, 90, 1.0, 1}, Stretch{35, 60, 1.0, 2}, Stretch{70, 90, 1.15, 3},
                                         Stretch{45, 65, 1.05, 4}));

TEST(TwinCheck, TellsThatATraceWithoutBurstsIsNoTwin) {
  // Both ask for the same: one job every 10 s, against all of an hour's jobs at its beginning.
  std::vector<test::Row> steady, bursts;
  for (std::int64_t i = 0; i < 720; ++i) {
    steady.push_back({.submit = i * 10, .work = 35, .gpus = 1});
    bursts.push_back({.submit = i / 360 * 3600 + (i == 719 ? 3590 : 0), .work = 35, .gpus = 1});
  }
  const auto check = check_twin(test::table_of(bursts), test::table_of(steady), Cluster::pool(4));
  ASSERT_TRUE(check) << check.error().to_string();
  EXPECT_FALSE(check->alike());
  EXPECT_GT(check->waits.front().real_s, 1000);
  EXPECT_NE(twin_check_text(*check).find("fifo"), std::string::npos);
  const auto same = check_twin(test::table_of(bursts), test::table_of(bursts), Cluster::pool(4));
  EXPECT_TRUE(same->alike());
}

TEST(TwinCheck, WaitsBelowASecondAreNoQueue) {
  EXPECT_TRUE((TwinWait{.policy = "fifo", .real_s = 0, .twin_s = 0.9}.alike()));
  EXPECT_FALSE((TwinWait{.policy = "fifo", .real_s = 0, .twin_s = 2}.alike()));
  EXPECT_TRUE((TwinWait{.policy = "fifo", .real_s = 100, .twin_s = 149}.alike()));
  EXPECT_FALSE((TwinWait{.policy = "fifo", .real_s = 151, .twin_s = 100}.alike()));
}

}  // namespace
}  // namespace gpusched
