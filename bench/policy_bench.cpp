// SPDX-License-Identifier: Apache-2.0
// Every registered policy on the Philly jobs with a contended cluster (280 nodes x 8 GPUs), and the cost of an event as
// the queue doubles. Compare figures of one run only.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/philly_jobs.hpp"
#include "bench/policy_case.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/seam/registry.hpp"

namespace {

using namespace gpusched;
using bench::Case;

struct Owners {
  int users = 0;
  int vcs = 0;
  bool skewed = false;  ///< a few heavy users and many light ones, else all alike
};

/// Columns that a policy may ask for and that the trace lacks, drawn from a seed: users in virtual clusters,
/// over-estimates, three priorities and loose deadlines.
JobTable with_all_columns(const std::vector<bench::PlainJob>& jobs, const Owners& owners) {
  Rng rng = Rng(280).split("columns");
  JobTableBuilder builder;
  builder.reserve(jobs.size());
  for (const bench::PlainJob& job : jobs) {
    const double place = owners.skewed ? rng.uniform() * rng.uniform() * rng.uniform() : rng.uniform();
    const auto user = static_cast<int>(owners.users * place);
    const std::string name = "user" + std::to_string(user), vc = "vc" + std::to_string(user % owners.vcs);
    const Time work = whole_seconds(job.run_s), submit = whole_seconds(job.submit_s);
    const Time estimate = whole_seconds(job.run_s * static_cast<std::int64_t>(1 + rng.below(5)) + 60);
    builder.add({.submit = submit,
                 .work = work,
                 .estimate = estimate,
                 .shape = {.tasks = static_cast<std::uint32_t>(job.gpus), .gpu_milli_per_task = whole_gpu},
                 .user = name,
                 .group = name,
                 .vc = vc,
                 .name = name,
                 .priority = static_cast<std::int32_t>(1 + rng.below(3)),
                 .deadline = submit + estimate + estimate});
  }
  return *std::move(builder).build();
}

const JobTable& philly() {
  static const JobTable jobs =
      with_all_columns(bench::read_plain(bench::philly_path()), {.users = 300, .vcs = 15, .skewed = true});
  return jobs;
}

/// Every registered policy with its default parameters, and the ways of backfilling around one order, with run times
/// known and mistaken.
std::vector<Case> cases() {
  std::vector<Case> result;
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& info : registry.rows()) {
    // Users' parts, or equal parts, would be too small for some jobs.
    result.push_back({info.name == "static-partition" ? "static-partition{by=vc,parts=demand}" : info.name});
  }
  result.push_back({"volcano{preempt=true,reclaim=true}"});
  result.push_back({"themis{auction=false}"});
  result.push_back({"agenda{mode=backfill}"});
  result.push_back({"agenda{mode=select_blocking,sc20_backfill=true}"});
  for (const char* way : {"easy", "conservative", "sc20"}) {
    for (const char* estimate : {"exact", "noisy", "user-gpu-mean"}) {
      result.push_back({"sjf", std::string(way) + "{estimate=" + estimate + "}"});
    }
  }
  return result;
}

/// The same jobs first come first served without an engine, for ratios within one run.
void bare_loop(benchmark::State& state) {
  const std::vector<bench::PlainJob> jobs = bench::read_plain(bench::philly_path());
  if (jobs.empty()) return state.SkipWithError("philly_jobs.csv is absent");
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(bench::bare_fifo(jobs, 280 * 8));
  state.counters["jobs_per_s"] = benchmark::Counter(
      static_cast<double>(jobs.size()) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

struct Latencies {
  double p50_us = 0;
  double p99_us = 0;
  std::uint32_t peak_queue = 0;
};

/// A run of its own, because looking at the clock twice an instant costs time.
Latencies measure_decisions(Engine engine, AnyPolicy policy) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  Latencies result;
  Decision decision = engine.decision();
  while (engine.advance()) {
    const OracleView view = engine.view();
    result.peak_queue = std::max(result.peak_queue, view.pending_count());
    const auto begin = Clock::now();
    policy.decide(view, decision);
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    engine.apply();
  }
  const auto quantile = [&](double q) {
    const auto at = us.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(us.size() - 1));
    std::nth_element(us.begin(), at, us.end());
    return *at;
  };
  if (!us.empty()) {
    result.p50_us = quantile(0.50);
    result.p99_us = quantile(0.99);
  }
  return result;
}

