// SPDX-License-Identifier: Apache-2.0
#include "src/world/service_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// A service with these members besides a name.
std::string one(const std::string& members) { return R"({"services": [{"name": "chat", )" + members + "}]}"; }

const std::string even = R"("requests": {"rate_per_s": 2, "duration_s": 3, "arrivals": "even"})";
const std::string fixed = R"("serves": {"seconds": 0.5})";
const std::string gpu = R"("replica": {"gpus": 1})";

Result<ServiceModel> model_of(const std::string& text, JobTable& jobs, const std::string& file = "f") {
  return services_from_json(text, file, jobs, Cluster::homogeneous(2, 4), 7);
}
std::string error_of_services(const std::string& text, const std::string& file = "f") {
  JobTable jobs = test::table_of({{.submit = 5, .work = 1}});
  const auto model = model_of(text, jobs, file);
  return model ? "none" : model.error().to_string();
}

TEST(ServiceReader, AddsReplicasInFrontOfTheJobs) {
  JobTable jobs = test::table_of({{.submit = 5, .work = 1, .user = "a"}, {.submit = 5, .work = 2, .user = "b"}});
  const auto model =
      model_of(one(even + ", " + fixed +
                   R"(, "replica": {"tasks": 2, "gpus": 0.5, "cpus": 2, "memory_gib": 4}, "most": 3, "user": "web",
          "priority": 4, "begin_s": 60, "timeout_s": 9, "lost": "drop", "promise": {"part": 0.9, "within_s": 1},
          "start": {"cold_s": 30, "warm_s": 2, "keep_warm_s": 100})"),
               jobs);
  ASSERT_TRUE(model) << model.error().to_string();
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs.replicas(), 3u);
  EXPECT_EQ(jobs.external_id(JobId{2}), "chat:2");
  EXPECT_EQ(jobs.external_id(JobId{3}), "0");
  EXPECT_EQ(jobs.submit(JobId{0}), whole_seconds(5));
  EXPECT_EQ(jobs.shape(JobId{1}).gpu_milli_per_task, 500);
  EXPECT_EQ(jobs.shape(JobId{1}).tasks, 2u);
  EXPECT_EQ(jobs.shape(JobId{1}).memory_mib_per_task, 4096);
  EXPECT_EQ(jobs.users()[jobs.user(JobId{1})], "web");
  EXPECT_EQ(jobs.priority(JobId{1}), 4);
  EXPECT_EQ(jobs.users()[jobs.user(JobId{4})], "b");
  const ServiceSpec& service = model->services.front();
  ASSERT_EQ(service.requests.size(), 6u);  // at 0, 0.5 ... 2.5 s
  EXPECT_EQ(service.requests.back().arrival, from_seconds(2.5));
  EXPECT_EQ(service.requests.back().work, from_seconds(0.5));
  EXPECT_EQ(service.begin, whole_seconds(60));
  EXPECT_EQ(service.lost, LostRequests::drop);
  EXPECT_EQ(service.cold_start, whole_seconds(30));
  // Again, for another seed: the rows are there. A part of the jobs has them in front.
  ASSERT_TRUE(model_of(one(even + ", " + fixed + ", " + gpu + R"(, "most": 3)"), jobs));
  EXPECT_EQ(jobs.size(), 5u);
  const JobTable part = jobs.slice(4, 1);
  EXPECT_EQ(part.replicas(), 3u);
  EXPECT_EQ(part.external_id(JobId{0}), "chat:0");
  EXPECT_EQ(part.external_id(JobId{3}), "1");
}

