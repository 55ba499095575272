// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation_report.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/evaluation_notes.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/rated_run.hpp"

namespace gpusched {
namespace {

// Shares and indices lie between 0 and 1.
std::string value_text(double value, const MetricInfo& figure) {
  return formatted(figure.better == Better::more ? "%.4f" : "%.2f", value);
}

// A geometric mean over a window of 0 is none.
std::string mean_text(std::optional<double> mean, const MetricInfo& figure) {
  return mean ? value_text(*mean, figure) : "undefined";
}

// "-" where there is no window of both.
std::string mean_cell(const Comparison& pair, const MetricInfo& figure) {
  return pair.windows == 0 ? "-" : mean_text(pair.mean, figure);
}

// Of the means.
std::optional<double> difference_of(const Comparison& pair) {
  if (!pair.mean || !pair.other_mean) return std::nullopt;
  return *pair.mean - *pair.other_mean;
}

// "-" beside a reference of 0, of which nothing else is a share.
std::string difference_text(const Comparison& pair) {
  if (!difference_of(pair)) return "-";
  const double difference = *difference_of(pair);
  if (difference == 0) return signed_percent_text(0);
  return *pair.other_mean == 0 ? "-" : signed_percent_text(difference / *pair.other_mean);
}

// "[-3.1%, +2.0%]", or nothing where there is no interval.
std::string interval_text(const Comparison& pair) {
  if (!pair.interval) return "";
  const ConfidenceInterval& relative = pair.interval->relative;
  return "[" + signed_percent_text(relative.low) + ", " + signed_percent_text(relative.high) + "]";
}

std::string marked_name(const Contestant& contestant) {
  return contestant.name + (contestant.clairvoyant() ? "*" : "");
}

std::string legend(const std::vector<Contestant>& contestants) {
  const bool starred =
      std::any_of(contestants.begin(), contestants.end(), [](const auto& one) { return one.clairvoyant(); });
  return starred ? "* knows true run times, which no real scheduler does\n" : "";
}

std::string backfill_text(const std::string& backfill) {
  return backfill == "none" ? "" : ", backfilling " + backfill + " (agents: as trained)";
}

// As a share of the other's; nothing beside 0, of which nothing else is one.
std::optional<double> side_difference(const SideValues& values) {
  if (!values.own || !values.other) return std::nullopt;
  if (*values.own == *values.other) return 0;
  return *values.other == 0 ? std::nullopt : std::optional((*values.own - *values.other) / *values.other);
}

// "48.56 (-5.0%)"; of the reference itself its value alone.
std::string side_text(const Contestant& contestant, const Contestant& reference, const SideFigure& figure,
                      WindowMean mean) {
  const SideValues values = side_values(contestant, reference, figure, mean);
  if (!values.own) return mean == WindowMean::geometric ? "undefined" : "-";
  std::string value = value_text(*values.own, *figure.metric);
  if (&contestant == &reference) return value;
  const auto difference = side_difference(values);
  return value + " (" + (difference ? signed_percent_text(*difference) : "-") + ")";
}

// One figure on every trace.
std::string side_matrix(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options,
                        const SideFigure& figure, const std::vector<std::string>& names_of_traces,
                        const TextStyle& style) {
  std::vector<std::string> header{"policy"};
  header.insert(header.end(), names_of_traces.begin(), names_of_traces.end());
  TextTable table(header);
  for (std::size_t row = 0; row < evaluations.front().contestants.size(); ++row) {
    std::vector<std::string> cells{marked_name(evaluations.front().contestants[row])};
    for (const TraceEvaluation& evaluation : evaluations) {
      cells.push_back(
          side_text(evaluation.contestants[row], evaluation.contestants[options.reference], figure, options.mean));
    }
    table.add(std::move(cells));
  }
  return "\n" + figure.name + "\n" + table.text(style);
}

Json side_json(const Contestant& contestant, const Contestant& reference, const ReportOptions& options) {
  Json json = Json::object();
  for (const SideFigure& figure : options.beside) {
    const SideValues values = side_values(contestant, reference, figure, options.mean);
    const auto difference = &contestant == &reference ? std::nullopt : side_difference(values);
    json[figure.name] = {{"mean", number_json(values.own)}, {"relative_difference", number_json(difference)}};
  }
  return json;
}

using Rows = std::vector<WindowComparison>;

std::vector<Rows> rows_of(const TraceEvaluation& evaluation, const ReportOptions& options) {
  return compare_windows({evaluation}, options);
}

// The cells "wins", "ranks p (Holm)" and "effect".
std::vector<std::string> rank_cells(const WindowComparison& one) {
  const std::string wins = one.pair.windows == 0 ? "-" : formatted("%.0f%%", 100 * one.pair.win_rate);
  if (!one.ranks) return {wins, "-", "-"};
  return {wins, p_value_text(*one.ranks_holm), formatted("%+.2f", one.ranks->test.rank_biserial)};
}

std::string p_text(const std::optional<double>& p) { return p ? p_value_text(*p) : "-"; }

// "no difference detected; more windows better".
std::string verdict_text(const WindowComparison& one) {
  return one.verdict + (one.typical.empty() ? "" : "; " + one.typical);
}

// "30369.00 (+146.0%)".
std::string log_text(const WindowComparison& one, const MetricInfo& figure, bool self) {
  if (!one.log.own) return "-";
  const auto difference = self ? std::nullopt : one.log.difference();
  return value_text(*one.log.own, figure) + (difference ? " (" + signed_percent_text(*difference) + ")" : "");
}

std::string disagreement_line(const std::string& name, const WindowComparison& one) {
  if (one.why.empty()) return "";
  return name + ": " + std::string(windows_and_log_disagree) + ": windows " + difference_text(one.pair) + ", log " +
         signed_percent_text(*one.log.difference()) + "; " + one.why + "\n";
}

constexpr const char* test_legend =
    "p (Holm): of the difference of means, corrected for the number of comparisons here; ranks: Wilcoxon's signed-rank "
    "test over\n"
    "blocks of windows, corrected likewise; effect: rank-biserial correlation, from -1 (lower in every window) to +1; "
    "these two\n"
    "speak of windows, not of means\n";

std::string test_legend_of(const std::vector<Rows>& all) {
  const auto has_test = [](const Rows& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const auto& one) { return one.ranks.has_value(); });
  };
  const bool any = std::any_of(all.begin(), all.end(), has_test);
  return any ? test_legend
             : "ranks, effect: no test with fewer than " + std::to_string(least_values) + " windows or " +
                   std::to_string(least_test_blocks) +
                   " blocks of them that are independent,\nnor of geometric means where a window has 0\n";
}

