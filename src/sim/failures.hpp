// SPDX-License-Identifier: Apache-2.0
/// When nodes fail in a run, how jobs save their state against it, what they go through before they work, and which may
/// run at another size, and what users do to them. Replays and evaluations share these fields.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "src/base/field_table.hpp"

namespace gpusched {

/// The rules by name.
inline constexpr std::array<NamedValue<CheckpointRule>, 3> checkpoint_rule_names{
    {{"fixed", CheckpointRule::fixed}, {"young", CheckpointRule::young}, {"daly", CheckpointRule::daly}}};

/// As the user gave it.
struct FailureOptions {
  std::string file = {};                  ///< as read_failures() takes it; empty: nodes do not fail
  std::string checkpoint_rule = "fixed";  ///< CheckpointRule by name
  std::string stages = {};                ///< as read_stages() takes it; empty: runs work at once
  std::string elastic = {};               ///< as read_elastic() takes it; empty: every job is rigid
  std::string changes = {};               ///< as read_job_changes() takes it; empty: users change nothing
};

/// What these files hold.
struct RunConditions {
  NodeFailures failures;
  PreemptionCost preemption;
  StageModel stages;
  ElasticModel elastic = {};
  JobChanges changes = {};
  std::vector<std::string> notes = {};  ///< what a user should know
};

/// Reads them. `cost`: what preemption costs; `placement`: as the user gave it. Sizes that jobs are to have later are
/// added to the shapes of `jobs`. Errors: those of failures_of(), preemption_of(), read_stages(), read_elastic() and
/// read_job_changes(); a cluster of which only GPUs are counted where nodes keep something; phases of elastic jobs
/// beside checkpoints that take time, which no share of the work tells apart; changes of size beside elastic jobs.
Result<RunConditions> conditions_of(const FailureOptions& options, PreemptionCost cost, JobTable& jobs,
                                    const Cluster& cluster, const std::string& placement, std::uint64_t seed);

/// Its rows in a table of fields. The pointers live as long as `options`.
FieldTable failure_fields(FailureOptions& options);

/// When the nodes of the cluster fail; nothing without a file. Errors: those of read_failures(), and a cluster of which
/// only GPUs are counted (`placement`, as the user gave it).
Result<NodeFailures> failures_of(const FailureOptions& options, const JobTable& jobs, const Cluster& cluster,
                                 const std::string& placement, std::uint64_t seed);

/// `cost` with the rule. Errors: a rule that needs failures or the time of a checkpoint where these are not given, or
/// one beside a fixed interval; that time, or checkpoints that `stages` moves, without checkpoints; both.
Result<PreemptionCost> preemption_of(PreemptionCost cost, const FailureOptions& options, const StageModel& stages = {});

/// What may be files among its words.
std::vector<std::string> files_of(const FailureOptions& options);

}  // namespace gpusched
