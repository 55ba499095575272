// SPDX-License-Identifier: Apache-2.0
#include "src/rl/seed_runs.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/parallel.hpp"
#include "src/base/statistics.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/optional_text.hpp"

namespace gpusched {
namespace {

Result<TrainSummary> train_seed(TrainConfig config, std::uint64_t seed, const JobTable& jobs, const Cluster& cluster,
                                const std::string& folder, bool resume,
                                const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo) {
  config.seed = seed;
  config.threads = 1;
  const auto lock = OutputFolder::open(folder, "");  // of this run alone until it ends
  if (!lock) return Unexpected{lock.error()};
  return learn(config, jobs, cluster, folder, resume && has_checkpoint(folder), watch, ppo);
}

std::vector<std::string> folders_of_ended(const SeedRuns& runs) {
  std::vector<std::string> folders;
  for (const SeedRun& run : runs.runs) {
    if (run.ended()) folders.push_back(seed_folder(runs.folder, run.seed));
  }
  return folders;
}

bool keeps_limits(const TrainSummary& summary) {
  return std::all_of(summary.bounds.begin(), summary.bounds.end(),
                     [](const BoundReport& bound) { return bound.ratio <= bound.most; });
}

const SeedRun& best_run(const SeedRuns& runs) {
  const auto loss = [](const SeedRun& run) {
    return run.ended() ? run.summary->best_validation : std::numeric_limits<double>::infinity();
  };
  return *std::min_element(runs.runs.begin(), runs.runs.end(),
                           [&](const SeedRun& a, const SeedRun& b) { return loss(a) < loss(b); });
}

// The figure that the verdict compares: of the runs that ended, each its mean over the test windows. Empty: no verdict.
std::vector<double> test_means(const SeedRuns& runs) {
  return runs.held_out && *runs.held_out ? (*runs.held_out)->seed_means() : std::vector<double>();
}

Json seed_json(const SeedRun& run) {
  Json json{{"seed", run.seed}, {"folder", "seed-" + std::to_string(run.seed)}};
  if (!run.ended()) {
    json["failure"] = run.summary.error().to_string();
    return json;
  }
  const TrainSummary& summary = *run.summary;
  json.update({{"best_iteration", summary.best_iteration},
               {"iterations", summary.iterations},
               {"steps", summary.steps},
               {"validation_loss", summary.best_validation},
               {"validation_heuristic_loss", summary.validation_heuristic}});
  for (const BoundReport& bound : summary.bounds) {
    json["constraints"][bound.figure] = {{"ratio", bound.ratio}, {"most", bound.most}};
  }
  return json;
}

Json test_json(const HeldOut& result) {
  Json rows = Json::array(), whole = Json::array();
  for (const HeldOutRow& row : result.rows) {
    const Comparison& pair = row.agent;
    rows.push_back(
        {{"policy", row.policy},
         {"mean", number_json(pair.other_mean)},
         {"windows", pair.windows},
         {"relative_interval_95", interval_json(pair.interval ? std::optional(pair.interval->relative) : std::nullopt)},
         {"probability_of_improvement", pair.win_rate},
         {"probability_of_improvement_interval_95", interval_json(pair.win_rate_interval)},
         {"normalised_interquartile_mean", number_json(pair.normalised)},
         {"normalised_interquartile_mean_interval_95", interval_json(pair.normalised_interval)},
         {"verdict", pair.verdict}});
  }
  const std::vector<double> means = result.seed_means();
  for (const WholeRun& run : result.whole) whole.push_back({{"policy", run.policy}, {"value", run.value}});
  return {{"figure", result.figure},
          {"windows", result.windows},
          {"seeds", means},
          {"interquartile_mean", means.empty() ? Json() : Json(interquartile_mean(means))},
          {"interval_95", interval_json(result.interval())},
          {"policies", std::move(rows)},
          {"whole_jobs", result.whole_jobs},
          {"whole", std::move(whole)},
          {"failures", result.failures}};
}

}  // namespace

std::vector<double> SeedRuns::losses() const {
  std::vector<double> losses;
  for (const SeedRun& run : runs) {
    if (run.ended()) losses.push_back(run.summary->best_validation);
  }
  return losses;
}

SeedRuns train_seeds(const TrainConfig& config, const Seeds& seeds, const JobTable& jobs, const Cluster& cluster,
                     const std::string& folder, bool resume,
                     const std::function<void(std::uint64_t seed, const TrainProgress&)>& watch, TrainingMethod* ppo) {
  std::vector<std::optional<Result<TrainSummary>>> summaries(seeds.size());
  std::mutex one_watches;
  for_each_index(seeds.size(), config.threads, [&](std::size_t i) {
    const auto watch_seed = [&](const TrainProgress& progress) {
      const std::lock_guard guard(one_watches);
      watch(seeds[i], progress);
    };
    summaries[i] = train_seed(config, seeds[i], jobs, cluster, seed_folder(folder, seeds[i]), resume, watch_seed, ppo);
  });
  SeedRuns runs{.folder = folder, .runs = {}};
  for (std::size_t i = 0; i < seeds.size(); ++i) runs.runs.push_back({seeds[i], *std::move(summaries[i])});
  const std::vector<std::string> ended = folders_of_ended(runs);
  if (!config.test_at_end || ended.empty()) return runs;
  runs.held_out = test_models(config, jobs, cluster, counted(ended.size(), "seed") + " of " + folder, ended);
  return runs;
}

std::string seed_table(const SeedRuns& runs, const TextStyle& style) {
  const bool bounded = !best_run(runs).summary->bounds.empty();
  std::vector<std::string> header{"seed", "best iteration", "iterations", "validation loss", "heuristic"};
  if (bounded) header.emplace_back("limits");
  TextTable table(header);
  std::string failures;
  for (const SeedRun& run : runs.runs) {
    if (!run.ended()) {
      failures += "seed " + std::to_string(run.seed) + " failed: " + run.summary.error().to_string() + "\n";
      continue;
    }
    const TrainSummary& summary = *run.summary;
    std::vector<std::string> cells{std::to_string(run.seed), std::to_string(summary.best_iteration),
                                   std::to_string(summary.iterations), formatted("%.6g", summary.best_validation),
                                   formatted("%.6g", summary.validation_heuristic)};
    if (bounded) cells.emplace_back(keeps_limits(summary) ? "kept" : "NOT kept");
    table.add(std::move(cells));
  }
  const std::vector<double> losses = runs.losses();
  const SeedRun& best = best_run(runs);
  std::string text = table.text(style) + failures + "validation loss a job of " + counted(losses.size(), "seed") +
                     ": mean " + formatted("%.6g", mean_of(losses)) + ", interquartile mean " +
                     formatted("%.6g", interquartile_mean(losses)) + "; least of seed " + std::to_string(best.seed) +
                     ", rl:" + seed_folder(runs.folder, best.seed) + "\n";
  if (!runs.held_out) return text;
  return text + "\n" +
         (*runs.held_out ? held_out_text(**runs.held_out, style)
                         : "no verdict: " + runs.held_out->error().to_string() + "\n");
}

std::string seeds_csv(const SeedRuns& runs) {
  std::string text =
      "seed,best_iteration,iterations,steps,validation_loss,validation_heuristic_loss,test_figure,test_mean,failure\n";
  const std::vector<double> means = test_means(runs);
  std::size_t ended = 0;
  for (const SeedRun& run : runs.runs) {
    text += std::to_string(run.seed);
    if (!run.ended()) {
      append_csv_field(text += ",,,,,,,,", run.summary.error().to_string());
      text += '\n';
      continue;
    }
    const TrainSummary& summary = *run.summary;
    text += "," + std::to_string(summary.best_iteration) + "," + std::to_string(summary.iterations) + "," +
            std::to_string(summary.steps) + "," + exact_number(summary.best_validation) + "," +
            exact_number(summary.validation_heuristic);
    text += means.empty() ? ",," : "," + (*runs.held_out)->figure + "," + exact_number(means[ended]);
    text += ",\n";
    ++ended;
  }
  return text;
}

std::string seeds_json(const SeedRuns& runs) {
  Json seeds = Json::array();
  for (const SeedRun& run : runs.runs) seeds.push_back(seed_json(run));
  const std::vector<double> losses = runs.losses();
  Json json{{"seeds", std::move(seeds)},
            {"validation_loss",
             {{"runs", losses.size()},
              {"mean", mean_of(losses)},
              {"interquartile_mean", interquartile_mean(losses)},
              {"least_of_seed", best_run(runs).seed}}}};
  if (runs.held_out) {
    json["test"] = *runs.held_out ? test_json(**runs.held_out) : Json{{"failure", runs.held_out->error().to_string()}};
  }
  return json_text(json);
}

}  // namespace gpusched