TEST(ServiceReader, PoissonArrivalsFollowTheirRate) {
  JobTable jobs = test::table_of({{.work = 1}});
  test::TempFolder folder;
  folder.write("r.csv", "time_s,requests_per_s\n0,1\n10000,4\n20000,0\n30000,2\n");
  const auto model = model_of(one(R"("requests": {"rate_file": "r.csv", "duration_s": 40000}, )" + fixed + ", " + gpu),
                              jobs, folder.path() + "/f.json");
  ASSERT_TRUE(model) << model.error().to_string();
  double counts[4] = {};
  for (const ServiceRequest& request : model->services.front().requests) {
    ++counts[static_cast<std::size_t>(to_seconds(request.arrival) / 10'000)];
  }
  for (const auto& [part, mean] : {std::pair{0, 1e4}, std::pair{1, 4e4}, std::pair{3, 2e4}}) {
    EXPECT_NEAR(counts[part], mean, 4 * std::sqrt(mean));
  }
  EXPECT_EQ(counts[2], 0);
}

TEST(ServiceReader, ReadsLogsOfBothKinds) {
  const auto azure = request_log_from_csv(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 "
      "18:17:04.0319600,3180,8\n",
      "f");
  ASSERT_TRUE(azure) << azure.error().to_string();
  EXPECT_EQ(azure->requests[1].arrival, from_seconds(0.052));
  EXPECT_EQ(azure->requests[1].prompt_tokens, 3180u);
  EXPECT_EQ(azure->requests[1].output_tokens, 8u);
  const auto own = request_log_from_csv("arrival_s,service_s\n100,2\n100.5,0.25\n", "f");
  ASSERT_TRUE(own) << own.error().to_string();
  EXPECT_EQ(own->requests[1].arrival, from_seconds(0.5));
  EXPECT_EQ(own->requests[1].work, from_seconds(0.25));
  EXPECT_FALSE(own->has_tokens);
}

TEST(ServiceReader, RefusesLogsLineByLine) {
  const auto error = [](const std::string& text) {
    const auto log = request_log_from_csv(text, "f");
    return log ? "none" : log.error().to_string();
  };
  EXPECT_EQ(error("arrival_s\n5\n4\n"),
            "f:3: arrival_s: expected a time not before that of the request above, not '4'");
  EXPECT_EQ(error("arrival_s,prompt_tokens,output_tokens\n5,1,-2\n"),
            "f:2: output_tokens: expected a number of tokens, from 0, not '-2'");
  EXPECT_EQ(error("time\n5\n"), "f:1: arrival_s: expected a header with arrival_s, or with TIMESTAMP");
  EXPECT_EQ(error("TIMESTAMP\nyesterday\n"), "f:2: TIMESTAMP: expected a date and time, not 'yesterday'");
  EXPECT_EQ(error("arrival_s,service_s\n1,-1\n"), "f:2: service_s: expected seconds, from 0, not '-1'");
  EXPECT_EQ(error("arrival_s\n"), "f: expected at least one request");
}

TEST(ServiceReader, RefusesWhatNoReplicaCanKeepOrHold) {
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + ", " + gpu + R"(, "promise": {"within_s": 0.4})")),
            "f: /services/0/promise/within_s: expected at least the 0.5 s in which a replica serves that part of the "
            "requests "
            "when nobody waits");
  EXPECT_EQ(
      error_of_services(one(even + R"(, "serves": {"mean_s": 1}, "promise": {"part": 0.99, "within_s": 4}, )" + gpu)),
      "f: /services/0/promise/within_s: expected at least the 4.605 s in which a replica serves that part of the "
      "requests "
      "when nobody waits");
  EXPECT_EQ(
      error_of_services(one(even + R"(, "serves": {"batch_s": [0.3, 0.5]}, "promise": {"within_s": 0.2}, )" + gpu)),
      "f: /services/0/promise/within_s: expected at least the 0.3 s in which a replica serves that part of the "
      "requests "
      "when nobody waits");
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + R"(, "replica": {"gpus": 8})")),
            "f: /services/0/replica: a replica of 'chat' fits nowhere on the cluster 2x4, even when it is empty");
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + R"(, "replica": {"gpus": 1, "gpu_type": "kind:fpga"})")),
            "f: /services/0/replica: a replica of 'chat' fits nowhere on the cluster 2x4, even when it is empty");
}

