// SPDX-License-Identifier: Apache-2.0
/// The training run: rollouts, updates, validation, and a folder that holds everything about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gpusched/cluster.hpp"
#include "gpusched/job_table.hpp"
#include "gpusched/result.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

/// What one iteration tells whoever watches.
struct TrainProgress {
  std::uint32_t iteration = 0, iterations = 0;
  std::uint64_t steps = 0;
  double steps_per_s = 0;
  double seconds_left = 0;  ///< estimated, until the last iteration or the time limit
  double metric = 0;        ///< mean loss a job of this iteration's sampled episodes (the weighted reward, negated)
  double heuristic = 0;     ///< the heuristic's in the same windows
  double validation = 0;    ///< the best action's over the validation windows, when last run; NaN before
  double validation_heuristic = 0;
};

struct TrainSummary {
  std::uint32_t iterations = 0;
  std::uint64_t steps = 0;
  double seconds = 0;
  std::uint32_t best_iteration = 0;
  double best_validation = 0, validation_heuristic = 0;
  std::string device;
};

/// Trains and writes into `folder`: model.json and weights.bin (the best by validation; `--policy rl:FOLDER`),
/// checkpoint.bin, config.json, metrics.csv and TensorBoard events. With `resume`, goes on from the checkpoint there.
/// Errors: no window fits a part of the trace, a checkpoint of another configuration, a loss that is not a number (the
/// last good checkpoint and model stay), a file that cannot be written.
Result<TrainSummary> train(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch);

}  // namespace gpusched