constexpr const char* log_legend =
    "whole log: all of these jobs in one run, and the difference there; --mode log compares it with intervals\n";

bool has_log(const TraceEvaluation& evaluation) { return evaluation.log.has_value(); }

// What helps where there is no interval: a line for each reason among `verdicts`, once.
std::string advice_lines(const std::vector<std::string>& verdicts) {
  const std::pair<std::string_view, std::string> advice[] = {
      {too_few_windows, "an interval takes " + std::to_string(least_values) + " windows, " +
                            formatted("%.0f", least_effective_count) + " of them without common jobs"},
      {too_few_differ, "an interval takes " + formatted("%.0f", least_effective_count) + " windows that differ"},
      {too_alike_windows, "what happens lasts for several windows; longer ones, or more of the trace, tell more"},
      {too_heavy_tails,
       "a few windows decide; longer ones tell more, or --mode log, which compares medians, quantiles and shares too"},
      {no_ratio, "a geometric mean takes values above 0 in every window"},
  };
  std::string text;
  for (const auto& [reason, line] : advice) {
    const auto has_it = [&reason = reason](const std::string& verdict) {
      return verdict.substr(0, verdict.find(" (")) == reason;
    };
    if (std::any_of(verdicts.begin(), verdicts.end(), has_it)) text += std::string(reason) + ": " + line + "\n";
  }
  return text;
}

