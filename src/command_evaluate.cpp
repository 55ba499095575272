// SPDX-License-Identifier: Apache-2.0
// gpusched evaluate: policies on the same windows of a trace, compared pair by pair with intervals.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/placement.hpp"
#include "gpusched/simulate.hpp"
#include "src/commands.hpp"
#include "src/sim/build_info.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/sc20_protocol.hpp"
#include "src/sim/statistics.hpp"
#include "src/sim/text_table.hpp"
#include "traces/cluster_reader.hpp"
#include "traces/trace.hpp"

namespace gpusched {
namespace {

using Json = nlohmann::ordered_json;

struct EvaluateArguments {
  std::string trace, format = "auto", cluster, policies, placement = "consolidate", protocol, backfill = "none";
  std::string figure = "avg_jct_s", against;
  std::uint32_t window_jobs = 1024, windows = 0, stride = 0, warm_up = 0;
  double from = 0, to = 1;
  std::uint64_t seed = 0;
  bool json = false;
};

const std::map<std::string, double Metrics::*> figures{{"avg_jct_s", &Metrics::avg_jct_s},
                                                       {"p99_jct_s", &Metrics::p99_jct_s},
                                                       {"avg_wait_s", &Metrics::avg_wait_s},
                                                       {"p99_wait_s", &Metrics::p99_wait_s},
                                                       {"avg_bounded_slowdown", &Metrics::avg_bounded_slowdown},
                                                       {"makespan_s", &Metrics::makespan_s}};

std::string text_of(double value, const char* format = "%.2f") {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Json manifest_of(const EvaluateArguments& arguments) {
  const BuildInfo build = build_info();
  return {{"version", build.version},
          {"git_commit", build.git_commit},
          {"compiler", build.compiler},
          {"trace", arguments.trace},
          {"seed", arguments.seed}};
}

int print(const std::string& text) {
  const bool printed = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return printed ? exit_done : complain("standard output cannot be written", exit_failed);
}

// ---- windows
// ---------------------------------------------------------------------------------------------------------

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

// The interquartile mean over the agents, which differ by their training seed.
std::optional<double> mean_of_agents(const std::vector<PolicyScores>& scores, double Metrics::*figure) {
  std::vector<double> means;
  for (const PolicyScores& score : scores) {
    if (score.policy.starts_with("rl:")) means.push_back(mean_of(score.values(figure)));
  }
  if (means.size() < 2) return std::nullopt;
  return interquartile_mean(means);
}

int report(const EvaluateArguments& arguments, const Cluster& cluster, const std::vector<PolicyScores>& scores,
           const EvaluationWindows& windows) {
  double Metrics::*const figure = figures.at(arguments.figure);
  const auto reference = std::find_if(scores.begin(), scores.end(), [&](const PolicyScores& score) {
    return arguments.against.empty() || score.policy == arguments.against;
  });
  if (reference == scores.end()) return complain("--against: " + arguments.against + " is not among the policies");
  const std::size_t block = (windows.jobs + windows.stride - 1) / windows.stride;
  const std::size_t count = scores.front().windows.size();
  TextTable table({"policy", arguments.figure, "difference", "95% interval", "wins", "verdict"});
  Json runs = Json::array();
  for (const PolicyScores& score : scores) {
    const Comparison pair = compare(score, *reference, figure, block, arguments.seed);
    const bool self = &score == &*reference;
    Json metrics = Json::object();
    for (const auto& [name, member] : figures) metrics[name] = mean_of(score.values(member));
    runs.push_back({{"policy", score.policy},
                    {"trace", arguments.trace},
                    {"cluster", cluster.name},
                    {"clairvoyant", score.clairvoyant},
                    {"metrics", std::move(metrics)},
                    {"windows", score.values(figure)}});
    if (!self) {
      runs.back()["comparison"] = {{"against", reference->policy},
                                   {"figure", arguments.figure},
                                   {"difference", pair.mean - pair.other_mean},
                                   {"interval_95", {pair.low, pair.high}},
                                   {"win_rate", pair.win_rate},
                                   {"verdict", pair.verdict}};
    }
    const auto percent = [&](double difference) { return text_of(100 * difference / pair.other_mean, "%+.1f%%"); };
    table.add({score.policy + (score.clairvoyant ? "*" : ""), text_of(pair.mean),
               self ? "" : percent(pair.mean - pair.other_mean),
               self ? "" : "[" + percent(pair.low) + ", " + percent(pair.high) + "]",
               self ? "" : text_of(100 * pair.win_rate, "%.0f%%"), self ? "=" : pair.verdict});
  }
  const auto agents = mean_of_agents(scores, figure);
  if (arguments.json) {
    Json manifest = manifest_of(arguments);
    manifest["windows"] = {{"count", count},           {"jobs", windows.jobs},   {"warm_up", windows.warm_up},
                           {"stride", windows.stride}, {"first", windows.first}, {"last", windows.last},
                           {"bootstrap_block", block}};
    Json result{{"manifest", std::move(manifest)}, {"runs", std::move(runs)}};
    if (agents) result["interquartile_mean_of_agents"] = *agents;
    return print(result.dump() + "\n");
  }
  std::string text = std::to_string(count) + " windows of " + std::to_string(windows.jobs) + " jobs, every " +
                     std::to_string(windows.stride) + ", on " + cluster.name + ", compared with " + reference->policy +
                     " (block bootstrap, blocks of " + std::to_string(block) + ")\n\n" + table.text();
  if (agents) text += "interquartile mean of the agents: " + text_of(*agents) + "\n";
  const bool starred = std::any_of(scores.begin(), scores.end(), [](const auto& score) { return score.clairvoyant; });
  if (starred) text += "* knows true run times, which no real scheduler does\n";
  return print(text);
}

int evaluate_windows(const EvaluateArguments& arguments, const std::vector<PolicySpec>& specs) {
  auto trace = read_trace(arguments.trace, {.format = arguments.format});
  if (!trace) return complain(trace.error());
  std::string name = arguments.cluster;
  if (name.empty() && trace->report.machine_gpus > 0) name = std::to_string(trace->report.machine_gpus);
  if (name.empty()) return complain("--cluster: the trace does not state its machine; give NAME, FILE, NxG or GPUS");
  const auto cluster = parse_cluster(name);
  if (!cluster) return complain(cluster.error());
  const auto fitted = fit_to_cluster(*std::move(trace), *cluster, Oversize::drop);
  if (!fitted) return complain(fitted.error());
  EngineOptions options{.seed = arguments.seed};
  const auto placement = placement_from_name(arguments.placement);
  if (!placement) return complain("--placement: no rule is called '" + arguments.placement + "'");
  options.placement = *placement;
  const EvaluationWindows windows = windows_of(arguments, fitted->jobs.size());
  const auto scores = evaluate_policies(fitted->jobs, *cluster, options, specs, PolicyRegistry::standard(), windows);
  if (!scores) return complain(scores.error());
  return report(arguments, *cluster, *scores, windows);
}

// ---- the protocol of SC'20
// -------------------------------------------------------------------------------------------

// An agent (or agenda) decides on the engine, which applies all events of an instant before it asks; the protocol's own
// loop, for orders, asks between them.
Result<Sc20Result> run_on_engine(const PolicySpec& spec, const JobTable& jobs, const Cluster& cluster) {
  std::vector<Sc20Result> results;
  for (const std::uint32_t start : sc20_window_starts) {
    if (start + sc20_window_jobs > jobs.size()) return unexpected("the log is too short for the protocol's windows");
    const JobTable window = jobs.slice(start, sc20_window_jobs);
    auto policy = PolicyRegistry::standard().make(spec, {.jobs = &window, .cluster = &cluster});
    if (!policy) return Unexpected{policy.error()};
    Engine engine(window, cluster);
    RunLog log;
    if (!simulate(engine, *policy, log)) return unexpected("policy " + spec.text + " left jobs waiting for ever");
    double work = 0;
    Time last{};
    for (std::uint32_t i = 0; i < window.size(); ++i) {
      const JobId job{i};
      work += to_seconds(window.work(job)) * static_cast<double>(window.shape(job).gpu_milli()) / whole_gpu;
      last = std::max(last, engine.first_start(job));
    }
    const double span = to_seconds(last - window.submit(JobId{0})) * static_cast<double>(cluster.total_gpus());
    results.push_back({.avg_bounded_slowdown = compute_metrics(engine, log).avg_bounded_slowdown,
                       .utilization = span > 0 ? work / span : 0});
  }
  return mean_of(results);
}

int evaluate_sc20(const EvaluateArguments& arguments, const std::vector<PolicySpec>& specs) {
  if (arguments.backfill != "none" && arguments.backfill != "sc20") {
    return complain("--backfill: expected none or sc20");
  }
  const bool backfill = arguments.backfill == "sc20";
  const auto log = read_sc20_log(arguments.trace);
  if (!log) return complain(log.error());
  const PolicyRegistry registry = PolicyRegistry::standard();
  std::optional<Trace> trace;
  const Cluster cluster = Cluster::pool(static_cast<std::uint32_t>(log->processors));
  TextTable table({"policy", "avg_bounded_slowdown", "utilization"});
  Json runs = Json::array();
  for (const PolicySpec& spec : specs) {
    Result<Sc20Result> result = Sc20Result{};
    if (spec.name.starts_with("rl:") || spec.name == "agenda") {
      if (!trace) {
        auto read = read_trace(arguments.trace, {.format = arguments.format});
        if (!read) return complain(read.error());
        trace = *std::move(read);
      }
      result = run_on_engine(spec, trace->jobs, cluster);
    } else {
      const auto chooser = make_sc20_chooser(registry, spec);
      if (!chooser) return complain(chooser.error());
      result = run_sc20_protocol(*log, backfill, *chooser);
    }
    if (!result) return complain(result.error());
    table.add({spec.text, text_of(result->avg_bounded_slowdown, "%.6f"), text_of(result->utilization, "%.3f")});
    runs.push_back(
        {{"policy", spec.text},
         {"trace", arguments.trace},
         {"cluster", cluster.name},
         {"metrics", {{"avg_bounded_slowdown", result->avg_bounded_slowdown}, {"utilization", result->utilization}}}});
  }
  if (!arguments.json) return print(table.text());
  Json manifest = manifest_of(arguments);
  manifest["protocol"] = "sc20";
  manifest["backfill"] = arguments.backfill;
  return print(Json{{"manifest", std::move(manifest)}, {"runs", std::move(runs)}}.dump() + "\n");
}

int evaluate(const EvaluateArguments& arguments) {
  const auto specs = parse_policy_list(arguments.policies);
  if (!specs) return complain(specs.error());
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicySpec& spec : *specs) {
    if (const auto known = registry.find(spec.name); !known) return complain(known.error());
  }
  if (arguments.protocol == "sc20") return evaluate_sc20(arguments, *specs);
  return evaluate_windows(arguments, *specs);
}

}  // namespace

void add_evaluate_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("evaluate", "Compare policies on the same windows of a trace, with intervals");
  const auto arguments = std::make_shared<EvaluateArguments>();
  command->add_option("--trace", arguments->trace, "trace file")->required();
  command->add_option("--format", arguments->format, "trace format, or auto");
  command->add_option("--cluster", arguments->cluster,
                      "NAME, FILE, NODESxGPUS or GPUS; default: what the trace states");
  command->add_option("--policy", arguments->policies, "policies, separated by commas; rl:DIR is a trained one")
      ->required();
  command->add_option("--placement", arguments->placement, "placement rule");
  command->add_option("--protocol", arguments->protocol, "sc20: the ten windows of RLScheduler (SC'20)")
      ->check(CLI::IsMember({"sc20"}));
  command->add_option("--backfill", arguments->backfill, "of --protocol sc20: none or sc20");
  command->add_option("--window-jobs", arguments->window_jobs, "measured jobs of a window")
      ->check(CLI::Range(1u, 1'000'000'000u));
  command->add_option("--windows", arguments->windows, "this many windows, evenly spaced");
  command->add_option("--stride", arguments->stride, "jobs between windows instead; default: windows side by side");
  command->add_option("--warmup-jobs", arguments->warm_up, "jobs before each window that fill the cluster");
  command->add_option("--from", arguments->from, "use the trace's jobs from this fraction on")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--to", arguments->to, "up to this fraction")->check(CLI::Range(0.0, 1.0));
  std::vector<std::string> names;
  for (const auto& [name, figure] : figures) names.push_back(name);
  command->add_option("--figure", arguments->figure, "what is compared; less is better")->check(CLI::IsMember(names));
  command->add_option("--against", arguments->against, "the policy that the others are compared with; default: first");
  command->add_option("--seed", arguments->seed, "of random policies and of the bootstrap");
  command->add_flag("--json", arguments->json, "one JSON object instead of a table");
  command->callback([arguments, &exit_code] { exit_code = evaluate(*arguments); });
}

}  // namespace gpusched
