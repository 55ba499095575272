// SPDX-License-Identifier: Apache-2.0
#include "src/report/comparison.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/figures.hpp"
#include "src/report/run_folder.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_batches = 100;
constexpr std::size_t least_batch_jobs = 10;

std::vector<double> completion_s(const ReplayRun& run) {
  std::vector<double> values;
  for (const JobRow& job : run.jobs) {
    if (job.averaged) values.push_back(to_seconds(job.completion));
  }
  return values;
}

// Means of `count` batches of neighbours, of equal size within one.
std::vector<double> batch_means(const std::vector<double>& values, std::size_t count) {
  std::vector<double> means(count);
  for (std::size_t b = 0; b < count; ++b) {
    const std::size_t first = b * values.size() / count, end = (b + 1) * values.size() / count;
    means[b] = mean_of(std::span(values).subspan(first, end - first));
  }
  return means;
}

bool same_jobs(const ReplayRun& a, const ReplayRun& b) {
  return std::equal(a.jobs.begin(), a.jobs.end(), b.jobs.begin(), b.jobs.end(), [](const JobRow& x, const JobRow& y) {
    return x.name == y.name && x.submit == y.submit && x.averaged == y.averaged;
  });
}

// Of paired_intervals(), whose values are batches here.
std::string why_none(const Error& error) {
  std::string text = error.message;
  for (std::size_t at = text.find("windows"); at != std::string::npos; at = text.find("windows")) {
    text.replace(at, 7, "batches");
  }
  return text;
}

std::string count_cell(const ReplayRun& run, const char* metric) {
  const auto value = run.metric(metric);
  return value ? human_count(static_cast<std::uint64_t>(*value)) : "-";
}

std::string share_cell(const ReplayRun& run, const char* metric) {
  const auto value = run.metric(metric);
  return value ? percent_text(*value) : "-";
}

}  // namespace

std::string marked(const std::string& name, bool clairvoyant) { return name + (clairvoyant ? "*" : ""); }

std::string interval_cell(const ConfidenceInterval& interval) {
  return "[" + signed_percent_text(interval.low) + ", " + signed_percent_text(interval.high) + "]";
}

RunDifference completion_difference(const ReplayRun& ours, const ReplayRun& theirs) {
  const std::vector<double> own = completion_s(ours), other = completion_s(theirs);
  const double other_mean = mean_of(other);
  const double relative = other_mean > 0 ? mean_of(own) / other_mean - 1 : 0;
  if (!same_jobs(ours, theirs)) return {relative, unexpected("not the same jobs")};
  const std::size_t batches = std::min(most_batches, own.size() / least_batch_jobs);
  if (batches == 0) return {relative, unexpected(std::string(too_few_windows))};
  return {relative,
          paired_intervals({batch_means(own, batches)}, {batch_means(other, batches)}, 1, Rng(0).split("report"))};
}

namespace {

// In the first folder: the run of the same policy, or the first one.
const ReplayRun& run_compared_with(const std::vector<ReplayRun>& runs, const ReplayRun& run) {
  for (const ReplayRun& other : runs) {
    if (other.folder == runs.front().folder && other.policy == run.policy) return other;
  }
  return runs.front();
}

}  // namespace

Differences differences_of(const std::vector<ReplayRun>& runs) {
  Differences differences(runs.size());
  const ReplayRun* first = nullptr;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (first == nullptr || first->folder != runs[r].folder) {
      first = &runs[r];
      const ReplayRun& other = run_compared_with(runs, *first);
      if (first->folder != other.folder && same_jobs(*first, other)) {
        differences[r] = completion_difference(*first, other);
      }
    } else {
      differences[r] = completion_difference(runs[r], *first);
    }
  }
  return differences;
}