// Steps of a prompt take 10 ms, of tokens 5 ms; a request of 20 and 5 tokens is alone answered in 10 + 4 x 5 = 30 ms.
const std::string steps = R"("steps": [{"tokens": 1, "prompt_ms": 10, "token_ms": 5},
  {"tokens": 99, "prompt_ms": 10, "token_ms": 5}])";
std::string engine(const std::string& members) { return R"("replica": {"llm": {)" + steps + members + "}}"; }

class LlmServiceReader : public testing::Test {
 protected:
  LlmServiceReader() {
    folder.write("log.csv", "arrival_s,prompt_tokens,output_tokens,session\n0,20,5,a\n1,20,5,b\n2,20,5,a\n");
    folder.write("none.csv", "arrival_s\n0\n");
  }
  [[nodiscard]] std::string error(const std::string& members, const std::string& log = "log.csv") const {
    const std::string file = folder.path() + "/f.json";
    const std::string text = error_of_services(one(R"("requests": {"log": ")" + log + "\"}, " + members), file);
    return text.starts_with(file) ? "f" + text.substr(file.size()) : text;
  }
  test::TempFolder folder;
};

TEST_F(LlmServiceReader, ReadsTheEngineItsCacheAndTheRouter) {
  JobTable jobs = test::table_of({{.work = 1}});
  // (2 x 10 GiB x 0.9 - 10 GiB) / (16 x 512 KiB) = 1024 blocks.
  const auto model = model_of(
      one(R"("requests": {"log": "log.csv"}, "queue": "replica", "router": "session", "replica": {"gpus": 2, "llm": {)" +
          steps + R"(, "gpu_memory_gib": 10, "weights_gib": 10, "kv_kib_per_token": 512, "sequences": 8}},
          "promise": {"part": 0.5, "first_token_s": 0.01, "per_token_s": 0.005})"),
      jobs, folder.path() + "/f.json");
  ASSERT_TRUE(model) << model.error().to_string();
  const ServiceSpec& service = model->services.front();
  ASSERT_TRUE(service.llm);
  EXPECT_EQ(service.llm->limits.kv_blocks, 1024);
  EXPECT_EQ(service.at_once, 8u);
  EXPECT_EQ(service.routing, RoutingRule::session);
  EXPECT_EQ(service.requests[0].session, service.requests[2].session);
  EXPECT_NE(service.requests[0].session, service.requests[1].session);
  EXPECT_NEAR(service.mean_service_s, 0.030, 1e-12);
  EXPECT_EQ(service.promise->first_token, from_seconds(0.01));
  EXPECT_EQ(service.promise->within, Time::max());
}

TEST_F(LlmServiceReader, RefusesWhatNoEngineCanServe) {
  const std::string full = engine(R"(, "kv_blocks": 9)");
  EXPECT_EQ(error(full), "none");
  const std::string replica = "f: /services/0/replica/llm";
  EXPECT_EQ(error(engine(R"(, "kv_blocks": 1)")),
            replica +
                ": expected a cache that holds each request: request 0 with its 25 tokens needs 2 blocks of 16, "
                "and there are 1");
  EXPECT_EQ(error(full, "none.csv"), replica + ": expected a log with prompt_tokens and output_tokens");
  EXPECT_EQ(error(engine("")), replica + "/kv_blocks: expected one of kv_blocks and gpu_memory_gib");
  EXPECT_EQ(error(engine(R"(, "gpu_memory_gib": 10, "weights_gib": 9.5, "kv_kib_per_token": 1)")),
            replica + "/weights_gib: expected less, so that memory is left for a block of the cache, not 9.5");
  EXPECT_EQ(error(R"("replica": {"llm": {"kv_blocks": 9}})"),
            replica + "/kernels: expected one of kernels, batch_times and steps");
  EXPECT_EQ(error(full + R"(, "serves": {"seconds": 1})"), "f: /services/0/serves: expected none beside replica/llm");
  const auto slow = [&](const std::string& key, const std::string& promised) {
    return error(full + R"(, "promise": {")" + key + "\": " + promised + "}");
  };
  const std::string alone = " s in which a replica serves that part of the requests when nobody waits";
  EXPECT_EQ(slow("within_s", "0.029"), "f: /services/0/promise/within_s: expected at least the 0.03" + alone);
  EXPECT_EQ(slow("first_token_s", "0.009"), "f: /services/0/promise/first_token_s: expected at least the 0.01" + alone);
  EXPECT_EQ(slow("per_token_s", "0.004"), "f: /services/0/promise/per_token_s: expected at least the 0.005" + alone);
  EXPECT_EQ(slow("within_s", "0.03"), "none");
}

