// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluate.hpp"

#include <algorithm>
#include <map>

#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/policy_text.hpp"
#include "src/sim/run_fields.hpp"
#include "src/sim/site_stretch.hpp"
#include "src/sim/stretch_run.hpp"
#include "src/world/cluster_reader.hpp"

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
  const std::uint64_t window_jobs = scenario.window_jobs > 0 ? scenario.window_jobs : default_window_jobs;
  EvaluationWindows windows{.jobs = static_cast<std::uint32_t>(window_jobs),
                            .warm_up = static_cast<std::uint32_t>(scenario.warmup_jobs)};
  windows.first = static_cast<std::uint32_t>(scenario.from * jobs);
  windows.last = static_cast<std::uint32_t>(scenario.to * jobs);
  windows.stride = scenario.stride > 0 ? static_cast<std::uint32_t>(scenario.stride) : windows.jobs;
  const std::uint32_t first = std::max(windows.first, windows.warm_up);
  if (scenario.windows > 1 && windows.last > first + windows.jobs) {
    const auto gaps = static_cast<std::uint32_t>(scenario.windows - 1);
    windows.stride = std::max(1u, (windows.last - first - windows.jobs) / gaps);
    windows.most = static_cast<std::uint32_t>(scenario.windows);
  }
  return windows;
}

// The log that it asks for: the same part.
LogOptions log_of(const EvaluateScenario& scenario, const EvaluationWindows& windows) {
  LogOptions log{.first = windows.first, .jobs = windows.last - windows.first};
  for (const std::string& start : further_starts(scenario)) {
    log.starts.push_back(static_cast<std::uint32_t>(*parse_number(start) * log.jobs));
  }
  std::sort(log.starts.begin(), log.starts.end());
  log.starts.erase(std::unique(log.starts.begin(), log.starts.end()), log.starts.end());
  if (!log.starts.empty() && log.starts.front() == 0) log.starts.erase(log.starts.begin());
  return log;
}

// The trace; the cluster has the name of the sites, and no machines.
Result<RunInput> input_of_sites(const InputRequest& request, const EvaluateScenario& scenario) {
  if (auto taken = check_conditions_of_sites(scenario.conditions); !taken) return Unexpected{taken.error()};
  auto trace = read_requested_trace(request);
  if (!trace) return Unexpected{trace.error()};
  if (trace->jobs.size() == 0) return Unexpected{Error{.message = "no jobs are left to run", .file = request.trace}};
  return RunInput{.trace = *std::move(trace),
                  .cluster = {.name = scenario.sites},
                  .placement = *placement_from_name(scenario.conditions.placement)};
}

Result<RunInput> read_input(const EvaluateScenario& scenario, std::size_t index) {
  const std::size_t count = scenario.traces.size();
  const auto format = value_for(scenario.formats, index, count, "formats", "auto");
  if (!format) return Unexpected{format.error()};
  const auto cluster = value_for(scenario.clusters, index, count, "clusters", "");
  if (!cluster) return Unexpected{cluster.error()};
  const auto columns = value_for(scenario.columns, index, count, "columns", "");
  if (!columns) return Unexpected{columns.error()};
  InputRequest request = common_request(scenario);
  request.trace = scenario.traces[index];
  // What is given once is about the files among the traces.
  const auto is_drawn = [](const std::string& trace) { return trace.starts_with("synthetic:"); };
  const bool is_beside_files =
      is_drawn(request.trace) && !std::all_of(scenario.traces.begin(), scenario.traces.end(), is_drawn);
  if (!is_beside_files || scenario.formats.size() > 1) request.reading.format = *format;
  if (!is_beside_files || scenario.columns.size() > 1) request.reading.columns = *columns;
  request.cluster = *cluster;
  auto input =
      scenario.sites.empty() ? load_input(request, {.cluster = "clusters"}) : input_of_sites(request, scenario);
  if (!input) return input;
  TraceReport& report = input->trace.report;
  const std::vector<std::string>& hashes = scenario.manifest_sha256;
  if (index < hashes.size() && !hashes[index].empty() && hashes[index] != report.sha256) {
    report.notes.push_back(scenario.traces[index] + " is not the trace of the manifest: its SHA-256 differs");
  }
  return input;
}

