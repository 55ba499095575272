// SPDX-License-Identifier: Apache-2.0
// What the Tiresias simulator (NSDI'19 artifact) gives for its schedules `dlas-gpu`, `shortest` and `shortest-gpu`,
// counting GPUs only.
#include "src/policies/preemptive/srtf.hpp"
#include "src/policies/published/tiresias_code_muri.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/golden/golden_support.hpp"

namespace gpusched {
namespace {

using test::CsvColumns;

JobTable jobs_of(const std::string& path, std::size_t rows) {
  const CsvColumns file(path);
  JobTableBuilder builder;
  for (std::size_t row = 0; row < std::min(rows, file.size()); ++row) {
    builder.add({.submit = whole_seconds(file.integer(row, "submit_time")),
                 .work = whole_seconds(file.integer(row, "duration")),
                 .shape = {.tasks = static_cast<std::uint32_t>(file.integer(row, "num_gpu")),
                           .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

test::RunFigures run(AnyPolicy policy, const JobTable& jobs, std::uint32_t gpus) {
  const Cluster cluster = Cluster::pool(gpus);
  Engine engine(jobs, cluster);
  EXPECT_TRUE(simulate(engine, policy));
  return test::figures_of(engine);
}

test::RunFigures run(AnyPolicy policy, const std::string& path, std::size_t rows, std::uint32_t gpus) {
  return run(std::move(policy), jobs_of(path, rows), gpus);
}

TEST(GoldenTiresias, DlasGpuOnTheExampleOf60Jobs) {
  const auto path = test::real_trace("small/tiresias_60_job.csv");
  GPUSCHED_NEEDS_TRACE(path, "small/tiresias_60_job.csv");
  const test::RunFigures figures = run(AnyPolicy(TiresiasCode({3250, 7200}, 0)), path, 60, 16);
  EXPECT_NEAR(figures.avg_jct_s, 190.68, 0.005);
  EXPECT_NEAR(figures.avg_pending_s, 12.27, 0.005);
  EXPECT_EQ(figures.last_end_s, 3271);
  EXPECT_EQ(figures.preemptions, 0u);
}

TEST(GoldenTiresias, DlasGpuOn5000PhillyJobs) {
  const auto path = test::real_trace("alibaba/pai2020/philly_in_pai_columns_20k.csv");
  GPUSCHED_NEEDS_TRACE(path, "alibaba/pai2020/philly_in_pai_columns_20k.csv");
  const test::RunFigures figures = run(AnyPolicy(TiresiasCode({3250, 7200}, 0)), path, 5000, 128);
  EXPECT_NEAR(figures.avg_jct_s, 19549.01, 0.005);
  EXPECT_NEAR(figures.avg_pending_s, 11696.92, 0.005);
  EXPECT_EQ(figures.last_end_s, 2012692);
  EXPECT_EQ(figures.preemptions, 1962u);
}

// Independent programs of the rules: 2D-LAS and, inside each of its queues, 2D-Gittins (look-ahead 3,250 GPU-seconds), with
// the services of all jobs of the trace known.
TEST(GoldenTiresias, QueuesAndGittinsIndexOn5000PhillyJobs) {
  const auto path = test::real_trace("alibaba/pai2020/philly_in_pai_columns_20k.csv");
  GPUSCHED_NEEDS_TRACE(path, "alibaba/pai2020/philly_in_pai_columns_20k.csv");
  const JobTable jobs = jobs_of(path, 5000);
  const Cluster cluster = Cluster::pool(128);
  const auto mean_jct_s = [&](const std::string& text) {
    const auto specs = parse_policy_list(text);
    auto policy = PolicyRegistry::standard().make(specs->front(), {.jobs = &jobs, .cluster = &cluster});
    return run(*std::move(policy), jobs, 128).avg_jct_s;
  };
  EXPECT_NEAR(mean_jct_s("tiresias"), 50868.66, 0.005);
  EXPECT_NEAR(mean_jct_s("tiresias-gittins{distribution=trace}"), 30265.08, 0.005);
}

// Equal keys must keep the order of the list of the event before: by job id, shortest-gpu gives 194.98.
TEST(GoldenTiresias, ShortestOnTheExampleOf60Jobs) {
  const auto path = test::real_trace("small/tiresias_60_job.csv");
  GPUSCHED_NEEDS_TRACE(path, "small/tiresias_60_job.csv");
  const test::RunFigures by_time = run(AnyPolicy(ShortestRemaining(false)), path, 60, 16);
  EXPECT_NEAR(by_time.avg_jct_s, 192.12, 0.005);
  EXPECT_NEAR(by_time.avg_pending_s, 13.70, 0.005);
  EXPECT_EQ(by_time.last_end_s, 3271);
  EXPECT_EQ(by_time.preemptions, 4u);
  const test::RunFigures by_service = run(AnyPolicy(ShortestRemaining(true)), path, 60, 16);
  EXPECT_NEAR(by_service.avg_jct_s, 195.90, 0.005);
  EXPECT_NEAR(by_service.avg_pending_s, 17.48, 0.005);
  EXPECT_EQ(by_service.last_end_s, 3315);
  EXPECT_EQ(by_service.preemptions, 7u);
}

TEST(GoldenTiresias, ShortestOn5000PhillyJobs) {
  const auto path = test::real_trace("alibaba/pai2020/philly_in_pai_columns_20k.csv");
  GPUSCHED_NEEDS_TRACE(path, "alibaba/pai2020/philly_in_pai_columns_20k.csv");
  const test::RunFigures figures = run(AnyPolicy(ShortestRemaining(false)), path, 5000, 128);
  EXPECT_NEAR(figures.avg_jct_s, 14666.15, 0.005);
  EXPECT_NEAR(figures.avg_pending_s, 6814.06, 0.005);
  EXPECT_EQ(figures.last_end_s, 2067861);
  EXPECT_EQ(figures.preemptions, 6279u);
}

}  // namespace
}  // namespace gpusched
