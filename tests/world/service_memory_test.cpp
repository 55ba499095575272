// SPDX-License-Identifier: Apache-2.0
// Services that need less memory, and the ready ones of examples/services.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "src/world/service_reader.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// One node of so many GPUs of 80 GiB.
Cluster large_gpus(std::uint32_t gpus) {
  Cluster cluster = Cluster::homogeneous(1, gpus);
  cluster.gpu_types = {"A100"};
  cluster.devices = {{.memory_mib = 80 * 1024}};
  return cluster;
}

std::string with_memory(const std::string& memory, const std::string& service) {
  return "{" + (memory.empty() ? "" : "\"memory\": {" + memory + "}, ") + R"("services": [{"name": "s", )" + service +
         "}]}";
}

Result<ServiceModel> model_of(const std::string& text, JobTable& jobs, const Cluster& cluster,
                              const std::string& file) {
  return services_from_json(text, file, jobs, cluster, 1);
}

const std::string small_service = R"("requests": {"rate_per_s": 1, "duration_s": 9, "arrivals": "even"},
  "serves": {"seconds": 1}, "replica": {"gpus": 0.1, "gpu_type": "A100@20GiB"}, "most": 8)";

// How many of the replicas of small_service run beside each other, and the job behind them on the second GPU.
std::uint32_t running_replicas(const std::string& memory, const Cluster& cluster) {
  JobTable jobs = test::table_of({{.submit = 0, .work = 1}});
  const auto model = model_of(with_memory(memory, small_service), jobs, cluster, "f");
  EXPECT_TRUE(model) << (model ? "" : model.error().to_string());
  Engine engine(jobs, cluster, {}, {.services = &*model});
  test::FirstFit policy;
  std::uint32_t most = 0;
  Decision decision = engine.decision();
  while (engine.advance()) {
    policy.decide(engine.view(), decision);
    engine.apply();
    std::uint32_t now = 0;
    for (const JobId job : engine.view().running()) now += index(job) < jobs.replicas() ? 1 : 0;
    most = std::max(most, now);
  }
  return most;
}

// 80 GiB hold four models of 20 GiB, five of 14 and eight of 10.
TEST(ServiceMemory, LessForTheModelIsMoreReplicasAGpu) {
  EXPECT_EQ(running_replicas("", large_gpus(1)), 4u);
  EXPECT_EQ(running_replicas(R"("model": 1)", large_gpus(1)), 4u);
  EXPECT_EQ(running_replicas(R"("model": 0.7)", large_gpus(1)), 5u);
  EXPECT_EQ(running_replicas(R"("model": 0.5)", large_gpus(1)), 8u);
}

class LlmMemory : public testing::Test {
 protected:
  LlmMemory() { folder.write("log.csv", "arrival_s,prompt_tokens,output_tokens\n0,32,48\n0,32,48\n"); }

  // Any step takes 1 s.
  Result<ServiceModel> read(const std::string& memory, const std::string& cache, JobTable& jobs) const {
    const std::string service = R"("requests": {"log": "log.csv"}, "replica": {"gpus": 2, "llm": {"steps":
      [{"tokens": 1, "prompt_ms": 1000, "token_ms": 1000}, {"tokens": 999, "prompt_ms": 1000, "token_ms": 1000}], )" +
                                cache + "}}";
    return model_of(with_memory(memory, service), jobs, large_gpus(2), folder.path() + "/f.json");
  }
  std::int64_t blocks(const std::string& memory, const std::string& cache) const {
    JobTable jobs = test::table_of({{.work = 1}});
    const auto model = read(memory, cache, jobs);
    EXPECT_TRUE(model) << (model ? "" : model.error().to_string());
    return model ? model->services.front().llm->limits.kv_blocks : 0;
  }
  test::TempFolder folder;
};