// lacks(name): why a figure is not known, or "".
template <class Lacks>
Result<void> check_figures(const EvaluateScenario& scenario, Lacks lacks) {
  for (std::size_t i = 0; i <= scenario.beside.size(); ++i) {
    const std::string& given = i == 0 ? scenario.figure : scenario.beside[i - 1];
    const std::string lack = lacks(given.substr(given.find(':') + 1));
    if (!lack.empty()) return bad_option(i == 0 ? "figure" : "beside", lack);
  }
  return {};
}

// Figures of power, of services, of searches and of deadlines need to be known.
Result<void> check_known_figures(const EvaluateScenario& scenario, const RunConditions& conditions,
                                 const JobTable& jobs, const std::string& trace) {
  return check_figures(scenario, [&](const std::string& name) {
    return lacks_power_figure(name, conditions.power.model) + lacks_service_figure(name, conditions.services) +
           lacks_study_figure(name, conditions.studies) + lacks_deadline_figure(name, jobs, trace);
  });
}

// The sites of the input's jobs, and the services over them, under every policy and router.
Result<void> add_sites(const EvaluateScenario& scenario, const Lineup& lineup, const PolicyRegistry& registry,
                       EvaluationInput& input) {
  JobTable& jobs = input.run.trace.jobs;
  auto sites = read_fitting_sites(
      {.sites = scenario.sites, .services = scenario.conditions.services, .trace = input.path}, jobs, scenario.seed);
  if (!sites) return Unexpected{sites.error()};
  input.options.sites = std::make_shared<const SitesOfRun>(*std::move(sites));
  auto known = check_figures(scenario, [&](const std::string& name) {
    return lacks_site_figure(name, *input.options.sites, scenario.warmup_jobs == 0) +
           lacks_deadline_figure(name, jobs, input.path);
  });
  if (!known) return known;
  for (const PolicySpec& policy : lineup.policies) {
    auto checked = check_at_sites({.jobs = &jobs,
                                   .sites = *input.options.sites,
                                   .policy = policy,
                                   .router = routed_policy(policy.text).router,
                                   .engine = input.options.engine},
                                  registry);
    if (!checked) return checked;
  }
  return {};
}

// Rows have the names that the user gave, also where slurm.conf says how to backfill.
void note_backfilling(const Lineup& lineup, const PolicyRegistry& registry, EvaluationInput& input) {
  if (!input.run.slurm.conf || input.options.backfill) return;
  for (const PolicySpec& policy : lineup.policies) {
    const PolicySpec run = contestant_spec(registry, policy, input.options, input.run.trace.jobs);
    if (run.text == policy.text) continue;
    input.run.slurm.notes.push_back(input.run.slurm.files().front() + ": " + policy.text + " runs as " + run.text);
  }
}

