// SPDX-License-Identifier: Apache-2.0
/// Measured requests of a vLLM server, and the same requests through LlmReplica.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/serving/llm_replica.hpp"

namespace gpusched {

/// A request of a server's log. Measured instants are seconds on a clock of the server; all or none are there.
struct VllmRequest {
  std::string id;
  LlmRequest request;  ///< its id is its row; it arrives so long after the first
  struct Measured {
    double queued_s = 0, first_token_s = 0, last_token_s = 0;
  };
  std::optional<Measured> measured;
};

/// A file of JSON lines: request_id, input_toks, output_toks, arrival_time (without: queued_ts) and, where the server
/// was measured, queued_ts, first_token_ts and last_token_ts in seconds; other keys are passed over. Errors (file, line
/// and field): a number is absent, negative or none, times that fall, some requests measured and some not.
Result<std::vector<VllmRequest>> read_vllm_requests(const std::string& file);

/// What a server was started with.
struct VllmServer {
  LlmLimits limits;
  std::int32_t tensor_parallel = 1;
  std::int64_t bytes_per_value = 2;
  std::vector<std::string> notes;  ///< what the file does not say, and what is taken
};

/// The meta file of LLMServingSim's benchmark: engine_kwargs (max_num_seqs, max_num_batched_tokens,
/// tensor_parallel_size, dtype), kv_cache (num_gpu_blocks, block_size, num_kv_tokens) and
/// resolved_config.scheduler_config (enable_chunked_prefill, scheduler_reserve_full_isl), which also stands in for
/// engine_kwargs. Errors: limits that are in neither place.
Result<VllmServer> read_vllm_server(const std::string& file);

/// A figure of a run, measured where the log tells it.
struct VllmFigure {
  std::string name;
  std::optional<double> measured;
  double simulated = 0;
};

/// What a simulated server did.
struct VllmRun {
  std::vector<LlmOutcome> outcomes;  ///< by row of the requests
  LlmCounts counts;

  /// mean_latency_s, p99_latency_s (linear between ranks), mean_first_token_s, all from the queue; mean_per_token_s
  /// (requests of two tokens or more), preemptions.
  [[nodiscard]] std::vector<VllmFigure> figures(const std::vector<VllmRequest>& requests) const;
  /// The requests as a log that read_vllm_requests() reads, its measured times being those simulated.
  [[nodiscard]] std::string log(const std::vector<VllmRequest>& requests) const;
};

/// The requests through one replica. Errors: a request that its cache cannot hold. A run that breaks an invariant
/// (conservation of requests and blocks, the order of a request's instants) is an error, too.
Result<VllmRun> run_vllm(const std::vector<VllmRequest>& requests, const LlmLimits& limits, const LlmStepTimes& times);

}  // namespace gpusched
