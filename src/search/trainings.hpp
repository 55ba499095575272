// SPDX-License-Identifier: Apache-2.0
/// Trainings: candidates that are trained before they are run, each into a folder below the search's.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/strict_json.hpp"
#include "src/rl/trainer.hpp"
#include "src/search/search_file.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {

/// A training that is asked for.
struct TrainingRequest {
  std::size_t space = 0;                             ///< number of the SearchedPolicy
  std::vector<std::pair<std::string, Json>> values;  ///< of its configuration, by path
  std::uint64_t budget = 1;  ///< factor on the generations (direct search) or iterations (PPO) of the configuration
};

/// What became of it.
struct TrainedCandidate {
  std::string policy;   ///< rl:FOLDER; empty where it failed
  std::string failure;  ///< why
};

class Trainings {
 public:
  /// Borrows all. The jobs of `input` from the first on, `train_jobs` of them, are all that a training sees, under the
  /// conditions of the search's base.
  Trainings(const Search& search, const RunInput& input, const ConditionOptions& conditions, std::uint32_t train_jobs,
            TrainingMethod* ppo);

  /// Whether the configuration can be read. Errors name the path in the search's file.
  [[nodiscard]] Result<void> check(const TrainingRequest& request) const;

  /// Trains what is not there yet, several at a time; one that was stopped goes on where it was. Errors: `stop` became
  /// true.
  Result<std::vector<TrainedCandidate>> train(const std::vector<TrainingRequest>& requests,
                                              const std::atomic<bool>* stop);

 private:
  [[nodiscard]] Result<TrainConfig> config_of(const TrainingRequest& request) const;
  [[nodiscard]] TrainedCandidate carry_out(const TrainConfig& config) const;

  const Search* search_;
  const RunInput* input_;
  ConditionOptions conditions_;
  JobTable jobs_;
  TrainingMethod* ppo_;
};

}  // namespace gpusched
