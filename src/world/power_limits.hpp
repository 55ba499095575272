// SPDX-License-Identifier: Apache-2.0
/// Power limits of a GPU type from a table of measurements. Compiled part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/power_model.hpp"

namespace gpusched {

/// Rows of a table in the form of Zeus's (power_limit_table.hpp). Empty texts and 0 leave open.
struct LimitTable {
  std::string file = {}, dataset = {}, network = {}, optimizer = {};
  std::int64_t batch_size = 0;
};

/// A curve, and what was left out of it.
struct LimitCurve {
  double full_w = 0;                    ///< mean draw under the largest limit
  std::vector<PowerLimit> limits = {};  ///< as GpuPower::limits
  std::vector<std::string> notes = {};
};

/// The settings of the first rows that match, relative to the largest limit, where an idle GPU draws `idle_w`. A
/// setting is left out, and noted, if one with a lower limit is faster, or draws more. Errors: as read_power_limits();
/// nothing matches.
Result<LimitCurve> read_limit_curve(const LimitTable& table, double idle_w);

}  // namespace gpusched
