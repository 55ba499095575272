// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/zeus_protocol.hpp"

#include "src/policies/carbon/power_limit.hpp"

namespace gpusched {

std::vector<ZeusChoice> zeus_choices(const std::vector<PowerLimitCurve>& curves, double eta) {
  const double most_w = largest_limit_w(curves);
  std::vector<ZeusChoice> choices;
  for (const PowerLimitCurve& curve : curves) {
    std::vector<LimitedRun> runs;
    for (const PowerLimitRow& row : curve.rows) runs.push_back({row.limit_w, row.epoch_s, row.mean_w});
    const LimitedRun &chosen = runs[zeus_choice(runs, eta, most_w)], &largest = runs.back();
    choices.push_back({.limit_w = chosen.limit_w,
                       .energy_ratio = chosen.energy_j() / largest.energy_j(),
                       .time_ratio = chosen.time_s / largest.time_s});
  }
  return choices;
}

}  // namespace gpusched