Result<EvaluationInput> input_of(const EvaluateScenario& scenario, std::size_t index, const Lineup& lineup,
                                 EvaluationMode mode, const PolicyRegistry& registry) {
  auto run = read_input(scenario, index);
  if (!run) return Unexpected{run.error()};
  EvaluationInput input{.path = scenario.traces[index], .run = *std::move(run), .options = {}, .starts = {}, .log = {}};
  const JobTable& jobs = input.run.trace.jobs;
  ConditionOptions options = scenario.conditions;
  if (!scenario.sites.empty()) options.services.clear();  // they are over the sites
  auto conditions = load_conditions(options, input.run.trace.jobs, input.run.cluster, scenario.seed);
  if (!conditions) return Unexpected{conditions.error()};
  input.options.engine = {
      .placement = input.run.placement, .preemption = conditions->preemption, .seed = scenario.seed};
  input.options.conditions = *std::move(conditions);
  if (!scenario.sites.empty()) {
    if (auto done = add_sites(scenario, lineup, registry, input); !done) return Unexpected{done.error()};
  } else if (auto known = check_known_figures(scenario, input.options.conditions, jobs, input.path); !known) {
    return Unexpected{known.error()};
  }
  const std::uint32_t replicas = jobs.in_front();  // in front of the jobs, in every window
  EvaluationWindows& windows = input.options.windows = windows_of(scenario, jobs.size() - replicas);
  input.options.history = scenario.history;
  auto backfill = default_backfill(registry, scenario.backfill, lineup.policies);
  if (!backfill) return Unexpected{in_option("backfill", backfill.error())};
  input.options.backfill = *std::move(backfill);
  input.options.slurm = std::make_shared<const SlurmSite>(input.run.slurm);
  note_backfilling(lineup, registry, input);
  input.log = log_of(scenario, windows);
  if (replicas > 0) {
    input.log.first += replicas;
    windows.first = std::max(windows.first, windows.warm_up) + replicas;
    windows.last += replicas;
  }
  if (input.log.jobs == 0)
    return Unexpected{Error{.message = "no job lies between --from and --to", .file = input.path}};
  if (mode == EvaluationMode::log && input.log.jobs < least_log_jobs) {
    return Unexpected{Error{.message = counted(input.log.jobs, "job") + "; " + std::to_string(least_batches) +
                                       " batches of a log take at least " + std::to_string(least_log_jobs),
                            .file = input.path}};
  }
  if (auto starts = window_starts(input.options.windows, jobs.size()); starts) {
    input.starts = *std::move(starts);
  } else if (mode == EvaluationMode::windows || mode == EvaluationMode::windows_only) {
    return Unexpected{Error{.message = starts.error().message, .file = input.path}};
  }
  if (scenario.sites.empty()) {
    const auto made = check_policies(jobs, input.run.cluster, input.options, lineup.policies, registry);
    if (!made) return Unexpected{made.error()};
  }
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

// What is compared, before any log was run; `why` says why mode auto means windows.
Result<EvaluationMode> mode_of(const EvaluateScenario& scenario, bool of_jobs, std::string& why) {
  if (scenario.mode == "windows") return EvaluationMode::windows;
  if (scenario.mode == "windows-only") return EvaluationMode::windows_only;
  const std::string not_of_jobs = "a log is compared by " + job_figure_names() + ", and not by " + scenario.figure;
  if (scenario.mode == "log") {
    if (!of_jobs) return bad_option("figure", not_of_jobs);
    return EvaluationMode::log;
  }
  if (!window_option(scenario).empty()) return EvaluationMode::windows;
  if (of_jobs) return EvaluationMode::automatic;
  why = "windows are compared: " + not_of_jobs;
  return EvaluationMode::windows;
}

// One trace: what was read, and which windows of it were run where.
Json trace_manifest(const EvaluationInput& input) {
  const EvaluationWindows& windows = input.options.windows;
  return {{"trace", trace_json(input.run.trace.report)},
          {"cluster", cluster_json(input.run.cluster)},
          {"value_sources",
           {{"rates", rates_json(input.options.conditions.runtime)},
            {"power", power_json(input.options.conditions.runtime, input.options.conditions.power.file)}}},
          {"count", input.starts.size()},
          {"jobs", windows.jobs},
          {"warm_up", windows.warm_up},
          {"stride", windows.stride},
          {"first", windows.first},
          {"last", windows.last},
          {"overlap", windows.overlap()},
          {"starts", input.log.starts}};
}

Json manifest_of(const EvaluateScenario& scenario, const EvaluationPlan& plan, const Execution& execution) {
  Json traces = Json::array();
  for (const EvaluationInput& input : plan.inputs) traces.push_back(trace_manifest(input));
  Json manifest = evaluate_manifest(scenario, traces, plan.files, execution);
  for (const EvaluationInput& input : plan.inputs) {
    if (!input.run.slurm.files().empty()) manifest["slurm"] = slurm_json(input.run.slurm);  // the same of every trace
  }
  return manifest;
}

// No two are one policy; `field` is where they stand.
Result<void> check_different(std::span<const PolicySpec> policies, const PolicyRegistry& registry, const char* field) {
  std::map<std::string, std::string> known;  // as written, by the text of everyone
  for (const PolicySpec& policy : policies) {
    const auto [other, is_new] = known.emplace(canonical_text(policy, registry), policy.text);
    const std::string too = other->second == policy.text ? "" : ", as " + other->second + " too";
    if (!is_new) return bad_option(field, policy.text + " is given twice" + too);
  }
  return {};
}

}  // namespace