ReportTable replay_table(const std::vector<ReplayRun>& runs, const Differences& differences) {
  const bool has_energy =
      std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.metric("energy_kwh"); });
  ReportTable table{
      .title = "Comparison",
      .caption =
          "Completion time: mean, and its difference from that of the folder's first run (of that itself, where "
          "another "
          "folder before it ran the same jobs, from the run of the same policy there) with a 95 % interval from "
          "batches of 1/100 of the jobs, in order of submission (studentised block bootstrap); in its "
          "place, why there is none. Waiting and bounded slowdown are means, worst tenth is the mean "
          "slowdown of the tenth of the jobs that fares worst. Used: GPU time that counts, over what the "
          "cluster could give.",
      .header = {"run", "run times", "mean JCT", "difference", "95 % interval", "median JCT", "p99 JCT", "mean wait",
                 "p99 wait", "slowdown", "worst tenth", "used", "preempt."},
      .rows = {}};
  if (has_energy) table.header.push_back("kWh");
  bool any_clairvoyant = false;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const ReplayRun& run = runs[r];
    std::string difference, interval;
    if (const auto& found = differences[r]) {
      difference = signed_percent_text(found->relative);
      interval = found->intervals ? interval_cell(found->intervals->relative) : why_none(found->intervals.error());
    }
    any_clairvoyant |= run.clairvoyant;
    table.rows.push_back({marked(run.label, run.clairvoyant), run.run_times, duration_cell(run.metric("avg_jct_s")),
                          difference, interval, duration_cell(run.metric("median_jct_s")),
                          duration_cell(run.metric("p99_jct_s")), duration_cell(run.metric("avg_wait_s")),
                          duration_cell(run.metric("p99_wait_s")), slowdown_cell(run.metric("avg_bounded_slowdown")),
                          slowdown_cell(run.metric("worst_decile_slowdown")), share_cell(run, "gpu_utilization"),
                          count_cell(run, "preemptions")});
    if (has_energy) table.rows.back().push_back(count_cell(run, "energy_kwh"));
  }
  if (any_clairvoyant) table.caption += star_note;
  return table;
}

namespace {

// "windows and log disagree: starvation: ...", "no difference detected; more windows better".
std::string verdict_of(const EvaluationRow& row) {
  std::string text = row.verdict;
  if (!row.typical.empty()) text += "; " + row.typical;
  if (!row.why.empty()) text += ": " + row.why;
  return text;
}

// As a share, or in the figure's unit.
std::string effect_cell(double value, const EffectRow& row) {
  const bool share = row.relative || row.effect == "better_off" || row.effect == "random_job";
  return share ? signed_percent_text(value) : formatted("%+.6g", value);
}

std::string effect_interval_cell(const EffectRow& row) {
  if (!row.low || !row.high) return "";
  return "[" + effect_cell(*row.low, row) + ", " + effect_cell(*row.high, row) + "]";
}

}  // namespace

ReportTable effect_table_of(const std::vector<EffectRow>& rows) {
  ReportTable table{
      .title = "Policies on whole logs",
      .caption =
          "What evaluate found when every policy ran the whole log: of all jobs the mean (ratio of totals), the mean "
          "of "
          "the lowest 95 % (trimmed) and with the highest 5 % cut down to the rest (winsorised), quantiles, the share "
          "of "
          "jobs that do better less the share that do worse, and the same of two jobs drawn at random; each against "
          "the "
          "policy compared with, with a 95 % interval from batches of consecutive jobs and p, corrected by Holm for "
          "the "
          "policies. Unended: jobs that had not ended when the last one arrived.",
      .header = {"policy", "trace", "run times", "figure", "against", "of all jobs", "value", "other", "difference",
                 "95 % interval", "p (Holm)", "verdict", "batches", "unended", "of the figure"},
      .rows = {}};
  bool any_clairvoyant = false;
  for (const EffectRow& row : rows) {
    any_clairvoyant |= row.clairvoyant;
    const auto value = [](const std::optional<double>& number) { return number ? formatted("%.6g", *number) : ""; };
    table.rows.push_back({marked(row.name, row.clairvoyant), row.trace, row.run_times, row.figure, row.against,
                          row.effect, value(row.ours), value(row.theirs),
                          row.difference ? effect_cell(*row.difference, row) : "", effect_interval_cell(row),
                          row.p_holm ? p_value_text(*row.p_holm) : "", row.verdict,
                          row.batches > 0 ? formatted("%.0f", row.batches) : "", formatted("%.0f", row.unended),
                          row.figure_verdict + (row.grows.empty() ? "" : " (its queue grows: " + row.grows + ")")});
  }
  if (any_clairvoyant) table.caption += star_note;
  return table;
}

