// SPDX-License-Identifier: Apache-2.0
#include "src/rl/training_conditions.hpp"

#include <utility>

#include "gpusched/data/placement.hpp"

namespace gpusched {

Result<TrainingConditions> load_training_conditions(const TrainConfig& config, const JobTable& jobs,
                                                    const Cluster& cluster) {
  TrainingConditions made{.jobs = jobs, .engine = config.env.engine};
  auto conditions = load_conditions(config.conditions, made.jobs, cluster, config.seed);
  if (!conditions) return Unexpected{conditions.error()};
  made.conditions = *std::move(conditions);
  const bool moves_arrivals = config.windows.arrival_scale != 1 || config.shuffle.windows > 0;
  if (auto fits = check_for_windows(made.conditions, config.conditions, moves_arrivals); !fits) {
    return Unexpected{fits.error()};
  }
  made.engine.preemption = made.conditions.preemption;
  made.engine.placement = placement_from_name(config.conditions.placement).value_or(Placement::consolidate);
  return made;
}

}  // namespace gpusched
