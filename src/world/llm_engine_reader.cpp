// SPDX-License-Identifier: Apache-2.0
#include "src/world/llm_engine_reader.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "src/calibration/profile/llm_tables.hpp"
#include "src/world/request_arrivals.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_tokens = 4'000'000;  // of a request: as many sums of steps are kept
constexpr double most_blocks = 1e12, longest_us = 1e9, most_memory_gib = 1e7;

class EngineReader {
 public:
  EngineReader(JsonFields& fields, const std::string& file, const MemoryParts& parts)
      : fields_(fields), file_(file), parts_(parts) {}

  Result<void> read(double gpus, std::optional<LlmEngine>& engine) {
    const LlmLimits limits = read_limits(gpus);
    const int ways =
        (fields_.has("kernels") ? 1 : 0) + (fields_.has("batch_times") ? 1 : 0) + (fields_.has("steps") ? 1 : 0);
    if (ways != 1) fields_.fail("kernels", "expected one of kernels, batch_times and steps");
    if (!fields_.good()) return {};
    auto times = fields_.has("kernels") ? kernels() : fields_.has("steps") ? steps() : batch_times();
    if (!times) return Unexpected{times.error()};
    if (*times) engine = LlmEngine{.limits = limits, .times = **times};
    return {};
  }

 private:
  using Times = Result<std::optional<LlmStepTimes>>;  // nothing: the fields were refused

  LlmLimits read_limits(double gpus) {
    LlmLimits limits;
    fields_.read("block_tokens", limits.block_tokens, 1, 1e6);
    fields_.read("step_tokens", limits.step_tokens, 1, 1e9);
    fields_.read("sequences", limits.sequences, 1, 1e6);
    fields_.read("chunked", limits.chunked);
    fields_.read("whole_prompt_fits", limits.whole_prompt_fits);
    if (fields_.has("kv_blocks") == fields_.has("gpu_memory_gib")) {
      fields_.fail("kv_blocks", "expected one of kv_blocks and gpu_memory_gib");
    } else if (fields_.has("kv_blocks")) {
      fields_.read("kv_blocks", limits.kv_blocks, 1, most_blocks);
    } else {
      limits.kv_blocks = blocks_of_memory(limits.block_tokens, gpus);
    }
    // Where the product is whole, it may be a rounding error below.
    limits.kv_blocks = std::max<std::int64_t>(
        static_cast<std::int64_t>(std::floor(static_cast<double>(limits.kv_blocks) * parts_.kv_blocks + 1e-6)), 1);
    return limits;
  }
  std::int64_t blocks_of_memory(std::int32_t block_tokens, double gpus) {
    double gpu_gib = 0, used = 0.9, weights_gib = 0, token_kib = 0;
    fields_.read_above_zero("gpu_memory_gib", gpu_gib, most_memory_gib);
    fields_.read_above_zero("memory_used", used, 1);
    fields_.require("weights_gib");
    fields_.read("weights_gib", weights_gib, 0, most_memory_gib);
    fields_.require("kv_kib_per_token");
    fields_.read_above_zero("kv_kib_per_token", token_kib, most_memory_gib);
    if (!fields_.good()) return 1;
    const double cache_kib = (gpu_gib * gpus * used - weights_gib * parts_.model) * 1024 * 1024;
    const double blocks = std::floor(cache_kib / (token_kib * block_tokens));
    if (blocks < 1) fields_.refuse("weights_gib", "less, so that memory is left for a block of the cache");
    return static_cast<std::int64_t>(std::clamp(blocks, 1.0, most_blocks));
  }

  Times kernels() {
    std::string folder;
    std::int32_t layers = 0;
    double host_us = 0;
    TensorParallel parallel;
    fields_.read("kernels", folder);
    fields_.require("layers");
    fields_.read("layers", layers, 1, 1e6);
    fields_.read("host_us", host_us, -longest_us, longest_us);
    fields_.read("ranks", parallel.ranks, 1, 1e6);
    if (parallel.ranks > 1) {
      fields_.require("hidden");
      fields_.require("link_gb_s");
    }
    fields_.read("hidden", parallel.hidden, 1, 1e9);
    fields_.read_above_zero("link_gb_s", parallel.link_gb_s, 1e9);
    fields_.read("link_us", parallel.link_us, 0, longest_us);
    fields_.read("bytes_per_value", parallel.bytes_per_value, 1, 16);
    if (!fields_.good()) return std::optional<LlmStepTimes>{};
    const auto tables = read_kernel_tables(path_from(file_, folder));
    if (!tables) return Unexpected{tables.error()};
    return std::optional(LlmStepTimes(KernelStepTimes(*tables, layers, parallel, host_us)));
  }
  Times batch_times() {
    std::string table;
    BatchTimesOf of{.model = {}, .hardware = {}, .tensor_parallel = 1};
    fields_.read("batch_times", table);
    fields_.require("model");
    fields_.read("model", of.model);
    fields_.require("hardware");
    fields_.read("hardware", of.hardware);
    fields_.read("tensor_parallel", of.tensor_parallel, 1, 1e6);
    if (!fields_.good()) return std::optional<LlmStepTimes>{};
    const auto runs = read_batch_times(path_from(file_, table), of);
    if (!runs) return Unexpected{runs.error()};
    return std::optional(LlmStepTimes(BatchStepTimes(*runs)));
  }
  Times steps() {
    std::vector<BatchStepTimes::Run> runs;
    fields_.read_objects("steps", [&](JsonFields& own, std::size_t) {
      BatchStepTimes::Run run;
      double prompt_ms = 0, token_ms = 0;
      for (const char* key : {"tokens", "prompt_ms", "token_ms"}) own.require(key);
      own.read("tokens", run.batch_tokens, 1, 1e9);
      own.read_above_zero("prompt_ms", prompt_ms, longest_us);
      own.read_above_zero("token_ms", token_ms, longest_us);
      run.prompt_us = 1e3 * prompt_ms;
      run.token_us = 1e3 * token_ms;
      runs.push_back(run);
    });
    const auto differs = [&](const BatchStepTimes::Run& run) { return run.batch_tokens != runs.front().batch_tokens; };
    if (fields_.good() && std::none_of(runs.begin(), runs.end(), differs)) {
      fields_.fail("steps", "expected steps of two different numbers of tokens, or more");
    }
    if (!fields_.good()) return std::optional<LlmStepTimes>{};
    const BatchStepTimes times(runs);
    const double prompt_us = times.step_us({.prefill_tokens = 1}), token_us = times.step_us({.decodes = 1});
    if (std::min(prompt_us, token_us) <= 0) {
      fields_.fail("steps", std::string("expected a step of fewer tokens: the line through the first two gives ") +
                                (prompt_us <= 0 ? "a prompt" : "a step") + " of one token no time");
      return std::optional<LlmStepTimes>{};
    }
    return std::optional(LlmStepTimes(times));
  }

