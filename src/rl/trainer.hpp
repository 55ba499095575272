// SPDX-License-Identifier: Apache-2.0
/// The training run: rollouts, updates, validation, and a folder that holds everything about it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/rl/held_out.hpp"
#include "src/rl/train_config.hpp"
#include "src/world/run_input.hpp"

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
  bool validated = false;  ///< in this iteration
};

/// A constraint and the best model: its figure in the validation windows as a multiple of the reference's.
struct BoundReport {
  std::string figure;  ///< name_of(FigureBound)
  double ratio = 0, most = 0;
};

/// One of several clusters (TrainConfig::cluster_scales) and the best model: its loss in the validation windows as a
/// multiple of the heuristic's.
struct ScaleReport {
  double scale = 0, ratio = 0;
};

struct TrainSummary {
  std::uint32_t iterations = 0;
  std::uint64_t steps = 0;
  double seconds = 0;
  std::uint32_t best_iteration = 0;
  double best_validation = 0, validation_heuristic = 0;  ///< with `scales` the ratios' geometric mean, and 1
  std::string device;
  std::vector<BoundReport> bounds = {};  ///< of the configuration's constraints
  std::vector<ScaleReport> scales = {};  ///< of a direct search on several clusters
  std::optional<HeldOut> held_out;       ///< with TrainConfig::test_at_end
};

/// What to train on: trace, cluster and placement that a configuration names, jobs larger than the cluster left out. A
/// synthetic trace is that of seed 0 whatever the configuration's: training seeds of one configuration see the same
/// jobs.
Result<RunInput> load_train_input(const TrainConfig& config);

/// What train() would refuse before it begins: a method that this build lacks, conditions that cannot be had, a reward
/// that is 0 everywhere, no window in a part, a cluster too small at one of its scales.
Result<void> check_training(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster);

/// A way to learn: search() (direct_search.hpp) or train_by_ppo() (ppo/ppo_trainer.hpp). Arguments and errors: as
/// train().
using TrainingMethod = Result<TrainSummary>(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                                            const std::string& folder, bool resume,
                                            const std::function<void(const TrainProgress&)>& watch);

/// Whether a build with or without LibTorch can train what the configuration asks for; the error says what is missing.
Result<void> check_method(const TrainConfig& config, bool with_torch);

/// Whether `folder` holds a run that can go on where it stopped.
bool has_checkpoint(const std::string& folder);

/// As train(), without the verdict.
Result<TrainSummary> learn(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo);

/// Trains and writes into `folder`: model.json and weights.bin (the best by validation; `--policy rl:FOLDER`),
/// checkpoint.bin (a direct search: search.json), config.json, metrics.csv and TensorBoard events. With `resume`, goes
/// on from the checkpoint there. `ppo` is train_by_ppo(), and may be null where the method is another.
/// Errors: those of check_method(), no window fits a part of the trace, a checkpoint of another configuration, a
/// loss that is not a number (the last good checkpoint and model stay), a file that cannot be written; with
/// TrainConfig::test_at_end those of test_models().
Result<TrainSummary> train(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                           const std::string& folder, bool resume,
                           const std::function<void(const TrainProgress&)>& watch, TrainingMethod* ppo);

}  // namespace gpusched
