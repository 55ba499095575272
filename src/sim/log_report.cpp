// SPDX-License-Identifier: Apache-2.0
#include "src/sim/log_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/paired_tests.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/rated_run.hpp"

namespace gpusched {
namespace {

std::string marked_name(const LogContestant& contestant) {
  return contestant.name + (contestant.clairvoyant() ? "*" : "");
}

// "about 9 weeks".
std::string about(double seconds) {
  constexpr double hour = 3600, day = 24 * hour;
  struct Unit {
    double length;
    const char* name;
  };
  constexpr std::array<Unit, 4> units{{{365 * day, "year"}, {7 * day, "week"}, {day, "day"}, {hour, "hour"}}};
  for (const Unit& unit : units) {
    if (seconds >= 2 * unit.length || unit.length == hour) {
      return "about " + counted(static_cast<std::uint64_t>(std::max(1.0, std::ceil(seconds / unit.length))), unit.name);
    }
  }
  return {};
}

const EffectEstimate& figure_effect(const LogComparison& pair, JobEffect effect) {
  return *std::find_if(pair.effects.begin(), pair.effects.end(),
                       [effect](const EffectEstimate& one) { return one.effect == effect; });
}

std::size_t place_of(const LogComparison& pair, JobEffect effect) {
  return static_cast<std::size_t>(&figure_effect(pair, effect) - pair.effects.data());
}

std::string value_text(double value, JobEffect effect) {
  return is_share(effect) ? formatted("%.1f%%", 100 * value) : formatted("%.2f", value);
}

// Of a ratio or a share in percent, else in the figure's unit.
std::string difference_text(double value, const EffectEstimate& effect) {
  if (effect.relative || is_share(effect.effect)) return signed_percent_text(value);
  return formatted("%+.2f", value);
}

std::string interval_text(const EffectEstimate& effect) {
  if (!effect.interval) return "-";
  return "[" + difference_text(effect.interval->low, effect) + ", " + difference_text(effect.interval->high, effect) +
         "]";
}

// Of the whole log, the interquartile mean over the runs; nothing where one did not end or knows it not.
std::optional<double> side_value(const LogContestant& contestant, const MetricInfo& figure) {
  std::vector<double> values;
  for (const LogScores& run : contestant.runs) {
    const auto value = run.run ? figure.value(run.run->metrics) : std::nullopt;
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return interquartile_mean(values);
}

// "48.56 (-5.0%)"; of the reference itself its value alone.
std::string side_text(const LogContestant& contestant, const LogContestant& reference, const MetricInfo& figure) {
  const auto own = side_value(contestant, figure), other = side_value(reference, figure);
  if (!own) return "-";
  std::string text = formatted(figure.better == Better::more ? "%.4f" : "%.2f", *own);
  if (&contestant == &reference || !other) return text;
  if (*own == *other) return text + " (" + signed_percent_text(0) + ")";
  return text + " (" + (*other > 0 ? signed_percent_text(*own / *other - 1) : "-") + ")";
}

std::string why_not_compared(const LogContestant& contestant, const LogContestant& reference) {
  return contestant.finished() && reference.finished() ? "no jobs of both" : "did not end";
}

std::vector<std::string> effect_cells(const LogComparison& pair, std::size_t place) {
  const EffectEstimate& effect = pair.effects[place];
  return {value_text(effect.ours, effect.effect), difference_text(effect.difference(), effect), interval_text(effect),
          effect.interval ? p_value_text(pair.p_holm[place]) : "-"};
}

// Names of the effects with that verdict.
std::string effects_with(const LogComparison& pair, std::string_view verdict, double measured_s) {
  std::string text;
  for (std::size_t place = 0; place < pair.effects.size(); ++place) {
    if (pair.verdicts[place] != verdict) continue;
    text += (text.empty() ? "" : ", ") + std::string(job_effect_names[place].name);
    const std::string more = verdict == cannot_be_told ? more_log(pair.effects[place].needed, measured_s) : "";
    if (!more.empty()) text += " (" + more + ")";
  }
  return text;
}

std::string effect_table(const TraceLog& log, std::size_t row, const std::string& reference, const TextStyle& style) {
  const LogComparison& pair = *log.findings.comparisons[row];
  const std::string& name = log.evaluation.contestants[row].name;
  TextTable table({"of all jobs", reference, name, "difference", "95% interval", "p (Holm)", "verdict"});
  for (std::size_t place = 0; place < pair.effects.size(); ++place) {
    const EffectEstimate& effect = pair.effects[place];
    std::vector<std::string> cells{std::string(job_effect_names[place].name), value_text(effect.theirs, effect.effect)};
    for (std::string& cell : effect_cells(pair, place)) cells.push_back(std::move(cell));
    cells.push_back(pair.verdicts[place]);
    table.add(std::move(cells));
  }
  table.set_important({3, 6, 4, 1, 2});
  return "\n" + table.text(style) + effects_line(pair, log.findings.measured_s) + "\n";
}

// Jobs that the runs of one contestant, or of the other, leave out of their figures.
std::string left_out_line(const LogContestant& own, const LogContestant& other, const LeftOutJobs& left_out) {
  const auto count = [&left_out](const LogContestant& contestant) {
    double all = 0;
    for (const LogScores& run : contestant.runs) all += run.run ? (run.run->metrics.*left_out.jobs).value_or(0) : 0;
    return static_cast<std::uint64_t>(all);
  };
  if (&own == &other || (count(own) == 0 && count(other) == 0)) return "";
  return own.name + ": " + std::string(left_out.reason) + " " + human_count(count(own)) + " of its jobs (" +
         other.name + ": " + human_count(count(other)) + "): they are compared by the jobs that count under both\n";
}

// What a contestant's run says of itself that a reader should know.
std::string standing_lines(const TraceLog& log, std::size_t row, std::size_t reference) {
  const LogStanding& own = log.findings.standings[row];
  const LogStanding& other = log.findings.standings[reference];
  const std::string name = log.evaluation.contestants[row].name + ": ";
  std::string text;
  for (const LogScores& run : log.evaluation.contestants[row].runs) {
    if (!run.failure.empty()) text += name + "policy " + run.policy + " " + run.failure + "\n";
  }
  const LogContestant& contestant = log.evaluation.contestants[row];
  const LogContestant& compared_with = log.evaluation.contestants[reference];
  for (const LeftOutJobs& left_out : left_out_jobs()) text += left_out_line(contestant, compared_with, left_out);
  if (!own.grows.empty()) {
    text += name + "its queue grows for as long as jobs arrive (" + own.grows +
            "): its values are of this length of log, and of no other\n";
  }
  if (own.censored_share > 0.01) {
    text += name + counted(own.censored, "job") + " had not ended when the last one arrived, and hold at least " +
            percent_text(own.censored_share) + " of its total\n";
  }
  if (row != reference && own.longest_share > 0.5 && own.longest_share > 1.5 * other.longest_share) {
    text += name + "starvation: 1 % of its jobs wait " + percent_text(own.longest_share) + " of all waiting (" +
            log.evaluation.contestants[reference].name + ": " + percent_text(other.longest_share) + ")\n";
  }
  return text;
}

std::string headline(const TraceLog& log, const LogReportOptions& options, const std::string& reference) {
  const std::uint32_t jobs = log.evaluation.log.jobs, warm_up = log.findings.warm_up;
  std::string text = counted(jobs, "job") + " of " + std::filesystem::path(log.trace).filename().string() +
                     " in one run, on " + log.cluster;
  if (options.backfill != "none") text += ", backfilling " + options.backfill + " (agents: as trained)";
  text += "\ncompared with " + reference + " by batches of consecutive jobs";
  if (warm_up > 0) text += ", without the first " + human_count(warm_up) + ", which an empty start changes";
  return text + "\n\n";
}

constexpr const char* effects_legend =
    "batches: how many, and their jobs, so that the queue of both is forgotten within one; unended: jobs that had not "
    "ended\n"
    "when the last one arrived. mean: ratio of totals; trimmed_mean: of the lowest 95 %; winsorised_mean: the highest "
    "5 % cut\n"
    "down to the rest; better_off: share of jobs that do better with the one less with the other; random_job: the same "
    "of\n"
    "two jobs drawn at random. p (Holm): corrected for the policies compared by this figure\n";

}  // namespace

std::string more_log(std::optional<double> needed, double measured_s) {
  constexpr double most = 100;
  if (!needed) return "no length can be named";
  if (*needed <= 1) return "";
  if (*needed > most) return "more than 100 times this log";
  return about((*needed - 1) * measured_s) + " more";
}

std::string effects_line(const LogComparison& pair, double measured_s) {
  std::string text;
  for (const std::string_view verdict : {is_better, is_worse, is_the_same, cannot_be_told, log_too_short}) {
    const std::string names = effects_with(pair, verdict, measured_s);
    if (!names.empty()) text += (text.empty() ? "" : "; ") + std::string(verdict) + ": " + names;
  }
  return text;
}

std::string log_table(const TraceLog& log, const LogReportOptions& options, const TextStyle& style) {
  const std::size_t reference = options.compare.reference;
  const std::string& reference_name = log.evaluation.contestants[reference].name;
  const JobEffect effect = options.compare.figure.effect;
  std::vector<std::string> header{"policy",     "run times",    options.figure->name,
                                  "difference", "95% interval", "p (Holm)",
                                  "batches",    "unended",      "verdict"};
  for (const SideFigure& figure : options.beside) header.push_back(figure.name);
  TextTable table(header);
  std::string details, below;
  bool clairvoyant = false;
  for (std::size_t row = 0; row < log.evaluation.contestants.size(); ++row) {
    const LogContestant& contestant = log.evaluation.contestants[row];
    const LogStanding& standing = log.findings.standings[row];
    const auto& pair = log.findings.comparisons[row];
    clairvoyant |= contestant.clairvoyant();
    std::vector<std::string> cells{marked_name(contestant), contestant.run_times()};
    if (pair) {
      for (std::string& cell : effect_cells(*pair, place_of(*pair, effect))) cells.push_back(std::move(cell));
      cells.push_back(std::to_string(pair->plan.count) + " of " + human_count(pair->plan.batch_jobs()));
    } else {
      cells.insert(cells.end(), {standing.value ? value_text(*standing.value, effect) : "-", "", "", "", ""});
    }
    cells.push_back(standing.value ? human_count(standing.censored) : "-");
    cells.push_back(row == reference ? "="
                    : pair           ? pair->verdict
                                     : why_not_compared(contestant, log.evaluation.contestants[reference]));
    for (const SideFigure& figure : options.beside) {
      cells.push_back(side_text(contestant, log.evaluation.contestants[reference], *figure.metric));
    }
    table.add(std::move(cells));
    below += standing_lines(log, row, reference);
    if (pair) details += effect_table(log, row, reference_name, style);
  }
  const std::vector<LogContestant>& rows = log.evaluation.contestants;
  const auto is_clairvoyant = [](const LogContestant& one) { return one.clairvoyant(); };
  constexpr std::size_t figure_column = 2, verdict_column = 8;
  std::vector<std::size_t> important{figure_column, 3, verdict_column};
  // Nobody is marked as the best where the log does not tell.
  const bool is_told = std::any_of(
      log.findings.comparisons.begin(), log.findings.comparisons.end(), [](const std::optional<LogComparison>& pair) {
        return pair && (pair->verdict.starts_with(is_better) || pair->verdict.starts_with(is_worse));
      });
  const auto figure_of = [&](const LogContestant& one) {
    return log.findings.standings[static_cast<std::size_t>(&one - rows.data())].value;
  };
  if (is_told) rate_by(table, figure_column, *options.figure, rows, figure_of, is_clairvoyant);
  for (std::size_t i = 0; i < options.beside.size(); ++i) {
    important.push_back(verdict_column + 1 + i);
    rate_by(
        table, verdict_column + 1 + i, *options.beside[i].metric, rows,
        [&](const LogContestant& one) { return side_value(one, *options.beside[i].metric); }, is_clairvoyant);
  }
  important.insert(important.end(), {4, 5});
  table.set_important(std::move(important));
  std::string text = headline(log, options, reference_name) + table.text(style) + below + details;
  if (!details.empty()) text += std::string("\n") + effects_legend;
  text += "run times: what the policy knew of them\n";
  if (clairvoyant) text += "* knows true run times, which no real scheduler does\n";
  return text;
}

namespace {

Json effect_json(const LogComparison& pair, std::size_t place) {
  const EffectEstimate& effect = pair.effects[place];
  return {{"effect", std::string(job_effect_names[place].name)},
          {"value", effect.ours},
          {"other", effect.theirs},
          {"difference", effect.difference()},
          {"relative", effect.relative},
          {"interval_95", interval_json(effect.interval)},
          {"p", effect.interval ? Json(effect.p) : Json()},
          {"p_holm", effect.interval ? Json(pair.p_holm[place]) : Json()},
          {"times_this_log", number_json(effect.needed)},
          {"verdict", pair.verdicts[place]}};
}

Json pair_json(const LogComparison& pair, const std::string& reference) {
  Json effects = Json::array();
  for (std::size_t place = 0; place < pair.effects.size(); ++place) effects.push_back(effect_json(pair, place));
  return {{"against", reference},
          {"batches", pair.plan.count},
          {"batch_jobs", pair.plan.batch_jobs()},
          {"verdict", pair.verdict},
          {"effects", std::move(effects)}};
}

Json contestant_json(const TraceLog& log, std::size_t row, const LogReportOptions& options) {
  const LogContestant& contestant = log.evaluation.contestants[row];
  const LogStanding& standing = log.findings.standings[row];
  Json entry{{"policy", contestant.name},
             {"trace", log.trace},
             {"cluster", log.cluster},
             {"clairvoyant", contestant.clairvoyant()},
             {"run_times", contestant.run_times()},
             {"jobs", log.evaluation.log.jobs},
             {"warm_up", log.findings.warm_up},
             {"figure", options.figure->name},
             {"value", number_json(standing.value)},
             {"memory_jobs", standing.memory},
             {"unended", standing.censored},
             {"unended_share", standing.censored_share},
             {"longest_waits_share", standing.longest_share},
             {"grows", standing.grows}};
  Json runs = Json::array();
  for (const LogScores& run : contestant.runs) {
    Json metrics = Json::object();
    if (run.run) {
      for (const MetricInfo& metric : metric_table()) {
        if (const auto value = metric.value(run.run->metrics)) metrics[metric.name] = *value;
      }
    }
    runs.push_back({{"policy", run.policy}, {"metrics", std::move(metrics)}, {"failure", run.failure}});
  }
  entry["runs"] = std::move(runs);
  if (const auto& pair = log.findings.comparisons[row]) {
    entry["comparison"] = pair_json(*pair, log.evaluation.contestants[options.compare.reference].name);
  }
  return entry;
}

// The columns from "effect" on.
void append_effect(std::string& text, const LogComparison& pair, std::size_t place) {
  const EffectEstimate& effect = pair.effects[place];
  text += "," + std::string(job_effect_names[place].name);
  append_value(text += ',', effect.ours);
  append_value(text += ',', effect.theirs);
  append_value(text += ',', effect.difference());
  text += effect.relative ? ",true" : ",false";
  append_value(text += ',', effect.interval ? std::optional(effect.interval->low) : std::nullopt);
  append_value(text += ',', effect.interval ? std::optional(effect.interval->high) : std::nullopt);
  append_value(text += ',', effect.interval ? std::optional(effect.p) : std::nullopt);
  append_value(text += ',', effect.interval ? std::optional(pair.p_holm[place]) : std::nullopt);
  append_value(text += ',', effect.needed);
  append_csv_field(text += ',', pair.verdicts[place]);
}

constexpr std::size_t columns_of_effect = 11;

}  // namespace

Json log_runs_json(const std::vector<TraceLog>& logs, const LogReportOptions& options) {
  Json result = Json::array();
  for (const TraceLog& log : logs) {
    for (std::size_t row = 0; row < log.evaluation.contestants.size(); ++row) {
      result.push_back(contestant_json(log, row, options));
    }
  }
  return result;
}

std::string effects_csv(const std::vector<TraceLog>& logs, const LogReportOptions& options) {
  std::string text =
      "trace,cluster,name,clairvoyant,run_times,policies,jobs,warm_up,figure,value,unended,unended_share,grows,against,"
      "batches,batch_jobs,figure_verdict,effect,ours,theirs,difference,relative,low_95,high_95,p,p_holm,times_this_log,"
      "verdict\n";
  for (const TraceLog& log : logs) {
    for (std::size_t row = 0; row < log.evaluation.contestants.size(); ++row) {
      const LogContestant& contestant = log.evaluation.contestants[row];
      const LogStanding& standing = log.findings.standings[row];
      std::string begin;
      append_csv_field(begin, log.trace);
      append_csv_field(begin += ',', log.cluster);
      append_csv_field(begin += ',', contestant.name);
      begin += contestant.clairvoyant() ? ",true" : ",false";
      append_csv_field(begin += ',', contestant.run_times());
      begin += "," + std::to_string(contestant.runs.size()) + "," + std::to_string(log.evaluation.log.jobs) + "," +
               std::to_string(log.findings.warm_up) + "," + options.figure->name;
      append_value(begin += ',', standing.value);
      append_value(begin += ',', static_cast<double>(standing.censored));
      append_value(begin += ',', standing.censored_share);
      append_csv_field(begin += ',', standing.grows);
      const auto& pair = log.findings.comparisons[row];
      if (!pair) {
        const LogContestant& other = log.evaluation.contestants[options.compare.reference];
        const bool is_alone = contestant.finished() && (row == options.compare.reference || !other.finished());
        text += begin + ",,,," + (is_alone ? "" : why_not_compared(contestant, other)) +
                std::string(columns_of_effect, ',') + "\n";
        continue;
      }
      append_csv_field(begin += ',', log.evaluation.contestants[options.compare.reference].name);
      begin += "," + std::to_string(pair->plan.count) + "," + std::to_string(pair->plan.batch_jobs());
      append_csv_field(begin += ',', pair->verdict);
      for (std::size_t place = 0; place < pair->effects.size(); ++place) {
        append_effect(text += begin, *pair, place);
        text += '\n';
      }
    }
  }
  return text;
}

std::string batches_csv(const std::vector<TraceLog>& logs) {
  std::string text = "trace,name,policy,batch,first_job,jobs,mean_value,mean_found\n";
  for (const TraceLog& log : logs) {
    for (const LogContestant& contestant : log.evaluation.contestants) {
      for (const LogScores& run : contestant.runs) {
        if (!run.run || run.run->values.size() <= log.findings.warm_up) continue;
        const auto values = std::span(run.run->values).subspan(log.findings.warm_up);
        const auto found = std::span(run.run->found).subspan(log.findings.warm_up);
        const BatchPlan plan = plan_batches(values.size(), 1);
        for (std::size_t batch = 0; batch < plan.count; ++batch) {
          const std::size_t first = plan.first(batch), count = plan.first(batch + 1) - first;
          append_csv_field(text, log.trace);
          append_csv_field(text += ',', contestant.name);
          append_csv_field(text += ',', run.policy);
          text += "," + std::to_string(batch) + "," + std::to_string(log.findings.warm_up + first) + "," +
                  std::to_string(count);
          append_value(text += ',', mean_of(values.subspan(first, count)));
          append_value(text += ',', mean_of(found.subspan(first, count)));
          text += '\n';
        }
      }
    }
  }
  return text;
}

}  // namespace gpusched
