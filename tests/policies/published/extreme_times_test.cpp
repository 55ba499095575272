// SPDX-License-Identifier: Apache-2.0
// Policies of published programs near the ends of simulated time, where sums of microseconds pass 64 bits: an assertion
// of the engine or the sanitizer of undefined behaviour tells. Other policies meet such times in the fuzz targets,
// whose jobs these refuse.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

class ExtremeTimes : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Policies, ExtremeTimes,
                         testing::Values("srtf@muri", "srsf@muri", "tiresias@muri", "tiresias@code"),
                         [](const auto& instance) { return readable(instance.param); });

// Jobs on 1 to 4 GPUs, a `step` apart, of 1 to 12 times `work`, in seconds.
JobTable some_jobs(std::int64_t first, std::int64_t step, std::int64_t work) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < 12; ++i) {
    rows.push_back({.submit = first + step * i, .work = work * (1 + i * 5 % 12), .gpus = 1 + i % 4, .family = "a2c"});
  }
  return table_of(rows);
}

void run_to_the_end(const std::string& text, const JobTable& jobs) {
  const Cluster cluster = Cluster::homogeneous(2, 4);
  auto policy = make(text, jobs, cluster);
  ASSERT_TRUE(policy) << policy.error().to_string();
  Engine engine(jobs, cluster);
  EXPECT_TRUE(simulate(engine, *policy));
  EXPECT_TRUE(engine.consistent());
}

TEST_P(ExtremeTimes, AreSurvived) {
  run_to_the_end(GetParam(), some_jobs(4'500'000'000'000, 8'000'000'000, 10));
  run_to_the_end(GetParam(), some_jobs(-4'500'000'000'000, 800'000'000'000, 1'000'000'000));
  run_to_the_end(GetParam(), some_jobs(0, 1, 58'000'000'000));
}

}  // namespace
}  // namespace gpusched::test
