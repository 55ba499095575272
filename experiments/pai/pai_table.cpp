// SPDX-License-Identifier: Apache-2.0
// Prints average JCT, wait and makespan of the PAI simulator's orders: published | gpusched | difference.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "src/program/commands.hpp"
#include "src/sim/protocols/pai_protocol.hpp"

namespace {

using namespace gpusched;

struct Published {
  PaiOrder order;
  double avg_jct_s, avg_wait_s;
  std::int64_t makespan_s;  // 0: not printed with the others
};

// 20,000 jobs, 1,000 a minute, 6,500 GPUs, seed 42: README of the simulator.
constexpr Published published[] = {{PaiOrder::sjf, 5988.61, 949.91, 535706},
                                   {PaiOrder::sju, 6278.33, 1239.62, 0},
                                   {PaiOrder::sjg, 6071.01, 1032.31, 0},
                                   {PaiOrder::sjgg, 6001.94, 963.23, 0},
                                   {PaiOrder::fifo, 7918.47, 2879.77, 0}};

void print_figure(const char* name, double theirs, double ours, bool compare) {
  if (compare && theirs > 0) {
    std::printf("  %-9s %12.2f %12.2f %+10.2f\n", name, theirs, ours, ours - theirs);
  } else {
    std::printf("  %-9s %12s %12.2f %10s\n", name, "-", ours, "-");
  }
}

int run(int argc, char** argv) {
  std::string path;
  PaiOptions options;
  CLI::App app("The PAI simulator's table: published | gpusched | difference");
  app.add_option("trace", path, "pai_job_duration_estimate_100K.csv, or a file of the same columns")->required();
  app.add_option("--gpus", options.gpus, "GPUs of the one node")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "jobs drawn from the file")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--arrivals", options.arrivals, "jobs a minute; 0: when the file says")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of Python's random")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (!std::filesystem::exists(path)) {
    std::printf("skipped: %s is absent; it is in cluster-trace-gpu-v2020/simulator of alibaba/clusterdata\n",
                path.c_str());
    return 0;
  }
  const auto jobs = read_pai_jobs(path, options);
  if (!jobs) {
    std::fprintf(stderr, "%s\n", jobs.error().to_string().c_str());
    return 2;
  }
  const auto sample = draw_pai_jobs(*jobs, options);
  const PaiOptions authors;
  const bool same_experiment = std::filesystem::path(path).filename() == "pai_job_duration_estimate_100K.csv" &&
                               options.gpus == authors.gpus && options.jobs == authors.jobs &&
                               options.arrivals == authors.arrivals && options.seed == authors.seed;
  std::printf("%zu jobs on %lld GPUs\n%-11s %12s %12s %10s\n", sample.size(), static_cast<long long>(options.gpus),
              "seconds", "published", "gpusched", "difference");
  for (const PaiOrderName& row : pai_orders) {
    const auto result = run_pai(sample, row.order, options);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
      return 2;
    }
    const Published& theirs = published[&row - pai_orders];
    std::printf("%s\n", std::string(row.name).c_str());
    print_figure("avg JCT", theirs.avg_jct_s, result->avg_jct_s, same_experiment);
    print_figure("avg wait", theirs.avg_wait_s, result->avg_wait_s, same_experiment);
    print_figure("makespan", static_cast<double>(theirs.makespan_s), static_cast<double>(result->makespan_s),
                 same_experiment);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
