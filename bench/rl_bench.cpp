// SPDX-License-Identifier: Apache-2.0
// Training: what a step of PPO costs by network, split into environment, inference and learner; and what one decision
// of a trained policy costs. Times are processor time of one thread.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <vector>

#include "bench/busy_jobs.hpp"
#include "gpusched/learn/vector_env.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/rl/initial_parameters.hpp"
#include "src/rl/ppo/learner.hpp"
#include "src/rl/rollout.hpp"

namespace gpusched {
namespace {

double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

EnvOptions select_blocking() {
  EnvOptions options;
  options.agenda = {.mode = ActionMode::select_blocking, .knowledge = RuntimeKnowledge::oracle};
  return options;
}

const std::vector<Window>& windows() {
  static const std::vector<Window> instance =
      *make_windows(busy_jobs(), {.jobs = 1024, .train_fraction = 1, .validation_fraction = 0}, Split::train);
  return instance;
}

std::span<const float> logits_of(const std::vector<float>& logits, const Observation& seen, std::uint32_t e) {
  return std::span(logits).subspan(std::size_t{seen.job_begin[e]} + e, std::size_t{seen.tokens(e)} + 1);
}

// One state of a busy queue, and the forward pass over it alone, as `--policy rl:DIR` does it.
void decide(benchmark::State& state, NetworkKind kind) {
  const NetworkSpec spec{.kind = kind};
  const std::vector<float> parameters = initial_parameters(spec, Rng(1));
  Observation seen;
  seen.shape(1, [&](std::uint32_t) { return std::pair{static_cast<std::uint32_t>(state.range(0)), 4u}; });
  Rng rng(2);
  for (auto* values : {&seen.jobs, &seen.prior, &seen.groups, &seen.global}) {
    for (float& value : *values) value = static_cast<float>(rng.normal());
  }
  std::fill(seen.mask.begin(), seen.mask.end(), std::uint8_t{1});
  std::vector<float> logits;
  for ([[maybe_unused]] const auto _ : state) {
    forward_policy(spec, parameters, {}, seen, logits);
    benchmark::DoNotOptimize(best_action(logits));
  }
  state.SetLabel("tokens");
}
BENCHMARK_CAPTURE(decide, kernel, NetworkKind::kernel)->Arg(8)->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(decide, sc20_kernel, NetworkKind::sc20_kernel)->Arg(8)->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(decide, deepsets, NetworkKind::deepsets)->Arg(8)->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(decide, attention, NetworkKind::attention)->Arg(8)->Arg(32)->Arg(128);

struct Split3 {
  double env_s = 0, inference_s = 0, learner_s = 0, steps = 0, tokens = 0;
};

// One iteration: 16 environments, 128 steps each, then four epochs of minibatches of 512.
void iterate(VectorEnv& env, Learner& learner, const NetworkSpec& spec, Rng& rng, Split3& split) {
  constexpr std::uint32_t length = 128;
  Minibatch all;
  const std::vector<float> parameters = learner.parameters();
  std::vector<float> logits;
  std::vector<std::uint32_t> actions(env.size());
  for (std::uint32_t step = 0; step < length; ++step) {
    const double begin = processor_s();
    const Observation& seen = env.batch().observation;
    forward_policy(spec, parameters, {}, seen, logits);
    for (std::uint32_t e = 0; e < env.size(); ++e) {
      actions[e] = sample_action(logits_of(logits, seen, e), rng);
      append_state(all.observation, seen, e);
      all.actions.push_back(actions[e]);
      all.old_log_probability.push_back(static_cast<float>(log_probability(logits_of(logits, seen, e), actions[e])));
      all.advantage.push_back(static_cast<float>(rng.normal()));
    }
    split.tokens += seen.job_begin.back();
    const double acted = processor_s();
    env.step(actions);
    split.inference_s += acted - begin;
    split.env_s += processor_s() - acted;
  }
  split.steps += env.size() * length;
  const double begin = processor_s();
  constexpr std::size_t size = 512;
  std::vector<SeenState> states(all.actions.size());
  for (std::uint32_t i = 0; i < states.size(); ++i) states[i] = {&all.observation, i};
  const auto part = [](const auto& values, std::size_t first, auto& out) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(first);
    out.assign(from, from + size);
  };
  Minibatch batch;  // filled as the trainer does it
  batch.value_target.assign(size, 0.0f);
  batch.old_value.assign(size, 0.0f);
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (std::size_t first = 0; first < states.size(); first += size) {
      copy_states(std::span(states).subspan(first, size), batch.observation);
      part(all.actions, first, batch.actions);
      part(all.old_log_probability, first, batch.old_log_probability);
      part(all.advantage, first, batch.advantage);
      benchmark::DoNotOptimize(learner.improve(batch, {}, 1e-5));
    }
  }
  split.learner_s += processor_s() - begin;
}

void train(benchmark::State& state, NetworkKind kind) {
  const NetworkSpec spec{.kind = kind};
  const Cluster cluster = Cluster::pool(256);
  VectorEnv env(windows(), {}, cluster, {.env = select_blocking(), .environments = 16});
  env.reset(1);
  const auto learner = make_learner(spec, {}, "cpu");
  if (!learner) return state.SkipWithError(learner.error().message.c_str());
  const std::vector<float> parameters = initial_parameters(spec, Rng(1));
  const std::vector<float> zeros(parameters.size(), 0.0f);
  (*learner)->set_state(parameters, {zeros, zeros, 0});
  Rng rng(3);
  Split3 split;
  for ([[maybe_unused]] const auto _ : state) iterate(env, **learner, spec, rng, split);
  const auto microseconds = [&](double seconds) { return 1e6 * seconds / split.steps; };
  state.counters["env_us"] = microseconds(split.env_s);
  state.counters["inference_us"] = microseconds(split.inference_s);
  state.counters["learner_us"] = microseconds(split.learner_s);
  state.counters["tokens"] = split.tokens / split.steps;
  state.counters["steps/s"] = split.steps / (split.env_s + split.inference_s + split.learner_s);
}
BENCHMARK_CAPTURE(train, kernel, NetworkKind::kernel)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, index, NetworkKind::index)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, sc20_kernel, NetworkKind::sc20_kernel)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, deepsets, NetworkKind::deepsets)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, attention, NetworkKind::attention)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpusched
BENCHMARK_MAIN();