ReportTable evaluation_table_of(const std::vector<EvaluationRow>& rows) {
  ReportTable table{
      .title = "Policies on windows",
      .caption =
          "What evaluate found: the mean of the figure over the windows, its difference from the policy "
          "compared with, the 95 % interval of that and its p, corrected by Holm; the share of windows in "
          "which it is better, p of Wilcoxon's signed-rank test over blocks of windows, corrected likewise, "
          "the rank-biserial correlation (effect); the difference on the whole log; and the verdict.",
      .header = {"policy", "trace", "run times", "figure", "mean", "against", "difference", "95 % interval", "p (Holm)",
                 "wins", "ranks p (Holm)", "effect", "whole log", "verdict"},
      .rows = {}};
  bool any_clairvoyant = false;
  for (const EvaluationRow& row : rows) {
    const bool has_interval = row.relative_low && row.relative_high;
    any_clairvoyant |= row.clairvoyant;
    table.rows.push_back({marked(row.name, row.clairvoyant), row.trace, row.run_times, row.figure,
                          row.mean ? formatted("%.6g", *row.mean) : "-", row.against,
                          row.relative_difference ? signed_percent_text(*row.relative_difference) : "",
                          has_interval ? interval_cell({*row.relative_low, *row.relative_high}) : "",
                          row.p_mean ? p_value_text(*row.p_mean) : "", row.win_rate ? percent_text(*row.win_rate) : "",
                          row.p_holm ? p_value_text(*row.p_holm) : "",
                          row.rank_biserial ? formatted("%+.2f", *row.rank_biserial) : "",
                          row.log_difference ? signed_percent_text(*row.log_difference) : "", verdict_of(row)});
  }
  if (any_clairvoyant) table.caption += star_note;
  return table;
}

namespace {

Figure interval_figure(std::string id, std::string title, std::string caption, const CsvText& csv) {
  return {.id = std::move(id),
          .kind = "intervals",
          .title = std::move(title),
          .caption = std::move(caption),
          .settings = Json::object(),
          .csv = csv.text()};
}

// The figure's stars: of those rows whose policies know true run times.
template <class Row>
Figure with_stars(Figure figure, const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.clairvoyant) names.insert(visible_line(row.name));
  }
  figure.settings["clairvoyant"] = names;
  return figure;
}

void add_interval(CsvText& csv, const std::string& panel, const std::string& run, double relative,
                  const ConfidenceInterval* interval) {
  csv.cell(panel).cell(run).cell(relative);
  interval != nullptr ? csv.cell(interval->low).cell(interval->high) : csv.cell("").cell("");
  csv.end_row();
}

constexpr const char* interval_csv_header = "panel,run,difference,low,high";

}  // namespace

std::optional<Figure> difference_figure(const std::vector<ReplayRun>& runs, const Differences& differences) {
  CsvText csv(interval_csv_header);
  bool several = false;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    several |= runs[r].folder != runs.front().folder;
    if (const auto& found = differences[r]) {
      add_interval(csv, "", runs[r].label, found->relative, found->intervals ? &found->intervals->relative : nullptr);
    }
  }
  if (csv.empty()) return std::nullopt;
  return interval_figure(
      "difference",
      "Mean completion time compared with " + (several ? "the first run of each folder, and that with the first folder"
                                                       : marked(runs.front().label, runs.front().clairvoyant)),
      "Difference of the means with its 95 % interval; left of the line is better. A hollow point has no "
      "interval that can be trusted: the table says why.",
      csv);
}

std::vector<Figure> evaluation_figures(const std::vector<EvaluationRow>& rows) {
  CsvText csv(interval_csv_header);
  bool several = false;
  std::set<std::string> comparisons;  // figure and the policy compared with
  for (const EvaluationRow& row : rows) {
    several |= row.folder != rows.front().folder || row.trace != rows.front().trace;
    if (!row.relative_difference) continue;
    comparisons.insert(row.figure + " compared with " + row.against);
    const bool has_interval = row.relative_low && row.relative_high;
    const ConfidenceInterval interval{row.relative_low.value_or(0), row.relative_high.value_or(0)};
    add_interval(csv, several ? row.trace : "", row.name, *row.relative_difference, has_interval ? &interval : nullptr);
  }
  if (csv.empty()) return {};
  return {with_stars(
      interval_figure(
          "windows", comparisons.size() == 1 ? *comparisons.begin() : "Policies on windows",
          "Relative difference over the windows with its 95 % interval, as evaluate found it. A hollow point "
          "has no interval that can be trusted: the table says why.",
          csv),
      rows)};
}

