// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_report.hpp"

#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/text_table.hpp"
#include "src/base/visible_text.hpp"
#include "src/sim/grid_comparison.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_failures_told = 5;

std::string csv_header(const Sweep& sweep) {
  std::string text = "run,id";
  for (const std::string& path : sweep.columns) append_csv_field(text += ',', path);
  text += ",status";
  for (const SweepFigure& figure : sweep_figures({})) text += "," + figure.name;
  return text + ",message\n";
}

void append_figures(std::string& text, const SweepResult& result) {
  for (const SweepFigure& figure : sweep_figures(result)) {
    text += ',';
    if (result.status != RunStatus::done || !figure.value) continue;
    if (figure.whole) {
      append_integer(text, static_cast<std::int64_t>(*figure.value));
    } else {
      text += exact_number(*figure.value);
    }
  }
}

// The cells of a run's values, in the order of the columns.
std::vector<std::string> cells_of(const Sweep& sweep, const SweepPoint& point) {
  const Json values = sweep_point_json(point);
  std::vector<std::string> cells;
  for (const std::string& path : sweep.columns) cells.push_back(sweep_cell(values, path));
  return cells;
}

void count(SweepOutcome& outcome, std::uint64_t number, const SweepResult& result) {
  ++(result.status == RunStatus::done      ? outcome.done
     : result.status == RunStatus::timeout ? outcome.timeouts
                                           : outcome.failed);
  if (result.status == RunStatus::done || outcome.failures.size() == most_failures_told) return;
  outcome.failures.push_back({number, result.status, result.message});
}

GridRun grid_run(std::vector<std::string> values, const SweepResult& result) {
  GridRun run{.values = std::move(values),
              .figures = {},
              .jobs = static_cast<double>(result.metrics.jobs),
              .saturated = result.saturation.saturated,
              .clairvoyant = result.clairvoyant};
  for (const char* name : grid_figures) run.figures.push_back(find_metric(name)->value(result.metrics));
  return run;
}

}  // namespace

Result<SweepTables> sweep_tables(const SweepPlan& plan, const SweepStore& store, SweepOutcome& outcome) {
  outcome = {};
  std::vector<GridRun> grid;
  std::string text = csv_header(plan.sweep);
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    const auto found = store.find(plan.runs[i].key);
    if (!found) return Unexpected{found.error()};
    if (!*found) {
      ++outcome.missing;
      continue;
    }
    const SweepResult& result = **found;
    count(outcome, i, result);
    const auto point = plan.sweep.point(i);
    if (!point) return Unexpected{point.error()};
    text += std::to_string(i + 1) + "," + run_folder_name(plan.runs[i]);
    std::vector<std::string> cells = cells_of(plan.sweep, *point);
    for (const std::string& cell : cells) append_csv_field(text += ',', cell);
    text += ',';
    text += run_status_names[static_cast<std::size_t>(result.status)];
    append_figures(text, result);
    append_csv_field(text += ',', result.message);
    text += '\n';
    if (result.status == RunStatus::done) grid.push_back(grid_run(std::move(cells), result));
  }
  return SweepTables{std::move(text), grid_comparison_csv(compare_grid(plan.sweep.columns, grid))};
}

std::string sweep_manifest(const SweepPlan& plan, const SweepOutcome& outcome, const Execution& execution) {
  Json files = Json::array();
  for (const SweepInputFile& file : plan.files) files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  Json manifest = build_json();
  manifest.update({{"config", plan.sweep.document},
                   {"files", std::move(files)},
                   {"columns", plan.sweep.columns},
                   {"runs",
                    {{"done", outcome.done},
                     {"failed", outcome.failed},
                     {"timeout", outcome.timeouts},
                     {"missing", outcome.missing}}},
                   {"execution", execution_json(execution, plan.sweep.threads, plan.sweep.out)}});
  return json_text(manifest);
}

std::string sweep_list(const SweepPlan& plan, const std::unordered_map<std::string, RunStatus>& states,
                       const std::unordered_set<std::string>& queued, const TextStyle& style) {
  std::vector<std::string> header{"run"};
  header.insert(header.end(), plan.sweep.columns.begin(), plan.sweep.columns.end());
  header.emplace_back("state");
  TextTable table(header);
  std::uint64_t stored = 0, waiting = 0;
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    const auto point = plan.sweep.point(i);
    if (!point) break;  // plan_sweep() made each of them
    std::vector<std::string> cells{std::to_string(i + 1)};
    for (const std::string& cell : cells_of(plan.sweep, *point)) cells.push_back(visible_line(cell));
    const auto state = states.find(plan.runs[i].key);
    const bool is_queued = queued.count(plan.runs[i].key) > 0;
    waiting += is_queued ? 1 : 0;
    stored += state == states.end() || is_queued ? 0 : 1;
    cells.emplace_back(is_queued               ? "queued"
                       : state == states.end() ? "to run"
                                               : run_status_names[static_cast<std::size_t>(state->second)]);
    table.add(std::move(cells));
  }
  return table.text(style) + counted(plan.runs.size(), "run") + ", " + human_count(stored) + " stored, " +
         (waiting > 0 ? human_count(waiting) + " queued, " : "") + human_count(plan.runs.size() - stored - waiting) +
         " to run\n";
}

std::string outcome_line(const SweepOutcome& outcome) {
  const std::uint64_t all = outcome.done + outcome.failed + outcome.timeouts + outcome.missing;
  std::string text = counted(all, "run") + ": " + human_count(outcome.done) + " done";
  if (outcome.failed > 0) text += ", " + human_count(outcome.failed) + " failed";
  if (outcome.timeouts > 0) text += ", " + human_count(outcome.timeouts) + " over the time limit";
  if (outcome.missing > 0) text += ", " + human_count(outcome.missing) + " not run";
  return text;
}

}  // namespace gpusched
