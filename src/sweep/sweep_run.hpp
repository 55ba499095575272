// SPDX-License-Identifier: Apache-2.0
/// A sweep on this machine: what is left to run, its results and its files. Behind `gpusched sweep` and the Python
/// package.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/process_info.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/report.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_report.hpp"
#include "src/sweep/sweep_store.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {

/// A file or folder in the sweep's own.
std::string path_in(const Sweep& sweep, const std::string& name);

/// The points that are neither stored nor queued; with `retry`, those that gave no figures too. A point whose run is to
/// have files and has none counts as not stored.
std::vector<std::uint64_t> runs_to_do(const SweepPlan& plan, const std::unordered_map<std::string, RunStatus>& states,
                                      bool retry, const std::unordered_set<std::string>& queued = {});

/// Writes runs.csv, comparison.csv and manifest.json of what is stored. Borrows both.
class SweepFiles {
 public:
  SweepFiles(const SweepPlan& plan, const SweepStore& store) : plan_(plan), store_(store) {}

  /// Errors: the store cannot be read, a file cannot be written.
  Result<SweepOutcome> write();

  /// write() where enough time has passed since the last: so that `report` draws a sweep that runs or was killed.
  Result<void> write_if_due();

 private:
  using Clock = std::chrono::steady_clock;

  const SweepPlan& plan_;
  const SweepStore& store_;
  Execution execution_{.started = utc_now()};
  Clock::time_point begin_ = Clock::now(), next_ = begin_;
};

/// Runs the points `todo` in processes of this machine and stores each result at once. Errors: as run_points(); a full
/// disk.
Result<void> run_here(const SweepPlan& plan, const PolicyRegistry& registry, SweepStore& store,
                      const std::vector<std::uint64_t>& todo, SweepFiles& files, SweepProgress& progress);

}  // namespace gpusched
