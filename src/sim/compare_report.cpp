// SPDX-License-Identifier: Apache-2.0
#include "src/sim/compare_report.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/base/wrapped_text.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/window_comparison.hpp"

namespace gpusched {
namespace {

// In the unit that the figure's name ends in.
std::string value_text(std::optional<double> value, const MetricInfo& metric) {
  if (!value) return "-";
  if (metric.name.ends_with("_s")) return human_duration(*value);
  const bool is_share = metric.name.starts_with("gpu_") || metric.name == "goodput" || metric.name.ends_with("_rate");
  if (is_share) return percent_text(*value);
  if (metric.name == "preemptions" || metric.name == "kills" || metric.name.ends_with("_starts")) {
    return human_count(static_cast<std::uint64_t>(*value));
  }
  return formatted(*value < 1000 ? "%.2f" : "%.0f", *value);
}

std::string unit(const WorldFigure& row) { return row.metric->name.ends_with("_s") ? " s" : ""; }

std::string interval_text(const WorldFigure& row) {
  if (!row.interval) return "";
  if (row.relative) {
    return "[" + signed_percent_text(row.interval->low) + ", " + signed_percent_text(row.interval->high) + "]";
  }
  return "[" + formatted("%+.4g", row.interval->low) + ", " + formatted("%+.4g", row.interval->high) + "]" + unit(row);
}

std::string difference_text(const WorldFigure& row) {
  if (row.relative) {
    const auto relative = row.relative_difference();
    return relative ? signed_percent_text(*relative) : "-";
  }
  return row.value && row.base ? formatted("%+.4g", *row.value - *row.base) + unit(row) : "-";
}

struct ShortVerdict {
  std::string_view beginning, text;
};
constexpr ShortVerdict short_verdicts[] = {{"no difference detected", "no difference"},
                                           {windows_and_log_disagree, "disagree"},
                                           {too_heavy_tails, "heavy tails"},
                                           {too_alike_windows, "windows alike"},
                                           {too_few_differ, "few differ"},
                                           {"not known", "not known"}};

// A verdict in one column; what it leaves out stands below the table.
std::string short_verdict(const std::string& verdict) {
  for (const ShortVerdict& known : short_verdicts) {
    if (verdict.starts_with(known.beginning)) return std::string(known.text);
  }
  return verdict.substr(0, std::min(verdict.find(": "), verdict.find(" (")));
}

// Verdicts that say more than their column, each with the figures of which it is said.
class LongVerdicts {
 public:
  explicit LongVerdicts(bool short_log) : short_log_(short_log) {}

  void add(const WorldFigure& row, const std::string& world) {
    const std::string shown = short_verdict(row.verdict);
    const bool is_told = shown == row.verdict || row.verdict == "no difference detected" ||
                         (short_log_ && row.verdict.starts_with(log_too_short));
    if (is_told) return;
    const std::string text = world + ": " + row.verdict;
    const auto known = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.text == text; });
    if (known == lines_.end()) {
      lines_.push_back({text, row.metric->name});
    } else {
      known->figures += ", " + row.metric->name;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Line& line : lines_) all += wrapped(line.text + " (" + line.figures + ")", terminal_columns, 2) + "\n";
    return all;
  }

 private:
  struct Line {
    std::string text, figures;
  };
  bool short_log_;  // a note says so for all of them
  std::vector<Line> lines_;
};

constexpr std::size_t most_name = 20;

// World names as rows show them: themselves where all are short, else letters that a legend explains.
class RowNames {
 public:
  explicit RowNames(const ComparePlan& plan) {
    for (const LoadedWorld& world : plan.worlds) names_.push_back(world.world.name);
    const auto fits = [](const std::string& name) { return name.size() <= most_name; };
    if (std::all_of(names_.begin(), names_.end(), fits)) return;
    for (std::size_t w = 1; w < names_.size(); ++w) {
      const std::string letter = w <= 26 ? std::string(1, static_cast<char>('A' + w - 1)) : std::to_string(w);
      legend_ += letter + "  " + names_[w] + "\n";
      names_[w] = letter;
    }
    legend_ += "\n";
  }
  [[nodiscard]] const std::string& of(std::size_t world) const { return names_[world]; }
  [[nodiscard]] const std::string& legend() const { return legend_; }

