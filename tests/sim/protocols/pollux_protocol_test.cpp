// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/pollux_protocol.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/strict_json.hpp"
#include "src/sim/protocols/pollux_elastic.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// Batch sizes 8 and 16, at most 8 samples a GPU and step; two epochs of 32 steps at batch size 8. At 16 gain is
// (3 + 1) / (3 / 2 + 1) = 1.6.
struct Toy {
  Toy() {
    folder.write("toy/placements.csv",
                 "placement,local_bsz,step_time,sync_time\n1,4,1,0\n1,8,1,0\n2,4,1,0.5\n2,8,1,0.5\n3,4,1,0\n3,8,1,0\n");
    for (const char* file : {"toy/validation-8.csv", "toy/validation-16.csv"}) {
      folder.write(file, "progress,iteration,metric,grad_sqr,grad_var\n32,32,0,1,3\n64,64,0,1,3\n");
    }
  }
  [[nodiscard]] Result<PolluxProfiles> read() const { return read_pollux_profiles(folder.path()); }

  test::TempFolder folder;
};

PolluxJob job(const char* name, std::int64_t submit_s, std::int64_t gpus, std::int64_t batch) {
  return {.name = name, .application = "toy", .submit_s = submit_s, .gpus = gpus, .batch_size = batch};
}
const std::vector<PolluxJob> three{job("a", 0, 1, 8), job("b", 10, 2, 16), job("c", 60, 1, 16)};
using Seconds = std::vector<std::int64_t>;

// All start at 60 and train from 90 on, at 1, 1.6 and (in two accumulation steps) 0.8 steps a second.
TEST(PolluxProtocol, AdvancesByGoodput) {
  const Toy toy;
  const auto profiles = toy.read();
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  const auto result = run_pollux(three, *profiles, PolluxPolicy::tiresias, {.nodes = 1});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->jct_s, (Seconds{154, 120, 110}));
  EXPECT_EQ(result->avg_jct_s, 128);
  EXPECT_EQ(result->starts, 3);
  EXPECT_EQ(result->allocated_gpu_s, 120 + 240 + 120);
  EXPECT_EQ(result->restart_gpu_s, 30 + 60 + 30);
  EXPECT_EQ(result->tail_gpu_s, 26 + 2 * 50 + 10);
}

TEST(PolluxProtocol, TiresiasPassesOverWhatDoesNotFit) {
  const Toy toy;
  const auto result = run_pollux(three, *toy.read(), PolluxPolicy::tiresias, {.nodes = 1, .gpus_per_node = 2});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->jct_s, (Seconds{154, 240, 110}));  // b starts at 180
}

// The fourth GPU goes to the first of equal gains, a, which is as fast on two GPUs of half the batch each.
TEST(PolluxProtocol, OptimusGivesToTheFirstOfEqualGains) {
  const Toy toy;
  const auto result = run_pollux(three, *toy.read(), PolluxPolicy::optimus, {.nodes = 1});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->jct_s, (Seconds{154, 160, 110}));
  EXPECT_EQ(result->allocated_gpu_s, 240 + 120 + 120);
}

// b has two GPUs until a comes, whose share grows when b ends: each change of size is a start.
TEST(PolluxProtocol, OptimusResizesAtACost) {
  const Toy toy;
  const std::vector<PolluxJob> jobs{job("b", 0, 1, 16), job("a", 100, 1, 8)};
  const auto result = run_pollux(jobs, *toy.read(), PolluxPolicy::optimus, {.nodes = 1, .gpus_per_node = 2});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->jct_s, (Seconds{170, 144}));
  EXPECT_EQ(result->starts, 4);
  EXPECT_EQ(result->restart_gpu_s, 30 * (2 + 1 + 1 + 2));
}

TEST(PolluxProtocol, PrefersExactStepTimes) {
  const Toy toy;
  toy.folder.write("step_times.csv", "application,placement,local_bsz,step_time_s,sync_time_s\ntoy,2,8,2,0.5\n");
  const auto profiles = toy.read();
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  const PolluxApplication& application = profiles->at("toy");
  EXPECT_EQ(application.step({2}, 8)->step_s, 2);
  EXPECT_EQ(application.step({2}, 6)->sync_s, 0.5);
  EXPECT_FALSE(application.step({1, 1}, 8));
  EXPECT_FALSE(application.step({2}, 9));
}

