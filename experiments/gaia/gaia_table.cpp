// SPDX-License-Identifier: Apache-2.0
// Prints carbon, cost and waits of GAIA's policies as csv.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/signal_option.hpp"
#include "src/sim/protocols/gaia_protocol.hpp"

namespace {

using namespace gpusched;

int run(int argc, char** argv) {
  std::string file;
  CarbonOption carbon;
  GaiaOptions options;
  std::vector<std::int64_t> reserved{0, 3, 9, 24};
  CLI::App app("GAIA: carbon (g), cost and mean wait of its policies");
  app.add_option("--jobs", file, "csv: arrival_time, length (seconds), cpus")->required();
  carbon.add_to(app);
  carbon.add_from_hour_to(app);
  app.add_option("--reserved", reserved, "numbers of reserved cpus")
      ->delimiter(',')
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto trace = read_gaia_jobs(file);
  if (!trace) return complain(trace.error());
  const auto signal = carbon.signal_from_jobs();
  if (!signal) return complain(signal.error());
  carbon.note_end(*signal, gaia_horizon(*trace, options));
  options.forecast = carbon.known();
  const double base = run_gaia(*trace, signal->signal, GaiaPolicy::no_wait, 0, options).carbon_g;
  print_row({"policy", "reserved", "carbon", "ratio", "cost_usd", "mean_wait_h"});
  for (const std::int64_t cpus : reserved) {
    for (const auto& [name, policy] : gaia_policies) {
      const GaiaResult result = run_gaia(*trace, signal->signal, policy, cpus, options);
      print_row({std::string(name), std::to_string(cpus), exact_number(result.carbon_g),
                 exact_number(base > 0 ? result.carbon_g / base : 1), exact_number(result.cost_usd),
                 exact_number(result.mean_wait_h)});
    }
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
