// SPDX-License-Identifier: Apache-2.0
#include "src/report/sweep_figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/figures.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_curves = 16;       // in one figure
constexpr std::size_t most_differences = 60;  // rows of that figure
constexpr std::size_t least_seeds_of_interval = 3;

// Seeds or windows of one contestant in one setting.
struct Cell {
  std::string series;  // of the line that it is a point of
  std::string setting, contestant;
  double x = 0;
  std::vector<double> jct_s, slowdown;
  std::set<std::string> windows;
  std::size_t saturated = 0;
  bool clairvoyant = false;  // knows true run times
};

double number_of(const std::string& text) { return parse_number(text).value_or(0); }

// In order of first appearance; `x_key` is the key on the axis, no key where it is keys.size().
std::vector<Cell> cells_by(const SweepInput& sweep, std::size_t x_key) {
  std::vector<Cell> cells;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const SweepRunRow& run : sweep.runs) {
    std::vector<std::string> keys = sweep.keys, values = run.grid.values;
    std::string window;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (keys[k].starts_with("window.")) window += values[k] + ";";
    }
    const std::string x = x_key < keys.size() ? values[x_key] : "";
    const std::string contestant = grid_contestant(keys, values);
    const std::string setting = grid_text(keys, values, GridRole::setting);
    if (x_key < keys.size()) {
      keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(x_key));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(x_key));
    }
    std::string series = grid_contestant(keys, values);
    const std::string rest = grid_text(keys, values, GridRole::setting);
    series += (series.empty() || rest.empty() ? "" : ", ") + rest;
    if (series.empty()) series = "all runs";
    const auto [place, is_new] = places.emplace(std::pair(series, x), cells.size());
    if (is_new) {
      cells.push_back({.series = series,
                       .setting = setting,
                       .contestant = contestant,
                       .x = number_of(x),
                       .jct_s = {},
                       .slowdown = {},
                       .windows = {}});
    }
    Cell& cell = cells[place->second];
    cell.windows.insert(window);
    cell.saturated += run.grid.saturated ? 1 : 0;
    cell.clairvoyant |= run.grid.clairvoyant;
    if (run.grid.figures[0]) cell.jct_s.push_back(*run.grid.figures[0]);
    if (run.worst_decile_slowdown) cell.slowdown.push_back(*run.worst_decile_slowdown);
  }
  std::erase_if(cells, [](const Cell& cell) { return cell.jct_s.empty(); });
  return cells;
}

// Of the mean over seeds, by Student's t; equal values are one run.
std::optional<ConfidenceInterval> interval_over_seeds(const Cell& cell) {
  const std::set<double> distinct(cell.jct_s.begin(), cell.jct_s.end());
  if (cell.windows.size() > 1 || distinct.size() < least_seeds_of_interval) return std::nullopt;
  const std::vector<double> values(distinct.begin(), distinct.end());
  const auto count = static_cast<double>(values.size());
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = student_t_quantile(count - 1) * std::sqrt(squares / (count - 1) / count);
  return ConfidenceInterval{mean - half, mean + half};
}

// At least two values, all numbers, of a key that is not a repetition.
bool is_axis(const SweepInput& sweep, std::size_t key) {
  if (sweep.keys[key] == "policy" || grid_role(sweep.keys[key]) == GridRole::replicate) return false;
  std::set<double> values;
  for (const SweepRunRow& run : sweep.runs) {
    const std::string& text = run.grid.values[key];
    if (text.empty()) continue;  // a policy without that parameter
    const auto number = parse_number(text);
    if (!number) return false;
    values.insert(*number);
  }
  return values.size() > 1;
}

// Points are means of the runs that there are.
std::string note_on_missing(const SweepInput& sweep) {
  if (sweep.missing + sweep.failed == 0) return "";
  return " Runs are missing, so that points may be means over different seeds; the table compares pairs alone.";
}