 private:
  std::vector<std::string> names_;
  std::string legend_;
};

std::string headline(const ComparePlan& plan, const CompareOutcome& outcome) {
  const ReplayInput& base = plan.worlds.front().input;
  std::string text = "base: " + base.specs.front().text + " on " + base.cluster.name + ", " +
                     counted(base.trace.jobs.size() - base.trace.jobs.in_front(), "job") + " of " +
                     std::filesystem::path(base.trace.report.path).filename().string() + "\n";
  if (outcome.mode == "windows") {
    text += "values of the whole run; intervals and verdicts by windows of " + human_count(plan.options.window_jobs) +
            " jobs\n";
  } else {
    text += "values of the whole run; intervals and verdicts by batches of consecutive jobs\n";
  }
  return text;
}

std::string csv_number(std::optional<double> value) { return value ? exact_number(*value) : ""; }

std::string compare_csv(const ComparePlan& plan, const CompareOutcome& outcome) {
  std::string text =
      "world,figure,mode,value,base,relative_difference,low_95,high_95,relative,p_holm,window_mean,base_window_mean,"
      "verdict\n";
  for (const auto& rows : outcome.figures) {
    for (const WorldFigure& row : rows) {
      append_csv_field(text, plan.worlds[row.world].world.name);
      append_csv_field(text += ',', row.metric->name);
      text += ',' + outcome.mode + ',' + csv_number(row.value) + ',' + csv_number(row.base) + ',' +
              csv_number(row.relative_difference()) + ',';
      text += row.interval ? exact_number(row.interval->low) + ',' + exact_number(row.interval->high) : ",";
      text += row.relative ? ",true," : ",false,";
      text += csv_number(row.p_holm) + ',' + csv_number(row.window_mean) + ',' + csv_number(row.base_window_mean) + ',';
      append_csv_field(text, row.verdict);
      text += '\n';
    }
  }
  return text;
}

Json world_json(const LoadedWorld& world) {
  Json files = Json::array();
  for (const std::string& path : world.input.files) files.push_back(file_json(path));
  return {{"name", world.world.name},
          {"config", Json::parse(scenario_json(world.world.scenario, false))},
          {"trace", trace_json(world.input.trace.report)},
          {"cluster", cluster_json(world.input.cluster)},
          {"same_jobs", world.same_jobs},
          {"files", std::move(files)}};
}

Json manifest_json(const ComparePlan& plan, const Execution& execution) {
  const LoadedWorld& base = plan.worlds.front();
  Json manifest = build_json();
  Json worlds = Json::array(), variations = Json::array(), metrics = Json::array();
  for (const LoadedWorld& world : plan.worlds) {
    worlds.push_back(world_json(world));
    if (&world != &base) variations.push_back(world.world.name);
  }
  for (const MetricInfo* metric : plan.metrics) metrics.push_back(metric->name);
  manifest.update(
      {{"config", Json::parse(scenario_json(base.world.scenario, false))},
       {"variations", std::move(variations)},
       {"compare",
        {{"metrics", std::move(metrics)}, {"mode", plan.options.mode}, {"window_jobs", plan.options.window_jobs}}},
       {"trace", trace_json(base.input.trace.report)},
       {"worlds", std::move(worlds)},
       {"seed", base.world.scenario.seed},
       {"execution", execution_json(execution, plan.options.threads, base.world.scenario.out)}});
  return manifest;
}

