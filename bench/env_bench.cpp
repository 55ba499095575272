// SPDX-License-Identifier: Apache-2.0
// Steps per second of the training environment on one core, with and without its observation, and the speed-up of two
// threads.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/busy_jobs.hpp"
#include "gpusched/learn/vector_env.hpp"

namespace gpusched {
namespace {

struct World {
  JobTable jobs = busy_jobs();
  Cluster cluster = Cluster::pool(256);
  std::vector<Window> windows =
      *make_windows(jobs, {.jobs = 1024, .train_fraction = 1, .validation_fraction = 0}, Split::train);
};

const World& world() {
  static const World instance;
  return instance;
}

EnvOptions options_of(ActionMode mode) {
  EnvOptions options;
  options.agenda = {.mode = mode, .knowledge = RuntimeKnowledge::oracle};
  return options;
}

// The heuristic acts, so that the time is the environment's own.
void run_env(benchmark::State& state, ActionMode mode, bool observe) {
  Env env(world().cluster, options_of(mode));
  std::vector<float> jobs(std::size_t{128} * job_features), prior(129), groups(std::size_t{64} * group_features),
      global(global_features);
  std::vector<std::uint8_t> mask(129);
  const ObservationSlot slot{jobs.data(), prior.data(), mask.data(), groups.data(), global.data()};
  std::size_t episode = 0;
  std::int64_t tokens = 0;
  StepResult result;
  result.terminated = true;
  for ([[maybe_unused]] const auto _ : state) {
    if (result.done()) result = env.reset(world().windows[episode++ % world().windows.size()]);
    if (observe) env.encode(slot);
    tokens += env.agenda().size();
    benchmark::DoNotOptimize(jobs.data());
    result = env.step(env.agenda().heuristic_action(Heuristic::sjf));
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["tokens"] = static_cast<double>(tokens) / static_cast<double>(state.iterations());
  // Most jobs of this workload arrive at an empty queue and start without a choice; they cost the environment as much.
  state.counters["jobs_a_step"] = static_cast<double>(episode * 1024) / static_cast<double>(state.iterations());
}

BENCHMARK_CAPTURE(run_env, fit_or_wait, ActionMode::fit_or_wait, false);
BENCHMARK_CAPTURE(run_env, fit_or_wait_observed, ActionMode::fit_or_wait, true);
BENCHMARK_CAPTURE(run_env, select_blocking, ActionMode::select_blocking, false);
BENCHMARK_CAPTURE(run_env, select_blocking_observed, ActionMode::select_blocking, true);

// Threads inherit the processors of the thread that creates them.
void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

// The caller's thread on core 0 and the other on core 1: on a busy machine the kernel would put both on one.
void run_vector_env(benchmark::State& state) {
  cpu_set_t anywhere;
  sched_getaffinity(0, sizeof anywhere, &anywhere);
  stay_on(1);
  VectorEnv env(world().windows, {}, world().cluster,
                {.env = options_of(ActionMode::fit_or_wait),
                 .environments = 256,
                 .threads = static_cast<std::uint32_t>(state.range(0))});
  stay_on(0);
  env.reset(1);
  std::vector<std::uint32_t> actions(env.size());
  double fastest_us = std::numeric_limits<double>::infinity();
  for ([[maybe_unused]] const auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    env.heuristic_actions(Heuristic::sjf, actions);
    env.step(actions);
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
    fastest_us = std::min(fastest_us, spent.count());
  }
  state.SetItemsProcessed(state.iterations() * env.size());
  state.counters["fastest_us"] = fastest_us;
  sched_setaffinity(0, sizeof anywhere, &anywhere);
}
// Where two cores are free, wall time shows the speed-up. On a busy machine the fastest step of each shows it, because
// no other process interrupted that step.
BENCHMARK(run_vector_env)->Arg(1)->Arg(2)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace gpusched
BENCHMARK_MAIN();
