// SPDX-License-Identifier: Apache-2.0
/// What to tell the user of a run that did not finish.
#pragma once

#include <string>

#include "gpusched/policy/simulate.hpp"

namespace gpusched {

/// Why simulate() returned false, to follow a policy's name: "left 2 jobs waiting for ever".
inline std::string why_unfinished(const Engine& engine) {
  const std::string jobs = std::to_string(engine.view().job_count() - engine.view().finished()) + " jobs";
  const bool has_no_power = engine.knows_power() && engine.power().caps().is_awaited();
  const std::string for_power = has_no_power ? ": a power cap lets none of them start" : "";
  if (!goes_on_for_ever(engine)) return "left " + jobs + " waiting for ever" + for_power;
  if (engine.view().running().empty() && !engine.view().nodes_will_change()) {
    return "leaves " + jobs + " waiting and only asks to be woken, again and again" + for_power;
  }
  if (engine.view().nodes_will_change()) {
    return "leaves " + jobs +
           " unfinished for ever: failures of nodes and preemptions undo as much as they do, or too few nodes are up "
           "at "
           "once; give shorter intervals between checkpoints, or shorter repairs";
  }
  return "makes " + jobs +
         " take turns for ever: preemption costs them as much as they do in a turn; give longer turns "
         "or cheaper restarts";
}

}  // namespace gpusched
