// SPDX-License-Identifier: Apache-2.0
// Prints what searches of trials do on a number of workers, as csv.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "experiments/signal_option.hpp"
#include "src/trials/trial_run.hpp"
#include "src/world/trial_losses.hpp"

namespace {

using namespace gpusched;

TrialSearch search_of(const std::string& name, const TrialRungs& rungs, std::uint32_t trials) {
  if (name == "promotion") return TrialSearch(AshaByPromotion(rungs, trials));
  if (name == "stopping") return TrialSearch(AshaByStopping(rungs, trials));
  return TrialSearch(HyperbandSearch(rungs, name == "halving"));
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
           {"lasting", [](std::uint32_t trial, TrialUnits) { return lasting_loss(trial); }},
           {"falling", falling_loss}}) {
    for (const std::string search : {"promotion", "stopping", "hyperband", "halving"}) {
      for (const auto& [trials, workers] :
           std::vector<std::pair<std::uint32_t, std::uint32_t>>{{27, 3}, {81, 9}, {81, 27}, {243, 16}}) {
        TrialSearch searcher = search_of(search, rungs, trials);
        const TrialRun run = run_trials(searcher, rungs, workers, of);
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
