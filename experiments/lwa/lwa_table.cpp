// SPDX-License-Identifier: Apache-2.0
// Prints what the jobs of "Let's Wait Awhile" emit, and how much less when they wait, as csv.
#include <CLI/CLI.hpp>
#include <string>

#include "experiments/signal_option.hpp"
#include "src/sim/protocols/lwa_protocol.hpp"

namespace {

using namespace gpusched;

int run(int argc, char** argv) {
  std::string file;
  CarbonOption carbon;
  LwaOptions options;
  CLI::App app("Let's Wait Awhile: tonnes emitted, and percent saved by waiting until the next working morning");
  app.add_option("--jobs", file, "csv: submit_min (since the year began), duration_min")->required();
  carbon.add_to(app);
  app.add_option("--watts", options.watts, "of a job")->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto jobs = read_lwa_jobs(file);
  if (!jobs) return complain(jobs.error());
  const auto signal = carbon.signal();
  if (!signal) return complain(signal.error());
  if (!signal->is_utc) return complain(carbon.file + ": expected dates, which tell working days");
  const auto year = lwa_year(signal->signal);
  if (!year) return complain(carbon.file + ": " + year.error().message);
  carbon.note_end(*signal, *year + lwa_horizon(*jobs, *year));
  options.forecast = carbon.known();
  const LwaResult result = run_lwa(*jobs, signal->signal, *year, options);
  print_row({"rule", "base_t", "saved_percent"});
  const std::string base = exact_number(result.base_t);
  print_row({"best-window", base, exact_number(result.best_window_saved_percent)});
  print_row({"cheapest-slots", base, exact_number(result.cheapest_slots_saved_percent)});
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
