// SPDX-License-Identifier: Apache-2.0
/// EvaluateScenario: everything that says what an evaluation is. Like a Scenario, one table of fields serves its file,
/// its flags, the manifest that repeats it and the JSON Schema.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/condition_options.hpp"

namespace gpusched {

/// Measured jobs of a window where nothing is said.
inline constexpr std::uint64_t default_window_jobs = 1024;

/// An evaluation as the user asked for it. Names are resolved when it is loaded (evaluate.hpp).
struct EvaluateScenario {
  std::vector<std::string> traces;  ///< files, or "synthetic:NAME"; several: a matrix
  // Each of these is given once for all traces, or once for each in their order.
  std::vector<std::string> formats;   ///< default "auto"
  std::vector<std::string> columns;   ///< of format csv
  std::vector<std::string> clusters;  ///< default: what the trace states
  std::string where;                  ///< which jobs to read, as JobFilter takes it; empty: all
  bool drop_bad_rows = false;
  bool backlog = false;    ///< keep jobs that had not ended when the log was written
  std::string qos;         ///< priorities by quality of service, as QosWeights takes them
  std::string slurm_conf;  ///< slurm.conf of the cluster, as read_slurm_conf() takes it; empty: none
  std::string slurm_qos;   ///< the table of its QOS, as read_slurm_qos() takes it; empty: none
  std::string limits;      ///< beside those of the clusters, as parse_limits() takes them; empty: none
  std::string oversize = "error";
  std::string sites;                 ///< as read_sites() takes it; empty: one cluster
  std::vector<std::string> routers;  ///< each as parse_routers() takes it; none: local, where there are sites
  std::vector<std::string> policies;
  std::vector<std::string> groups;  ///< "NAME=POLICY,POLICY,..."
  std::string backfill = "none";
  ConditionOptions conditions;
  std::string protocol = "windows";  ///< "windows", or "sc20"
  /// "auto", "log", "windows" or "windows-only"; see evaluate.hpp.
  std::string mode = "auto";
  std::vector<std::string> starts{"0.05", "0.1"};  ///< of the log: where further runs begin, as fractions
  std::uint64_t window_jobs = 0;                   ///< measured jobs of a window; 0: default_window_jobs
  std::uint64_t windows = 0;                       ///< so many, evenly spaced; 0: as the stride says
  std::uint64_t stride = 0;                        ///< jobs between windows; 0: windows side by side
  std::uint64_t warmup_jobs = 0;                   ///< before each window
  bool history = false;                            ///< predictions know what had ended before each window (JobEnds)
  double from = 0, to = 1;                         ///< the part of the trace's jobs that windows lie in
  std::string figure = "avg_jct_s";                ///< what is compared
  std::vector<std::string> beside;                 ///< figures shown beside it, as side_figure() takes them
  std::string mean = "arithmetic";                 ///< how windows are averaged: "arithmetic" or "geometric"
  std::string against;                             ///< policy or group; empty: the first
  std::uint64_t seed = 0;
  std::string out;                           ///< folder for files; empty: none
  bool json = false;                         ///< one JSON object instead of a table
  std::uint64_t threads = 1;                 ///< windows and policies that run at the same time
  std::vector<std::string> manifest_sha256;  ///< of the traces, where the scenario is a manifest's
};

/// Every field of `scenario`, in the order of a file. The pointers live as long as `scenario`.
FieldTable evaluate_fields(EvaluateScenario& scenario);

/// Sets what a JSON text gives, or a manifest's "config", and gives the paths of the fields that it set. `file` is for
/// messages only. Errors as read_fields().
Result<std::set<std::string>> read_evaluate_json(EvaluateScenario& scenario, std::string_view text,
                                                 const std::string& file);
/// The same from a file.
Result<std::set<std::string>> read_evaluate_file(EvaluateScenario& scenario, const std::string& path);

/// What cannot be seen field by field.
Result<void> check_evaluate_scenario(const EvaluateScenario& scenario);

/// The entries of `starts`; none of "none".
std::vector<std::string> further_starts(const EvaluateScenario& scenario);

/// The first option given that only windows have, as the path of its row; empty: none.
std::string window_option(const EvaluateScenario& scenario);

/// As JSON that read_evaluate_json() takes; without fields that change no result unless `all`.
std::string evaluate_scenario_json(const EvaluateScenario& scenario, bool all);

/// The JSON Schema (draft 2020-12) of such files; docs/evaluate.schema.json is this text.
std::string evaluate_schema();

}  // namespace gpusched
