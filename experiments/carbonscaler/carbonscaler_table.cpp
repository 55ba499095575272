// SPDX-License-Identifier: Apache-2.0
// Prints what an elastic job emits and draws by CarbonScaler's plan, and on one replica at once, as csv.
#include <CLI/CLI.hpp>
#include <string>

#include "experiments/signal_option.hpp"
#include "src/sim/protocols/carbon_scaler_protocol.hpp"

namespace {

using namespace gpusched;

int run(int argc, char** argv) {
  std::string file;
  CarbonOption carbon;
  ScaleOptions options;
  CLI::App app("CarbonScaler: grams and kilowatt-hours of a job by its plan, and on one replica at once");
  app.add_option("--profile", file, "yaml of carbonAdvisor: power and throughput of each model by replicas")
      ->required();
  carbon.add_to(app);
  carbon.add_from_hour_to(app);
  app.add_option("--work-h", options.work_h, "hours of one replica")->check(CLI::Range(1, 2000))->capture_default_str();
  app.add_option("--deadline-h", options.deadline_h, "hours from the beginning")
      ->check(CLI::Range(1, 2000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto profiles = read_scale_profiles(file);
  if (!profiles) return complain(profiles.error());
  const auto signal = carbon.signal_from_jobs();
  if (!signal) return complain(signal.error());
  carbon.note_end(*signal, whole_seconds(3600 * std::max(options.work_h, options.deadline_h)));
  options.forecast = carbon.known();
  print_row({"model", "carbon_g", "energy_kwh", "base_carbon_g", "base_energy_kwh"});
  for (const ScaleProfile& profile : *profiles) {
    const ScaleResult result = run_carbon_scaler(profile, signal->signal, options);
    if (!result.in_time) return complain(profile.model + ": not done by the deadline on any number of replicas");
    print_row({profile.model, exact_number(result.carbon_g), exact_number(result.energy_kwh),
               exact_number(result.base_carbon_g), exact_number(result.base_energy_kwh)});
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
