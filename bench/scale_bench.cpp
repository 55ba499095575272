// SPDX-License-Identifier: Apache-2.0
// Whole runs where something other than the number of jobs grows: users, demands that differ in memory, nodes. A figure
// beside its neighbour of half the size tells the growth. Compare figures of one run only.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/policy_case.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"

namespace {

using namespace gpusched;
using bench::Case;

/// What the jobs of a workload have of their own.
struct Workload {
  std::int64_t jobs = 0;
  std::int64_t gpus = 0;  ///< of the cluster, which is loaded to about 110 %
  std::int64_t users = 1;
  std::int64_t most_memory_mib = 0;  ///< of a job, each of another amount; 0: none asks for memory
  bool shares = false;               ///< half the jobs ask for a part of a GPU, and all for some of 16 amounts of CPU
};

JobTable jobs_of(const Workload& of) {
  Rng rng = Rng(11).split("scale");
  const double mean_gpus = of.shares ? 2 : 3.75, mean_s = 3600;
  const double gap_s = mean_gpus * mean_s / (1.1 * static_cast<double>(of.gpus));
  JobTableBuilder builder;
  builder.reserve(static_cast<std::size_t>(of.jobs));
  double submit_s = 0;
  for (std::int64_t i = 0; i < of.jobs; ++i) {
    submit_s += rng.exponential(gap_s);
    const std::string user = "user" + std::to_string(rng.below(static_cast<std::uint64_t>(of.users)));
    const Time work = from_seconds(rng.exponential(mean_s));
    Shape shape{.tasks = std::uint32_t{1} << rng.below(4), .gpu_milli_per_task = whole_gpu};
    if (of.shares) {
      const bool whole = rng.below(2) == 0;
      shape.gpu_milli_per_task = whole ? shape.tasks * whole_gpu : static_cast<MilliGpu>(100 * (1 + rng.below(9)));
      shape.tasks = 1;
      shape.cpu_milli_per_task = static_cast<std::int64_t>(1000 * (1 + rng.below(16)));
    }
    // Amounts in no order of submission.
    if (of.most_memory_mib > 0) shape.memory_mib_per_task = 1 + i * 7919 % of.jobs * of.most_memory_mib / of.jobs;
    builder.add(
        {.submit = from_seconds(submit_s), .work = work, .estimate = work + work, .shape = shape, .user = user});
  }
  return *std::move(builder).build();
}

void run(benchmark::State& state, const Case& of, const JobTable& jobs, const Cluster& cluster) {
  const auto policy = bench::make(state, of, jobs, cluster);
  if (!policy) return;
  for ([[maybe_unused]] const auto _ : state) {
    Engine engine(jobs, cluster);
    AnyPolicy fresh = *policy;
    simulate(engine, fresh);
  }
  state.counters["jobs_per_s"] = benchmark::Counter(
      static_cast<double>(jobs.size()) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// 100,000 jobs of so many users on 512 GPUs.
void users(benchmark::State& state, const Case& of) {
  const JobTable jobs = jobs_of({.jobs = 100'000, .gpus = 512, .users = state.range(0)});
  run(state, of, jobs, Cluster::homogeneous(64, 8));
}

/// So many jobs, each with an amount of memory of its own, up to most of what a node has.
void memory(benchmark::State& state, const Case& of) {
  constexpr std::int64_t node_mib = std::int64_t{1} << 20;
  const JobTable jobs =
      jobs_of({.jobs = state.range(0), .gpus = 320, .users = 100, .most_memory_mib = node_mib * 9 / 10});
  Cluster cluster = Cluster::homogeneous(40, 8);
  for (Node& node : cluster.nodes) node.memory_mib = node_mib;
  run(state, of, jobs, cluster);
}

/// 100,000 jobs, half of them GPU shares, on so many nodes of 8 GPUs and 128 cores.
void nodes(benchmark::State& state, const Case& of) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  const JobTable jobs = jobs_of({.jobs = 100'000, .gpus = 8 * state.range(0), .shares = true});
  Cluster cluster = Cluster::homogeneous(count, 8);
  for (Node& node : cluster.nodes) node.cpu_milli = 128'000;
  run(state, of, jobs, cluster);
}

using Runs = void (*)(benchmark::State&, const Case&);

void add(const std::string& group, Runs runs, const std::vector<std::string>& policies, std::int64_t least,
         std::int64_t most) {
  for (const std::string& text : policies) {
    const std::size_t plus = text.find('+');
    const Case of{text.substr(0, plus), plus == std::string::npos ? std::string() : text.substr(plus + 1)};
    benchmark::RegisterBenchmark((group + "/" + of.name()).c_str(),
                                 [of, runs](benchmark::State& state) { runs(state, of); })
        ->RangeMultiplier(10)
        ->Range(least, most)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  add("users", users, {"srtf", "slurm", "volcano{by=user}", "yarn-fair{by=user}", "drf", "lsf", "max-min"}, 10, 10'000);
  add("memory", memory,
      {"fifo-skip", "sjf{skip=true}", "srtf", "las", "tiresias", "gandiva", "k8s", "fgd", "max-min", "drf", "slurm",
       "fifo+easy"},
      100, 10'000);
  add("nodes", nodes, {"fifo-skip", "srtf", "fgd", "bestfit", "k8s"}, 100, 100'000);
  benchmark::RunSpecifiedBenchmarks();
}
