// SPDX-License-Identifier: Apache-2.0
// The file of a run that ended on another machine: the figures come back to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/sweep/sweep_store.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

SweepResult result_with(double jct, double wait) {
  SweepResult result{
      .status = RunStatus::done, .message = "a \"b\"\n\xc3\xa9", .wall_s = 0.1, .cpu_s = 1e-300, .sim_s = 3};
  result.metrics.avg_jct_s = jct;
  result.metrics.avg_wait_s = wait;
  result.metrics.jobs = 4'000'000'000;
  result.saturation.saturated = true;
  return result;
}

TEST(ResultText, ComesBackToTheBit) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const std::pair<double, double> figures[] = {
      {0.1, 1.0 / 3}, {5e-324, 1.7976931348623157e308}, {-0.0, -infinite}, {infinite, 1e22}};
  for (const auto& [jct, wait] : figures) {
    const SweepResult result = result_with(jct, wait);
    const SweepRow row{.key = "k", .point = R"({"a":1})", .program = "0.1 abc"};
    const auto back = read_result_text(result_text(row, result), "f");
    ASSERT_TRUE(back) << back.error().to_string();
    EXPECT_EQ(back->first.key, row.key);
    EXPECT_EQ(back->first.point, row.point);
    EXPECT_EQ(back->second.message, result.message);
    EXPECT_EQ(back->second.cpu_s, result.cpu_s);
    const auto before = sweep_figures(result), after = sweep_figures(back->second);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].value, after[i].value) << before[i].name;
      if (before[i].value) {
        EXPECT_EQ(std::signbit(*before[i].value), std::signbit(*after[i].value)) << before[i].name;
      }
    }
  }
}

TEST(ResultText, AFileThatIsNoResultIsTold) {
  const std::string whole = result_text({.key = "k", .point = "{}", .program = "p"}, result_with(1, 2));
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("{}"),
                                  std::string("[1]"), std::string(R"({"key": 1})")}) {
    const auto result = read_result_text(text, "results/k.json");
    ASSERT_FALSE(result) << text;
    EXPECT_THAT(result.error().to_string(), HasSubstr("results/k.json"));
  }
}

}  // namespace
}  // namespace gpusched
