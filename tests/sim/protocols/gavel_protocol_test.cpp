// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/gavel_protocol.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

const std::string measured = "profiles/gavel/gavel_simulation_throughputs.json";

// Figures printed by forty lines of Python that draw with Python's own `random`, for seed 0.
TEST(GavelProtocol, DrawsTheJobsOfTheArtifact) {
  const std::string path = real_trace(measured);
  GPUSCHED_NEEDS_TRACE(path, measured);
  const auto throughputs = read_throughput_table(path);
  ASSERT_TRUE(throughputs) << throughputs.error().to_string();
  const auto jobs = gavel_static_jobs(*throughputs, 100, 0);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto expect_job = [&](std::uint32_t id, const char* model, std::uint32_t gpus, double seconds) {
    EXPECT_EQ(jobs->families()[jobs->family(JobId{id})], model);
    EXPECT_EQ(jobs->shape(JobId{id}).tasks, gpus);
    EXPECT_NEAR(to_seconds(jobs->work(JobId{id})), seconds, 1e-6);
  };
  expect_job(0, "ResNet-18 (batch size 64)", 8, 68344.35010595087);
  expect_job(1, "Transformer (batch size 16)", 1, 31016.60914593223);
  expect_job(2, "Recommendation (batch size 2048)", 1, 2146.6088374387864);
  expect_job(4, "LM (batch size 5)", 4, 6858.69820697011);
  expect_job(99, "ResNet-18 (batch size 256)", 1, 37513.48407842574);
  std::uint32_t gpus = 0;
  for (std::uint32_t id = 0; id < jobs->size(); ++id) gpus += jobs->shape(JobId{id}).tasks;
  EXPECT_EQ(gpus, 200u);
}

// Figures of ten lines of Python that draw with two generators of Python's own, for seed 42.
TEST(GavelProtocol, DrawsTheArrivalsOfTheArtifact) {
  const std::string path = real_trace(measured);
  GPUSCHED_NEEDS_TRACE(path, measured);
  const auto throughputs = read_throughput_table(path);
  ASSERT_TRUE(throughputs) << throughputs.error().to_string();
  const auto jobs = gavel_arriving_jobs(*throughputs, 500, 9000, 42);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto expect_job = [&](std::uint32_t id, double submit_s, double seconds, const char* model) {
    EXPECT_NEAR(to_seconds(jobs->submit(JobId{id})), submit_s, 1e-6);
    EXPECT_NEAR(to_seconds(jobs->work(JobId{id})), seconds, 1e-6);
    EXPECT_EQ(jobs->families()[jobs->family(JobId{id})], model);
  };
  expect_job(0, 0, 37256.85358688437, "ResNet-50 (batch size 16)");
  expect_job(1, 2855.548002054881, 4122.6922549554665, "LM (batch size 80)");
  expect_job(2, 8880.919742327085, 11187.191263814519, "Transformer (batch size 16)");
  for (std::uint32_t id = 0; id < jobs->size(); ++id) ASSERT_EQ(jobs->shape(JobId{id}).gpu_milli(), whole_gpu);
}

// ResNet-50 at batch size 128 on several K80s is the one job that was out of memory; it may not run there.
TEST(GavelProtocol, RatesAreThoseOfTheGang) {
  const std::string path = real_trace(measured);
  GPUSCHED_NEEDS_TRACE(path, measured);
  const auto throughputs = read_throughput_table(path);
  ASSERT_TRUE(throughputs) << throughputs.error().to_string();
  const auto jobs = gavel_static_jobs(*throughputs, 700, 1);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto model = runtime_model_from_throughputs(*throughputs, "v100", *jobs, gavel_cluster(36));
  ASSERT_TRUE(model) << model.error().to_string();
  std::uint32_t out_of_memory = 0;
  for (std::uint32_t id = 0; id < jobs->size(); ++id) {
    const Shape& shape = jobs->shape(JobId{id});
    const std::string& family = jobs->families()[jobs->family(JobId{id})];
    const auto& row = *throughputs->row(family, shape.tasks);
    const auto rates = model->model.rates(jobs->family(JobId{id}), shape);
    EXPECT_EQ(rates[0], reference_rate);
    const auto steps_per_s = model->model.throughputs(jobs->family(JobId{id}), shape);
    EXPECT_EQ(steps_per_s[0], row.at("v100"));
    EXPECT_EQ(steps_per_s[2], row.at("p100"));
    EXPECT_NEAR(rates[1], 1e6 * row.at("p100") / row.at("v100"), 0.51);
    const bool fits_k80 = row.at("k80") > 0;
    if (fits_k80) {
      EXPECT_NEAR(rates[2], 1e6 * row.at("k80") / row.at("v100"), 0.51);
    } else {
      EXPECT_EQ(family, "ResNet-50 (batch size 128)");
    }
    EXPECT_EQ(jobs->gpu_specs()[shape.gpu_spec], fits_k80 ? "" : "v100|p100");
    out_of_memory += fits_k80 ? 0 : 1;
  }
  EXPECT_GT(out_of_memory, 0u);
}

TEST(GavelProtocol, NamesTheJobWithoutAThroughput) {
  const ThroughputTable table{.file = "t.json", .gpu_types = {"v100"}, .rows = {{{"A3C", 1}, {{"v100", 1}}}}};
  EXPECT_EQ(gavel_static_jobs(table, 100, 0).error().to_string(),
            "t.json: expected a throughput of 'ResNet-18 (batch size 64)' on 8 GPUs");
}

}  // namespace
}  // namespace gpusched::test
