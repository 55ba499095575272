// SPDX-License-Identifier: Apache-2.0
/// Sweep: the file of `gpusched sweep`, and the runs that it stands for. Every field of a Scenario that changes results
/// can be varied, by the path that it has there; `load`, `window`, `sites`, `router` and
/// `parameters` are a sweep's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/base/strict_json.hpp"
#include "src/sim/scenario.hpp"

namespace gpusched {

/// One run of a sweep.
struct SweepPoint {
  Scenario run;                           ///< of `policy` with `parameters`
  std::string policy;                     ///< as parse_policies() takes it
  std::uint64_t first_job = 0, jobs = 0;  ///< the part of the trace's jobs that is run; 0 jobs: all from the first on
  double load = 1;                        ///< factor on the arrival rate: times between submissions are divided by it
  std::string sites;                      ///< as read_sites() takes it, in place of a cluster; empty: one cluster
  std::string router = "local";           ///< between them, as parse_routers() takes it
  std::vector<std::pair<std::string, std::string>> parameters = {};  ///< of the policy, by name, beside those it names
};

/// A policy's parameter as it stands within braces; nothing where the value is of no type of parameters.
std::optional<std::string> parameter_text(const Json& value);

/// "las{quantum_gpu_s=10}" of "las", and "las{quantum_gpu_s=10}+easy" of "las+easy".
std::string policy_with_parameters(std::string policy,
                                   const std::vector<std::pair<std::string, std::string>>& parameters);

/// Every field of `point` but its parameters. The pointers live as long as `point`.
FieldTable sweep_fields(SweepPoint& point);

/// Values by the path of their field: "cluster", "measure.warmup_jobs", "parameters.quantum_gpu_s".
using SweepValues = std::vector<std::pair<std::string, Json>>;

/// A key of "grid".
struct SweepAxis {
  std::string key;                   ///< as written
  std::vector<SweepValues> choices;  ///< each for one field, or for the fields of an object
};

/// A sweep as the user wrote it.
struct Sweep {
  std::string file;               ///< for messages
  Json document;                  ///< as it was read
  SweepPoint base;                ///< what every run has
  std::vector<SweepValues> list;  ///< given sets of values; one empty set where the file has no list
  std::vector<SweepAxis> axes;    ///< each entry of the list is run with every combination of these, the first slowest
  std::vector<std::string> columns;  ///< the paths that vary, in order of appearance
  std::string out;
  std::uint64_t threads = 1;        ///< runs at the same time; 0: one for each processor
  Time time_limit{};                ///< of a run, on the wall clock; 0: none
  bool files = false;               ///< a folder with a replay's files for each run
  std::string launcher = "local";   ///< "local": processes of this machine; "slurm": array tasks of a Slurm job
  std::string slurm_options = {};   ///< of sbatch, as in a shell
  std::uint64_t runs_per_task = 0;  ///< of the array; 0: so many that there are at most most_default_tasks

  /// How many runs it stands for.
  [[nodiscard]] std::uint64_t size() const;
  /// Run number i < size(). Errors: its values exclude each other. The error's field is the place in the file.
  [[nodiscard]] Result<SweepPoint> point(std::uint64_t i) const;
};

/// Every field that says how a sweep goes, not what it runs. The pointers live as long as `sweep`.
FieldTable sweep_own_fields(Sweep& sweep);

/// Array tasks of a sweep that does not say how many runs each has.
inline constexpr std::uint64_t most_default_tasks = 100;

/// The most runs of a sweep.
inline constexpr std::uint64_t most_sweep_points = 1'000'000;

/// Reads a sweep from JSON, or from the "config" of a sweep's manifest. `file` is for messages only. Errors: not JSON,
/// a key that does not exist (with its path and the nearest name), a value of another type, a field given twice for a
/// run, more than most_sweep_points.
Result<Sweep> read_sweep_json(const std::string& text, const std::string& file);
/// read_sweep_json() of a file.
Result<Sweep> read_sweep_file(const std::string& path);

/// What a run is, as JSON: every field, and the parameters.
Json sweep_point_json(const SweepPoint& point);

/// What stands under `path` in sweep_point_json(), as text; empty for a parameter that the run does not give.
std::string sweep_cell(const Json& point, const std::string& path);

/// The regular expression of a schema's patternProperties that this key alone satisfies.
std::string key_pattern(const std::string& key);

/// The additionalProperties of an object with patternProperties: what nothing satisfies. Beside `false` RapidJSON 1.1
/// checks the value of a key that a pattern knows by the schema of the key before.
Json no_other_keys();

/// The JSON Schema (draft 2020-12) of such files; docs/sweep.schema.json is this text.
std::string sweep_schema();

}  // namespace gpusched
