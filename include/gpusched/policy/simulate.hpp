// SPDX-License-Identifier: Apache-2.0
/// simulate(): the whole run, engine + policy + observers, in one call.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/progress_watch.hpp"

namespace gpusched {

/// Watches a run. observe() is called with the events of each instant after they were applied, and again with
/// what the decision did to jobs, if it did anything. It is also called, without events, where limits came to
/// hold back other jobs than before (View::held_back()). An observer changes nothing.
template <class O>
concept Observer = requires(O observer, const OracleView& view, std::span<const Event> events) {
  observer.observe(view, events);
};

namespace detail {

/// How often a policy may ask to be woken after the last job ended: the run is over then, and only those who would ask
/// for ever ask so often.
inline constexpr std::uint32_t most_wakes_for_nothing = 64;

/// The open decision asks for another one at some instant.
[[nodiscard]] inline bool asks_to_wake(const View& view) {
  const std::vector<Command>& commands = StateOf::get(view).commands;
  return std::any_of(commands.begin(), commands.end(), [](const Command& command) {
    return command.kind == CommandKind::wake && command.time <= end_of_time;
  });
}

}  // namespace detail

/// Runs until nothing is left to happen, or every job is over and the policy only asks to be woken. Returns true when
/// every job finished; false means that the policy left jobs
/// waiting for ever, that the run would go on for ever (goes_on_for_ever), or that the policy has a member
/// `bool stopped() const` which is true: somebody wants the run to end.
template <Policy P, Observer... Observers>
bool simulate(Engine& engine, P& policy, Observers&... observers) {
  Decision decision = engine.decision();
  detail::ProgressWatch progress(engine.view());
  std::uint32_t wakes_for_nothing = 0;
  while (engine.advance_to(Time::max(), true)) {
    const OracleView view = engine.view();
    progress.observe(view, engine.events());
    if constexpr (requires { policy.stopped(); }) {
      if (policy.stopped()) return false;
    }
    (observers.observe(view, engine.events()), ...);
    if (!engine.events().empty()) {
      policy.decide(view, decision);
      if (engine.all_finished() && detail::asks_to_wake(view)) ++wakes_for_nothing;
      engine.apply();
    }
    if (!engine.events().empty()) {
      (observers.observe(view, engine.events()), ...);
      progress.observe(view, engine.events());
    }
    if (wakes_for_nothing == detail::most_wakes_for_nothing) return true;
    if (progress.endless()) return false;
  }
  return engine.all_finished();
}

/// After simulate() returned false: true when the run would go on for ever, false when the policy left jobs waiting for
/// ever.
[[nodiscard]] inline bool goes_on_for_ever(const Engine& engine) { return engine.next_event_time() != Time::max(); }

}  // namespace gpusched
