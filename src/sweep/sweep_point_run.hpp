// SPDX-License-Identifier: Apache-2.0
/// PointRunner: carries out runs of a sweep one after the other. What a run shares with the one before, its jobs and
/// its cluster, is not prepared again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/replay.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_store.hpp"

namespace gpusched {

class PointRunner {
 public:
  /// Borrows everything. `traces` holds those of the runs that will come, by their number; `folders` and
  /// `marks` as WorkerOptions::run_folders and begun_marks.
  PointRunner(const SweepPlan& plan, const PolicyRegistry& registry, const std::map<std::uint32_t, Trace>& traces,
              std::string folders, std::string marks)
      : plan_(&plan), registry_(&registry), traces_(&traces), folders_(std::move(folders)), marks_(std::move(marks)) {}

  /// Whatever goes wrong is told in the result.
  SweepResult run(std::uint64_t number);

 private:
  Result<SweepResult> carry_out(std::uint64_t number);
  Result<SweepResult> carry_out_at_sites(const SweepPoint& point, const PlannedRun& planned);
  Result<void> prepare(const SweepPoint& point, const PlannedRun& planned);
  Result<void> write_files(const SweepPoint& point, const PlannedRun& planned, std::vector<PolicyRun>& runs,
                           double wall_s);

  const SweepPlan* plan_;
  const PolicyRegistry* registry_;
  const std::map<std::uint32_t, Trace>* traces_;
  std::string folders_, marks_;
  std::optional<ReplayInput> input_;
  std::uint32_t input_number_ = 0;  // of input_
};

/// The jobs that `point` runs of those that were read: its window of them, at its load. Errors: the window reaches
/// beyond the last job; a load beside changes of jobs, whose times it would not move.
Result<Trace> point_jobs(Trace trace, const SweepPoint& point);
/// The same of a table of jobs.
Result<JobTable> part_of_jobs(const JobTable& jobs, const SweepPoint& point);

}  // namespace gpusched