// 64 steps at the smallest batch size, at 1, 1.6 and 0.8 of them a second with the files' batch sizes. Both epochs take
// as long. On one GPU, a batch of 8 is better than one of 16 in two turns.
TEST(PolluxElastic, MakesRunTimesAndCurvesOfWhatWasMeasured) {
  const Toy toy;
  const auto profiles = toy.read();
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  const auto fixed = pollux_elastic(three, *profiles, PolluxBatches::fixed, 4, 4);
  ASSERT_TRUE(fixed) << fixed.error().to_string();
  EXPECT_EQ(fixed->jobs_csv,
            "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family\n"
            "a,0,64,1,1000,toy-1-8\nb,10,40,2,1000,toy-2-16\nc,60,80,1,1000,toy-1-16\n");
  const Json families = (*parse_json_strictly(fixed->elastic_json, ""))["families"];
  ASSERT_EQ(families["toy-2-16"]["phases"].size(), 2u);
  EXPECT_EQ(families["toy-2-16"]["phases"][0]["until"], 0.5);
  const Json& speeds = families["toy-2-16"]["phases"][1]["speedup"];
  ASSERT_EQ(speeds.size(), 3u);  // no gang of four was measured
  EXPECT_EQ(speeds[0], Json::parse("[1, 0.8]"));
  EXPECT_EQ(speeds[1], Json::parse("[2, 1.6]"));
  const auto tuned = pollux_elastic(three, *profiles, PolluxBatches::tuned, 4, 4);
  ASSERT_TRUE(tuned) << tuned.error().to_string();
  EXPECT_NE(tuned->jobs_csv.find("c,60,64,1,1000,toy-1-16\n"), std::string::npos);
  EXPECT_EQ(pollux_elastic({job("d", 0, 4, 16)}, *profiles, PolluxBatches::fixed, 4, 4).error().to_string(),
            "job 'd': its size was not measured");
}

// Every job of the artifact's results, to the second.
TEST(PolluxProtocol, EndsEveryPublishedJobToTheSecond) {
  const std::string name = "workloads/pollux/published/tiresias-1.0.json";
  const std::string found = test::real_trace(name);
  GPUSCHED_NEEDS_TRACE(found, name);
  const auto profiles = read_pollux_profiles(test::real_trace("profiles/pollux"));
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  std::size_t compared = 0;
  for (const std::string load : {"0.5", "1.0"}) {
    for (const auto& [policy_name, policy] : pollux_policies) {
      const std::string file =
          test::real_trace("workloads/pollux/published/" + std::string(policy_name) + "-" + load + ".json");
      const Json published = *parse_json_strictly(*read_text_file(file), file);
      for (const auto& [workload, jcts] : published["jcts"].items()) {
        const auto jobs =
            read_pollux_jobs(test::real_trace("workloads/pollux/load-" + load + "/" + workload + ".csv"), *profiles);
        ASSERT_TRUE(jobs) << jobs.error().to_string();
        const auto result = run_pollux(*jobs, *profiles, policy, {});
        ASSERT_TRUE(result) << result.error().to_string();
        ASSERT_EQ(jobs->size(), jcts.size());
        for (std::size_t i = 0; i < jobs->size(); ++i, ++compared) {
          ASSERT_EQ(result->jct_s[i], jcts[(*jobs)[i].name].get<std::int64_t>())
              << policy_name << ' ' << load << ' ' << workload << ' ' << (*jobs)[i].name;
        }
      }
    }
  }
  EXPECT_EQ(compared, 2u * 8 * (80 + 160));
}

TEST(PolluxProtocol, NamesWhatIsWrong) {
  const Toy toy;
  const auto profiles = *toy.read();
  const auto jobs_error = [&](const std::string& row) {
    const auto path = toy.folder.write("jobs.csv", "name,time,application,num_replicas,batch_size\n" + row + "\n");
    const auto jobs = read_pollux_jobs(path, profiles);
    return jobs ? std::string() : jobs.error().to_string();
  };
  EXPECT_EQ(jobs_error("a,0,toy,1,8"), "");
  EXPECT_NE(jobs_error("a,0,other,1,8").find("jobs.csv:2: application"), std::string::npos);
  EXPECT_NE(jobs_error("a,0,toy,1,17").find("from 8 to 16 samples"), std::string::npos);
  EXPECT_NE(jobs_error("a,-1,toy,1,8").find("time"), std::string::npos);
  EXPECT_NE(jobs_error("a,0,toy,0,8").find("num_replicas"), std::string::npos);
  EXPECT_FALSE(run_pollux({job("a", 0, 5, 8)}, profiles, PolluxPolicy::tiresias, {.nodes = 1}));
  const auto apart =
      run_pollux({job("a", 0, 2, 8)}, profiles, PolluxPolicy::tiresias, {.nodes = 2, .gpus_per_node = 1});
  ASSERT_FALSE(apart);
  EXPECT_NE(apart.error().to_string().find("placement 11 at 4 samples"), std::string::npos);

  const auto profile_error = [&](const char* file, const char* text) {
    const Toy other;
    other.folder.write(file, text);
    const auto read = other.read();
    return read ? std::string() : read.error().to_string();
  };
  EXPECT_NE(profile_error("toy/placements.csv", "placement,local_bsz,step_time,sync_time\n").find("step times"),
            std::string::npos);
  EXPECT_NE(profile_error("toy/placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,1,2\n").find("sync_time"),
            std::string::npos);
  EXPECT_NE(
      profile_error("toy/validation-8.csv", "progress,iteration,grad_sqr,grad_var\n9,1,1,1\n8,2,1,1\n").find(":3"),
      std::string::npos);
  EXPECT_NE(profile_error("step_times.csv", "application,placement,local_bsz,step_time_s,sync_time_s\nx,1,4,1,0\n")
                .find("application"),
            std::string::npos);
}

}  // namespace
}  // namespace gpusched
