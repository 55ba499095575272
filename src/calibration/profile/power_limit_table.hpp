// SPDX-License-Identifier: Apache-2.0
/// Measured time and draw of training by power limit, as Zeus's repository has them (You et al., NSDI 2023;
/// github.com/ml-energy/zeus, trace/summary_power_*.csv).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// What was measured under one limit.
struct PowerLimitRow {
  double limit_w = 0;
  double epoch_s = 0;  ///< time per epoch
  double mean_w = 0;   ///< average power
};

/// A model that is trained in one way, on one GPU.
struct PowerLimitCurve {
  std::string dataset, network, optimizer;
  std::int64_t batch_size = 1;
  std::vector<PowerLimitRow> rows;  ///< ascending by limit, each once
};

/// Columns dataset, network, batch_size, optimizer, power_limit, time_per_epoch, average_power; curves in the order in
/// which they first appear. Errors carry file, line and column; a limit that a curve has twice is one.
Result<std::vector<PowerLimitCurve>> read_power_limits(const std::string& path);

/// The largest limit of all curves: what the GPU can draw. Precondition: there is a curve.
double largest_limit_w(const std::vector<PowerLimitCurve>& curves);

}  // namespace gpusched
