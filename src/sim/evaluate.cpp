// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluate.hpp"

#include <algorithm>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/metric_table.hpp"

namespace gpusched {
namespace {

// An option that is given once for all traces, or once for each.
Result<std::string> value_for(const std::vector<std::string>& given, std::size_t trace, std::size_t traces,
                              const std::string& option, const std::string& fallback) {
  if (given.empty()) return fallback;
  if (given.size() == 1) return given.front();
  if (given.size() == traces) return given[trace];
  return Unexpected{Error{.message = "given " + std::to_string(given.size()) + " times for " + std::to_string(traces) +
                                     " traces; give it once, or once for each trace in their order",
                          .field = option}};
}

// The windows that the scenario asks for in a trace of `jobs`.
EvaluationWindows windows_of(const EvaluateScenario& scenario, std::uint32_t jobs) {
  EvaluationWindows windows{.jobs = static_cast<std::uint32_t>(scenario.window_jobs),
                            .warm_up = static_cast<std::uint32_t>(scenario.warmup_jobs)};
  windows.first = static_cast<std::uint32_t>(scenario.from * jobs);
  windows.last = static_cast<std::uint32_t>(scenario.to * jobs);
  windows.stride = scenario.stride > 0 ? static_cast<std::uint32_t>(scenario.stride) : windows.jobs;
  const std::uint32_t first = std::max(windows.first, windows.warm_up);
  if (scenario.windows > 1 && windows.last > first + windows.jobs) {
    const auto gaps = static_cast<std::uint32_t>(scenario.windows - 1);
    windows.stride = std::max(1u, (windows.last - first - windows.jobs) / gaps);
  }
  return windows;
}

Result<RunInput> read_input(const EvaluateScenario& scenario, std::size_t index) {
  const std::size_t count = scenario.traces.size();
  const auto format = value_for(scenario.formats, index, count, "formats", "auto");
  if (!format) return Unexpected{format.error()};
  const auto cluster = value_for(scenario.clusters, index, count, "clusters", "");
  if (!cluster) return Unexpected{cluster.error()};
  const auto columns = value_for(scenario.columns, index, count, "columns", "");
  if (!columns) return Unexpected{columns.error()};
  auto input = load_input({.trace = scenario.traces[index],
                           .reading = {.format = *format,
                                       .columns = *columns,
                                       .where = scenario.where,
                                       .qos = scenario.qos,
                                       .seed = scenario.seed,
                                       .drop_bad_rows = scenario.drop_bad_rows,
                                       .backlog = scenario.backlog},
                           .cluster = *cluster,
                           .placement = scenario.conditions.placement,
                           .oversize = oversize_from_word(scenario.oversize)},
                          {.cluster = "clusters"});
  if (!input) return input;
  TraceReport& report = input->trace.report;
  const std::vector<std::string>& hashes = scenario.manifest_sha256;
  if (index < hashes.size() && !hashes[index].empty() && hashes[index] != report.sha256) {
    report.notes.push_back(scenario.traces[index] + " is not the trace of the manifest: its SHA-256 differs");
  }
  return input;
}

Result<EvaluationInput> input_of(const EvaluateScenario& scenario, std::size_t index, const Lineup& lineup,
                                 const PolicyRegistry& registry) {
  auto run = read_input(scenario, index);
  if (!run) return Unexpected{run.error()};
  EvaluationInput input{.path = scenario.traces[index], .run = *std::move(run), .options = {}, .starts = {}};
  const JobTable& jobs = input.run.trace.jobs;
  auto conditions = load_conditions(scenario.conditions, input.run.trace.jobs, input.run.cluster, scenario.seed);
  if (!conditions) return Unexpected{conditions.error()};
  input.options.engine = {
      .placement = input.run.placement, .preemption = conditions->preemption, .seed = scenario.seed};
  input.options.conditions = *std::move(conditions);
  const auto in_energy = [](const std::string& figure) { return figure.ends_with("energy_kwh"); };
  const bool beside = std::any_of(scenario.beside.begin(), scenario.beside.end(), in_energy);
  if ((beside || in_energy(scenario.figure)) && !input.options.conditions.runtime.power) {
    return Unexpected{Error{.message = "energy_kwh is not known here; give --profile with the power of every GPU type",
                            .field = beside ? "beside" : "figure"}};
  }
  input.options.windows = windows_of(scenario, jobs.size());
  input.options.history = scenario.history;
  auto backfill = default_backfill(registry, scenario.backfill, lineup.policies);
  if (!backfill) return Unexpected{in_option("backfill", backfill.error())};
  input.options.backfill = *std::move(backfill);
  auto starts = window_starts(input.options.windows, jobs.size());
  if (!starts) return Unexpected{Error{.message = starts.error().message, .file = input.path}};
  input.starts = *std::move(starts);
  const auto made = check_policies(jobs, input.run.cluster, input.options, lineup.policies, registry);
  if (!made) return Unexpected{made.error()};
  return input;
}

Result<ReportOptions> report_options(const EvaluateScenario& scenario, const Lineup& lineup) {
  ReportOptions options{.figure = find_metric(scenario.figure), .backfill = scenario.backfill, .seed = scenario.seed};
  if (options.figure == nullptr) return bad_option("figure", "no metric is called " + scenario.figure);
  if (scenario.mean == "geometric") options.mean = WindowMean::geometric;
  for (const std::string& name : scenario.beside) {
    auto figure = side_figure(name);
    if (!figure) return bad_option("beside", figure.error().message);
    const auto same = [&](const SideFigure& other) { return other.name == name; };
    if (std::any_of(options.beside.begin(), options.beside.end(), same)) {
      return bad_option("beside", name + " is given twice");
    }
    options.beside.push_back(*std::move(figure));
  }
  if (scenario.against.empty()) return options;
  const auto reference = std::find_if(lineup.entries.begin(), lineup.entries.end(),
                                      [&](const Lineup::Entry& entry) { return entry.name == scenario.against; });
  if (reference == lineup.entries.end()) {
    return bad_option("against", scenario.against + " is not among the policies and groups");
  }
  options.reference = static_cast<std::size_t>(reference - lineup.entries.begin());
  return options;
}

// One trace: what was read, and which windows of it were run where.
Json trace_manifest(const EvaluationInput& input) {
  const EvaluationWindows& windows = input.options.windows;
  return {{"trace", trace_json(input.run.trace.report)},
          {"cluster", cluster_json(input.run.cluster)},
          {"value_sources",
           {{"rates", rates_json(input.options.conditions.runtime)},
            {"power", power_json(input.options.conditions.runtime)}}},
          {"count", input.starts.size()},
          {"jobs", windows.jobs},
          {"warm_up", windows.warm_up},
          {"stride", windows.stride},
          {"first", windows.first},
          {"last", windows.last},
          {"overlap", windows.overlap()}};
}

Json manifest_of(const EvaluateScenario& scenario, const EvaluationPlan& plan, const Execution& execution) {
  Json traces = Json::array();
  for (const EvaluationInput& input : plan.inputs) traces.push_back(trace_manifest(input));
  return evaluate_manifest(scenario, traces, plan.files, execution);
}

}  // namespace

Result<Lineup> lineup_of(const EvaluateScenario& scenario, const PolicyRegistry& registry) {
  Lineup lineup;
  auto policies = parse_contestants(registry, scenario.policies);
  if (!policies) return Unexpected{in_option("policies", policies.error())};
  for (PolicySpec& spec : *policies) {
    lineup.entries.push_back({spec.text, lineup.policies.size(), 1});
    lineup.policies.push_back(std::move(spec));
  }
  for (const std::string& group : scenario.groups) {
    const std::size_t equals = group.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return bad_option("groups", "expected NAME=POLICY,POLICY,... and not '" + group + "'");
    }
    const auto specs = parse_policies(registry, group.substr(equals + 1));
    if (!specs) return Unexpected{in_option("groups", specs.error())};
    const std::string name = group.substr(0, equals);
    const auto same = [&](const Lineup::Entry& entry) { return entry.name == name; };
    if (std::any_of(lineup.entries.begin(), lineup.entries.end(), same)) {
      return bad_option("groups", "the name '" + name + "' is given twice");
    }
    lineup.entries.push_back({name, lineup.policies.size(), specs->size()});
    lineup.policies.insert(lineup.policies.end(), specs->begin(), specs->end());
  }
  return lineup;
}

