// SPDX-License-Identifier: Apache-2.0
/// The conditions of a training run, made for its trace and cluster: the same for the windows that an agent learns
/// from, those that it is judged by, and the policies that it is compared with.
#pragma once

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

struct TrainingConditions {
  JobTable jobs;  ///< of the trace, with the sizes that changes will give them
  RunConditions conditions = {};
  EngineOptions engine = {};

  /// `config` with what its environments need of them; borrows this.
  [[nodiscard]] TrainConfig apply_to(const TrainConfig& config) const {
    TrainConfig under = config;
    under.env.engine = engine;
    under.env.inputs = conditions.inputs();
    return under;
  }
};

/// Errors: those of load_conditions(), and what windows cannot have (check_for_windows()).
Result<TrainingConditions> load_training_conditions(const TrainConfig& config, const JobTable& jobs,
                                                    const Cluster& cluster);

}  // namespace gpusched