// What the policy knew of run times; where that depends on the trace, each once.
std::string run_times_on(const std::vector<TraceEvaluation>& evaluations, std::size_t row) {
  std::vector<std::string> known;
  for (const TraceEvaluation& evaluation : evaluations) known.push_back(evaluation.contestants[row].run_times());
  return joined(distinct(std::move(known)), "; ");
}

std::string mean_note(WindowMean mean) {
  return mean == WindowMean::geometric ? ", geometric means over the windows" : "";
}

constexpr const char* run_times_legend = "run times: what the policy knew of them\n";

// "sjf: 1 of 40 windows left out; policy sjf, window at job 300: it left 2 jobs waiting for ever", a line a policy.
std::string failure_lines(const Contestant& contestant) {
  std::string text;
  for (const PolicyScores& run : contestant.runs) {
    if (run.failures.empty()) continue;
    text += contestant.name + ": " + std::to_string(run.failures.size()) + " of " + std::to_string(run.windows.size()) +
            " windows left out; " + run.failures.front() + "\n";
  }
  return text;
}

// Of every window; null where the run did not end or does not know the figure.
Json window_values(const PolicyScores& run, const MetricInfo& figure) {
  Json values = Json::array();
  for (const auto& window : run.windows) {
    const auto value = window ? figure.value(*window) : std::nullopt;
    values.push_back(number_json(value));
  }
  return values;
}

Json test_json(const WindowComparison& one) {
  if (!one.ranks) return {};
  const SignedRank& found = one.ranks->test;
  return {{"test", "wilcoxon"},          {"p", found.p},
          {"p_holm", *one.ranks_holm},   {"exact", found.exact},
          {"blocks", one.ranks->blocks}, {"rank_biserial", found.rank_biserial}};
}

Json comparison_json(const WindowComparison& one, const std::string& against, const ReportOptions& options) {
  const Comparison& pair = one.pair;
  Json json{{"against", against},
            {"figure", options.figure->name},
            {"mean", options.mean == WindowMean::geometric ? "geometric" : "arithmetic"},
            {"windows", pair.windows},
            {"difference", number_json(difference_of(pair))},
            {"interval_95", nullptr},
            {"p", number_json(pair.interval ? std::optional(pair.interval->p) : std::nullopt)},
            {"p_holm", number_json(one.p_holm)},
            {"win_rate", pair.windows == 0 ? Json() : Json(pair.win_rate)},
            {"wilcoxon", test_json(one)},
            {"whole_log_difference", number_json(one.log.difference())},
            {"verdict", one.verdict},
            {"typical", one.typical},
            {"why", one.why}};
  if (pair.normalised) {
    json["probability_of_improvement"] = {{"value", pair.win_rate},
                                          {"interval_95", interval_json(pair.win_rate_interval)}};
    json["normalised_interquartile_mean"] = {{"value", *pair.normalised},
                                             {"interval_95", interval_json(pair.normalised_interval)}};
  }
  if (pair.interval) {
    json["interval_95"] = {pair.interval->difference.low, pair.interval->difference.high};
    json["relative_interval_95"] = {pair.interval->relative.low, pair.interval->relative.high};
    json["block"] = pair.interval->block;
    json["effective_blocks"] = pair.interval->effective;
  }
  return json;
}

}  // namespace

std::string seeds_line(const Contestant& contestant, const MetricInfo& figure, const ComparisonOptions& options) {
  const std::vector<std::size_t> windows = contestant.windows_with(figure);
  if (windows.empty()) return "";
  const RunScores scores = contestant.scores(figure, windows);
  std::string line = contestant.name + ": interquartile mean of " + std::to_string(scores.size()) + " training seeds " +
                     mean_text(interquartile_mean_of_runs(scores, options.mean), figure);
  if (const auto own = own_interval(scores, options)) {
    line += " [" + value_text(own->low, figure) + ", " + value_text(own->high, figure) + "]";
  }
  line += "; seeds";
  for (std::size_t i = 0; i < scores.size(); ++i) {
    line += (i == 0 ? " " : ", ") + mean_text(interquartile_mean_of_runs({scores[i]}, options.mean), figure);
  }
  return line + "\n";
}

