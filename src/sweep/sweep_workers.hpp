// SPDX-License-Identifier: Apache-2.0
/// Runs the points of a sweep on worker processes. A process, not a thread: one that crashes, hangs or takes all memory
/// ends alone and its run is told, and the memory of traces read before the fork is shared without a copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_store.hpp"

namespace gpusched {

/// How far a sweep has come, and a wish to stop.
struct SweepProgress {
  std::atomic<std::uint64_t> ended = 0;     ///< runs, readable from another thread
  const std::atomic<bool>* stop = nullptr;  ///< once true, runs that have not ended are given up
};

/// What the workers are told.
struct WorkerOptions {
  std::uint64_t workers = 1;     ///< at the same time, at least 1
  double time_limit_s = 0;       ///< of a run; 0: none
  std::string run_folders;       ///< each run's files go into a folder of its key's beginning below it; empty: no files
  std::string begun_marks = {};  ///< folder in which each run that begins leaves a file begun_mark_name(); empty: none
};

/// Runs the points `todo` of the plan; `ended` takes each result as soon as it is there. Errors: what `ended` returns,
/// and that no process can be started; runs that have not ended are given up then.
Result<void> run_points(const SweepPlan& plan, const PolicyRegistry& registry, std::vector<std::uint64_t> todo,
                        const WorkerOptions& options, SweepProgress& progress,
                        const std::function<Result<void>(std::uint64_t point, const SweepResult&)>& ended);

/// The folder of a run below WorkerOptions::run_folders.
inline std::string run_folder_name(const PlannedRun& run) { return run.key.substr(0, 16); }
inline std::string begun_mark_name(const PlannedRun& run) { return run.key + ".begun"; }

}  // namespace gpusched
