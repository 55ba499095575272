// SPDX-License-Identifier: Apache-2.0
// The engine beside the minimum that any simulator must do: a bare loop with one std::priority_queue and a GPU counter.
// Every benchmark reports jobs_per_s; compare figures of one run only.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/philly_jobs.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"
#include "src/policies/preemptive/srtf.hpp"

namespace {

using namespace gpusched;
using bench::PlainJob;

constexpr int philly_gpus = 2816;  // 352 nodes x 8

const std::vector<PlainJob>& philly_plain() {
  static const std::vector<PlainJob> jobs = bench::read_plain(bench::philly_path());
  return jobs;
}

const JobTable& philly_table() {
  static const JobTable jobs = bench::to_job_table(philly_plain());
  return jobs;
}

void report_rate(benchmark::State& state, std::size_t jobs) {
  state.counters["jobs_per_s"] = benchmark::Counter(static_cast<double>(jobs) * static_cast<double>(state.iterations()),
                                                    benchmark::Counter::kIsRate);
}

bool skip_without_philly(benchmark::State& state) {
  if (!philly_plain().empty()) return false;
  state.SkipWithError("philly_jobs.csv not found; set GPUSCHED_TRACES");
  return true;
}

void BareLoopWithParsing(benchmark::State& state) {
  if (skip_without_philly(state)) return;
  std::size_t jobs = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const std::vector<PlainJob> plain = bench::read_plain(bench::philly_path());
    benchmark::DoNotOptimize(bench::bare_fifo(plain, philly_gpus));
    jobs = plain.size();
  }
  report_rate(state, jobs);
}
BENCHMARK(BareLoopWithParsing)->Unit(benchmark::kMillisecond);

void BareLoop(benchmark::State& state) {
  if (skip_without_philly(state)) return;
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(bench::bare_fifo(philly_plain(), philly_gpus));
  report_rate(state, philly_plain().size());
}
BENCHMARK(BareLoop)->Unit(benchmark::kMillisecond);

// Engine alone: construction, every event, no reading and no report.
template <class P>
void replay(benchmark::State& state, const Cluster& cluster, const P& fresh) {
  if (skip_without_philly(state)) return;
  std::uint64_t events = 0;
  for ([[maybe_unused]] const auto _ : state) {
    Engine engine(philly_table(), cluster);
    P policy = fresh;
    if (!simulate(engine, policy)) state.SkipWithError("jobs left waiting");
    events += engine.events_seen();
  }
  report_rate(state, philly_table().size());
  state.counters["events_per_s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

const Cluster pool = Cluster::pool(philly_gpus);
const Cluster nodes = Cluster::homogeneous(352, 8);
const Cluster contended = Cluster::homogeneous(280, 8);

BENCHMARK_CAPTURE(replay, fifo_pool, pool, Fifo{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, fifo_352x8, nodes, Fifo{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, fifo_280x8, contended, Fifo{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, fifo_skip_280x8, contended, FifoSkip{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, sjf_280x8, contended, Sjf{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, srtf_280x8, contended, ShortestRemaining(false))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, srsf_280x8, contended, ShortestRemaining(true))->Unit(benchmark::kMillisecond);

std::int64_t peak_memory_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

JobTable synthetic_jobs(std::int64_t count) {
  Rng rng = Rng(1).split("bench");
  constexpr std::uint32_t gpus[] = {1, 1, 1, 1, 1, 2, 4, 8};
  JobTableBuilder builder;
  builder.reserve(static_cast<std::size_t>(count));
  Time submit{};
  for (std::int64_t i = 0; i < count; ++i) {
    submit += Time{static_cast<std::int64_t>(rng.below(2'000'000))};
    builder.add({.id = {},
                 .submit = submit,
                 .work = Time{static_cast<std::int64_t>(rng.lognormal(20, 1.5))},  // about 8 minutes, heavy tail
                 .shape = {.tasks = gpus[rng.below(8)], .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

// FIFO from 10^5 to 10^7 jobs: time a job must grow no faster than log n, memory must stay below 100 bytes a job beyond
// the trace.
void FifoScale(benchmark::State& state) {
  const JobTable jobs = synthetic_jobs(state.range(0));
  const std::int64_t before_kib = peak_memory_kib();
  for ([[maybe_unused]] const auto _ : state) {
    Engine engine(jobs, Cluster::homogeneous(400, 8));
    Fifo policy;
    if (!simulate(engine, policy)) state.SkipWithError("jobs left waiting");
  }
  report_rate(state, jobs.size());
  state.counters["bytes_per_job"] =
      static_cast<double>(peak_memory_kib() - before_kib) * 1024 / static_cast<double>(jobs.size());
}
BENCHMARK(FifoScale)->RangeMultiplier(10)->Range(100'000, 10'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);

// The whole program: start, read, replay, every metric, the table.
void ReplayProcess(benchmark::State& state) {
  const std::size_t jobs = philly_plain().size();
  if (jobs == 0) return state.SkipWithError("philly_jobs.csv is absent");
  const std::string command =
      GPUSCHED_PROGRAM " replay --trace '" + bench::philly_path() + "' --cluster 352x8 --policy fifo >/dev/null 2>&1";
  for ([[maybe_unused]] const auto _ : state) {
    if (std::system(command.c_str()) != 0) return state.SkipWithError("the program failed");
  }
  report_rate(state, jobs);
}
BENCHMARK(ReplayProcess)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
