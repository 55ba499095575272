// SPDX-License-Identifier: Apache-2.0
// Prints what searches of trials do on a number of workers, as csv.
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/signal_option.hpp"
#include "src/trials/trial_run.hpp"

namespace {

using namespace gpusched;

// What trial k comes to in the end.
double final_loss(std::uint32_t trial) { return static_cast<double>(7919 * std::uint64_t{trial} % 1000) / 1000; }

// It falls from 1 to that, faster for some trials than for others, so that curves cross.
double falling_loss(std::uint32_t trial, TrialUnits units) {
  const double speed = 0.02 + static_cast<double>(7907 * std::uint64_t{trial} % 1000) / 2000;
  return final_loss(trial) + (1 - final_loss(trial)) * std::exp(-speed * static_cast<double>(units));
}

std::unique_ptr<TrialSearch> search_of(const std::string& name, const TrialRungs& rungs, std::uint32_t trials) {
  if (name == "promotion") return asha_by_promotion(rungs, trials);
  if (name == "stopping") return asha_by_stopping(rungs, trials);
  return hyperband_search(rungs, name == "halving");
}

int run(int argc, char** argv) {
  TrialRungs rungs;
  CLI::App app("Searches of trials: tasks by rung, work, first full training, end, and the best loss");
  app.add_option("--eta", rungs.eta, "one trial in so many goes on, for so many times as long")
      ->check(CLI::Range(2, 100))
      ->capture_default_str();
  app.add_option("--most", rungs.most, "units of the longest training, a power of eta")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (rungs.units(rungs.count() - 1) != rungs.most) {
    return complain("--most " + std::to_string(rungs.most) + ": expected a power of --eta " +
                    std::to_string(rungs.eta));
  }
  print_row(
      {"search", "loss", "trials", "workers", "tasks_by_rung", "work", "first_full", "end", "best_loss", "best_at"});
  for (const auto& [loss, of] : std::vector<std::pair<std::string, TrialLoss>>{
           {"lasting", [](std::uint32_t trial, TrialUnits) { return final_loss(trial); }}, {"falling", falling_loss}}) {
    for (const std::string search : {"promotion", "stopping", "hyperband", "halving"}) {
      for (const auto& [trials, workers] :
           std::vector<std::pair<std::uint32_t, std::uint32_t>>{{27, 3}, {81, 9}, {81, 27}, {243, 16}}) {
        const TrialRun run = run_trials(*search_of(search, rungs, trials), rungs, workers, of);
        std::string tasks;
        for (const std::uint32_t count : run.by_rung) tasks += (tasks.empty() ? "" : "/") + std::to_string(count);
        const bool chooses = search == "promotion" || search == "stopping";
        print_row({search, loss, chooses ? std::to_string(trials) : "", std::to_string(workers), tasks,
                   std::to_string(run.work), run.first_full ? std::to_string(*run.first_full) : "",
                   std::to_string(run.end), exact_number(run.records.back().loss),
                   std::to_string(run.records.back().time)});
      }
    }
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
