// SPDX-License-Identifier: Apache-2.0
// Prints what Gavel's evaluation measures: makespans of its static trace, and mean completion times of jobs that
// arrive.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
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

constexpr double not_published = 0;

struct MakespanRow {
  const char* label;
  const char* policy;
  std::uint32_t jobs;
  double published_h;
};

// Means of seeds 0 to 2 on 36 GPUs of each type (notebooks/figures/evaluation/makespan.ipynb of the artifact).
constexpr MakespanRow makespan_rows[] = {{"FIFO", "fifo@gavel", 100, 182.3},
                                         {"FIFO", "fifo@gavel", 400, 350.5},
                                         {"FIFO", "fifo@gavel", 700, 619.5},
                                         {"Gavel", "gavel@gavel{objective=makespan}", 100, 161.2},
                                         {"Gavel", "gavel@gavel{objective=makespan}", 400, 161.3},
                                         {"Gavel", "gavel@gavel{objective=makespan}", 700, 244.2}};

struct CompletionRow {
  const char* policy;
  std::uint64_t seed;
  double mean_gap_s;
  std::uint32_t first, last;
  double published_s;
};

// Jobs 4,000 to 4,999: printed in EXPERIMENTS.md of the artifact. Jobs 400 to 499: what the artifact prints when it is
// run (commit c4fa400). On an almost idle cluster its max-min gives the completion times of its AlloX, job by job.
constexpr CompletionRow allox_rows[] = {
    {"allox@gavel", 42, 9000, 4000, 5000, 59492.106756},   {"allox@gavel", 1234, 9000, 4000, 5000, 64494.582453},
    {"allox@gavel", 15, 9000, 4000, 5000, 54834.129989},   {"allox@gavel", 42, 4500, 4000, 5000, 59770.441018},
    {"allox@gavel", 1234, 4500, 4000, 5000, 64695.450528}, {"allox@gavel", 15, 4500, 4000, 5000, 55072.401336},
    {"allox@gavel", 42, 1125, 400, 500, 65558.889604},     {"allox@gavel", 42, 600, 400, 500, 66501.763905},
    {"allox@gavel", 1234, 600, 400, 500, 45586.183640},    {"allox", 42, 9000, 4000, 5000, not_published}};
constexpr CompletionRow gavel_rows[] = {{"gavel@gavel", 42, 9000, 4000, 5000, 59492.106756},
                                        {"gavel@gavel", 42, 1125, 400, 500, 65487.06},
                                        {"gavel@gavel", 42, 600, 400, 500, 75685.17},
                                        {"gavel@gavel{aware=false}", 42, 9000, 400, 500, 91252.91},
                                        {"gavel@gavel{aware=false}", 42, 1125, 400, 500, 92798.61},
                                        {"gavel", 42, 9000, 4000, 5000, not_published},
                                        {"gavel", 42, 1125, 400, 500, not_published},
                                        {"gavel", 42, 600, 400, 500, not_published}};

Result<double> makespan_h(const ThroughputTable& throughputs, const MakespanRow& row, std::uint64_t seed) {
  const auto jobs = gavel_static_jobs(throughputs, row.jobs, seed);
  if (!jobs) return Unexpected{jobs.error()};
  const Cluster cluster = gavel_cluster(36);
  const auto runtime = runtime_model_from_throughputs(throughputs, gavel_gpu_types.front(), *jobs, cluster);
  if (!runtime) return Unexpected{runtime.error()};
  const auto specs = parse_policy_list(row.policy);
  if (!specs) return Unexpected{specs.error()};
  auto policy = PolicyRegistry::standard().make(
      specs->front(), {.jobs = &*jobs, .cluster = &cluster, .seed = seed, .runtime = &runtime->model});
  if (!policy) return Unexpected{policy.error()};
  Engine engine(*jobs, cluster, {}, {.runtime = &runtime->model});
  if (!simulate(engine, *policy)) return unexpected(std::string(row.policy) + " never finished its jobs");
  Time last{};
  for (std::uint32_t i = 0; i < jobs->size(); ++i) last = std::max(last, engine.end(JobId{i}));
  return to_seconds(last) / 3600;
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 2;
}

std::string text(double value, int digits, const char* unit = "") {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f%s", digits, value, unit);
  return buffer;
}

