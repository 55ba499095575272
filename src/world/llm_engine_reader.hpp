// SPDX-License-Identifier: Apache-2.0
/// Reads the LLM engine of a service's replica (LlmEngine), and tells what it needs for a request that is alone.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/serving/service_model.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// Parts of the memory that a file of services states, for what-ifs.
struct MemoryParts {
  double model = 1;      ///< of device memory that replicas ask for, and of weights
  double kv_blocks = 1;  ///< of the cache's blocks, rounded down
};

/// The object "llm" of a replica that has so many GPUs. How long a step takes:
///   {"kernels": "FOLDER", "layers": 32, "ranks": 1, "hidden": 4096, "link_gb_s": 300, "link_us": 10,
///    "bytes_per_value": 2, "host_us": 0} from kernel tables as LLMServingSim's (ranks: of tensor parallelism), or
///   {"batch_times": "FILE.csv", "model": "llama2-70b", "hardware": "a100-80gb", "tensor_parallel": 8} from Splitwise's
///   table, or its rows: {"steps": [{"tokens": 512, "prompt_ms": 60, "token_ms": 28}, ...]};
/// the cache: "kv_blocks", or "gpu_memory_gib", "memory_used" (0.9), "weights_gib" (of all GPUs), "kv_kib_per_token";
/// vLLM's limits: "block_tokens" (16), "step_tokens" (2048), "sequences" (256), "chunked" (true), "whole_prompt_fits"
/// (true). A path is taken from the folder of `file`. Errors of `fields` stay there; one of another file is returned.
Result<void> read_llm_engine(JsonFields& fields, const std::string& file, double gpus, const MemoryParts& parts,
                             std::optional<LlmEngine>& engine);

/// What a request takes on an engine that serves nothing else.
struct LlmAloneTimes {
  double first_token_s = 0;  ///< until the first token
  double per_token_s = 0;    ///< mean of each later one; 0 where there is none
  double all_s = 0;          ///< until the last one
};
/// Of each request of `service`, which has an engine. Precondition: its cache holds each.
std::vector<LlmAloneTimes> llm_alone_times(const ServiceSpec& service);

/// Why the engine cannot serve the requests of `service`; empty where it can: one has too many tokens, or more than its
/// cache holds.
std::string refuse_llm_requests(const ServiceSpec& service);

/// The files that an object "llm" names, by path; `file` names it.
std::vector<std::string> files_of_llm_engine(const Json& llm, const std::string& file);

}  // namespace gpusched
