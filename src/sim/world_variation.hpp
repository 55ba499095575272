// SPDX-License-Identifier: Apache-2.0
/// Variations of a scenario: worlds that differ from a base in what a text says, "cluster+=8x8;policy=fifo+easy".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/sim/scenario.hpp"

namespace gpusched {

/// A scenario and what it is called.
struct World {
  std::string name;  ///< of the base "base", else the text that made it
  Scenario scenario;
};

/// What the base is called.
inline constexpr const char* base_world_name = "base";

/// The base with the settings of `text`, which semicolons separate. A setting is KEY=VALUE, or KEY+=VALUE, which adds
/// nodes to a cluster and a number to a number. A key is a path of the scenario's fields, or the name of an option:
/// "policies" or "policy", "preemption.restart_s" or "restart-cost". Errors: a setting without "=", an unknown key
/// (with the nearest), a key that changes no result or that worlds cannot differ in, a bad value.
Result<World> vary(const Scenario& base, std::string_view text);

/// What a scenario must be to be compared: one policy, all jobs measured. The field of an error is a path.
Result<void> check_world(const Scenario& scenario);

/// The base, then one world for each text. Errors: those of vary() and check_world(), of a variation with the option
/// --vary and its text; a variation given twice.
Result<std::vector<World>> worlds_of(const Scenario& base, const std::vector<std::string>& variations);

}  // namespace gpusched
