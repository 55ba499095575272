// SPDX-License-Identifier: Apache-2.0
// Requests a second of processor time: M/M/c through a station, and LLM requests through replicas.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/serving/llm_station.hpp"
#include "gpusched/serving/request_station.hpp"

namespace {

using namespace gpusched;

// Load .9 of `servers`, mean service 1 s.
void mmc(benchmark::State& state, RoutingRule routing) {
  const auto servers = static_cast<std::int32_t>(state.range(0));
  RequestStation station({.routing = routing, .service = {.kind = ServiceTimes::Kind::exponential}});
  for (std::int32_t i = 0; i < servers; ++i) station.add_replica({});
  Rng rng = Rng(1).split("arrivals");
  double at = 0;
  std::uint64_t id = 0;
  std::int64_t waited_us = 0;
  for (auto _ : state) {
    at += rng.exponential(1 / (.9 * servers));
    const Time now = from_seconds(at);
    station.submit({.id = id++, .arrival = now}, now);
    for (const StationOutcome& outcome : station.done()) waited_us += (outcome.begun - outcome.queued).us;
    station.clear_done();
  }
  benchmark::DoNotOptimize(waited_us);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(mmc, shared_queue, RoutingRule::shared_queue)->Arg(10)->Arg(50)->Arg(1000);
BENCHMARK_CAPTURE(mmc, least_loaded, RoutingRule::least_loaded)->Arg(10)->Arg(50);

// Kernels of the size and grid of a measured 8B model's.
KernelTables tables() {
  KernelTables made;
  for (std::int64_t tokens = 1; tokens <= 2048; tokens = tokens < 16 ? tokens + 1 : tokens + 16) {
    const auto t = static_cast<double>(tokens);
    for (const char* layer : {"layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj",
                              "embedding", "final_layernorm"}) {
      made.dense.push_back({layer, tokens, 30 + t / 2});
    }
    if (tokens <= 256) made.per_sequence.push_back({"lm_head", tokens, 700 + t});
  }
  for (const std::int64_t chunk : {0, 16, 32, 64, 128, 256, 512, 1024, 2048}) {
    for (const std::int64_t before : {0, 16, 64, 256, 1024, 4096, 16384}) {
      for (const std::int64_t decodes : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
        for (const std::int64_t kv : {16, 64, 256, 1024, 4096, 16384}) {
          if ((chunk == 0 && (before > 0 || decodes == 0)) || (decodes == 0 && kv > 16)) continue;
          const double pairs =
              static_cast<double>(chunk) * (static_cast<double>(before) + static_cast<double>(chunk) / 2);
          made.attention.push_back({{chunk, before, decodes, decodes == 0 ? 0 : kv},
                                    8 + pairs / 8000 + static_cast<double>(decodes * kv) / 2500});
        }
      }
    }
  }
  return made;
}

// Prompts and answers of mean lengths `prompt` and `output`, exponential, on four replicas that keep up.
void llm(benchmark::State& state) {
  const auto prompt = static_cast<double>(state.range(0)), output = static_cast<double>(state.range(1));
  const LlmStepTimes times{KernelStepTimes(tables(), 32)};
  LlmStation station;
  for (int i = 0; i < 4; ++i) station.add_replica({}, {.kv_blocks = 30'000}, times);
  Rng rng = Rng(1).split("requests");
  // A replica computes about 2,048 tokens in .35 s, or 100 decodes in .03 s: four fifths of that.
  const double rate = .8 * 4 / (prompt * .35 / 2048 + output * .03 / 100);
  double at = 0;
  std::uint64_t id = 0;
  std::int64_t latency_us = 0;
  for (auto _ : state) {
    at += rng.exponential(1 / rate);
    const Time now = from_seconds(at);
    station.submit({.id = id++,
                    .arrival = now,
                    .prompt_tokens = 1 + static_cast<std::int32_t>(rng.exponential(prompt)),
                    .output_tokens = 1 + static_cast<std::int32_t>(rng.exponential(output))},
                   now);
    station.advance(now);
    for (const LlmOutcome& outcome : station.done()) latency_us += (outcome.last_token - outcome.queued).us;
    station.clear_done();
  }
  state.counters["mean_latency_s"] =
      to_seconds({latency_us}) / static_cast<double>(std::max<std::int64_t>(1, station.counts().completed));
  std::int64_t steps = 0, tokens = 0;
  for (const std::int32_t number : station.accepting())
    steps += station.replica(number).counts().steps, tokens += station.replica(number).counts().tokens;
  state.counters["steps_a_request"] = static_cast<double>(steps) / static_cast<double>(id);
  state.counters["tokens_a_step"] = static_cast<double>(tokens) / static_cast<double>(steps);
  state.SetItemsProcessed(state.iterations());
}
// Mean lengths of Azure's code trace, Azure's conversations, and ShareGPT's chats.
BENCHMARK(llm)->Args({2048, 28})->Args({1155, 211})->Args({857, 652});

}  // namespace

BENCHMARK_MAIN();