std::vector<Figure> effect_figures(const std::vector<EffectRow>& rows) {
  CsvText csv(interval_csv_header);
  bool several = false;
  std::set<std::string> comparisons;
  for (const EffectRow& row : rows) {
    several |= row.folder != rows.front().folder || row.trace != rows.front().trace;
    if (!row.relative || !row.difference) continue;
    comparisons.insert(row.figure + " of all jobs compared with " + row.against);
    const bool has_interval = row.low && row.high;
    const ConfidenceInterval interval{row.low.value_or(0), row.high.value_or(0)};
    add_interval(csv, (several ? row.trace + ": " : "") + row.effect, row.name, *row.difference,
                 has_interval ? &interval : nullptr);
  }
  if (csv.empty()) return {};
  return {with_stars(
      interval_figure("log", comparisons.size() == 1 ? *comparisons.begin() : "Policies on whole logs",
                      "Relative difference of means and quantiles over all jobs of the log with its 95 % interval, "
                      "as evaluate found it; "
                      "left of the line is better. A hollow point has no interval.",
                      csv),
      rows)};
}

ReportTable world_table_of(const std::vector<WorldRow>& rows) {
  ReportTable table{
      .title = "Settings compared",
      .caption =
          "What compare found of worlds that differ from the base in what their name says: each figure of the whole "
          "run, its difference from the base's, the 95 % interval of that (of a share where % stands behind it) and "
          "its p, corrected by Holm for the worlds.",
      .header = {"world", "figure", "value", "base", "difference", "95 % interval", "p (Holm)", "by", "verdict"},
      .rows = {}};
  const auto number = [](const std::optional<double>& value) { return value ? formatted("%.6g", *value) : ""; };
  for (const WorldRow& row : rows) {
    std::string interval;
    if (row.low && row.high) {
      interval = row.relative ? interval_cell({*row.low, *row.high})
                              : "[" + formatted("%+.6g", *row.low) + ", " + formatted("%+.6g", *row.high) + "]";
    }
    table.rows.push_back({row.world, row.figure, number(row.value), number(row.base),
                          row.difference ? signed_percent_text(*row.difference) : "", interval,
                          row.p_holm ? p_value_text(*row.p_holm) : "", row.mode, row.verdict});
  }
  return table;
}

std::vector<Figure> world_figures(const std::vector<WorldRow>& rows) {
  CsvText csv(interval_csv_header);
  for (const WorldRow& row : rows) {
    if (!row.difference) continue;
    const bool has_interval = row.relative && row.low && row.high;
    const ConfidenceInterval interval{row.low.value_or(0), row.high.value_or(0)};
    add_interval(csv, row.figure, row.world, *row.difference, has_interval ? &interval : nullptr);
  }
  if (csv.empty()) return {};
  return {interval_figure("worlds", "Settings compared with the base",
                          "Relative difference of each figure with its 95 % interval, as compare found it. A hollow "
                          "point has no interval as a share: the table says why.",
                          csv)};
}

std::vector<Figure> training_figures(const std::vector<TrainingRun>& runs) {
  if (runs.empty()) return {};
  CsvText csv("folder,run,part,iteration,ratio");
  for (const TrainingRun& run : runs) {
    const auto add = [&](const char* part, double iteration, std::optional<double> ratio) {
      if (ratio) csv.cell(run.folder).cell(run.label).cell(part).cell(iteration).cell(*ratio).end_row();
    };
    for (const TrainingRun::Point& point : run.points) {
      add("training", point.iteration, point.loss);
      add("validation", point.iteration, point.validation);
    }
  }
  Json labels = Json::array();
  for (const TrainingRun& run : runs) labels.push_back(visible_line(run.label));
  return {{.id = "learning",
           .kind = "learning",
           .title = "Learning curves",
           .caption =
               "Loss over that of the heuristic in the same windows, by generation or iteration: below 1 the agent is "
               "better. Thin: training windows, new ones each time; thick, with points: the validation windows. "
               "Grey: from the best to the worst seed of a folder.",
           .settings = {{"runs", std::move(labels)}, {"every_run", true}},
           .csv = csv.text()}};
}

}  // namespace gpusched