// published | gpusched | difference in percent | seconds that it took; "-" for what was not published.
void print_figures(double published, double ours, int digits, std::chrono::steady_clock::time_point begin) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool known = published != not_published;
  std::printf("%14s %14s %11s %9.1f\n", known ? text(published, digits).c_str() : "-", text(ours, digits).c_str(),
              known ? text(100 * (ours / published - 1), 1, "%").c_str() : "-", seconds);
  std::fflush(stdout);
}

int print_makespans(const ThroughputTable& throughputs, std::uint64_t seeds, std::uint32_t most_jobs) {
  std::printf("%-8s %6s %14s %14s %11s %9s\n", "policy", "jobs", "published_h", "gpusched_h", "difference", "seconds");
  for (const MakespanRow& row : makespan_rows) {
    if (row.jobs > most_jobs) continue;
    const auto begin = std::chrono::steady_clock::now();
    double sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto hours = makespan_h(throughputs, row, seed);
      if (!hours) return fail(hours.error());
      sum += *hours;
    }
    std::printf("%-8s %6u ", row.label, row.jobs);
    print_figures(row.published_h, sum / static_cast<double>(seeds), 1, begin);
  }
  return 0;
}

template <class Rows>
int print_completions(const ThroughputTable& throughputs, const Rows& rows) {
  std::printf("%-26s %6s %6s %11s %14s %14s %11s %9s\n", "policy", "seed", "gap_s", "jobs", "published_s", "gpusched_s",
              "difference", "seconds");
  for (const CompletionRow& row : rows) {
    const auto begin = std::chrono::steady_clock::now();
    const auto mean = gavel_mean_completion_s(
        throughputs,
        {.policy = row.policy, .mean_gap_s = row.mean_gap_s, .seed = row.seed, .first = row.first, .last = row.last});
    if (!mean) return fail(mean.error());
    std::printf("%-26s %6llu %6.0f %5u-%-5u ", row.policy, static_cast<unsigned long long>(row.seed), row.mean_gap_s,
                row.first, row.last - 1);
    print_figures(row.published_s, *mean, 6, begin);
  }
  return 0;
}

int run(int argc, char** argv) {
  std::string traces = "../shared/traces", table = "makespan", policy;
  std::uint64_t seeds = 3, seed = 0;
  std::uint32_t most_jobs = 700, first = 4000, last = 5000;
  double mean_gap_s = 9000;
  CLI::App app("Figures of Gavel's evaluation: published | gpusched | difference");
  app.add_option("--traces", traces, "folder of the real traces")->envname("GPUSCHED_TRACES")->capture_default_str();
  app.add_option("--table", table,
                 "makespan: of the static trace, hours; allox, gavel: mean completion time of arriving jobs")
      ->check(CLI::IsMember({"makespan", "allox", "gavel"}))
      ->capture_default_str();
  app.add_option("--seeds", seeds, "makespan: traces of each size; the published means are of 3")
      ->check(CLI::Range(1, 100));
  app.add_option("--most-jobs", most_jobs, "makespan: leave out larger traces")->capture_default_str();
  CLI::Option* const one = app.add_option(
      "--policy", policy, "instead of a table, the mean completion time under this policy of arriving jobs");
  app.add_option("--seed", seed, "of --policy")->needs(one)->capture_default_str();
  app.add_option("--gap", mean_gap_s, "of --policy: mean seconds between arrivals")
      ->needs(one)
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  app.add_option("--first", first, "of --policy: the first job that is measured")->needs(one)->capture_default_str();
  app.add_option("--last", last, "of --policy: the job behind the last")
      ->needs(one)
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto throughputs = read_throughput_table(traces + "/profiles/gavel/gavel_simulation_throughputs.json");
  if (!throughputs) return fail(throughputs.error());
  if (!policy.empty()) {
    if (first >= last) return fail({.message = "--first must be below --last"});
    const auto mean = gavel_mean_completion_s(
        *throughputs, {.policy = policy, .mean_gap_s = mean_gap_s, .seed = seed, .first = first, .last = last});
    if (!mean) return fail(mean.error());
    std::printf("%.6f\n", *mean);
    return 0;
  }
  if (table == "allox") return print_completions(*throughputs, allox_rows);
  if (table == "gavel") return print_completions(*throughputs, gavel_rows);
  return print_makespans(*throughputs, seeds, most_jobs);
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
