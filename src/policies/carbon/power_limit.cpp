// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/power_limit.hpp"

#include "gpusched/core/config.hpp"

namespace gpusched {

double zeus_cost(const LimitedRun& run, double eta, double most_w) {
  return eta * run.energy_j() + (1 - eta) * most_w * run.time_s;
}

std::size_t zeus_choice(std::span<const LimitedRun> runs, double eta, double most_w) {
  GPUSCHED_ASSERT(!runs.empty(), "a choice needs a run");
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const double cost = zeus_cost(runs[i], eta, most_w), least = zeus_cost(runs[best], eta, most_w);
    if (cost < least || (cost == least && runs[i].limit_w < runs[best].limit_w)) best = i;
  }
  return best;
}

}  // namespace gpusched
