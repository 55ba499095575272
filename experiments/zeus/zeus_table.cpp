// SPDX-License-Identifier: Apache-2.0
// Prints the power limits that Zeus chooses, and energy and time against the largest limit, as csv.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "experiments/signal_option.hpp"
#include "src/sim/protocols/zeus_protocol.hpp"

namespace {

using namespace gpusched;

int run(int argc, char** argv) {
  std::string file;
  double eta = 0.5;
  CLI::App app("Zeus: the power limit of least cost, and energy and time against the largest limit");
  app.add_option("--table", file, "summary_power_*.csv of its repository")->required();
  app.add_option("--eta", eta, "worth of energy; the rest of 1 is that of time")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto curves = read_power_limits(file);
  if (!curves) return complain(curves.error());
  const std::vector<ZeusChoice> choices = zeus_choices(*curves, eta);
  print_row({"dataset", "batch_size", "optimizer", "limit_w", "energy_ratio", "time_ratio"});
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const PowerLimitCurve& curve = (*curves)[i];
    print_row({curve.dataset, std::to_string(curve.batch_size), curve.optimizer, exact_number(choices[i].limit_w),
               exact_number(choices[i].energy_ratio), exact_number(choices[i].time_ratio)});
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