Figure curve_figure(const SweepInput& sweep, std::size_t key, std::size_t number) {
  CsvText csv("policy,run,load,jct_s,wait_s,low,high,saturated");
  std::vector<Cell> cells = cells_by(sweep, key);
  std::erase_if(cells, [](const Cell& cell) { return std::isnan(cell.x); });
  Json series = Json::array(), clairvoyant = Json::array();
  std::set<std::string> left_out;
  bool any_saturated = false, any_below_zero = false;
  for (const Cell& cell : cells) {
    const std::string name = visible_line(cell.series);
    if (std::find(series.begin(), series.end(), name) == series.end()) {
      series.size() < most_curves ? series.push_back(name) : void(left_out.insert(name));
    }
    if (left_out.contains(name)) continue;
    if (cell.clairvoyant) clairvoyant.push_back(name);
    const auto interval = interval_over_seeds(cell);
    const std::string runs = cell.series + " (" + counted(cell.jct_s.size(), "run") + ")";
    csv.cell(cell.series).cell(runs).cell(cell.x).cell(mean_of(cell.jct_s)).cell("");
    interval ? csv.cell(interval->low).cell(interval->high) : csv.cell("").cell("");
    csv.cell(cell.saturated > 0 ? 1.0 : 0.0).end_row();
    any_saturated |= cell.saturated > 0;
    any_below_zero |= interval && interval->low < mean_of(cell.jct_s) / 100;
  }
  const std::string& name = sweep.keys[key];
  std::string caption =
      "Mean completion time over seeds and windows. A bar is the 95 % interval of the mean over seeds (Student's t, at "
      "least three seeds that differ).";
  if (any_below_zero) caption += " A bar that reaches below a hundredth of the mean ends there.";
  caption += note_on_missing(sweep);
  if (any_saturated) caption += " Hollow: a run was saturated, so that its mean depends on how long it was watched.";
  if (!left_out.empty()) {
    caption += " The first " + std::to_string(most_curves) + " of " + std::to_string(most_curves + left_out.size()) +
               " curves.";
  }
  return {.id = numbered("sweep-" + name, number),
          .kind = "load",
          .title = "Completion time by " + name,
          .caption = std::move(caption),
          .settings = {{"runs", std::move(series)},
                       {"clairvoyant", std::move(clairvoyant)},
                       {"every_run", true},
                       {"x_title", visible_line(name)}},
          .csv = csv.text()};
}

std::optional<Figure> sweep_difference_figure(const SweepInput& sweep, const std::vector<GridComparison>& comparisons,
                                              std::size_t number) {
  CsvText csv("panel,run,difference,low,high");
  std::size_t rows = 0, all = 0;
  std::set<std::string> clairvoyant;
  for (const GridComparison& one : comparisons) {
    const auto difference = one.relative_difference();
    if (one.figure != grid_figures[0] || !difference) continue;
    if (++all > most_differences) continue;
    ++rows;
    if (one.clairvoyant) clairvoyant.insert(visible_line(one.contestant));
    csv.cell(one.setting).cell(one.contestant).cell(*difference);
    one.relative ? csv.cell(one.relative->low).cell(one.relative->high) : csv.cell("").cell("");
    csv.end_row();
  }
  if (rows == 0) return std::nullopt;
  return Figure{
      .id = numbered("sweep-difference", number),
      .kind = "intervals",
      .title = "Mean completion time compared with " +
               marked(comparisons.front().against, comparisons.front().against_clairvoyant),
      .caption = sweep.folder +
                 ": relative difference over pairs of runs that differ in the policy alone, with its 95 % "
                 "interval; left of the line is better. A hollow point has no interval: the table says why." +
                 (all > rows ? " The first " + std::to_string(rows) + " of " + std::to_string(all) + "." : ""),
      .settings = {{"clairvoyant", clairvoyant}},
      .csv = csv.text()};
}

std::optional<Figure> sweep_front(const SweepInput& sweep, std::size_t number) {
  std::vector<FrontPoint> points;
  Json contestants = Json::array(), clairvoyant = Json::array();
  for (const Cell& cell : cells_by(sweep, sweep.keys.size())) {
    if (cell.slowdown.empty()) continue;
    const std::string name = cell.contestant.empty() ? cell.series : cell.contestant;
    const std::string shown = visible_line(name);
    if (std::find(contestants.begin(), contestants.end(), shown) == contestants.end()) contestants.push_back(shown);
    if (cell.clairvoyant) clairvoyant.push_back(shown);
    points.push_back({cell.setting, name, mean_of(cell.jct_s), mean_of(cell.slowdown)});
  }
  auto figure = front_figure_of(std::move(points), numbered("sweep-front", number),
                                "Completion time against the worst-treated jobs, all settings",
                                "mean slowdown of the worst tenth");
  if (!figure) return figure;
  figure->caption =
      "One point a policy and setting, averaged over seeds and windows; less is better on both axes. A line joins the "
      "policies that no other beats in both (the Pareto front) of one setting." +
      note_on_missing(sweep);
  figure->settings["runs"] = std::move(contestants);
  figure->settings["clairvoyant"] = std::move(clairvoyant);
  figure->settings["every_run"] = true;
  return figure;
}

}  // namespace

