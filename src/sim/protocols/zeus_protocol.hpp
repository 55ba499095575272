// SPDX-License-Identifier: Apache-2.0
/// The power limits that Zeus chooses on its measured tables (You et al., NSDI 2023), batch sizes given.
#pragma once

#include <vector>

#include "src/calibration/profile/power_limit_table.hpp"

namespace gpusched {

/// What was chosen for a curve, beside its largest limit.
struct ZeusChoice {
  double limit_w = 0;
  double energy_ratio = 1;
  double time_ratio = 1;
};

/// By curve. The worth of time is that of drawing the largest limit of the whole table.
std::vector<ZeusChoice> zeus_choices(const std::vector<PowerLimitCurve>& curves, double eta);

}  // namespace gpusched
