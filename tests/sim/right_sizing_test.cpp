// SPDX-License-Identifier: Apache-2.0
#include "src/sim/right_sizing.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

// By hand: bert 10, 18, 24 and 20 on 1, 2, 4 and 8 GPUs, that is 10, 9, 6 and 2.5 a GPU; a curve that falls. vgg gets
// more than twice from two.
ThroughputTable measured() {
  ThroughputTable table{.file = "measured.csv", .gpu_types = {"V100", "T4"}, .rows = {}};
  table.rows[{"bert", 1}]["V100"] = 10;
  table.rows[{"bert", 2}]["V100"] = 18;
  table.rows[{"bert", 4}]["V100"] = 24;
  table.rows[{"bert", 8}]["V100"] = 20;
  table.rows[{"vgg", 1}]["V100"] = 3;
  table.rows[{"vgg", 2}]["V100"] = 8;
  table.rows[{"ncf", 1}]["V100"] = 5;
  table.rows[{"ncf", 0}]["T4"] = 5;
  return table;
}

TEST(RightSizing, CountsWhatGangsHoldAndDoNotUse) {
  const JobTable jobs = table_of({{.work = 7200, .gpus = 8, .family = "bert"},
                                  {.work = 3600, .gpus = 4, .family = "bert"},
                                  {.work = 3600, .gpus = 4, .family = "bert"},
                                  {.work = 3600, .gpus = 2, .family = "bert"},
                                  {.work = 3600, .gpus = 1, .family = "vgg"},
                                  {.work = 3600, .gpus = 1, .family = "ncf"},
                                  {.work = 3600, .gpus = 3, .family = "bert"},
                                  {.work = 3600, .family = "bert", .shape = {.gpu_milli_per_task = 500}}});
  const auto waste = trace_waste(jobs, measured(), "", 0.7);
  ASSERT_TRUE(waste) << waste.error().to_string();
  EXPECT_EQ(waste->gpu_type, "V100");
  ASSERT_EQ(waste->gangs.size(), 4u);
  const GangWaste& eight = waste->gangs[0];
  EXPECT_EQ(eight.gpus, 8u);
  EXPECT_DOUBLE_EQ(eight.efficiency, 0.25);
  EXPECT_DOUBLE_EQ(eight.wasted_gpu_hours(), 12);
  EXPECT_EQ(eight.advised_gpus, 2u);  // 4 GPUs do 60 % each
  EXPECT_DOUBLE_EQ(eight.advised_time, 20.0 / 18);
  EXPECT_DOUBLE_EQ(eight.advised_gpu_hours, 16 * 2.5 / 9);
  const GangWaste& four = waste->gangs[1];
  EXPECT_EQ(four.jobs, 2u);
  EXPECT_DOUBLE_EQ(four.wasted_gpu_hours(), 8 * 0.4);
  const GangWaste& vgg = waste->gangs[2];
  EXPECT_EQ(vgg.family, "vgg");
  EXPECT_DOUBLE_EQ(vgg.efficiency, 0.75);
  EXPECT_EQ(vgg.advised_gpus, 1u);
  EXPECT_EQ(waste->gangs[3].gpus, 2u);
  EXPECT_EQ(waste->gangs[3].advised_gpus, 2u);
  EXPECT_EQ(waste->unmeasured_jobs, 3u);
  EXPECT_DOUBLE_EQ(waste->unmeasured_gpu_hours, 1 + 3 + 0.5);
  EXPECT_DOUBLE_EQ(waste->gpu_hours(), 16 + 8 + 2 + 1);
}

TEST(RightSizing, AGangThatIsTooSmallIsAdvisedTheBestSize) {
  const JobTable jobs = table_of({{.work = 3600, .gpus = 1, .family = "vgg"}});
  const auto waste = trace_waste(jobs, measured(), "V100", 0.9);
  ASSERT_TRUE(waste) << waste.error().to_string();
  EXPECT_EQ(waste->gangs[0].advised_gpus, 2u);
  EXPECT_DOUBLE_EQ(waste->gangs[0].advised_time, 3.0 / 8);
  EXPECT_DOUBLE_EQ(waste->gangs[0].advised_gpu_hours, 0.75);
}

TEST(RightSizing, SaysWhatItLacks) {
  const JobTable jobs = table_of({{.work = 3600, .gpus = 1, .family = "ncf"}});
  const auto error_of = [&](const std::string& type) {
    const auto waste = trace_waste(jobs, measured(), type, 0.7);
    return waste ? "none" : waste.error().to_string();
  };
  EXPECT_EQ(error_of("V10"), "measured.csv: has no GPU type 'V10' (did you mean 'V100'?)");
  EXPECT_EQ(error_of("V100"),
            "measured.csv: no job of the trace has a family and a size that were measured on V100, beside another size "
            "of the family");
}

TEST(RightSizing, ReadsTheMeasuredCurvesOfGavel) {
  const std::string path = real_trace("profiles/gavel/gavel_simulation_throughputs.json");
  if (path.empty()) GTEST_SKIP() << "the real traces are not there";
  const auto table = read_throughput_table(path);
  ASSERT_TRUE(table) << table.error().to_string();
  const JobTable jobs = table_of({{.work = 3600, .gpus = 4, .family = "ResNet-50 (batch size 32)"}});
  const auto waste = trace_waste(jobs, *table, "v100", 0.65);
  ASSERT_TRUE(waste) << waste.error().to_string();
  // 7.787265, 10.834571 and 13.763229 steps/s on 1, 2 and 4 GPUs
  EXPECT_NEAR(waste->gangs[0].efficiency, 13.763229 / 4 / 7.787265, 1e-6);
  EXPECT_EQ(waste->gangs[0].advised_gpus, 2u);
}

}  // namespace
}  // namespace gpusched::test