void philly_280x8(benchmark::State& state, const Case& of) {
  const JobTable& jobs = philly();
  if (jobs.size() == 0) return state.SkipWithError("philly_jobs.csv is absent");
  const Cluster cluster = Cluster::homogeneous(280, 8);
  const auto policy = make(state, of, jobs, cluster);
  if (!policy) return;
  std::uint64_t events = 0;
  for ([[maybe_unused]] const auto _ : state) {
    Engine engine(jobs, cluster);
    AnyPolicy fresh = *policy;
    simulate(engine, fresh);
    events += engine.events_seen();
  }
  const auto rate = [](double n) { return benchmark::Counter(n, benchmark::Counter::kIsRate); };
  state.counters["jobs_per_s"] = rate(static_cast<double>(jobs.size()) * static_cast<double>(state.iterations()));
  state.counters["events_per_s"] = rate(static_cast<double>(events));
  const Latencies latencies = measure_decisions(Engine(jobs, cluster), *policy);
  state.counters["decide_p50_us"] = latencies.p50_us;
  state.counters["decide_p99_us"] = latencies.p99_us;
  state.counters["peak_queue"] = latencies.peak_queue;
}

/// `waiting` jobs at once, in the shapes of the field, and as many more as may start while we look. Their 30 users,
/// three priorities and four shapes are all there in the shortest queue, so that nothing but its length doubles.
const JobTable& waiting_jobs(std::int64_t waiting) {
  static std::map<std::int64_t, JobTable> made;
  const auto known = made.find(waiting);
  if (known != made.end()) return known->second;
  Rng rng = Rng(7).split("queue");
  std::vector<bench::PlainJob> plain;
  for (std::int64_t i = 0; i < waiting + 4000; ++i) {
    plain.push_back({0, static_cast<std::int64_t>(1 + rng.below(100'000)), 1 << rng.below(4)});
  }
  return made.emplace(waiting, with_all_columns(plain, {.users = 30, .vcs = 8})).first->second;
}

/// That queue on 64 GPUs; measured are the next 2,000 instants, or those of one second when it does not suffice.
void queue_of(benchmark::State& state, const Case& of) {
  using Clock = std::chrono::steady_clock;
  constexpr int instants_wanted = 2000;
  constexpr std::chrono::seconds patience{1};
  const JobTable& jobs = waiting_jobs(state.range(0));
  const Cluster cluster = Cluster::homogeneous(8, 8);
  const auto policy = make(state, of, jobs, cluster);
  if (!policy) return;
  // Created and freed outside the timed loop: freeing 100,000 waiting jobs takes longer than 2,000 instants.
  Engine engine(jobs, cluster);
  AnyPolicy fresh = *policy;
  Decision decision = engine.decision();
  const auto step = [&] {
    if (!engine.advance()) return false;
    fresh.decide(engine.view(), decision);
    engine.apply();
    return true;
  };
  // The first instant, which submits all jobs, is not typical; some policies rank them at the next one.
  step();
  step();
  std::int64_t instants = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const auto begin = Clock::now();
    while (instants < instants_wanted && Clock::now() - begin < patience && step()) ++instants;
  }
  state.counters["instants_per_s"] = benchmark::Counter(static_cast<double>(instants), benchmark::Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("bare_loop_280x8", bare_loop)->Unit(benchmark::kMillisecond);
  for (const Case& of : cases()) {
    benchmark::RegisterBenchmark(("philly_280x8/" + of.name()).c_str(),
                                 [of](benchmark::State& state) { philly_280x8(state, of); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  for (const Case& of : cases()) {
    benchmark::RegisterBenchmark(("queue/" + of.name()).c_str(), [of](benchmark::State& state) { queue_of(state, of); })
        ->RangeMultiplier(2)
        ->Range(1024, 131'072)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
}
