// SPDX-License-Identifier: Apache-2.0
/// simulate(): the whole run, engine + policy + observers, in one call.
#pragma once

#include <concepts>
#include <span>

#include "gpusched/engine.hpp"
#include "gpusched/policy.hpp"

namespace gpusched {

/// Watches a run. observe() is called with the events of each instant after they were applied, and again with the
/// starts and preemptions of the decision, if there were any. An observer changes nothing.
template <class O>
concept Observer = requires(O observer, const OracleView& view, std::span<const Event> events) {
  observer.observe(view, events);
};

/// Runs until nothing is left to happen. Returns true when every job finished; false means that the policy left jobs
/// waiting for ever.
template <Policy P, Observer... Observers>
bool simulate(Engine& engine, P& policy, Observers&... observers) {
  Decision decision = engine.decision();
  while (engine.advance()) {
    const OracleView view = engine.view();
    (observers.observe(view, engine.events()), ...);
    policy.decide(view, decision);
    engine.apply();
    if (!engine.events().empty()) (observers.observe(view, engine.events()), ...);
  }
  return engine.all_finished();
}

}  // namespace gpusched
