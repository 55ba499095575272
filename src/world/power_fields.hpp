// SPDX-License-Identifier: Apache-2.0
/// Parts of a power model's file that stand in several places: draws by load, and settings of power limits. Compiled
/// part.
#pragma once

#include <string>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

inline constexpr double most_watts = 1e9;       ///< of a device or a node
inline constexpr double most_power_s = 1e9;     ///< seconds of a delay
inline constexpr double most_cap_watts = 1e12;  ///< of a cap

/// Keys idle_w, full_w, load (constant, linear, sqrt, square, cubic) or exponent, touched_w; or points, pairs of load
/// and watts. What is not said stays.
void read_load_power(JsonFields& fields, LoadPower& load);

/// The list under `limits`: {limit_w, draw, speed}, draw and speed as parts of those without a limit.
void read_limit_list(JsonFields& fields, std::vector<PowerLimit>& limits);

/// Keys after_s, asleep_w, wake_s, wake_j of an object under `sleep`.
void read_node_sleep(JsonFields& fields, NodeSleep& sleep);

/// A file named in `file`: relative to its folder.
std::string path_beside(const std::string& file, const std::string& name);

}  // namespace gpusched