TEST_F(LlmServiceReader, RefusesRoutersThatHaveNothingToRoute) {
  const std::string plain = fixed + ", " + gpu;
  EXPECT_EQ(error(plain + R"(, "router": "random")"),
            "f: /services/0/router: expected none, as \"queue\" is not \"replica\"");
  EXPECT_EQ(error(plain + R"(, "queue": "replica", "router": "session")", "none.csv"),
            "f: /services/0/router: expected a log with a column session");
  EXPECT_EQ(error(plain + R"(, "promise": {"within_s": 1, "first_token_s": 1})"),
            "f: /services/0/promise/first_token_s: expected none, as replicas have no llm");
}

TEST(ServiceReader, RefusesMistakesByPath) {
  EXPECT_EQ(error_of_services(one(even + ", " + gpu)), "f: /services/0/serves: is missing");
  EXPECT_EQ(error_of_services(one(even + R"(, "serves": {"seconds": 1, "mean_s": 1}, )" + gpu)).substr(0, 78),
            "f: /services/0/serves: expected one of seconds, mean_s, batch_s, output_token_");
  EXPECT_EQ(error_of_services(one(R"("requests": {}, )" + fixed + ", " + gpu)),
            "f: /services/0/requests/rate_per_s: expected one of log, rate_per_s and rate_file");
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + ", " + gpu + R"(, "autoscaler": {"rule": "erlang"})")),
            "f: /services/0/autoscaler/rule: expected a promise of the service with erlang");
  const auto with_rule = [&](const std::string& rule) {
    return error_of_services(
        one(even + ", " + fixed + ", " + gpu + R"(, "least": 0, "autoscaler": {"rule": )" + rule + "}"));
  };
  EXPECT_EQ(with_rule(R"("keep-alive", "keep_s": 0)"), "none");
  EXPECT_EQ(with_rule(R"("idle-times", "conditions": "faascache", "bins": 9, "bin_s": 0.5)"), "none");
  EXPECT_EQ(with_rule(R"("idle-times", "bin_s": 1e-7)"),
            "f: /services/0/autoscaler/bin_s: expected a millionth of a second or more, not 1e-07");
  EXPECT_EQ(with_rule(R"("idle-times", "conditions": "arima")").substr(0, 47),
            "f: /services/0/autoscaler/conditions: expected ");
  EXPECT_EQ(error_of_services(one(even + R"(, "serves": {"logged": true}, )" + gpu)),
            "f: /services/0/serves/logged: expected a log with a column service_s");
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + R"(, "replica": {"gpus": 1.5})")),
            "f: /services/0/replica/gpus: expected whole GPUs, or thousandths of one, not 1.5");
  EXPECT_EQ(error_of_services(one(even + ", " + fixed + ", " + gpu + R"(, "start": {"cold_s": 1, "warm_s": 2})")),
            "f: /services/0/start/warm_s: expected at most cold_s, not 2");
}

}  // namespace
}  // namespace gpusched