// (2 x 10 GiB x 0.9 - 10 GiB) / (16 x 512 KiB) = 1024 blocks; weights of 7 GiB leave 11 GiB.
TEST_F(LlmMemory, SmallerWeightsLeaveMoreBlocks) {
  const std::string cache = R"("gpu_memory_gib": 10, "weights_gib": 10, "kv_kib_per_token": 512)";
  EXPECT_EQ(blocks("", cache), 1024);
  EXPECT_EQ(blocks(R"("model": 0.7)", cache), 1408);
  EXPECT_EQ(blocks(R"("kv_blocks": 0.7)", cache), 716);
  EXPECT_EQ(blocks(R"("model": 0.7, "kv_blocks": 0.7)", cache), 985);
  EXPECT_EQ(blocks(R"("kv_blocks": 0.7)", R"("kv_blocks": 90)"), 63);  // 0.7 x 90 is a rounding error below
}

// Two requests of 32 and 48 tokens need two blocks each at first and five at the end. Ten blocks hold both: 48 steps.
// Of seven the 18th step wants eight: the second request, with 17 tokens, gives its blocks up until the first ends
// after 48 steps; the 49th computes its 49 tokens again and one more, and 30 others follow.
TEST_F(LlmMemory, FewerBlocksPreemptAndDelay) {
  const auto ends = [&](const std::string& memory) {
    JobTable jobs = test::table_of({{.work = 1}});
    const auto model = read(memory, R"("kv_blocks": 10)", jobs);
    EXPECT_TRUE(model) << (model ? "" : model.error().to_string());
    const Cluster cluster = large_gpus(2);
    Engine engine(jobs, cluster, {}, {.services = &*model});
    test::FirstFit policy;
    EXPECT_TRUE(simulate(engine, policy));
    std::vector<double> seconds;
    for (const RequestRecord& record : engine.services().requests(0).records()) {
      seconds.push_back(to_seconds(record.end));
    }
    return seconds;
  };
  EXPECT_EQ(ends(""), (std::vector<double>{48, 48}));
  EXPECT_EQ(ends(R"("kv_blocks": 0.7)"), (std::vector<double>{48, 79}));
}

TEST_F(LlmMemory, RefusesPartsOfWhatNoServiceStates) {
  const auto error = [&](const std::string& memory, const std::string& service) {
    JobTable jobs = test::table_of({{.work = 1}});
    const auto model = model_of(with_memory(memory, service), jobs, large_gpus(2), "f");
    return model ? "none" : model.error().to_string();
  };
  const std::string plain = R"("requests": {"rate_per_s": 1, "duration_s": 9, "arrivals": "even"},
    "serves": {"seconds": 1}, "replica": {"gpus": 1})";
  EXPECT_EQ(error(R"("model": 0.7)", plain),
            "f: /memory/model: expected a service with device memory in gpu_type, or with weights_gib");
  EXPECT_EQ(error(R"("kv_blocks": 0.7)", small_service), "f: /memory/kv_blocks: expected a service with llm");
  EXPECT_EQ(error(R"("model": 0.7)", small_service), "none");
  EXPECT_NE(error(R"("model": 0)", small_service), "none");
  EXPECT_NE(error(R"("modell": 0.7)", small_service), "none");
}

// Alone on 16 nodes each keeps its promise.
TEST(ReadyServices, KeepTheirPromises) {
  for (const char* name : {"summarise", "images", "drive"}) {
    JobTable jobs = *JobTableBuilder().build();
    const Cluster cluster = Cluster::homogeneous(16, 8);
    const auto model = read_services(test::source_dir() + "/examples/services/" + name + ".json", jobs, cluster, 1);
    ASSERT_TRUE(model) << model.error().to_string();
    Engine engine(jobs, cluster, {}, {.services = &*model});
    test::FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy));
    const ServiceFigures figures = service_figures(engine).front();
    ASSERT_TRUE(figures.slo_attainment) << name;
    EXPECT_GE(*figures.slo_attainment, model->services.front().promise->part) << name;
  }
}

}  // namespace
}  // namespace gpusched
