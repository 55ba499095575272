// SPDX-License-Identifier: Apache-2.0
/// Checkpoint: everything that a training run needs to go on bit for bit. Random streams are derived from the seed and
/// the iteration's number, so that they need no state of their own.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/learned/score_network.hpp"
#include "src/rl/ppo/learner.hpp"

namespace gpusched {

struct Checkpoint {
  std::uint32_t iteration = 0;  ///< iterations done
  std::uint64_t steps = 0;      ///< environment steps done
  double trained_s = 0;         ///< wall time spent
  double learning_rate = 0;
  double temperature = 1;                    ///< of the actions that are drawn
  double return_mean = 0, return_scale = 1;  ///< the critic's units
  double reward_per_s = 0;                   ///< running average, for PpoOptions::average_reward
  double best_validation = std::numeric_limits<double>::infinity();  ///< lowest so far
  std::uint32_t best_iteration = 0;                                  ///< 0 = the untrained model
  Normaliser normaliser;
  std::vector<float> parameters;
  AdamState adam;
  std::vector<float> start;  ///< the parameters that training began with, for PpoOptions::start_kl; else empty
  std::string metrics_csv;   ///< so far
  std::string config;        ///< effective configuration; a resumed run must have the same
};

/// Replaces the file at once: a run killed at any moment leaves the old or the new checkpoint.
Result<void> save_checkpoint(const Checkpoint& checkpoint, const std::string& path);

/// Errors: cut off or altered, another version, another network than `spec` (by its number of parameters).
Result<Checkpoint> load_checkpoint(const std::string& path, const NetworkSpec& spec);

}  // namespace gpusched