Result<Lineup> lineup_of(const EvaluateScenario& scenario, const PolicyRegistry& registry) {
  Lineup lineup;
  auto policies = parse_contestants(registry, scenario.policies);
  if (!policies) return Unexpected{in_option("policies", policies.error())};
  if (auto different = check_different(*policies, registry, "policies"); !different)
    return Unexpected{different.error()};
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
    if (auto different = check_different(*specs, registry, "groups"); !different) return Unexpected{different.error()};
    const std::string name = group.substr(0, equals);
    const auto same = [&](const Lineup::Entry& entry) { return entry.name == name; };
    if (std::any_of(lineup.entries.begin(), lineup.entries.end(), same)) {
      return bad_option("groups", "the name '" + name + "' is given twice");
    }
    lineup.entries.push_back({name, lineup.policies.size(), specs->size()});
    lineup.policies.insert(lineup.policies.end(), specs->begin(), specs->end());
  }
  if (scenario.sites.empty()) return lineup;
  const std::vector<std::string> local{"local"};
  Lineup routed;
  for (const Lineup::Entry& entry : lineup.entries) {
    for (const std::string& router : scenario.routers.empty() ? local : scenario.routers) {
      routed.entries.push_back({routed_text(entry.name, router), routed.policies.size(), entry.count});
      for (std::size_t i = entry.first; i < entry.first + entry.count; ++i) {
        routed.policies.push_back(lineup.policies[i]);
        routed.policies.back().text = routed_text(lineup.policies[i].text, router);
      }
    }
  }
  return routed;
}

std::uint64_t EvaluationPlan::runs() const {
  std::uint64_t runs = 0;
  for (const EvaluationInput& input : inputs) {
    const bool of_log = mode == EvaluationMode::log || mode == EvaluationMode::automatic;
    runs += of_log ? 1 + input.log.starts.size() : input.starts.size();
    runs += mode == EvaluationMode::windows ? 1 : 0;
  }
  return runs * lineup.policies.size();
}

Result<EvaluationPlan> load_evaluation(const EvaluateScenario& scenario, const PolicyRegistry& registry) {
  auto lineup = lineup_of(scenario, registry);
  if (!lineup) return Unexpected{lineup.error()};
  auto report = report_options(scenario, *lineup);
  if (!report) return Unexpected{report.error()};
  EvaluationPlan plan{.lineup = *std::move(lineup),
                      .inputs = {},
                      .why_windows = {},
                      .report = *std::move(report),
                      .job_figure = {},
                      .files = {}};
  plan.job_figure = job_figure(*plan.report.figure);
  const auto mode = mode_of(scenario, plan.job_figure.has_value(), plan.why_windows);
  if (!mode) return Unexpected{mode.error()};
  plan.mode = *mode;
  for (std::size_t i = 0; i < scenario.traces.size(); ++i) {
    auto input = input_of(scenario, i, plan.lineup, plan.mode, registry);
    if (!input) return Unexpected{input.error()};
    plan.inputs.push_back(*std::move(input));
  }
  std::vector<std::string> names = files_of(scenario.conditions);
  for (const std::string& cluster : scenario.clusters) names.push_back(cluster_without_added(cluster));
  for (const EvaluationInput& input : plan.inputs) {
    for (std::string& file : input.run.slurm.files()) names.push_back(std::move(file));
    if (input.options.sites != nullptr)
      names.insert(names.end(), input.options.sites->files.begin(), input.options.sites->files.end());
  }
  const std::vector<std::string> of_policies = files_of_policies(plan.lineup.policies, registry);
  names.insert(names.end(), of_policies.begin(), of_policies.end());
  plan.files = existing_files(names);
  return plan;
}

namespace {

template <class Row, class Scores>
std::vector<Row> rows_of(const Lineup& lineup, const std::vector<Scores>& scores) {
  std::vector<Row> rows;
  for (const Lineup::Entry& entry : lineup.entries) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(entry.first);
    rows.push_back({entry.name, {first, first + static_cast<std::ptrdiff_t>(entry.count)}});
  }
  return rows;
}

double submission_span_s(const JobTable& jobs, const LogOptions& log) {
  return to_seconds(jobs.submit(JobId{log.first + log.jobs - 1}) - jobs.submit(JobId{log.first}));
}

Result<LogEvaluation> evaluate_log(const EvaluationPlan& plan, const EvaluationInput& input, const LogOptions& log,
                                   const PolicyRegistry& registry, std::uint64_t threads,
                                   EvaluationProgress& progress) {
  const JobQuantity quantity = plan.job_figure ? plan.job_figure->quantity : JobQuantity::jct;
  const auto scores = run_log(input.run.trace.jobs, input.run.cluster, input.options, log, quantity,
                              plan.lineup.policies, registry, threads, progress);
  if (!scores) return Unexpected{scores.error()};
  return LogEvaluation{.log = log,
                       .span_s = submission_span_s(input.run.trace.jobs, log),
                       .contestants = rows_of<LogContestant>(plan.lineup, *scores)};
}

