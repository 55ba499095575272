// SPDX-License-Identifier: Apache-2.0
/// Scenario: everything that says what a replay is, however it was given: a strict JSON file, command-line flags, or
/// "path.to.key=value". One table of fields serves them all, the effective configuration in the manifest, and the JSON
/// Schema.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/condition_options.hpp"

namespace gpusched {

/// A replay as the user asked for it. Names are resolved when it runs (replay.hpp).
struct Scenario {
  std::string trace;            ///< a file, "-" (standard input), or "synthetic:NAME"
  std::string format = "auto";  ///< a trace format, or "auto"
  std::string columns;          ///< of format csv: "submit=COLUMN,gpus=COLUMN,duration=COLUMN"
  std::string where;            ///< which jobs to read, as JobFilter takes it; empty: all
  bool drop_bad_rows = false;
  bool backlog = false;               ///< keep jobs that had not ended when the log was written
  std::string qos;                    ///< priorities by quality of service, as QosWeights takes them
  std::string slurm_conf;             ///< slurm.conf of the cluster, as read_slurm_conf() takes it; empty: none
  std::string slurm_qos;              ///< the table of its QOS, as read_slurm_qos() takes it; empty: none
  std::string cluster;                ///< NAME, FILE, NODESxGPUS or GPUS; empty: what the trace states
  std::string limits;                 ///< beside those of the cluster, as parse_limits() takes them; empty: none
  std::vector<std::string> policies;  ///< each as parse_policies() takes it
  std::string backfill = "none";      ///< for policies that name none: as parse_backfill() takes it, or "none"
  std::uint64_t seed = 0;
  ConditionOptions conditions;
  std::string oversize = "error";
  std::uint64_t history_jobs = 0;  ///< first jobs that are not run: predictions know those that had ended (PastJobs)
  std::uint64_t warmup_jobs = 0;
  std::uint64_t measure_jobs = 0;  ///< 0: all that follow the warm-up
  Time warmup{};                   ///< the same by time of submission; by jobs or by time, not both
  Time measure{};
  std::string split = "none";     ///< split_names, or "none"
  std::string recorded = "show";  ///< the waits of the trace's own log (recorded.hpp) beside the policies, or "none"
  std::string out;                ///< folder for files; empty: none
  bool trace_events = false;      ///< trace_events.json among the files
  bool timeline = false;          ///< timeline.csv among the files
  bool waits = false;             ///< also tell why GPUs were free while jobs waited, and how long queues wait
  bool decision_times = false;    ///< also tell how long the policies took to decide
  bool json = false;              ///< one JSON object instead of tables
  std::uint64_t threads = 1;      ///< policies that run at the same time; 0: one for each processor
  std::string manifest_sha256;    ///< of the trace, where the scenario is a manifest's; a run tells when it differs
};

/// The policies of a list, each as written: it is split where policies end, not at every comma. Errors name the place.
Result<std::vector<std::string>> split_policies(std::string_view text);

/// Every field of `scenario`, in the order of a file. The pointers live as long as `scenario`.
FieldTable scenario_fields(Scenario& scenario);

/// Sets what a JSON text gives, or a manifest's "config", and leaves the rest; gives the paths of the fields that it
/// set. `file` is for messages only. Errors: not JSON, a key that does not exist (with its path and the nearest name)
/// or appears twice, a value of another type.
Result<std::set<std::string>> read_scenario_json(Scenario& scenario, std::string_view text, const std::string& file);
/// The same from a file.
Result<std::set<std::string>> read_scenario_file(Scenario& scenario, const std::string& path);

/// Carries out "path.to.key=value".
Result<void> apply_setting(Scenario& scenario, std::string_view setting);

/// What cannot be seen field by field: a trace and a policy must be given, a window by jobs or by time.
Result<void> check_scenario(const Scenario& scenario);

/// The scenario as a JSON file that read_scenario_json() takes; without fields that change no result unless `all`.
std::string scenario_json(const Scenario& scenario, bool all);

/// The JSON Schema (draft 2020-12) of such files; docs/scenario.schema.json is this text.
std::string scenario_schema();

}  // namespace gpusched
