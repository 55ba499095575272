// SPDX-License-Identifier: Apache-2.0
// gpusched evaluate: policies on the same windows of a trace, compared pair by pair with intervals.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/program/commands.hpp"
#include "src/program/option_checks.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/evaluation_report.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/protocols/sc20_protocol.hpp"
#include "src/sim/report.hpp"
#include "traces/core/run_input.hpp"

namespace gpusched {
namespace {

struct EvaluateArguments {
  std::vector<std::string> traces, formats, columns, clusters, groups;
  std::string policies, placement = "consolidate", protocol, backfill = "none", oversize = "error";
  std::string figure = "avg_jct_s", against;
  std::uint32_t window_jobs = 1024, windows = 0, stride = 0, warm_up = 0;
  double from = 0, to = 1;
  double checkpoint_s = 0, restart_s = 0;
  std::uint64_t seed = 0;
  bool drop_bad_rows = false, json = false;
};

// Who is compared: each contestant's name and where its policies lie in `policies`.
struct Lineup {
  struct Entry {
    std::string name;
    std::size_t first = 0, count = 1;
  };
  std::vector<PolicySpec> policies;
  std::vector<Entry> entries;
};

// With the options as they were given, so that the command can be written again.
Json manifest_of(const EvaluateArguments& arguments) {
  Json manifest = build_json();
  manifest["config"] = {{"traces", arguments.traces},
                        {"formats", arguments.formats},
                        {"columns", arguments.columns},
                        {"drop_bad_rows", arguments.drop_bad_rows},
                        {"clusters", arguments.clusters},
                        {"policies", arguments.policies},
                        {"groups", arguments.groups},
                        {"placement", arguments.placement},
                        {"protocol", arguments.protocol},
                        {"backfill", arguments.backfill},
                        {"oversize", arguments.oversize},
                        {"checkpoint_cost_s", arguments.checkpoint_s},
                        {"restart_cost_s", arguments.restart_s},
                        {"window_jobs", arguments.window_jobs},
                        {"windows", arguments.windows},
                        {"stride", arguments.stride},
                        {"warmup_jobs", arguments.warm_up},
                        {"from", arguments.from},
                        {"to", arguments.to},
                        {"figure", arguments.figure},
                        {"against", arguments.against},
                        {"seed", arguments.seed}};
  return manifest;
}

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return exit_done;
}

// An option that is given once for all traces, or once for each.
Result<std::string> value_for(const std::vector<std::string>& given, std::size_t trace, std::size_t traces,
                              const std::string& option, const std::string& fallback) {
  if (given.empty()) return fallback;
  if (given.size() == 1) return given.front();
  if (given.size() == traces) return given[trace];
  return unexpected(option + ": given " + std::to_string(given.size()) + " times for " + std::to_string(traces) +
                    " traces; give it once, or once for each trace in their order");
}

Result<std::vector<PolicySpec>> known_policies(const std::string& text) {
  auto specs = parse_policy_list(text);
  if (!specs) return specs;
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicySpec& spec : *specs) {
    if (const auto known = registry.find(spec.name); !known) return Unexpected{known.error()};
  }
  return specs;
}

Result<Lineup> lineup_of(const EvaluateArguments& arguments) {
  Lineup lineup;
  if (!arguments.policies.empty()) {
    auto specs = known_policies(arguments.policies);
    if (!specs) return Unexpected{specs.error()};
    lineup.policies = *std::move(specs);
    for (std::size_t i = 0; i < lineup.policies.size(); ++i) lineup.entries.push_back({lineup.policies[i].text, i, 1});
  }
  for (const std::string& group : arguments.groups) {
    const std::size_t equals = group.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return unexpected("--group: expected NAME=POLICY,POLICY,... and not '" + group + "'");
    }
    const auto specs = known_policies(group.substr(equals + 1));
    if (!specs) return Unexpected{specs.error()};
    lineup.entries.push_back({group.substr(0, equals), lineup.policies.size(), specs->size()});
    lineup.policies.insert(lineup.policies.end(), specs->begin(), specs->end());
  }
  if (lineup.entries.empty()) return unexpected("nobody to compare: give --policy or --group");
  return lineup;
}

// ---- windows ----------------------------------------------------------------------------------------------------