std::string improvement_line(const Contestant& contestant, const std::string& reference, const Comparison& pair) {
  if (contestant.runs.size() < 2 || pair.windows == 0) return "";
  const auto percent = [](double share) { return formatted("%.1f%%", 100 * share); };
  std::string line =
      contestant.name + " against " + reference + ": probability of improvement " + percent(pair.win_rate);
  if (const auto& own = pair.win_rate_interval) line += " [" + percent(own->low) + ", " + percent(own->high) + "]";
  if (pair.normalised) {
    line += "; interquartile mean of the ratio, over seeds and windows, " + formatted("%.3f", *pair.normalised);
    if (const auto& own = pair.normalised_interval) {
      line += " [" + formatted("%.3f", own->low) + ", " + formatted("%.3f", own->high) + "]";
    }
  }
  if (!pair.win_rate_interval) {
    line += "; no intervals over fewer than " + std::to_string(least_runs_for_interval) + " seeds";
  }
  return line + "\n";
}

std::string evaluation_table(const TraceEvaluation& evaluation, const ReportOptions& options, const TextStyle& style) {
  const EvaluationWindows& windows = evaluation.windows;
  const Contestant& reference = evaluation.contestants[options.reference];
  std::vector<std::string> header{"policy",   "run times", options.figure->name, "difference", "95% interval",
                                  "p (Holm)", "wins",      "ranks p (Holm)",     "effect"};
  if (has_log(evaluation)) header.emplace_back("whole log");
  header.emplace_back("verdict");
  for (const SideFigure& figure : options.beside) header.push_back(figure.name);
  TextTable table(header);
  std::string below;
  std::vector<std::string> reasons;
  const std::vector<Rows> all = rows_of(evaluation, options);
  for (std::size_t row = 0; row < evaluation.contestants.size(); ++row) {
    const Contestant& contestant = evaluation.contestants[row];
    const WindowComparison& one = all.front()[row];
    const bool self = &contestant == &reference;
    std::vector<std::string> cells{marked_name(contestant),
                                   contestant.run_times(),
                                   mean_cell(one.pair, *options.figure),
                                   self ? "" : difference_text(one.pair),
                                   self ? "" : interval_text(one.pair),
                                   self ? "" : p_text(one.p_holm)};
    for (std::string& cell : rank_cells(one)) cells.push_back(self ? "" : std::move(cell));
    if (has_log(evaluation)) cells.push_back(log_text(one, *options.figure, self));
    cells.push_back(self ? "=" : verdict_text(one));
    for (const SideFigure& figure : options.beside) {
      cells.push_back(side_text(contestant, reference, figure, options.mean));
    }
    table.add(std::move(cells));
    if (!self) reasons.push_back(one.verdict);
    below += failure_lines(contestant);
    for (const std::string& line : window_notes(contestant, reference, options)) below += line + "\n";
    below += disagreement_line(contestant.name, one);
    if (contestant.runs.size() > 1)
      below += seeds_line(contestant, *options.figure, options.with_overlap(windows.overlap()));
    if (!self) below += improvement_line(contestant, reference.name, one.pair);
  }
  const std::size_t verdict = has_log(evaluation) ? 10 : 9, first_beside = verdict + 1;
  std::vector<std::size_t> important{2, 3, verdict};
  for (std::size_t i = 0; i < options.beside.size(); ++i) important.push_back(first_beside + i);
  important.insert(important.end(), {4, 5});
  table.set_important(std::move(important));
  const auto is_clairvoyant = [](const Contestant& one) { return one.clairvoyant(); };
  std::vector<std::optional<double>> means;
  for (const WindowComparison& one : all.front()) {
    means.push_back(one.pair.windows == 0 ? std::nullopt : one.pair.mean);
  }
  const auto mean_of_windows = [&](const Contestant& one) {
    return means[static_cast<std::size_t>(&one - evaluation.contestants.data())];
  };
  // Nobody is marked as the best where the windows do not tell.
  const bool is_told = std::any_of(all.front().begin(), all.front().end(),
                                   [](const WindowComparison& one) { return is_verdict(one.verdict); });
  if (is_told) rate_by(table, 2, *options.figure, evaluation.contestants, mean_of_windows, is_clairvoyant);
  for (std::size_t i = 0; i < options.beside.size(); ++i) {
    const SideFigure& figure = options.beside[i];
    rate_by(
        table, first_beside + i, *figure.metric, evaluation.contestants,
        [&](const Contestant& one) { return side_values(one, reference, figure, options.mean).own; }, is_clairvoyant);
  }
  return counted(evaluation.starts.size(), "window") + " of " + counted(windows.jobs, "job") + ", every " +
         human_count(windows.stride) + ", on " + evaluation.cluster + backfill_text(options.backfill) +
         "\ncompared with " + reference.name + " (studentised block bootstrap)" + mean_note(options.mean) + "\n\n" +
         table.text(style) + run_times_legend + (reasons.empty() ? "" : test_legend_of(all)) +
         (has_log(evaluation) ? log_legend : "") + advice_lines(reasons) + below + legend(evaluation.contestants);
}

