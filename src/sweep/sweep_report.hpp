// SPDX-License-Identifier: Apache-2.0
/// What a sweep shows and writes: one tidy csv, a manifest, the list of its runs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/sim/report.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_store.hpp"

namespace gpusched {

/// The names of a sweep's files in its folder.
inline constexpr const char* sweep_database_name = "sweep.sqlite";
inline constexpr const char* sweep_csv_name = "runs.csv";
inline constexpr const char* sweep_tasks_name = "tasks";  ///< folder of job arrays
inline constexpr const char* sweep_comparison_name = "comparison.csv";

/// A run without figures.
struct RunFailure {
  std::uint64_t number = 0;  ///< of the point, from 0
  RunStatus status = RunStatus::failed;
  std::string message;
};

/// How a sweep stands.
struct SweepOutcome {
  std::uint64_t done = 0, failed = 0, timeouts = 0, missing = 0;  ///< runs; missing: not run yet
  std::vector<RunFailure> failures;                               ///< the first few, in order
};

/// What a sweep has given.
struct SweepTables {
  std::string runs;         ///< csv, a line a run that is stored, in the order of the sweep: its number and id, what
                            ///< varies, how it ended, and its figures
  std::string comparisons;  ///< csv of compare_grid()
};

/// `outcome` counts what is found. Errors: the store cannot be read.
Result<SweepTables> sweep_tables(const SweepPlan& plan, const SweepStore& store, SweepOutcome& outcome);

/// manifest.json, whose "config" is the sweep's file.
std::string sweep_manifest(const SweepPlan& plan, const SweepOutcome& outcome, const Execution& execution);

/// Every run with what varies and whether it is stored, or waits in a queue (its key).
std::string sweep_list(const SweepPlan& plan, const std::unordered_map<std::string, RunStatus>& states,
                       const std::unordered_set<std::string>& queued = {}, const TextStyle& style = {});

/// "1,000 runs: 998 done, 1 failed, 1 over its time".
std::string outcome_line(const SweepOutcome& outcome);

}  // namespace gpusched