// The first reason why this log cannot be compared.
Result<void> check_ended(const LogEvaluation& log, std::size_t reference, const EvaluationProgress& progress) {
  if (progress.stopped()) return unexpected("interrupted before every policy had run the log");
  for (std::size_t row = 0; row < log.contestants.size(); ++row) {
    if (log.contestants[row].finished()) continue;
    for (const LogScores& run : log.contestants[row].runs) {
      if (run.failure.empty()) continue;
      const bool decisive = row == reference || log.contestants.size() == 2;
      if (decisive) return unexpected("policy " + run.policy + ", whole log: it " + run.failure);
    }
  }
  return {};
}

LogCompareOptions log_compare_options(const EvaluationPlan& plan) {
  return {.figure = *plan.job_figure, .reference = plan.report.reference, .seed = plan.report.seed};
}

// Every trace's log with further starts, compared.
Result<std::vector<TraceLog>> evaluate_logs(const EvaluationPlan& plan, const PolicyRegistry& registry,
                                            std::uint64_t threads, EvaluationProgress& progress) {
  std::vector<LogEvaluation> logs;
  for (const EvaluationInput& input : plan.inputs) {
    auto log = evaluate_log(plan, input, input.log, registry, threads, progress);
    if (!log) return Unexpected{log.error()};
    if (auto ended = check_ended(*log, plan.report.reference, progress); !ended) return Unexpected{ended.error()};
    logs.push_back(*std::move(log));
  }
  std::vector<LogFindings> findings = compare_logs(logs, log_compare_options(plan));
  std::vector<TraceLog> result;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    result.push_back(
        {plan.inputs[i].path, plan.inputs[i].run.cluster.name, std::move(logs[i]), std::move(findings[i])});
  }
  return result;
}

Result<TraceEvaluation> evaluate_windows(const EvaluationPlan& plan, const EvaluationInput& input,
                                         const PolicyRegistry& registry, std::uint64_t threads,
                                         EvaluationProgress& progress) {
  auto scores = evaluate_policies(input.run.trace.jobs, input.run.cluster, input.options, plan.lineup.policies,
                                  registry, threads, progress);
  if (!scores) return Unexpected{scores.error()};
  TraceEvaluation evaluation{.trace = input.path,
                             .cluster = input.run.cluster.name,
                             .windows = input.options.windows,
                             .starts = input.starts,
                             .contestants = rows_of<Contestant>(plan.lineup, *scores)};
  const MetricInfo& figure = *plan.report.figure;
  if (std::none_of(evaluation.contestants.begin(), evaluation.contestants.end(),
                   [&figure](const Contestant& one) { return !one.windows_with(figure).empty(); })) {
    return unexpected(figure.name + " is not known in any window of " + input.path);
  }
  return evaluation;
}

// Of the first log that is too short; empty where all are long enough.
std::string why_not_logs(const std::vector<TraceLog>& logs) {
  for (const TraceLog& log : logs) {
    if (log.evaluation.log.jobs < least_log_jobs || !tells(log.findings)) {
      return log.trace + " is too short for --mode log: " + why_too_short(log.evaluation, log.findings);
    }
  }
  return "";
}

bool have_windows(const EvaluationPlan& plan) {
  return std::none_of(plan.inputs.begin(), plan.inputs.end(),
                      [](const EvaluationInput& input) { return input.starts.empty(); });
}

}  // namespace

Result<EvaluationOutcome> run_evaluation(const EvaluationPlan& plan, const PolicyRegistry& registry,
                                         std::uint64_t threads, EvaluationProgress& progress) {
  EvaluationOutcome outcome{.windows = {}, .logs = {}, .note = plan.why_windows};
  if (plan.mode == EvaluationMode::log || plan.mode == EvaluationMode::automatic) {
    auto logs = evaluate_logs(plan, registry, threads, progress);
    if (!logs) return Unexpected{logs.error()};
    outcome.logs = *std::move(logs);
    outcome.note = why_not_logs(outcome.logs);
    if (plan.mode == EvaluationMode::log || outcome.note.empty() || !have_windows(plan)) return outcome;
    outcome.note = "windows are compared, as " + outcome.note;
  }
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const EvaluationInput& input = plan.inputs[i];
    auto evaluation = evaluate_windows(plan, input, registry, threads, progress);
    if (!evaluation) return Unexpected{evaluation.error()};
    if (!outcome.logs.empty()) {
      evaluation->log = std::move(outcome.logs[i].evaluation);
    } else if (plan.mode == EvaluationMode::windows && !progress.stopped()) {
      const LogOptions whole{.first = input.log.first, .jobs = input.log.jobs};
      auto log = evaluate_log(plan, input, whole, registry, threads, progress);
      if (!log) return Unexpected{log.error()};
      evaluation->log = *std::move(log);
    }
    outcome.windows.push_back(*std::move(evaluation));
  }
  outcome.logs.clear();
  return outcome;
}