namespace {

// "-31.0% [-36.2%, -25.1%] p 0.004; log +146.0%".
std::string transfer_cell(const WindowComparison& one) {
  std::string text = difference_text(one.pair) + " " + (one.pair.interval ? interval_text(one.pair) : one.verdict);
  if (one.pair.interval && one.verdict == other_jobs) text += " " + one.verdict;
  if (one.p_holm) text += " p " + p_value_text(*one.p_holm);
  if (!one.typical.empty()) text += "; " + one.typical;
  if (const auto log = one.log.difference()) text += "; log " + signed_percent_text(*log);
  return text;
}

}  // namespace

std::string transfer_table(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options,
                           const TextStyle& style) {
  const std::vector<Contestant>& rows = evaluations.front().contestants;
  std::vector<std::string> header{"policy", "run times"};
  std::vector<std::string> names_of_traces, verdicts;
  std::string below;
  std::string text = options.figure->name + " compared with " + rows[options.reference].name +
                     backfill_text(options.backfill) + "; 95% intervals, studentised block bootstrap" +
                     mean_note(options.mean) +
                     "\np: of the difference of means, corrected by Holm for all of the table\n";
  for (const TraceEvaluation& evaluation : evaluations) {
    header.push_back(std::filesystem::path(evaluation.trace).filename().string());
    names_of_traces.push_back(header.back());
    text += "  " + header.back() + ": " + counted(evaluation.starts.size(), "window") + " of " +
            counted(evaluation.windows.jobs, "job") + ", every " + human_count(evaluation.windows.stride) + ", on " +
            evaluation.cluster + "\n";
  }
  TextTable table(header);
  const std::vector<Rows> all = compare_windows(evaluations, options);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::string> cells{marked_name(rows[row]), run_times_on(evaluations, row)};
    for (std::size_t t = 0; t < evaluations.size(); ++t) {
      const WindowComparison& one = all[t][row];
      if (row != options.reference) verdicts.push_back(one.verdict);
      cells.push_back(row == options.reference ? mean_cell(one.pair, *options.figure) : transfer_cell(one));
      below += disagreement_line(names_of_traces[t] + ": " + rows[row].name, one);
    }
    table.add(std::move(cells));
  }
  for (const TraceEvaluation& evaluation : evaluations) {
    const std::string trace = std::filesystem::path(evaluation.trace).filename().string();
    for (const Contestant& contestant : evaluation.contestants) {
      for (const std::string& line : window_notes(contestant, evaluation.contestants[options.reference], options)) {
        below += trace + ": " + line + "\n";
      }
    }
  }
  std::string sides;
  for (const SideFigure& figure : options.beside)
    sides += side_matrix(evaluations, options, figure, names_of_traces, style);
  return text + "\n" + table.text(style) + sides + run_times_legend + advice_lines(verdicts) + below + legend(rows);
}