std::uint64_t EvaluationPlan::runs() const {
  std::uint64_t windows = 0;
  for (const EvaluationInput& input : inputs) windows += input.starts.size();
  return windows * lineup.policies.size();
}

Result<EvaluationPlan> load_evaluation(const EvaluateScenario& scenario, const PolicyRegistry& registry) {
  auto lineup = lineup_of(scenario, registry);
  if (!lineup) return Unexpected{lineup.error()};
  auto report = report_options(scenario, *lineup);
  if (!report) return Unexpected{report.error()};
  EvaluationPlan plan{.lineup = *std::move(lineup), .inputs = {}, .report = *std::move(report), .files = {}};
  for (std::size_t i = 0; i < scenario.traces.size(); ++i) {
    auto input = input_of(scenario, i, plan.lineup, registry);
    if (!input) return Unexpected{input.error()};
    plan.inputs.push_back(*std::move(input));
  }
  std::vector<std::string> names = files_of(scenario.conditions);
  names.insert(names.end(), scenario.clusters.begin(), scenario.clusters.end());
  const std::vector<std::string> of_policies = files_of_policies(plan.lineup.policies, registry);
  names.insert(names.end(), of_policies.begin(), of_policies.end());
  plan.files = existing_files(names);
  return plan;
}

Result<std::vector<TraceEvaluation>> run_evaluation(const EvaluationPlan& plan, const PolicyRegistry& registry,
                                                    std::uint64_t threads, EvaluationProgress& progress) {
  std::vector<TraceEvaluation> evaluations;
  for (const EvaluationInput& input : plan.inputs) {
    auto scores = evaluate_policies(input.run.trace.jobs, input.run.cluster, input.options, plan.lineup.policies,
                                    registry, threads, progress);
    if (!scores) return Unexpected{scores.error()};
    TraceEvaluation evaluation{.trace = input.path,
                               .cluster = input.run.cluster.name,
                               .windows = input.options.windows,
                               .starts = input.starts,
                               .contestants = {}};
    for (const Lineup::Entry& entry : plan.lineup.entries) {
      const auto first = scores->begin() + static_cast<std::ptrdiff_t>(entry.first);
      evaluation.contestants.push_back({entry.name, {first, first + static_cast<std::ptrdiff_t>(entry.count)}});
    }
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

std::vector<std::string> evaluation_notes(const EvaluationPlan& plan) {
  std::vector<std::string> notes;
  for (const EvaluationInput& input : plan.inputs) {
    for (const auto& lines :
         {left_out_lines(input.run.trace.report), outside_vcs_lines(input.run.cluster, input.run.jobs_outside_vcs),
          input.options.conditions.runtime.notes, input.options.conditions.notes}) {
      for (const std::string& line : lines) notes.push_back(input.path + ": " + line);
    }
  }
  return notes;
}

std::string evaluation_text(const EvaluationPlan& plan, const std::vector<TraceEvaluation>& evaluations) {
  return evaluations.size() == 1 ? evaluation_table(evaluations.front(), plan.report)
                                 : transfer_table(evaluations, plan.report);
}

Json evaluate_manifest(const EvaluateScenario& scenario, const Json& windows, const std::vector<std::string>& files,
                       const Execution& execution) {
  Json manifest = build_json();
  Json read = Json::array();
  for (const std::string& path : files) read.push_back(file_json(path));
  manifest.update({{"config", Json::parse(evaluate_scenario_json(scenario, false))},
                   {"windows", windows},
                   {"files", std::move(read)},
                   {"seed", scenario.seed},
                   {"execution", execution_json(execution, scenario.threads, scenario.out)}});
  return manifest;
}

std::string evaluation_json(const EvaluateScenario& scenario, const EvaluationPlan& plan,
                            const std::vector<TraceEvaluation>& evaluations, const Execution& execution) {
  Json runs = evaluation_runs_json(evaluations, plan.report);
  return json_text({{"manifest", manifest_of(scenario, plan, execution)}, {"runs", std::move(runs)}}, -1);
}

std::vector<std::pair<std::string, std::string>> evaluation_files(const EvaluateScenario& scenario,
                                                                  const EvaluationPlan& plan,
                                                                  const std::vector<TraceEvaluation>& evaluations,
                                                                  const Execution& execution) {
  return {{"windows.csv", windows_csv(evaluations)},
          {"comparison.csv", comparison_csv(evaluations, plan.report)},
          {"table.txt", evaluation_text(plan, evaluations)},
          {"manifest.json", json_text(manifest_of(scenario, plan, execution))}};
}

}  // namespace gpusched
