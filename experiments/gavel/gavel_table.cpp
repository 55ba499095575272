// SPDX-License-Identifier: Apache-2.0
// Prints the makespans of Gavel's static trace: published | gpusched | difference.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/program/commands.hpp"
#include "src/sim/protocols/gavel_protocol.hpp"

namespace {

using namespace gpusched;

struct Row {
  const char* label;
  const char* policy;
  std::uint32_t jobs;
  double published_h;
};

// Means of seeds 0 to 2 on 36 GPUs of each type (notebooks/figures/evaluation/makespan.ipynb of the artifact).
constexpr Row rows[] = {{"FIFO", "fifo@gavel", 100, 182.3},
                        {"FIFO", "fifo@gavel", 400, 350.5},
                        {"FIFO", "fifo@gavel", 700, 619.5},
                        {"Gavel", "gavel{objective=makespan}", 100, 161.2},
                        {"Gavel", "gavel{objective=makespan}", 400, 161.3},
                        {"Gavel", "gavel{objective=makespan}", 700, 244.2}};

Result<double> makespan_h(const ThroughputTable& throughputs, const Row& row, std::uint64_t seed) {
  const auto jobs = gavel_static_jobs(throughputs, row.jobs, seed);
  if (!jobs) return Unexpected{jobs.error()};
  const Cluster cluster = gavel_cluster(36);
  const auto runtime = runtime_model_from_throughputs(throughputs, gavel_gpu_types.front(), *jobs, cluster);
  if (!runtime) return Unexpected{runtime.error()};
  const auto specs = parse_policy_list(row.policy);
  if (!specs) return Unexpected{specs.error()};
  auto policy = PolicyRegistry::standard().make(specs->front(), {.jobs = &*jobs, .cluster = &cluster});
  if (!policy) return Unexpected{policy.error()};
  Engine engine(*jobs, cluster, {}, {.runtime = &runtime->model});
  if (!simulate(engine, *policy)) return unexpected(std::string(row.policy) + " never finished its jobs");
  Time last{};
  for (std::uint32_t i = 0; i < jobs->size(); ++i) last = std::max(last, engine.end(JobId{i}));
  return to_seconds(last) / 3600;
}

int run(int argc, char** argv) {
  std::string traces = "../shared/traces";
  std::uint64_t seeds = 3;
  std::uint32_t most_jobs = 700;
  CLI::App app("Makespans of Gavel's static trace: published | gpusched | difference");
  app.add_option("--traces", traces, "folder of the real traces")->envname("GPUSCHED_TRACES")->capture_default_str();
  app.add_option("--seeds", seeds, "traces of each size; the published means are of 3")->check(CLI::Range(1, 100));
  app.add_option("--most-jobs", most_jobs, "leave out larger traces")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto throughputs = read_throughput_table(traces + "/profiles/gavel/gavel_simulation_throughputs.json");
  if (!throughputs) {
    std::fprintf(stderr, "%s\n", throughputs.error().to_string().c_str());
    return 2;
  }
  std::printf("%-8s %6s %12s %11s %11s %9s\n", "policy", "jobs", "published h", "gpusched h", "difference", "seconds");
  for (const Row& row : rows) {
    if (row.jobs > most_jobs) continue;
    const auto begin = std::chrono::steady_clock::now();
    double sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto hours = makespan_h(*throughputs, row, seed);
      if (!hours) {
        std::fprintf(stderr, "%s\n", hours.error().to_string().c_str());
        return 2;
      }
      sum += *hours;
    }
    const double mean = sum / static_cast<double>(seeds);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%-8s %6u %12.1f %11.1f %+10.1f%% %9.1f\n", row.label, row.jobs, row.published_h, mean,
                100 * (mean / row.published_h - 1), seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