namespace {

void append_runs(Json& result, const TraceEvaluation& evaluation, const Rows& rows, const ReportOptions& options) {
  const Contestant& reference = evaluation.contestants[options.reference];
  for (std::size_t row = 0; row < evaluation.contestants.size(); ++row) {
    const Contestant& contestant = evaluation.contestants[row];
    Json metrics = Json::object();
    for (const MetricInfo& metric : metric_table()) {
      const std::vector<std::size_t> windows = contestant.windows_with(metric);
      if (metric.better == Better::neither || windows.empty()) continue;
      metrics[metric.name] = interquartile_mean_of_runs(contestant.scores(metric, windows));
    }
    Json entry{{"policy", contestant.name},
               {"trace", evaluation.trace},
               {"cluster", evaluation.cluster},
               {"clairvoyant", contestant.clairvoyant()},
               {"run_times", contestant.run_times()},
               {"metrics", std::move(metrics)},
               {"saturated_windows", contestant.saturated_windows()}};
    if (contestant.runs.size() == 1) {
      entry["windows"] = window_values(contestant.runs.front(), *options.figure);
    } else {
      entry["seeds"] = Json::array();
      for (const PolicyScores& run : contestant.runs) {
        entry["seeds"].push_back({{"policy", run.policy}, {"windows", window_values(run, *options.figure)}});
      }
    }
    for (const PolicyScores& run : contestant.runs) {
      for (const std::string& failure : run.failures) entry["failures"].push_back(failure);
    }
    if (evaluation.log) entry["whole_log"] = number_json(rows[row].log.own);
    if (&contestant != &reference) entry["comparison"] = comparison_json(rows[row], reference.name, options);
    if (!options.beside.empty()) entry["beside"] = side_json(contestant, reference, options);
    result.push_back(std::move(entry));
  }
}

}  // namespace

Json evaluation_runs_json(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options) {
  const std::vector<Rows> all = compare_windows(evaluations, options);
  Json result = Json::array();
  for (std::size_t t = 0; t < evaluations.size(); ++t) append_runs(result, evaluations[t], all[t], options);
  return result;
}

std::string windows_csv(const std::vector<TraceEvaluation>& evaluations) {
  std::string text = "trace,name,policy,window,first_job";
  for (const MetricInfo& metric : metric_table()) text += "," + metric.name;
  text += ",saturated\n";
  for (const TraceEvaluation& evaluation : evaluations) {
    for (const Contestant& contestant : evaluation.contestants) {
      for (const PolicyScores& run : contestant.runs) {
        for (std::size_t w = 0; w < run.windows.size(); ++w) {
          append_csv_field(text, evaluation.trace);
          append_csv_field(text += ',', contestant.name);
          append_csv_field(text += ',', run.policy);
          text += "," + std::to_string(w) + "," + std::to_string(evaluation.starts[w]);
          for (const MetricInfo& metric : metric_table())
            append_value(text += ',', run.windows[w] ? metric.value(*run.windows[w]) : std::nullopt);
          text += !run.windows[w] ? ",\n" : run.is_saturated(w) ? ",true\n" : ",false\n";
        }
      }
    }
  }
  return text;
}

