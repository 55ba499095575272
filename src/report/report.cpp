// SPDX-License-Identifier: Apache-2.0
#include "src/report/report.hpp"

#include <algorithm>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/report/comparison.hpp"
#include "src/report/figures.hpp"
#include "src/report/page.hpp"
#include "src/report/run_folder.hpp"
#include "src/report/search_figures.hpp"
#include "src/report/sweep_figures.hpp"
#include "src/report/vega.hpp"

namespace gpusched {
namespace {

void add_fact(std::vector<std::string>& facts, std::string line) {
  if (std::find(facts.begin(), facts.end(), line) == facts.end()) facts.push_back(std::move(line));
}

std::vector<std::string> facts_of(const ReportInput& input) {
  std::vector<std::string> facts;
  for (const ReplayRun& run : input.replays) {
    add_fact(facts, run.folder + ": replay of " + run.trace + " on " + run.cluster + " (" +
                        counted(static_cast<std::uint64_t>(run.gpus), "GPU") + "), " +
                        counted(static_cast<std::uint64_t>(run.metric("jobs").value_or(0)), "job"));
  }
  for (const EvaluationRow& row : input.evaluations) {
    add_fact(facts, row.folder + ": evaluation on windows of " + row.trace);
  }
  for (const WorldRow& row : input.worlds) add_fact(facts, row.folder + ": comparison with the base: " + row.world);
  for (const EffectRow& row : input.effects)
    add_fact(facts, row.folder + ": evaluation on the whole log of " + row.trace);
  for (const TrainingRun& run : input.trainings) add_fact(facts, run.label + ": training");
  for (const SweepInput& sweep : input.sweeps) {
    std::string keys;
    for (const std::string& key : sweep.keys) keys += (keys.empty() ? " over " : ", ") + key;
    add_fact(facts, sweep.folder + ": sweep of " + counted(static_cast<std::uint64_t>(sweep.all), "run") + keys + "; " +
                        counted(sweep.runs.size(), "run") + " with figures");
  }
  for (const SearchInput& search : input.searches) {
    std::string names;
    for (const std::string& name : search.objectives) names += (names.empty() ? "" : ", ") + name;
    const auto found = std::count_if(search.policies.begin(), search.policies.end(),
                                     [](const SearchPolicyRow& row) { return row.found; });
    add_fact(facts, search.folder + ": search for " + names + "; " +
                        counted(static_cast<std::uint64_t>(found), "found policy", "found policies") + " and " +
                        counted(search.policies.size() - static_cast<std::size_t>(found), "compared policy",
                                "compared policies"));
  }
  for (const FederationInput& federation : input.federations)
    add_fact(facts, federation.folder + ": " + counted(federation.routers.size(), "router") + " over " +
                        counted(federation.routers.front().sites.size() - 1, "site"));
  return facts;
}

void append(std::vector<Figure>& all, std::vector<Figure> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

PageContent content_of(ReportInput input) {
  PageContent content{.facts = facts_of(input),
                      .notes = std::move(input.notes),
                      .runs = {},
                      .clairvoyant = {},
                      .tables = {},
                      .figures = {}};
  for (const ReplayRun& run : input.replays) {
    content.runs.push_back(run.label);
    if (run.clairvoyant) content.clairvoyant.push_back(run.label);
  }
  const Differences differences = differences_of(input.replays);
  for (std::size_t s = 0; s < input.sweeps.size(); ++s) {
    const SweepInput& sweep = input.sweeps[s];
    for (std::string& note : sweep_notes(sweep)) content.notes.push_back(std::move(note));
    const std::vector<GridComparison> comparisons = compare_sweep(sweep);
    if (auto table = sweep_table(sweep, comparisons)) content.tables.push_back(*std::move(table));
    append(content.figures, sweep_page_figures(sweep, comparisons, s + 1));
  }
  for (std::size_t s = 0; s < input.searches.size(); ++s) {
    const SearchInput& search = input.searches[s];
    for (std::string& note : search_notes(search)) content.notes.push_back(std::move(note));
    content.tables.push_back(search_table(search));
    append(content.figures, search_page_figures(search, s + 1));
  }
  for (std::size_t i = 0; i < input.federations.size(); ++i) {
    content.tables.push_back(federation_table(input.federations[i]));
    append(content.figures, federation_figures(input.federations[i], i + 1));
  }
  if (!input.replays.empty()) content.tables.push_back(replay_table(input.replays, differences));
  if (!input.evaluations.empty()) content.tables.push_back(evaluation_table_of(input.evaluations));
  if (!input.effects.empty()) content.tables.push_back(effect_table_of(input.effects));
  if (!input.worlds.empty()) content.tables.push_back(world_table_of(input.worlds));
  if (auto figure = difference_figure(input.replays, differences)) content.figures.push_back(*std::move(figure));
  append(content.figures, evaluation_figures(input.evaluations));
  append(content.figures, effect_figures(input.effects));
  append(content.figures, world_figures(input.worlds));
  append(content.figures, replay_figures(input.replays));
  append(content.figures, training_figures(input.trainings));
  return content;
}

}  // namespace

bool can_report() { return !vega_modules().empty(); }

Result<Report> make_report(const std::vector<std::string>& folders, const std::string& title) {
  if (!can_report()) {
    return unexpected(
        "this build draws no reports, because it was made without Vega: install libjs-vega, then configure and build "
        "again");
  }
  auto input = read_run_folders(folders);
  if (!input) return Unexpected{input.error()};
  PageContent content = content_of(*std::move(input));
  if (!title.empty()) content.title = title;
  Report report{.html = html_page(content), .csv = {}};
  for (const Figure& figure : content.figures) report.csv.emplace_back(figure.id + ".csv", figure.csv);
  return report;
}

}  // namespace gpusched