std::vector<std::string> sweep_notes(const SweepInput& sweep) {
  std::vector<std::string> notes;
  const auto add = [&](double count, double of, const std::string& what) {
    if (count < 1) return;
    notes.push_back(sweep.folder + ": " + human_count(static_cast<std::uint64_t>(count)) + " of " +
                    counted(static_cast<std::uint64_t>(of), "run") + " " + what);
  };
  add(sweep.missing, sweep.all, "were missing when it wrote runs.csv; the same gpusched sweep command goes on");
  add(sweep.failed, sweep.all, "failed or took too long; runs.csv says why");
  const auto saturated =
      std::count_if(sweep.runs.begin(), sweep.runs.end(), [](const SweepRunRow& run) { return run.grid.saturated; });
  add(static_cast<double>(saturated), static_cast<double>(sweep.runs.size()),
      "with figures were saturated: more work arrived than the cluster could do, and their means grow with the length "
      "of the run");
  return notes;
}

std::vector<GridComparison> compare_sweep(const SweepInput& sweep) {
  std::vector<GridRun> runs;
  for (const SweepRunRow& run : sweep.runs) runs.push_back(run.grid);
  return compare_grid(sweep.keys, runs);
}

std::optional<ReportTable> sweep_table(const SweepInput& sweep, const std::vector<GridComparison>& comparisons) {
  if (comparisons.empty()) return std::nullopt;
  ReportTable table{
      .title = "Policies over the grid",
      .caption =
          sweep.folder + ": each policy against " +
          marked(comparisons.front().against, comparisons.front().against_clairvoyant) +
          " in pairs of runs that differ in the policy alone. 95 % intervals: over seeds from the sign-flip test, over "
          "windows from the block bootstrap of evaluate. p: Wilcoxon's signed-rank test, corrected by Holm for "
          "all tests of the figure; effect: rank-biserial correlation, -1 where every pair is lower. "
          "Saturated: runs, each seed of a window by itself, that have a saturated run in their pair. In pairs a seed "
          "that changes nothing counts once.",
      .header = {"policy", "setting", "figure", "mean", "difference", "95 % interval", "pairs", "p (Holm)", "effect",
                 "saturated", "verdict"},
      .rows = {}};
  bool any_clairvoyant = false;
  for (const GridComparison& one : comparisons) {
    any_clairvoyant |= one.clairvoyant || one.against_clairvoyant;
    const auto difference = one.relative_difference();
    table.rows.push_back({marked(one.contestant, one.clairvoyant), one.setting.empty() ? "all" : one.setting,
                          one.figure, formatted("%.6g", one.mean), difference ? signed_percent_text(*difference) : "-",
                          one.relative ? interval_cell(*one.relative) : "", counted(one.pairs, one.unit),
                          one.test ? p_value_text(one.p_holm) : "-",
                          one.test ? formatted("%+.2f", one.test->rank_biserial) : "-",
                          one.saturated > 0 ? std::to_string(one.saturated) : "", one.verdict});
  }
  if (any_clairvoyant) table.caption += star_note;
  return table;
}

std::vector<Figure> sweep_page_figures(const SweepInput& sweep, const std::vector<GridComparison>& comparisons,
                                       std::size_t number) {
  std::vector<Figure> figures;
  if (auto figure = sweep_difference_figure(sweep, comparisons, number)) figures.push_back(*std::move(figure));
  for (std::size_t key = 0; key < sweep.keys.size(); ++key) {
    if (is_axis(sweep, key)) figures.push_back(curve_figure(sweep, key, number));
  }
  if (auto figure = sweep_front(sweep, number)) figures.push_back(*std::move(figure));
  return figures;
}

}  // namespace gpusched
