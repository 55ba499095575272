// SPDX-License-Identifier: Apache-2.0
/// When nodes fail in a run, how jobs save their state against it, and what they go through before they work. The same
/// fields of a replay and of an evaluation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
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
};

/// Its rows in a table of fields. The pointers live as long as `options`.
FieldTable failure_fields(FailureOptions& options);

/// When the nodes of the cluster fail; nothing without a file. Errors: those of read_failures(), and a cluster of which
/// only GPUs are counted (`placement`, as the user gave it).
Result<NodeFailures> failures_of(const FailureOptions& options, const JobTable& jobs, const Cluster& cluster,
                                 const std::string& placement, std::uint64_t seed);

/// `cost` with the rule. Errors: a rule that needs failures or the time of a checkpoint where these are not given, or
/// one beside a fixed interval; that time, or checkpoints that `stages` moves, without checkpoints; both.
Result<PreemptionCost> preemption_of(PreemptionCost cost, const FailureOptions& options, const StageModel& stages = {});

/// The row of a table of fields that names a file of stages. The pointer lives as long as `file`.
Field stages_field(std::string& file);

/// What runs of the jobs go through, as the file says; nothing without one. Errors: those of read_stages(), and a
/// cluster of which only GPUs are counted.
Result<StageModel> stages_of(const std::string& file, const JobTable& jobs, const Cluster& cluster,
                             const std::string& placement);

/// What may be files among its words.
std::vector<std::string> files_of(const FailureOptions& options);

}  // namespace gpusched
