// SPDX-License-Identifier: Apache-2.0
/// Direct search: the parameters of an index or rank network on whole episodes, by CMA-ES or by a gradient estimated
/// from pairs of episodes, within constraints (constraints.hpp). Scheduling episodes are chaotic (one other choice
/// reshuffles all that follow), so that a step's advantage drowns in noise; a whole episode's loss, averaged over many
/// windows that candidates share, does not.
#pragma once

#include <functional>
#include <string>

#include "src/rl/trainer.hpp"

namespace gpusched {

/// What a search keeps of itself, replaced whole after every generation.
inline constexpr const char* search_state_file = "search.json";

/// Searches and writes into `folder`: model.json and weights.bin (the running average of the distribution's centre that
/// was best on validation), search.json, config.json, metrics.csv and TensorBoard events. With `resume`, goes on from
/// the last whole generation of the search there, bit for bit. TrainProgress counts generations as iterations and
/// episodes as steps; its metric is the generation's best candidate, with method es the mean of all. Errors: as
/// train(), a network of another kind than index or rank, a model to start from of another network or env, and those of
/// Constraints::of().
Result<TrainSummary> search(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& folder, bool resume,
                            const std::function<void(const TrainProgress&)>& watch);

}  // namespace gpusched