  JsonFields& fields_;
  const std::string& file_;
  MemoryParts parts_;
};

double prompt_s(const LlmEngine& engine, std::int64_t tokens) {
  double us = 0;
  const std::int64_t chunk = engine.limits.chunked ? engine.limits.step_tokens : tokens;
  for (std::int64_t done = 0; done < tokens; done += chunk) {
    LlmStep step;
    step.add(std::min(chunk, tokens - done), done, false);
    us += engine.times.step_us(step);
  }
  return us / 1e6;
}

}  // namespace

Result<void> read_llm_engine(JsonFields& fields, const std::string& file, double gpus, const MemoryParts& parts,
                             std::optional<LlmEngine>& engine) {
  return EngineReader(fields, file, parts).read(gpus, engine);
}

std::vector<LlmAloneTimes> llm_alone_times(const ServiceSpec& service) {
  const LlmEngine& engine = *service.llm;
  std::int64_t longest = 0;
  for (std::uint32_t i = 0; i < service.requests.size(); ++i) {
    const LlmRequest request = llm_request(service.requests[i], {}, i);
    longest = std::max(longest, std::int64_t{request.prompt_tokens} + request.output_tokens);
  }
  // The time of the steps of one token each that follow up to so many others.
  std::vector<double> decodes_s(static_cast<std::size_t>(longest) + 1, 0);
  for (std::int64_t before = 0; before < longest; ++before) {
    LlmStep step;
    step.add(1, before, true);
    const auto at = static_cast<std::size_t>(before);
    decodes_s[at + 1] = decodes_s[at] + engine.times.step_us(step) / 1e6;
  }
  std::map<std::int32_t, double> prompts_s;
  std::vector<LlmAloneTimes> all;
  all.reserve(service.requests.size());
  for (std::uint32_t i = 0; i < service.requests.size(); ++i) {
    const LlmRequest request = llm_request(service.requests[i], {}, i);
    const auto [known, is_new] = prompts_s.try_emplace(request.prompt_tokens, 0);
    if (is_new) known->second = prompt_s(engine, request.prompt_tokens);
    const auto first = static_cast<std::size_t>(request.prompt_tokens);
    const auto later = static_cast<std::size_t>(request.output_tokens - 1);
    const double later_s = decodes_s[first + later] - decodes_s[first];
    all.push_back({.first_token_s = known->second,
                   .per_token_s = later > 0 ? later_s / static_cast<double>(later) : 0,
                   .all_s = known->second + later_s});
  }
  return all;
}

std::string refuse_llm_requests(const ServiceSpec& service) {
  const LlmLimits& limits = service.llm->limits;
  for (std::uint32_t i = 0; i < service.requests.size(); ++i) {
    const ServiceRequest& own = service.requests[i];
    const std::int64_t tokens = std::int64_t{own.prompt_tokens} + own.output_tokens;
    const std::string who = "request " + std::to_string(i) + " with its " + std::to_string(tokens) + " tokens";
    if (tokens > most_tokens)
      return "expected requests of at most " + std::to_string(most_tokens) + " tokens, not " + who;
    const LlmRequest request = llm_request(service.requests[i], {}, i);
    const std::int64_t blocks = limits.blocks(std::int64_t{request.prompt_tokens} + request.output_tokens - 1);
    if (blocks <= limits.kv_blocks) continue;
    return "expected a cache that holds each request: " + who + " needs " + std::to_string(blocks) + " blocks of " +
           std::to_string(limits.block_tokens) + ", and there are " + std::to_string(limits.kv_blocks);
  }
  return "";
}

std::vector<std::string> files_of_llm_engine(const Json& llm, const std::string& file) {
  std::vector<std::string> files;
  const auto named = [&](const char* key) {
    return llm.is_object() && llm.contains(key) && llm[key].is_string() ? path_from(file, llm[key].get<std::string>())
                                                                        : std::string();
  };
  if (const std::string table = named("batch_times"); !table.empty()) files.push_back(table);
  if (const std::string folder = named("kernels"); !folder.empty()) {
    for (const char* name : {"/dense.csv", "/per_sequence.csv", "/attention.csv"}) files.push_back(folder + name);
    std::error_code ignored;
    if (std::filesystem::exists(folder + "/moe.csv", ignored)) files.push_back(folder + "/moe.csv");
  }
  return files;
}

}  // namespace gpusched