namespace {

void append_ends(std::string& text, const std::optional<ConfidenceInterval>& interval) {
  append_value(text += ',', interval ? std::optional(interval->low) : std::nullopt);
  append_value(text += ',', interval ? std::optional(interval->high) : std::nullopt);
}

void append_ranks(std::string& text, const std::optional<BlockedSignedRank>& ranks, const std::optional<double>& holm) {
  append_value(text += ',', ranks ? std::optional(ranks->test.p) : std::nullopt);
  append_value(text += ',', holm);
  append_value(text += ',', ranks ? std::optional(ranks->test.rank_biserial) : std::nullopt);
  text += "," + (ranks ? std::to_string(ranks->blocks) : "");
}

void append_comparison(std::string& text, const WindowComparison& one, const std::string& reference) {
  const Comparison& pair = one.pair;
  append_csv_field(text += ',', reference);
  append_value(text += ',', difference_of(pair));
  append_ends(text, pair.interval ? std::optional(pair.interval->difference) : std::nullopt);
  append_ends(text, pair.interval ? std::optional(pair.interval->relative) : std::nullopt);
  append_value(text += ',', pair.windows == 0 ? std::nullopt : std::optional(pair.win_rate));
  append_ends(text, pair.win_rate_interval);
  append_value(text += ',', pair.normalised);
  append_ends(text, pair.normalised_interval);
  append_ranks(text, one.ranks, one.ranks_holm);
  append_csv_field(text += ',', one.verdict);
  append_value(text += ',', pair.interval ? std::optional(pair.interval->p) : std::nullopt);
  append_value(text += ',', one.p_holm);
  append_csv_field(text += ',', one.typical);
  append_value(text += ',', one.log.difference());
  append_csv_field(text += ',', one.why);
}

constexpr std::size_t without_comparison = 22;  // columns from "against" to "why"

void append_sides(std::string& text, const Contestant& contestant, const Contestant& reference,
                  const ReportOptions& options) {
  for (const SideFigure& figure : options.beside) {
    const SideValues values = side_values(contestant, reference, figure, options.mean);
    append_value(text += ',', values.own);
    append_value(text += ',', &contestant == &reference ? std::nullopt : side_difference(values));
  }
}

}  // namespace

std::string comparison_csv(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options) {
  std::string text =
      "trace,cluster,name,clairvoyant,run_times,policies,windows,saturated,figure,mean,against,difference,low_95,high_"
      "95,"
      "relative_low_95,relative_high_95,win_rate,win_rate_low_95,win_rate_high_95,normalised_iqm,normalised_iqm_low_95,"
      "normalised_iqm_high_95,p_wilcoxon,p_holm,rank_biserial,blocks,verdict,p_mean,p_mean_holm,typical,whole_log_"
      "difference,why,whole_log";
  for (const SideFigure& figure : options.beside) text += "," + figure.name + "," + figure.name + "_difference";
  text += '\n';
  const std::vector<Rows> all = compare_windows(evaluations, options);
  for (std::size_t t = 0; t < evaluations.size(); ++t) {
    const TraceEvaluation& evaluation = evaluations[t];
    const Contestant& reference = evaluation.contestants[options.reference];
    for (std::size_t row = 0; row < evaluation.contestants.size(); ++row) {
      const Contestant& contestant = evaluation.contestants[row];
      const WindowComparison& one = all[t][row];
      append_csv_field(text, evaluation.trace);
      append_csv_field(text += ',', evaluation.cluster);
      append_csv_field(text += ',', contestant.name);
      text += contestant.clairvoyant() ? ",true" : ",false";
      append_csv_field(text += ',', contestant.run_times());
      text += "," + std::to_string(contestant.runs.size()) + "," + std::to_string(one.pair.windows) + "," +
              std::to_string(contestant.saturated_windows());
      append_csv_field(text += ',', options.figure->name);
      append_value(text += ',', one.pair.mean);
      &contestant == &reference ? void(text.append(without_comparison, ','))
                                : append_comparison(text, one, reference.name);
      append_value(text += ',', one.log.own);
      append_sides(text, contestant, reference, options);
      text += '\n';
    }
  }
  return text;
}

}  // namespace gpusched