// The windows that the flags ask for, over jobs [from, to) of the trace.
EvaluationWindows windows_of(const EvaluateArguments& arguments, std::uint32_t jobs) {
  EvaluationWindows windows{.jobs = arguments.window_jobs, .warm_up = arguments.warm_up};
  windows.first = static_cast<std::uint32_t>(arguments.from * jobs);
  windows.last = static_cast<std::uint32_t>(arguments.to * jobs);
  windows.stride = arguments.stride > 0 ? arguments.stride : arguments.window_jobs;
  const std::uint32_t first = std::max(windows.first, windows.warm_up);
  if (arguments.windows > 1 && windows.last > first + windows.jobs) {
    windows.stride = std::max(1u, (windows.last - first - windows.jobs) / (arguments.windows - 1));
  }
  return windows;
}

// What the evaluation runs on.
struct EvaluationInput {
  std::string path;
  Trace trace;
  Cluster cluster;
  Placement placement = Placement::consolidate;
};

Result<EvaluationInput> input_of(const EvaluateArguments& arguments, std::size_t index) {
  const std::size_t count = arguments.traces.size();
  const auto format = value_for(arguments.formats, index, count, "--format", "auto");
  if (!format) return Unexpected{format.error()};
  const auto name = value_for(arguments.clusters, index, count, "--cluster", "");
  if (!name) return Unexpected{name.error()};
  const auto columns = value_for(arguments.columns, index, count, "--columns", "");
  if (!columns) return Unexpected{columns.error()};
  auto input = load_input({.trace = arguments.traces[index],
                           .reading = {.format = *format,
                                       .columns = *columns,
                                       .seed = arguments.seed,
                                       .drop_bad_rows = arguments.drop_bad_rows},
                           .cluster = *name,
                           .placement = arguments.placement,
                           .oversize = oversize_from_word(arguments.oversize)});
  if (!input) return Unexpected{input.error()};
  return EvaluationInput{.path = arguments.traces[index],
                         .trace = std::move(input->trace),
                         .cluster = std::move(input->cluster),
                         .placement = input->placement};
}

Result<EvaluationOptions> options_of(const EvaluateArguments& arguments, const EvaluationInput& input) {
  EvaluationOptions options{.engine = {.placement = input.placement, .seed = arguments.seed},
                            .windows = windows_of(arguments, input.trace.jobs.size())};
  options.engine.preemption = {.checkpoint = from_seconds(arguments.checkpoint_s),
                               .restart = from_seconds(arguments.restart_s)};
  if (arguments.backfill == "none") return options;
  auto backfill = parse_backfill(arguments.backfill);
  if (!backfill) return Unexpected{Error{.message = backfill.error().message, .field = "--backfill"}};
  options.backfill = *std::move(backfill);
  return options;
}

// Everything that may be wrong with what the user gave.
Result<EvaluationOptions> checked_options(const EvaluateArguments& arguments, const Lineup& lineup,
                                          const EvaluationInput& input) {
  auto options = options_of(arguments, input);
  if (!options) return options;
  const auto starts = window_starts(options->windows, input.trace.jobs.size());
  if (!starts) return Unexpected{Error{.message = starts.error().message, .file = input.path}};
  const auto made =
      check_policies(input.trace.jobs, input.cluster, *options, lineup.policies, PolicyRegistry::standard());
  if (!made) return Unexpected{made.error()};
  return options;
}

Result<TraceEvaluation> evaluate_trace(const EvaluationOptions& options, const Lineup& lineup,
                                       const EvaluationInput& input) {
  std::atomic<std::uint64_t> done = 0;
  const std::size_t windows = window_starts(options.windows, input.trace.jobs.size())->size();
  const ProgressBar bar(done, windows * lineup.policies.size());
  auto scores =
      evaluate_policies(input.trace.jobs, input.cluster, options, lineup.policies, PolicyRegistry::standard(), done);
  if (!scores) return Unexpected{scores.error()};
  TraceEvaluation evaluation{
      .trace = input.path, .cluster = input.cluster.name, .windows = options.windows, .contestants = {}};
  for (const Lineup::Entry& entry : lineup.entries) {
    const auto first = scores->begin() + static_cast<std::ptrdiff_t>(entry.first);
    evaluation.contestants.push_back({entry.name, {first, first + static_cast<std::ptrdiff_t>(entry.count)}});
  }
  return evaluation;
}

Result<ReportOptions> report_options(const EvaluateArguments& arguments, const Lineup& lineup) {
  const std::vector<Figure>& figures = comparable_figures();
  const auto figure =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& known) { return known.name == arguments.figure; });
  GPUSCHED_ASSERT(figure != figures.end(), "the parser knows the figures");
  ReportOptions options{.figure = *figure, .backfill = arguments.backfill, .seed = arguments.seed};
  if (arguments.against.empty()) return options;
  const auto reference = std::find_if(lineup.entries.begin(), lineup.entries.end(),
                                      [&](const Lineup::Entry& entry) { return entry.name == arguments.against; });
  if (reference == lineup.entries.end()) {
    return unexpected("--against: " + arguments.against + " is not among the policies and groups");
  }
  options.reference = static_cast<std::size_t>(reference - lineup.entries.begin());
  return options;
}