Json result_json(const ComparePlan& plan, const CompareOutcome& outcome) {
  Json worlds = Json::array(), figures = Json::array();
  for (std::size_t w = 0; w < plan.worlds.size(); ++w) {
    Json metrics = Json::object();
    for (const MetricInfo& metric : metric_table()) {
      if (outcome.metrics[w]) metrics[metric.name] = number_json(metric.value(*outcome.metrics[w]));
    }
    worlds.push_back({{"name", plan.worlds[w].world.name},
                      {"policy", plan.worlds[w].input.specs.front().text},
                      {"cluster", plan.worlds[w].input.cluster.name},
                      {"clairvoyant", bool{outcome.clairvoyant[w]}},
                      {"failure", outcome.failures[w]},
                      {"metrics", std::move(metrics)}});
  }
  for (const auto& rows : outcome.figures) {
    for (const WorldFigure& row : rows) {
      figures.push_back({{"world", plan.worlds[row.world].world.name},
                         {"figure", row.metric->name},
                         {"value", number_json(row.value)},
                         {"base", number_json(row.base)},
                         {"relative_difference", number_json(row.relative_difference())},
                         {"interval_95", interval_json(row.interval)},
                         {"relative", row.relative},
                         {"p_holm", number_json(row.p_holm)},
                         {"window_mean", number_json(row.window_mean)},
                         {"base_window_mean", number_json(row.base_window_mean)},
                         {"verdict", row.verdict}});
    }
  }
  return {
      {"mode", outcome.mode}, {"note", outcome.note}, {"worlds", std::move(worlds)}, {"figures", std::move(figures)}};
}

}  // namespace

std::string compare_table(const ComparePlan& plan, const CompareOutcome& outcome, const TextStyle& style) {
  const RowNames names(plan);
  LongVerdicts verdicts(!outcome.note.empty());
  std::string text = headline(plan, outcome) + "\n" + names.legend();
  TextTable table({"figure, world", "value", "difference", "95% interval", "verdict"});
  bool one_run = false, clairvoyant = false;
  for (const auto& rows : outcome.figures) {
    const MetricInfo& metric = *rows.front().metric;
    table.add({metric.name, value_text(rows.front().base, metric), "", "", ""});
    for (const WorldFigure& row : rows) {
      const std::string star = outcome.clairvoyant[row.world] ? "*" : "";
      table.add({"  " + names.of(row.world) + star, value_text(row.value, metric), difference_text(row),
                 interval_text(row), short_verdict(row.verdict)});
      verdicts.add(row, names.of(row.world));
      one_run = one_run || row.verdict == "one run";
      clairvoyant = clairvoyant || outcome.clairvoyant[row.world];
    }
  }
  table.set_important({1, 2, 4});
  text += table.text(style);
  text += verdicts.text();
  if (one_run) text += "one run: a figure of the run as a whole; --mode windows gives it an interval\n";
  if (clairvoyant || outcome.clairvoyant.front()) text += "* knows true run times, which no real scheduler does\n";
  if (!outcome.note.empty()) text += wrapped(outcome.note, terminal_columns) + "\n";
  return text;
}

std::string compare_json(const ComparePlan& plan, const CompareOutcome& outcome, const Execution& execution) {
  Json json = {{"manifest", manifest_json(plan, execution)}};
  json.update(result_json(plan, outcome));
  return json_text(json, -1);
}

std::vector<std::pair<std::string, std::string>> compare_files(const ComparePlan& plan, const CompareOutcome& outcome,
                                                               const Execution& execution) {
  return {{"compare.csv", compare_csv(plan, outcome)},
          {"compare.json", json_text(result_json(plan, outcome))},
          {"table.txt", compare_table(plan, outcome)},
          {manifest_name, json_text(manifest_json(plan, execution))}};
}

ToldComparison comparison_of_manifest(const std::string& text) {
  const auto json = parse_json_strictly(text, "");
  ToldComparison told;
  if (!json || !json->is_object()) return told;
  const auto words_of = [](const Json& object, const char* key) {
    std::vector<std::string> words;
    const auto list = object.find(key);
    if (list == object.end() || !list->is_array()) return words;
    for (const Json& entry : *list) {
      if (entry.is_string()) words.push_back(entry.get<std::string>());
    }
    return words;
  };
  told.variations = words_of(*json, "variations");
  const auto options = json->find("compare");
  if (options == json->end() || !options->is_object()) return told;
  told.options.metrics = words_of(*options, "metrics");
  const auto mode = options->find("mode"), jobs = options->find("window_jobs");
  if (mode != options->end() && (*mode == "log" || *mode == "windows")) told.options.mode = mode->get<std::string>();
  if (jobs != options->end() && jobs->is_number_unsigned()) {
    told.options.window_jobs = std::clamp<std::uint64_t>(jobs->get<std::uint64_t>(), 1, most_window_jobs);
  }
  return told;
}

}  // namespace gpusched
