// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluate_scenario.hpp"

#include <algorithm>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/parallel.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/run_fields.hpp"
#include "src/sim/scenario.hpp"

namespace gpusched {
namespace {

// What they are is asked when the scenario is checked or names are resolved.
Result<std::vector<std::string>> split_at_commas(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

FieldTable evaluate_fields(EvaluateScenario& s) {
  constexpr double most_jobs = 1e9;
  const RunFields common = run_fields(s);
  FieldTable fields{
      {"traces", "--trace",
       "trace file, - for standard input, or synthetic:NAME; given again, a matrix of policies and traces", &s.traces},
      {"formats", "--format", "trace format, or auto; once, or once for each trace", &s.formats},
      {"columns", "--columns",
       "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...; once, or once for each trace", &s.columns},
  };
  append_fields(fields, slurm_fields(s));
  append_fields(fields, reading_fields(s));
  append_fields(
      fields,
      {
          {"clusters", "--cluster",
           "NAME, FILE, NODESxGPUS[:TYPE], RACKSxNODESxGPUS[:TYPE] or GPUS, each with +NODESxGPUS[:TYPE] behind it for "
           "more nodes; once or once for each trace; by default what the trace states",
           &s.clusters},
          common.limits,
          common.oversize,
          {"sites", "--sites", "JSON of sites, as federate takes it, in place of a cluster", &s.sites},
          {.path = "routers",
           .flag = "--router",
           .meaning = "routers that send jobs to the sites, each with every policy: NAME[{parameter=value,...}][,...]",
           .target = &s.routers,
           .split = split_routers},
          {.path = "policies",
           .flag = "--policy",
           .meaning =
               "policies, separated by commas, each with the backfilling it wants: fifo+easy, or fifo+none whatever "
               "--backfill says; rl:DIR is a trained one, rl:DIR{sample=true,seed=3} draws its actions",
           .target = &s.policies,
           .split = split_policies},
          {"groups", "--group",
           "NAME=POLICY,POLICY,...: training seeds of one configuration, compared by their interquartile mean; may be "
           "repeated",
           &s.groups},
          common.backfill,
      });
  append_fields(fields, condition_fields(s.conditions, "evaluate"));
  FieldTable rest{
      {"protocol",
       "--protocol",
       "windows as below, or the ten of RLScheduler (SC'20)",
       &s.protocol,
       {"windows", "sc20"}},
      {"mode",
       "--mode",
       "log: every policy runs the whole log once, compared by batches of its jobs; windows: on windows, with the "
       "value "
       "of the whole log beside; windows-only: without it; auto: log where it is long enough and no option of windows "
       "is given",
       &s.mode,
       {"auto", "log", "windows", "windows-only"}},
      {.path = "starts",
       .flag = "--starts",
       .meaning =
           "log: further runs begin at these fractions of it, on an empty cluster; for how long that shows is left "
           "out at its beginning; none: no further run",
       .target = &s.starts,
       .split = split_at_commas},
      {.path = "windows.jobs",
       .flag = "--window-jobs",
       .meaning = "measured jobs of a window; 0: 1024",
       .target = &s.window_jobs,
       .range = Field::Range{0, most_jobs}},
      {.path = "windows.count",
       .flag = "--windows",
       .meaning = "this many windows, evenly spaced; 0: as --stride says",
       .target = &s.windows,
       .range = Field::Range{0, most_jobs}},
      {.path = "windows.stride",
       .flag = "--stride",
       .meaning = "jobs between windows; 0: windows side by side",
       .target = &s.stride,
       .range = Field::Range{0, most_jobs}},
      {.path = "windows.warmup_jobs",
       .flag = "--warmup-jobs",
       .meaning = "jobs before each window that fill the cluster",
       .target = &s.warmup_jobs,
       .range = Field::Range{0, most_jobs}},
      {"windows.history", "--history", "predictions know the trace's earlier jobs that had ended when a window begins",
       &s.history},
      {.path = "windows.from",
       .flag = "--from",
       .meaning = "use the trace's jobs from this fraction on",
       .target = &s.from,
       .range = Field::Range{0, 1}},
      {.path = "windows.to",
       .flag = "--to",
       .meaning = "up to this fraction",
       .target = &s.to,
       .range = Field::Range{0, 1}},
      {"figure", "--figure", "what is compared", &s.figure, figure_names()},
      {.path = "beside",
       .flag = "--beside",
       .meaning =
           "figures shown beside it, separated by commas, each with its mean and difference: any of --figure, or "
           "worst_tenth:FIGURE, over the tenth of the windows that is worst in it, each policy's own",
       .target = &s.beside,
       .split = split_at_commas},
      {"mean",
       "--mean",
       "over the windows: arithmetic, where windows of much waiting weigh most, or geometric, where each counts by its "
       "ratio",
       &s.mean,
       {"arithmetic", "geometric"}},
      {"against", "--against", "the policy or group that the others are compared with; default: the first", &s.against},
      {"seed", "--seed", "seed of synthetic traces, random policies and the bootstrap", &s.seed},
      {"output.folder",
       "--out",
       "folder for manifest.json, windows.csv, comparison.csv and table.txt",
       &s.out,
       {},
       false},
      {"output.json", "--json", "print one JSON object instead of a table", &s.json, {}, false},
      {.path = "threads",
       .flag = "--threads",
       .meaning = "windows and policies that run at the same time; 0: one for each processor",
       .target = &s.threads,
       .changes_results = false,
       .range = Field::Range{0, most_threads}},
  };
  append_fields(fields, std::move(rest));
  return fields;
}

Result<std::set<std::string>> read_evaluate_json(EvaluateScenario& scenario, std::string_view text,
                                                 const std::string& file) {
  const auto json = read_fields(evaluate_fields(scenario), text, file);
  if (!json) return Unexpected{json.error()};
  const std::set<std::string> given = given_paths(evaluate_fields(scenario), config_of(*json));
  if (!json->contains("config") || !json->contains("windows")) return given;
  for (const Json& window : (*json)["windows"]) {
    const Json::json_pointer hash("/trace/sha256");
    const bool known = window.is_object() && window.contains(hash) && window[hash].is_string();
    scenario.manifest_sha256.push_back(known ? window[hash].get<std::string>() : "");
  }
  return given;
}

Result<std::set<std::string>> read_evaluate_file(EvaluateScenario& scenario, const std::string& path) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  return read_evaluate_json(scenario, *text, path);
}

Result<void> check_evaluate_scenario(const EvaluateScenario& scenario) {
  if (scenario.traces.empty()) return unexpected("no trace; give a file, - for standard input, or synthetic:philly");
  if (scenario.policies.empty() && scenario.groups.empty()) {
    return unexpected("nobody to compare: give --policy or --group");
  }
  if (scenario.windows > 0 && scenario.stride > 0) {
    return Unexpected{Error{.message = "--windows and --stride exclude each other", .field = "windows.stride"}};
  }
  if (scenario.protocol == "sc20" && scenario.traces.front().starts_with("synthetic:"))
    return bad_option("protocol", "expected a log in a file with sc20, which takes no drawn trace");
  if (scenario.sites.empty() && !scenario.routers.empty())
    return bad_option("routers", "expected --sites FILE with --router");
  if (!scenario.sites.empty() && scenario.protocol != "windows")
    return bad_option("protocol", "expected windows beside --sites");
  if (!scenario.sites.empty() && !scenario.clusters.empty())
    return bad_option("clusters", "expected none beside --sites, whose file has the clusters");
  if (!scenario.sites.empty() && !scenario.slurm_conf.empty())
    return bad_option("trace.slurm_conf", "expected none beside --sites, whose file has the clusters");
  if (!scenario.sites.empty() && !scenario.limits.empty())
    return bad_option("limits", "expected none beside --sites, which have no limits");
  if (!scenario.sites.empty() && !scenario.slurm_qos.empty())
    return bad_option("trace.slurm_qos", "expected none beside --sites, which have no limits; --qos gives priorities");
  if (auto once = check_qos_and_limits(scenario); !once) return once;
  if (scenario.from > scenario.to) {
    return Unexpected{Error{.message = "expected a fraction not above that of --to", .field = "windows.from"}};
  }
  const std::string of_windows = window_option(scenario);
  if (scenario.mode == "log" && !of_windows.empty()) {
    return bad_option(of_windows, "an option of windows; --mode log has none");
  }
  const bool of_windows_alone = scenario.mode == "windows" || scenario.mode == "windows-only";
  if (of_windows_alone && scenario.starts != EvaluateScenario{}.starts) {
    return bad_option("starts", "an option of logs; --mode " + scenario.mode + " has none");
  }
  for (const std::string& start : further_starts(scenario)) {
    const auto fraction = parse_number(start);
    if (!fraction) return bad_option("starts", "expected fractions of the log, as 0.05,0.1, and not '" + start + "'");
    if (*fraction <= 0 || *fraction >= 1) {
      return bad_option("starts", start + (*fraction >= 1 ? " lies beyond the end of the log" : " is no later start") +
                                      "; expected fractions above 0 and below 1");
    }
  }
  return {};
}

std::vector<std::string> further_starts(const EvaluateScenario& scenario) {
  return scenario.starts == std::vector<std::string>{"none"} ? std::vector<std::string>{} : scenario.starts;
}

std::string window_option(const EvaluateScenario& scenario) {
  const EvaluateScenario plain;
  if (scenario.window_jobs != plain.window_jobs) return "windows.jobs";
  if (scenario.windows != plain.windows) return "windows.count";
  if (scenario.stride != plain.stride) return "windows.stride";
  if (scenario.warmup_jobs != plain.warmup_jobs) return "windows.warmup_jobs";
  if (scenario.mean != plain.mean) return "mean";
  const auto of_windows = [](const std::string& figure) { return figure.starts_with("worst_tenth:"); };
  const bool beside = std::any_of(scenario.beside.begin(), scenario.beside.end(), of_windows);
  return beside ? "beside" : "";
}

std::string evaluate_scenario_json(const EvaluateScenario& scenario, bool all) {
  EvaluateScenario copy = scenario;
  return fields_json(evaluate_fields(copy), all);
}

std::string evaluate_schema() {
  EvaluateScenario defaults;
  return fields_schema(evaluate_fields(defaults), "gpusched evaluation",
                       "What `gpusched evaluate --config FILE` takes. Every key is optional.");
}

}  // namespace gpusched
