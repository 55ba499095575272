// SPDX-License-Identifier: Apache-2.0
/// RunConditions: what the files and values of ConditionOptions hold, made for one trace on one cluster.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "gpusched/engine/run_inputs.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/trials/study_model.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/conditions/condition_options.hpp"
#include "src/world/power_reader.hpp"

namespace gpusched {

struct RunConditions {
  PreemptionCost preemption = {};
  NodeFailures failures = {};
  StageModel stages = {};
  ElasticModel elastic = {};
  JobChanges changes = {};
  ServiceModel services = {};
  StudyModel studies = {};
  bool kill_at_limit = false;
  CalibratedRuntime runtime = {};       ///< how fast jobs run where, and what GPUs draw; uniform without any
  PowerOfRun power = {};                ///< what nodes draw, or GPUs alone
  std::vector<std::string> notes = {};  ///< what a user should know; all_notes() has those of `runtime` and `power` too

  /// What an engine takes of them, null where a condition is not given; borrows this.
  [[nodiscard]] RunInputs inputs() const {
    const auto given = [](const auto& condition) { return condition.is_empty() ? nullptr : &condition; };
    return {.runtime = runtime.model.is_uniform() ? nullptr : &runtime.model,
            .failures = given(failures),
            .stages = given(stages),
            .elastic = given(elastic),
            .changes = given(changes),
            .power = given(power.model),
            .services = given(services),
            .studies = given(studies),
            .kill_at_limit = kill_at_limit};
  }
  /// One line each.
  [[nodiscard]] std::vector<std::string> all_notes() const;
};

/// What can be seen of values alone, before any file is read: those that need another one, or exclude it.
Result<void> check_condition_options(const ConditionOptions& options);

/// Reads them. Sizes that jobs are to have later are added to the shapes of `jobs`, and the replicas of services and
/// the tasks of studies to its rows, where it has none (JobTable::in_front). The field of an error is a path in
/// the table of conditions. Errors: a file that cannot be read or does not fit jobs and cluster; values that need
/// another one; a pair that does not go together (docs/replay.md lists them).
Result<RunConditions> load_conditions(const ConditionOptions& options, JobTable& jobs, const Cluster& cluster,
                                      std::uint64_t seed);

/// The same but for `runtime` and `power`, which take long to make and depend on neither seed nor costs.
Result<RunConditions> load_conditions_without_speeds(const ConditionOptions& options, JobTable& jobs,
                                                     const Cluster& cluster, std::uint64_t seed);

/// Those two.
Result<void> load_speeds_and_power(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                                   RunConditions& conditions);

/// What windows of a trace cannot have. Windows keep the trace's clock, on which logs of outages and signals are,
/// unless their arrivals are stretched or made of other jobs' (`moves_arrivals`). Errors: then, a log of outages, or a
/// signal that changes.
Result<void> check_for_windows(const RunConditions& conditions, const ConditionOptions& options, bool moves_arrivals);

/// What may be files among the words.
std::vector<std::string> files_of(const ConditionOptions& options);

}  // namespace gpusched
