// SPDX-License-Identifier: Apache-2.0
// Prints cost, waits and jobs in the cloud by Starburst's waiting policies as csv.
#include <CLI/CLI.hpp>
#include <string>

#include "experiments/signal_option.hpp"
#include "src/sim/protocols/starburst_protocol.hpp"

namespace {

using namespace gpusched;

int run(int argc, char** argv) {
  std::string file;
  StarburstOptions options;
  CLI::App app("Starburst: cost of the cloud, mean wait, and jobs in the cloud by waiting policy");
  app.add_option("--jobs", file, "csv: submit_h, runtime_h, gpus")->required();
  app.add_option("--nodes", options.nodes, "of the cluster")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--gpus-per-node", options.gpus_per_node, "of a node")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--usd-per-gpu-h", options.usd_per_gpu_h, "price of the cloud")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto jobs = read_starburst_jobs(file);
  if (!jobs) return complain(jobs.error());
  print_row({"policy", "cost_usd", "mean_wait_h", "cloud_jobs"});
  for (const StarburstPolicy& policy : starburst_policies(*jobs)) {
    const StarburstResult result = run_starburst(*jobs, policy, options);
    print_row({policy.name, exact_number(result.cost_usd), exact_number(result.mean_wait_h),
               std::to_string(result.cloud_jobs)});
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