// One trace of the comparison: what was read, and which windows of it were run where.
Json trace_manifest(const EvaluationInput& input, const TraceEvaluation& evaluation) {
  const EvaluationWindows& windows = evaluation.windows;
  return {{"trace", trace_json(input.trace.report)},
          {"cluster", cluster_json(input.cluster)},
          {"count", evaluation.contestants.front().runs.front().windows.size()},
          {"jobs", windows.jobs},
          {"warm_up", windows.warm_up},
          {"stride", windows.stride},
          {"first", windows.first},
          {"last", windows.last},
          {"bootstrap_block", windows.block()}};
}

int evaluate_windows(const EvaluateArguments& arguments, const Lineup& lineup) {
  const auto options = report_options(arguments, lineup);
  if (!options) return complain(options.error());
  std::vector<TraceEvaluation> evaluations;
  Json traces = Json::array();
  for (std::size_t i = 0; i < arguments.traces.size(); ++i) {
    const auto input = input_of(arguments, i);
    if (!input) return complain(input.error());
    for (const std::string& line : left_out_lines(input->trace.report)) {
      note(input->path + ": " + line);
    }
    const auto run_options = checked_options(arguments, lineup, *input);
    if (!run_options) return complain(run_options.error());
    auto evaluation = evaluate_trace(*run_options, lineup, *input);
    if (!evaluation) return complain(evaluation.error(), exit_failed);
    traces.push_back(trace_manifest(*input, *evaluation));
    evaluations.push_back(*std::move(evaluation));
  }
  if (!arguments.json) {
    return print(evaluations.size() == 1 ? evaluation_table(evaluations.front(), *options)
                                         : transfer_table(evaluations, *options));
  }
  Json runs = Json::array();
  for (const TraceEvaluation& evaluation : evaluations) {
    for (Json& run : evaluation_runs_json(evaluation, *options)) runs.push_back(std::move(run));
  }
  Json manifest = manifest_of(arguments);
  manifest["windows"] = std::move(traces);
  return print(json_text({{"manifest", std::move(manifest)}, {"runs", std::move(runs)}}, -1));
}

// ---- the protocol of SC'20 -----------------------------------------------------------------------------------------

int evaluate_sc20(const EvaluateArguments& arguments, const Lineup& lineup) {
  if (arguments.traces.size() > 1 || !arguments.groups.empty()) {
    return complain("--protocol sc20: takes one --trace and no --group");
  }
  const std::string& path = arguments.traces.front();
  if (arguments.backfill != "none" && arguments.backfill != "sc20") {
    return complain("--backfill: expected none or sc20");
  }
  const bool backfill = arguments.backfill == "sc20";
  const auto log = read_sc20_log(path);
  if (!log) return complain(log.error());
  const PolicyRegistry registry = PolicyRegistry::standard();
  std::optional<Trace> trace;
  const Cluster cluster = Cluster::pool(static_cast<std::uint32_t>(log->processors));
  TextTable table({"policy", "avg_bounded_slowdown", "utilization"});
  Json runs = Json::array();
  for (const PolicySpec& spec : lineup.policies) {
    Result<Sc20Result> result = Sc20Result{};
    if (is_agent(spec)) {
      if (!trace) {
        auto read = read_trace(path);
        if (!read) return complain(read.error());
        trace = *std::move(read);
      }
      result = run_sc20_agent(spec, registry, trace->jobs, cluster);
    } else {
      const auto chooser = make_sc20_chooser(registry, spec);
      if (!chooser) return complain(chooser.error());
      result = run_sc20_protocol(*log, backfill, *chooser);
    }
    if (!result) return complain(result.error());
    table.add({spec.text, formatted("%.6f", result->avg_bounded_slowdown), formatted("%.3f", result->utilization)});
    runs.push_back(
        {{"policy", spec.text},
         {"trace", path},
         {"cluster", cluster.name},
         {"metrics", {{"avg_bounded_slowdown", result->avg_bounded_slowdown}, {"utilization", result->utilization}}}});
  }
  if (!arguments.json) return print(table.text());
  Json manifest = manifest_of(arguments);
  manifest["windows"] = Json::array({{{"trace", file_json(path)}}});
  return print(json_text({{"manifest", std::move(manifest)}, {"runs", std::move(runs)}}, -1));
}

