// SPDX-License-Identifier: Apache-2.0
/// Measured times of LLM engines, from the files that their programs publish.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/serving/llm_step_times.hpp"

namespace gpusched {

/// A folder of LLMServingSim's profiler: dense.csv (layer, tokens, time_us), per_sequence.csv (layer, sequences,
/// time_us), attention.csv (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us; of files with `layer` and
/// `decode_q_len` the rows of "attention" and 1), and moe.csv (tokens, activated_experts, time_us) where it is there.
/// Columns stand in any order. Errors: a file or column is absent, a cell is none, no row tells decodes or prompts
/// alone.
Result<KernelTables> read_kernel_tables(const std::string& folder);

/// Whose rows of a table are meant.
struct BatchTimesOf {
  std::string model, hardware;
  std::int64_t tensor_parallel = 1;
};

/// Splitwise's table: model, hardware, tensor_parallel, prompt_size, batch_size, prompt_time and token_time in
/// milliseconds. Errors: as above, and fewer than two batches of different sizes; then it says which models there are.
Result<std::vector<BatchStepTimes::Run>> read_batch_times(const std::string& file, const BatchTimesOf& of);

}  // namespace gpusched
