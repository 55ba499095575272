// SPDX-License-Identifier: Apache-2.0
/// ConditionOptions: under which conditions jobs run, as the user gives them, and the one table that declares each:
/// path in JSON files, flag, meaning, values, and who lacks it and why. Replay, evaluate, sweep, search, train, serve
/// and Python take their options from it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gpusched/core/named_value.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/speed_options.hpp"

namespace gpusched {

/// The rules by name.
inline constexpr std::array<NamedValue<CheckpointRule>, 3> checkpoint_rule_names{
    {{"fixed", CheckpointRule::fixed}, {"young", CheckpointRule::young}, {"daly", CheckpointRule::daly}}};

/// Files are read by load_conditions().
struct ConditionOptions {
  std::string placement = "consolidate";  ///< one of placement_words()
  PreemptionCost preemption = {};         ///< what stopping and starting again costs, and when state is saved
  std::string failures = {};              ///< as read_failures() takes it; empty: nodes do not fail
  std::string stages = {};                ///< as read_stages() takes it; empty: runs work at once
  std::string elastic = {};               ///< as read_elastic() takes it; empty: every job is rigid
  std::string changes = {};               ///< as read_job_changes() takes it; empty: users change nothing
  std::string power = {};                 ///< as read_power() takes it; empty: of GPUs, what device profiles measured
  std::string trials = {};                ///< as read_studies() takes it; empty: no searches
  std::string services = {};              ///< as read_services() takes it; empty: there are only jobs
  bool kill_at_limit = false;             ///< jobs end at the run times that they asked for
  SpeedOptions speeds = {};
};

/// Who takes conditions, by name: commands, and Python's environments.
inline constexpr std::array<std::string_view, 8> condition_takers{
    "replay", "evaluate", "sweep", "search", "train", "serve", "VectorEnv", "ServiceVectorEnv"};

/// Every row, placement first. The pointers live as long as `options`.
FieldTable condition_table(ConditionOptions& options);

/// The rows that `taker` does not lack (Field::lacks). Precondition: one of condition_takers.
FieldTable condition_fields(ConditionOptions& options, std::string_view taker);

/// Keys of earlier versions of training configurations.
std::vector<MovedKey> moved_training_conditions();

}  // namespace gpusched
