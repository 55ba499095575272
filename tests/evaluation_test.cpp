// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "src/policies/fifo.hpp"
#include "tests/learning_support.hpp"

namespace gpusched {
namespace {

TEST(Evaluation, WindowsLieWithinTheirBounds) {
  const auto starts = window_starts({.jobs = 10, .warm_up = 5, .stride = 7, .first = 20, .last = 45}, 100);
  ASSERT_TRUE(starts);
  EXPECT_EQ(*starts, (std::vector<std::uint32_t>{20, 27, 34}));
  const auto none = window_starts({.jobs = 10, .first = 95}, 100);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no window of 10 jobs fits between jobs 95 and 100");
}

TEST(Evaluation, EachWindowIsARunOfItsOwn) {
  const JobTable trace = test::some_jobs(3, 300);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const auto specs = parse_policy_list("fifo,sjf{skip=true}");
  const EvaluationWindows windows{.jobs = 50, .warm_up = 10, .stride = 50};
  const auto scores = evaluate_policies(trace, cluster, {}, *specs, PolicyRegistry::standard(), windows);
  ASSERT_TRUE(scores) << scores.error().to_string();
  ASSERT_EQ(scores->at(0).windows.size(), 5u);
  // The second window by hand: jobs 50 to 109, of which the last fifty count.
  const JobTable jobs = trace.slice(50, 60);
  double sum = 0;
  const auto spans = test::run(jobs, cluster, Fifo{});
  for (std::uint32_t i = 10; i < 60; ++i) sum += spans[i].end - to_seconds(jobs.submit(JobId{i}));
  EXPECT_NEAR(scores->at(0).windows[1].avg_jct_s, sum / 50, 1e-6);

  const Comparison pair = compare(scores->at(1), scores->at(0), &Metrics::avg_jct_s, 1, 1);
  EXPECT_EQ(pair.verdict, "better");
  EXPECT_EQ(pair.win_rate, 1);
  EXPECT_LT(pair.low, pair.mean - pair.other_mean);
  EXPECT_GT(pair.high, pair.mean - pair.other_mean);
  const Comparison self = compare(scores->at(0), scores->at(0), &Metrics::avg_jct_s, 1, 1);
  EXPECT_EQ(self.verdict, "no difference detected");
  EXPECT_EQ(self.win_rate, 0.5);
}

}  // namespace
}  // namespace gpusched
