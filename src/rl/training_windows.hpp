// SPDX-License-Identifier: Apache-2.0
/// The windows that a run learns from and is judged by, the same for every method of learning.
#pragma once

#include <span>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/learn/env.hpp"
#include "src/rl/rollout.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

struct TrainingWindows {
  std::vector<Window> train, validation;
};

/// The configuration's windows; of the validation windows at most TrainConfig::ppo.validation_windows, evenly spaced.
/// With TrainConfig::shuffle, windows are the arrivals of random stretches of their part, each with all else of a job
/// drawn, with replacement, from the same part: a part of a short log holds few windows that share no jobs. Drawn by
/// the seed; predictors then know nothing of before the window. Error: not one window fits a part.
Result<TrainingWindows> training_windows(const TrainConfig& config, const JobTable& jobs);

/// Error: that of training_windows().
Result<void> check_windows(const TrainConfig& config, const JobTable& jobs);

/// The cluster times each of TrainConfig::cluster_scales: whole nodes, evenly spaced, or GPUs of a single one.
/// Error: it has virtual clusters, nothing would be left of it, or a job would not fit.
Result<std::vector<Cluster>> training_clusters(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster);

/// PpoOptions' horizon: where an episode of this window ends in iteration `iteration`, counted from 0.
Time horizon_end(const PpoOptions& options, std::uint32_t iteration, const Window& window);

/// The weighted reward of an episode turned into a loss a scored job: what is reported and compared.
double loss_of(const RewardVector& totals, const EnvOptions& options, const Window& window);

/// That of a whole episode in each window. `seed`: of evaluate_windows().
std::vector<double> window_losses(std::span<const Window* const> windows, const Cluster& cluster,
                                  const EnvOptions& options, const Actor& actor, Acting acting, std::uint64_t seed = 0);

std::vector<const Window*> pointers_to(std::span<const Window> windows);

}  // namespace gpusched
