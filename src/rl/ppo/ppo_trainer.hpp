// SPDX-License-Identifier: Apache-2.0
/// Proximal policy optimisation (Schulman et al., 2017): rollouts, updates of the learner, validation, checkpoints.
#pragma once

#include <functional>
#include <string>

#include "src/rl/trainer.hpp"

namespace gpusched {

/// The TrainingMethod of `"method": "ppo"`. With `resume`, goes on from checkpoint.bin, bit for bit on the CPU.
Result<TrainSummary> train_by_ppo(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                                  const std::string& folder, bool resume,
                                  const std::function<void(const TrainProgress&)>& watch);

}  // namespace gpusched