int evaluate(const EvaluateArguments& arguments) {
  const auto lineup = lineup_of(arguments);
  if (!lineup) return complain(lineup.error());
  return arguments.protocol == "sc20" ? evaluate_sc20(arguments, *lineup) : evaluate_windows(arguments, *lineup);
}

}  // namespace

void add_evaluate_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("evaluate", "Compare policies on windows, with intervals");
  const auto arguments = std::make_shared<EvaluateArguments>();
  const auto repeated = [&](const char* name, std::vector<std::string>& values, const char* meaning) {
    return command->add_option(name, values, meaning)->allow_extra_args(false);
  };
  repeated("--trace", arguments->traces, "trace file; given again, a matrix of policies and traces")->required();
  repeated("--format", arguments->formats, "trace format, or auto; once, or once for each trace");
  repeated("--columns", arguments->columns,
           "columns of a csv: submit=NAME,gpus=NAME,duration=NAME[,...]; once, or once for each trace");
  command->add_flag("--drop-bad-rows", arguments->drop_bad_rows,
                    "leave out rows with bad values, counted, instead of refusing the trace");
  repeated("--cluster", arguments->clusters,
           "NAME, FILE, NODESxGPUS or GPUS, once or once for each trace; default: what the trace states");
  command->add_option("--policy", arguments->policies,
                      "policies, separated by commas; rl:DIR is a trained one, rl:DIR{sample=true,seed=3} draws its "
                      "actions");
  repeated("--group", arguments->groups,
           "NAME=POLICY,POLICY,...: training seeds of one configuration, compared by their interquartile mean; may be "
           "repeated");
  command->add_option("--placement", arguments->placement, "placement rule");
  command
      ->add_option("--checkpoint-cost", arguments->checkpoint_s, "seconds to save a job's state when it is preempted")
      ->check(number_from(0, 1e9));
  command->add_option("--restart-cost", arguments->restart_s, "seconds to load it again")->check(number_from(0, 1e9));
  command->add_option("--protocol", arguments->protocol, "sc20: the ten windows of RLScheduler (SC'20)")
      ->check(CLI::IsMember({"sc20"}));
  command->add_option("--backfill", arguments->backfill,
                      "around every policy that is an order: none, easy, conservative or sc20; agents keep their own");
  command
      ->add_option("--oversize", arguments->oversize,
                   "a job larger than the cluster is an error, dropped, or clamped to fit")
      ->check(CLI::IsMember({"error", "drop", "clamp"}));
  command->add_option("--window-jobs", arguments->window_jobs, "measured jobs of a window")
      ->check(whole_number_from(1, 1'000'000'000));
  auto* windows = command->add_option("--windows", arguments->windows, "this many windows, evenly spaced")
                      ->check(whole_number_from(1, 1'000'000'000));
  command->add_option("--stride", arguments->stride, "jobs between windows instead; default: windows side by side")
      ->check(whole_number_from(1, 1'000'000'000))
      ->excludes(windows);
  command->add_option("--warmup-jobs", arguments->warm_up, "jobs before each window that fill the cluster")
      ->check(whole_number_from(0, 1'000'000'000));
  command->add_option("--from", arguments->from, "use the trace's jobs from this fraction on")
      ->check(number_from(0, 1));
  command->add_option("--to", arguments->to, "up to this fraction")->check(number_from(0, 1));
  std::vector<std::string> names;
  for (const Figure& figure : comparable_figures()) names.push_back(figure.name);
  command->add_option("--figure", arguments->figure, "what is compared; less is better")->check(CLI::IsMember(names));
  command->add_option("--against", arguments->against,
                      "the policy or group that the others are compared with; default: first");
  command->add_option("--seed", arguments->seed, "of random policies and of the bootstrap")
      ->check(whole_number_from(0, most_whole_number));
  command->add_flag("--json", arguments->json, "one JSON object instead of a table");
  command->footer(
      "Examples:\n"
      "  gpusched evaluate --trace jobs.csv --cluster 8x8 --policy fifo,sjf,saf \\\n"
      "                    --window-jobs 512 --backfill easy\n"
      "  gpusched evaluate --trace jobs.csv --cluster 40x8 --against sjf \\\n"
      "                    --policy sjf --group agent=rl:run1,rl:run2,rl:run3\n"
      "  gpusched evaluate --trace lublin_256.swf --protocol sc20 --policy sjf,f1\n");
  command->callback([arguments, &exit_code] { exit_code = evaluate(*arguments); });
}

}  // namespace gpusched