namespace {

// Of the files of Slurm, which are those of every trace.
std::vector<std::string> slurm_notes(const EvaluationPlan& plan) {
  std::vector<std::string> notes;
  for (const EvaluationInput& input : plan.inputs) {
    for (const auto& lines : {input.run.slurm.unused_lines(), input.run.slurm.notes}) {
      for (const std::string& line : lines) {
        if (std::find(notes.begin(), notes.end(), line) == notes.end()) notes.push_back(line);
      }
    }
  }
  return notes;
}

}  // namespace

std::vector<std::string> evaluation_notes(const EvaluationPlan& plan) {
  std::vector<std::string> notes = slurm_notes(plan);
  for (const EvaluationInput& input : plan.inputs) {
    std::vector<std::string> of_trace = left_out_lines(input.run.trace.report);
    if (input.options.sites != nullptr) leave_out_columns_of(*input.options.sites, of_trace);
    for (const auto& lines :
         {of_trace, outside_vcs_lines(input.run.cluster, input.run.jobs_outside_vcs),
          input.options.conditions.all_notes(),
          input.options.sites == nullptr ? std::vector<std::string>{} : input.options.sites->notes}) {
      for (const std::string& line : lines) notes.push_back(input.path + ": " + line);
    }
  }
  return notes;
}

namespace {

LogReportOptions log_report_options(const EvaluationPlan& plan) {
  return {.figure = plan.report.figure,
          .beside = plan.report.beside,
          .compare = log_compare_options(plan),
          .backfill = plan.report.backfill};
}

}  // namespace

std::string evaluation_text(const EvaluationPlan& plan, const EvaluationOutcome& outcome, const TextStyle& style) {
  std::string text = outcome.note.empty() ? "" : outcome.note + "\n";
  for (std::size_t i = 0; i < outcome.logs.size(); ++i) {
    text += (i == 0 ? "" : "\n") + log_table(outcome.logs[i], log_report_options(plan), style);
  }
  if (!outcome.logs.empty()) return text;
  const std::vector<TraceEvaluation>& windows = outcome.windows;
  return text + (windows.size() == 1 ? evaluation_table(windows.front(), plan.report, style)
                                     : transfer_table(windows, plan.report, style));
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
                            const EvaluationOutcome& outcome, const Execution& execution) {
  Json runs = outcome.logs.empty() ? evaluation_runs_json(outcome.windows, plan.report)
                                   : log_runs_json(outcome.logs, log_report_options(plan));
  return json_text({{"manifest", manifest_of(scenario, plan, execution)},
                    {"mode", outcome.logs.empty() ? "windows" : "log"},
                    {"note", outcome.note},
                    {"runs", std::move(runs)}},
                   -1);
}

std::vector<std::pair<std::string, std::string>> evaluation_tables(const EvaluationPlan& plan,
                                                                   const EvaluationOutcome& outcome) {
  if (!outcome.logs.empty()) {
    return {{"effects.csv", effects_csv(outcome.logs, log_report_options(plan))},
            {"batches.csv", batches_csv(outcome.logs)}};
  }
  return {{"windows.csv", windows_csv(outcome.windows)},
          {"comparison.csv", comparison_csv(outcome.windows, plan.report)}};
}

std::vector<std::pair<std::string, std::string>> evaluation_files(const EvaluateScenario& scenario,
                                                                  const EvaluationPlan& plan,
                                                                  const EvaluationOutcome& outcome,
                                                                  const Execution& execution) {
  std::vector<std::pair<std::string, std::string>> files = evaluation_tables(plan, outcome);
  files.emplace_back("table.txt", evaluation_text(plan, outcome));
  files.emplace_back("manifest.json", json_text(manifest_of(scenario, plan, execution)));
  return files;
}

}  // namespace gpusched
