// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/sc20_evaluation.hpp"

#include <algorithm>
#include <optional>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/evaluate.hpp"
#include "src/sim/manifest.hpp"

namespace gpusched {
namespace {

bool is_agent(const PolicySpec& spec, const PolicyRegistry& registry) {
  const auto info = registry.find(spec.name);
  return info && (*info)->agent;
}

// Of fifo+none, fifo.
PolicySpec order_of(PolicySpec policy) {
  policy.backfill.clear();
  return policy;
}

// Clusters stay the log's own.
Result<void> check(const EvaluateScenario& scenario) {
  if (scenario.traces.size() > 1 || !scenario.groups.empty()) {
    return unexpected("--protocol sc20: takes one --trace and no --group");
  }
  const bool times = !scenario.conditions.speeds.profiles.empty() || !scenario.conditions.speeds.throughputs.empty();
  if (times || !scenario.beside.empty() || scenario.mean != "arithmetic") {
    return unexpected(
        "--protocol sc20: takes no --profile, --throughputs, --span-speed, --communication or --beside, and "
        "arithmetic means");
  }
  if (!scenario.conditions.services.empty()) return unexpected("--protocol sc20: takes no --services");
  if (!scenario.conditions.trials.empty()) return unexpected("--protocol sc20: takes no --trials");
  if (!scenario.slurm_conf.empty() || !scenario.slurm_qos.empty() || !scenario.limits.empty())
    return unexpected("--protocol sc20: takes no --slurm-conf, --slurm-qos or --limits");
  if (scenario.backfill != "none" && scenario.backfill != "sc20")
    return Unexpected{Error{.message = "expected none or sc20", .field = "backfill"}};
  return {};
}

Json manifest_of(const EvaluateScenario& scenario, const Sc20Evaluation& evaluation, const Execution& execution) {
  std::vector<std::string> files;
  const PolicyRegistry registry = PolicyRegistry::standard();
  if (const auto lineup = lineup_of(scenario, registry)) {
    files = existing_files(files_of_policies(lineup->policies, registry));
  }
  return evaluate_manifest(scenario, Json::array({{{"trace", file_json(evaluation.trace)}}}), files, execution);
}

}  // namespace

Result<Sc20Evaluation> run_sc20_evaluation(const EvaluateScenario& scenario, const PolicyRegistry& registry,
                                           EvaluationProgress& progress) {
  if (auto checked = check(scenario); !checked) return Unexpected{checked.error()};
  const auto lineup = lineup_of(scenario, registry);
  if (!lineup) return Unexpected{lineup.error()};
  for (const PolicySpec& spec : lineup->policies) {
    if (!spec.backfill.empty() && spec.backfill.front().name != "none") {
      return unexpected("policy " + spec.text + ": --protocol sc20 backfills only by --backfill sc20");
    }
  }
  const std::string& path = scenario.traces.front();
  const auto log = read_sc20_log(path);
  if (!log) return Unexpected{log.error()};
  const std::vector<PolicySpec>& policies = lineup->policies;
  std::optional<Trace> trace;  // of agents, which run on the engine
  if (std::any_of(policies.begin(), policies.end(), [&](const auto& spec) { return is_agent(spec, registry); })) {
    auto read = read_trace(path);
    if (!read) return Unexpected{read.error()};
    trace = *std::move(read);
  }
  const Cluster cluster = Cluster::pool(static_cast<std::uint32_t>(log->processors));
  std::vector<std::optional<Result<std::vector<Sc20Result>>>> results(policies.size());
  for_each_index(policies.size(), scenario.threads, [&](std::size_t i) {
    const RunningWork::Piece piece(progress.running, i);
    if (is_agent(policies[i], registry)) {
      results[i] = run_sc20_agent_windows(policies[i], registry, trace->jobs, cluster);
    } else if (const auto chooser = make_sc20_chooser(registry, order_of(policies[i]))) {
      results[i] = run_sc20_windows(*log, scenario.backfill == "sc20" && policies[i].backfill.empty(), *chooser);
    } else {
      results[i] = Unexpected{chooser.error()};
    }
    ++progress.done;
  });
  Sc20Evaluation evaluation{.trace = path, .cluster = cluster.name, .rows = {}};
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (!*results[i]) return Unexpected{results[i]->error()};
    evaluation.rows.push_back({policies[i].text, **std::move(results[i])});
  }
  return evaluation;
}

std::string sc20_text(const Sc20Evaluation& evaluation) {
  TextTable table({"policy", "avg_bounded_slowdown", "utilization"});
  for (const Sc20Evaluation::Row& row : evaluation.rows) {
    const Sc20Result mean = mean_of(row.windows);
    table.add({row.policy, formatted("%.6f", mean.avg_bounded_slowdown), formatted("%.3f", mean.utilization)});
  }
  return table.text();
}

std::string sc20_json(const EvaluateScenario& scenario, const Sc20Evaluation& evaluation, const Execution& execution) {
  Json runs = Json::array();
  for (const Sc20Evaluation::Row& row : evaluation.rows) {
    const Sc20Result mean = mean_of(row.windows);
    runs.push_back(
        {{"policy", row.policy},
         {"trace", evaluation.trace},
         {"cluster", evaluation.cluster},
         {"metrics", {{"avg_bounded_slowdown", mean.avg_bounded_slowdown}, {"utilization", mean.utilization}}}});
  }
  return json_text({{"manifest", manifest_of(scenario, evaluation, execution)}, {"runs", std::move(runs)}}, -1);
}

std::vector<std::pair<std::string, std::string>> sc20_files(const EvaluateScenario& scenario,
                                                            const Sc20Evaluation& evaluation,
                                                            const Execution& execution) {
  std::string windows = "trace,policy,window,first_job,avg_bounded_slowdown,utilization\n";
  std::string comparison = "trace,policy,avg_bounded_slowdown,utilization\n";
  const auto begin_row = [&](std::string& text, const Sc20Evaluation::Row& row) {
    append_csv_field(text, evaluation.trace);
    append_csv_field(text += ',', row.policy);
  };
  const auto end_row = [](std::string& text, const Sc20Result& result) {
    text += "," + exact_number(result.avg_bounded_slowdown) + "," + exact_number(result.utilization) + "\n";
  };
  for (const Sc20Evaluation::Row& row : evaluation.rows) {
    for (std::size_t w = 0; w < row.windows.size(); ++w) {
      begin_row(windows, row);
      windows += "," + std::to_string(w) + "," + std::to_string(sc20_window_starts[w]);
      end_row(windows, row.windows[w]);
    }
    begin_row(comparison, row);
    end_row(comparison, mean_of(row.windows));
  }
  return {{"windows.csv", std::move(windows)},
          {"comparison.csv", std::move(comparison)},
          {"table.txt", sc20_text(evaluation)},
          {"manifest.json", json_text(manifest_of(scenario, evaluation, execution))}};
}

}  // namespace gpusched
