// SPDX-License-Identifier: Apache-2.0
// Prints one hash a scenario over everything that happened in it. Built several times, with other compilers,
// optimisation levels and sanitizers; all must print the same lines.
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"
#include "src/policies/preemptive/srtf.hpp"

namespace {

using namespace gpusched;

// Jobs of mixed shapes: gangs, whole-node tasks, GPU shares, CPU-only ones, some with retries.
JobTable mixed_jobs(std::uint32_t count) {
  Rng rng = Rng(7).split("probe");
  JobTableBuilder builder;
  Time submit{};
  for (std::uint32_t i = 0; i < count; ++i) {
    submit += Time{static_cast<std::int64_t>(rng.below(40'000'000))};
    JobRecord job;
    job.submit = submit;
    const Time attempts[] = {Time{static_cast<std::int64_t>(rng.below(600'000'000))},
                             Time{static_cast<std::int64_t>(rng.below(900'000'000))}};
    job.work = attempts[0];
    if (rng.below(5) == 0) {
      job.work += attempts[1];
      job.attempts = attempts;
    }
    switch (rng.below(4)) {
      case 0: job.shape = {.tasks = 1, .gpu_milli_per_task = static_cast<MilliGpu>(100 * (1 + rng.below(9)))}; break;
      case 1: job.shape = {.tasks = 2, .gpu_milli_per_task = 4 * whole_gpu}; break;
      case 2:
        job.shape = {.tasks = static_cast<std::uint32_t>(1 + rng.below(20)), .gpu_milli_per_task = whole_gpu};
        break;
      default: job.shape = {.tasks = 1, .gpu_milli_per_task = 0, .cpu_milli_per_task = 1000}; break;
    }
    builder.add(job);
  }
  return *std::move(builder).build();
}

// A run stepped in another way: by a host clock that stops every 90 seconds, on a copy forked in mid-run.
template <class P>
std::uint64_t hash_by_host_clock(Engine engine, P policy) {
  HistoryHash hash;
  Decision decision = engine.decision();
  for (Time clock = engine.view().now(); !engine.all_finished(); clock += whole_seconds(90)) {
    while (engine.advance_to(clock)) {
      hash.observe(engine.view(), engine.events());
      policy.decide(engine.view(), decision);
      engine.apply();
      hash.observe(engine.view(), engine.events());
    }
  }
  return hash.value();
}

template <class P>
std::uint64_t hash_in_one_go(Engine engine, P policy) {
  HistoryHash hash;
  simulate(engine, policy, hash);
  return hash.value();
}

template <class P>
void report(const char* what, const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, P policy) {
  const Engine engine(jobs, cluster, options);
  const std::uint64_t expected = hash_in_one_go(engine, policy);
  std::printf("%s %s %016llx\n", what, std::string(policy.name()).c_str(), static_cast<unsigned long long>(expected));
  if (hash_by_host_clock(engine, policy) != expected) std::printf("%s: stepping by a host clock differs\n", what);
  std::vector<std::uint64_t> hashes(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& hash : hashes) {
    threads.emplace_back([&hash, engine, policy] { hash = hash_in_one_go(engine, policy); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t hash : hashes) {
    if (hash != expected) std::printf("%s: a thread's run differs\n", what);
  }
}

template <class P>
void report_everywhere(const JobTable& jobs, P policy) {
  for (const PlacementName& rule : placement_names) {
    EngineOptions options;
    options.placement = rule.placement;
    options.preemption = {
        .checkpoint = whole_seconds(2), .restart = whole_seconds(5), .checkpoint_interval = whole_seconds(60)};
    report(rule.name.data(), jobs, Cluster::homogeneous(6, 8), options, policy);
  }
  report("pool", jobs, Cluster::pool(40), {}, policy);
}

}  // namespace

int main() {
  const JobTable jobs = mixed_jobs(600);
  report_everywhere(jobs, Fifo{});
  report_everywhere(jobs, FifoSkip{});
  report_everywhere(jobs, Sjf(true));
  report_everywhere(jobs, ShortestRemaining(false));
  report_everywhere(jobs, ShortestRemaining(true));
}
