// SPDX-License-Identifier: Apache-2.0
#include "src/sim/scenario.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/parallel.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/run_fields.hpp"

namespace gpusched {

Result<std::vector<std::string>> split_policies(std::string_view text) {
  const auto specs = parse_policy_list(text);
  if (!specs) return Unexpected{specs.error()};
  std::vector<std::string> texts;
  for (const PolicySpec& spec : *specs) texts.push_back(spec.text);
  return texts;
}

FieldTable scenario_fields(Scenario& s) {
  std::vector<std::string> splits{"none"};
  splits.insert(splits.end(), std::begin(split_names), std::end(split_names));
  const RunFields common = run_fields(s);
  FieldTable fields{
      {"trace.path", "--trace", "trace file, - for standard input, or synthetic:NAME", &s.trace},
      {"trace.format", "--format", "format of the trace; auto looks at its first lines", &s.format},
      {"trace.columns", "--columns", "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...", &s.columns},
  };
  append_fields(fields, slurm_fields(s));
  append_fields(fields, reading_fields(s));
  append_fields(
      fields,
      {
          {"cluster", "--cluster",
           "NAME, FILE, NODESxGPUS[:TYPE] (75x8), RACKSxNODESxGPUS[:TYPE] (10x8x8:H100) or GPUS (600: one pool that "
           "only "
           "counts), each with +NODESxGPUS[:TYPE] behind it for more nodes; by default what the trace states",
           &s.cluster},
          common.limits,
          {.path = "policies",
           .flag = "--policy",
           .meaning =
               "policies to compare: NAME[{parameter=value,...}][+BACKFILL][,...]; +none: not backfilled, whatever "
               "--backfill says; ./FILE.so is a policy of one's own",
           .target = &s.policies,
           .split = split_policies},
          common.backfill,
      });
  append_fields(fields, condition_fields(s.conditions, "replay"));
  const auto placement =
      std::find_if(fields.begin(), fields.end(), [](const Field& row) { return row.path == "placement"; });
  fields.insert(placement + 1, {"seed", "--seed", "seed of everything random", &s.seed});
  FieldTable rest{
      common.oversize,
      {"history_jobs", "--history-jobs",
       "first jobs that are not run: predictions know those of them that had ended before the next was submitted",
       &s.history_jobs},
      {"measure.warmup_jobs", "--warmup-jobs", "first jobs that are run but not measured", &s.warmup_jobs},
      {"measure.measure_jobs", "--measure-jobs", "jobs that are measured then; 0: all", &s.measure_jobs},
      {"measure.warmup_s", "--warmup-time", "the same by seconds since the first submission", &s.warmup},
      {"measure.measure_s", "--measure-time", "seconds of submissions that are measured then; 0: all", &s.measure},
      {"split", "--split", "also show the results by GPU count, user, virtual cluster, status, group or class",
       &s.split, splits},
      {"recorded",
       "--recorded",
       "also show the waits in the trace's own log, where it has them, or not",
       &s.recorded,
       {"show", "none"}},
      {"output.folder",
       "--out",
       "folder for summary.json, jobs.csv and intervals.csv of each policy (of slurm: terms.csv), and manifest.json",
       &s.out,
       {},
       false},
      {"output.trace_events",
       "--trace-events",
       "also write trace_events.json for each policy, to open in Perfetto: which job held which GPU when; needs --out",
       &s.trace_events,
       {},
       false},
      {"output.timeline",
       "--timeline",
       "also write timeline.csv for each policy: how many jobs wait and run, and how many GPUs are in use and in "
       "service, at each "
       "instant at which one changes; needs --out",
       &s.timeline,
       {},
       false},
      {"output.waits",
       "--waits",
       "also tell how much GPU time was free while jobs waited and why, and by virtual cluster the share of jobs that "
       "waited less than an hour",
       &s.waits,
       {},
       false},
      {"output.decision_times",
       "--decision-times",
       "also tell how long the decisions of each policy took, by this machine's clock",
       &s.decision_times,
       {},
       false},
      {"output.json", "--json", "print one JSON object instead of tables", &s.json, {}, false},
      {.path = "threads",
       .flag = "--threads",
       .meaning = "policies that run at the same time; 0: one for each processor",
       .target = &s.threads,
       .changes_results = false,
       .range = Field::Range{0, most_threads}},
  };
  append_fields(fields, std::move(rest));
  return fields;
}

Result<std::set<std::string>> read_scenario_json(Scenario& scenario, std::string_view text, const std::string& file) {
  const auto json = read_fields(scenario_fields(scenario), text, file);
  if (!json) return Unexpected{json.error()};
  const Json::json_pointer hash("/trace/sha256");
  if (json->contains("config") && json->contains(hash) && (*json)[hash].is_string()) {
    scenario.manifest_sha256 = (*json)[hash].get<std::string>();
  }
  return given_paths(scenario_fields(scenario), config_of(*json));
}

Result<std::set<std::string>> read_scenario_file(Scenario& scenario, const std::string& path) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  return read_scenario_json(scenario, *text, path);
}

Result<void> apply_setting(Scenario& scenario, std::string_view setting) {
  return apply_setting(scenario_fields(scenario), setting);
}

Result<void> check_scenario(const Scenario& scenario) {
  if (scenario.trace.empty() && scenario.conditions.services.empty() && scenario.conditions.trials.empty())
    return unexpected("no trace; give a file, - for standard input, or synthetic:philly");
  if (scenario.policies.empty()) {
    return unexpected("no policy; give --policy fifo,srtf for example (`gpusched policies` lists all)");
  }
  if (scenario.trace_events && scenario.out.empty()) {
    return Unexpected{Error{.message = "expected --out FOLDER with --trace-events", .field = "output.trace_events"}};
  }
  if (scenario.timeline && scenario.out.empty()) {
    return Unexpected{Error{.message = "expected --out FOLDER with --timeline", .field = "output.timeline"}};
  }
  if (auto once = check_qos_and_limits(scenario); !once) return once;
  const bool by_jobs = scenario.warmup_jobs != 0 || scenario.measure_jobs != 0;
  const bool by_time = scenario.warmup.us != 0 || scenario.measure.us != 0;
  if (by_jobs && by_time) {
    return Unexpected{Error{.message = "expected a window by jobs or by time, not both",
                            .field = scenario.warmup.us != 0 ? "measure.warmup_s" : "measure.measure_s"}};
  }
  return {};
}

std::string scenario_json(const Scenario& scenario, bool all) {
  Scenario copy = scenario;
  return fields_json(scenario_fields(copy), all);
}

std::string scenario_schema() {
  Scenario defaults;
  return fields_schema(scenario_fields(defaults), "gpusched scenario",
                       "What `gpusched replay --config FILE` takes. Every key is optional.");
}

}  // namespace gpusched
