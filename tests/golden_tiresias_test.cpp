// SPDX-License-Identifier: Apache-2.0
// What the Tiresias simulator (NSDI'19 artifact) gives for its `dlas-gpu` schedule, counting GPUs only.
#include "golden_support.hpp"
#include "src/policies/las_queues.hpp"

namespace gpusched {
namespace {

using test::CsvColumns;

test::RunFigures run_dlas_gpu(const std::string& path, std::size_t rows, std::uint32_t gpus) {
  const CsvColumns file(path);
  JobTableBuilder builder;
  for (std::size_t row = 0; row < std::min(rows, file.size()); ++row) {
    builder.add({.submit = whole_seconds(file.integer(row, "submit_time")),
                 .work = whole_seconds(file.integer(row, "duration")),
                 .shape = {.tasks = static_cast<std::uint32_t>(file.integer(row, "num_gpu")),
                           .gpu_milli_per_task = whole_gpu}});
  }
  const JobTable jobs = *std::move(builder).build();
  const Cluster cluster = Cluster::pool(gpus);
  Engine engine(jobs, cluster);
  TiresiasCode policy({3250, 7200}, 0);
  EXPECT_TRUE(simulate(engine, policy));
  return test::figures_of(engine);
}

TEST(GoldenTiresias, DlasGpuOnTheExampleOf60Jobs) {
  const auto path = test::real_trace("small/tiresias_60_job.csv");
  GPUSCHED_NEEDS_TRACE(path, "small/tiresias_60_job.csv");
  const test::RunFigures figures = run_dlas_gpu(path, 60, 16);
  EXPECT_NEAR(figures.avg_jct_s, 190.68, 0.005);
  EXPECT_NEAR(figures.avg_pending_s, 12.27, 0.005);
  EXPECT_EQ(figures.last_end_s, 3271);
  EXPECT_EQ(figures.preemptions, 0u);
}

TEST(GoldenTiresias, DlasGpuOn5000PhillyJobs) {
  const auto path = test::real_trace("alibaba/pai2020/philly_in_pai_columns_20k.csv");
  GPUSCHED_NEEDS_TRACE(path, "alibaba/pai2020/philly_in_pai_columns_20k.csv");
  const test::RunFigures figures = run_dlas_gpu(path, 5000, 128);
  EXPECT_NEAR(figures.avg_jct_s, 19549.01, 0.005);
  EXPECT_NEAR(figures.avg_pending_s, 11696.92, 0.005);
  EXPECT_EQ(figures.last_end_s, 2012692);
  EXPECT_EQ(figures.preemptions, 1962u);
}

}  // namespace
}  // namespace gpusched
