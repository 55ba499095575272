// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/vllm_protocol.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "src/calibration/profile/llm_tables.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

const std::string vllm_meta =
    R"({"engine_kwargs": {"max_num_seqs": 4, "max_num_batched_tokens": 64, "dtype": "float32"},
  "kv_cache": {"num_gpu_blocks": null, "block_size": 8, "num_kv_tokens": 100},
  "resolved_config": {"scheduler_config": {"scheduler_reserve_full_isl": false}}})";

TEST(VllmServer, ReadsWhatTheServerWasStartedWith) {
  const TempFolder folder;
  const auto server = read_vllm_server(folder.write("meta.json", vllm_meta));
  ASSERT_TRUE(server) << server.error().to_string();
  EXPECT_EQ(server->limits.sequences, 4);
  EXPECT_EQ(server->limits.step_tokens, 64);
  EXPECT_EQ(server->limits.kv_blocks, 12);
  EXPECT_EQ(server->limits.block_tokens, 8);
  EXPECT_FALSE(server->limits.whole_prompt_fits);
  EXPECT_TRUE(server->limits.chunked);
  EXPECT_EQ(server->bytes_per_value, 4);
  EXPECT_TRUE(server->notes.empty());
  const auto none = read_vllm_server(folder.write("none.json", R"({"engine_kwargs": {"max_num_seqs": 4}})"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "engine_kwargs/max_num_batched_tokens");
}

std::string vllm_refusal(const std::string& text) {
  const TempFolder folder;
  const auto read = read_vllm_requests(folder.write("r.jsonl", text));
  return read ? "read" : std::to_string(read.error().line) + " " + read.error().field;
}

TEST(VllmRequests, RefusesWhatIsNoLog) {
  const std::string good = R"({"input_toks": 5, "output_toks": 2, "arrival_time": 7.5})";
  EXPECT_EQ(vllm_refusal(good + "\n\n" + good), "read");
  EXPECT_EQ(vllm_refusal(good + "\n" + R"({"input_toks": -5, "output_toks": 2, "arrival_time": 8})"), "2 input_toks");
  EXPECT_EQ(vllm_refusal(R"({"input_toks": 5, "arrival_time": 8})"), "1 output_toks");
  EXPECT_EQ(vllm_refusal(good + "\n" + R"({"input_toks": 5, "output_toks": 2, "arrival_time": 7})"), "2 arrival_time");
  EXPECT_EQ(
      vllm_refusal(R"({"input_toks": 5, "output_toks": 2, "queued_ts": 8, "first_token_ts": 7, "last_token_ts": 9})"),
      "1 first_token_ts");
  EXPECT_EQ(
      vllm_refusal(R"({"input_toks": 5, "output_toks": 2, "queued_ts": 8, "first_token_ts": 9, "last_token_ts": 9})"
                   "\n" +
                   good),
      "2 arrival_time");
  EXPECT_EQ(vllm_refusal("{\"input_toks\": 5"), "1 ");
  EXPECT_EQ(vllm_refusal(""), "0 ");
}

TEST(VllmRun, ItsOwnLogAgainGivesTheSameBytes) {
  const LlmStepTimes times{BatchStepTimes({{1, 2000.25, 400.125}, {500, 31000, 900}})};
  std::string log;
  for (int i = 0; i < 60; ++i) {
    log += "{\"request_id\": \"r" + std::to_string(i) + "\", \"input_toks\": " + std::to_string(1 + i * 37 % 60) +
           ", \"output_toks\": " + std::to_string(1 + i * 11 % 30) +
           ", \"arrival_time\": " + std::to_string(100 + i * .003) + "}\n";
  }
  const TempFolder folder;
  const LlmLimits limits{.kv_blocks = 12, .block_tokens = 8, .step_tokens = 64, .sequences = 4};
  std::vector<std::string> written;
  for (int turn = 0; turn < 2; ++turn) {
    const auto requests = read_vllm_requests(folder.write("log.jsonl", turn == 0 ? log : written[0]));
    ASSERT_TRUE(requests) << requests.error().to_string();
    const auto run = run_vllm(*requests, limits, times);
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_GT(run->counts.preemptions, 0);
    written.push_back(run->log(*requests));
    for (const VllmFigure& figure : run->figures(*requests)) {
      EXPECT_EQ(figure.measured.has_value(), turn == 1 && figure.name != "preemptions");
      if (figure.measured) {
        EXPECT_NEAR(*figure.measured, figure.simulated, 1e-9) << figure.name;
      }
    }
  }
  EXPECT_EQ(written[0], written[1]);
  const auto too_long =
      read_vllm_requests(folder.write("long.jsonl", R"({"input_toks": 90, "output_toks": 8, "arrival_time": 0})"));
  EXPECT_FALSE(run_vllm(*too_long, limits, times));
}

// Nothing is fitted but the constant that is stated.
TEST(VllmRun, IsNearTheMeasuredServers) {
  const std::string folder = real_trace("inference");
  GPUSCHED_NEEDS_TRACE(folder, "inference");
  struct Server {
    std::string name;
    double host_ms;
  };
  for (const Server& server : {Server{"rtx4090", -1.1}, Server{"rtxpro6000", 1.1}}) {
    const auto tables = read_kernel_tables(folder + "/kernels/" + server.name + "_meta-llama_llama-3.1-8b");
    const auto started = read_vllm_server(folder + "/vllm/" + server.name + "_llama-3.1-8b.meta.json");
    const auto requests = read_vllm_requests(folder + "/vllm/" + server.name + "_llama-3.1-8b.requests.jsonl");
    ASSERT_TRUE(tables && started && requests);
    for (const double host_ms : {0.0, server.host_ms}) {
      const LlmStepTimes times{KernelStepTimes(*tables, 32, {}, 1e3 * host_ms)};
      const auto run = run_vllm(*requests, started->limits, times);
      ASSERT_TRUE(run) << run.error().to_string();
      const VllmFigure latency = run->figures(*requests)[0];
      ASSERT_TRUE(latency.measured);
      EXPECT_LT(std::abs(latency.simulated / *latency.measured - 1), host_ms == 0 ? .05 : .002) << server.name;
    }
  }
}

TEST(KernelTables, RefusesFilesThatTellTooLittle) {
  const TempFolder folder;
  const std::string rows = "time_us,tokens,layer\n5,1,qkv_proj\n";
  folder.write("dense.csv", rows);
  EXPECT_FALSE(read_kernel_tables(folder.path()));
  folder.write("per_sequence.csv", "layer,sequences,time_us\nlm_head,1,5\n");
  folder.write("attention.csv", "layer,prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\nattention,0,0,1,16,9\n");
  const auto none = read_kernel_tables(folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "n_decode");
  folder.write("attention.csv",
               "layer,prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\nattention,0,0,1,16,9\nattention,16,0,0,0,"
               "7\nindexer,16,0,0,0,99\n");
  const auto read = read_kernel_tables(folder.path());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->attention.size(), 2U);
  folder.write("moe.csv", "tokens,activated_experts,time_us\n4,8,9\n");
  EXPECT_FALSE(read_kernel_tables(folder.path()));
  folder.write("dense.csv", "layer,tokens,time_us\nqkv_proj,-1,5\n");
  const auto bad = read_kernel_tables(folder.path());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().field, "tokens");
  EXPECT_EQ(bad.error().line, 2U);
}

}  // namespace
}  // namespace gpusched::test
