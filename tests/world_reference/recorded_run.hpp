// SPDX-License-Identifier: Apache-2.0
/// A run of the engine, instant by instant, as the reference is told it.
#pragma once

#include <algorithm>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "tests/world_reference/slow_world.hpp"

namespace gpusched::test {

/// An engine whose open decision can be read.
class WatchedEngine : public Engine {
 public:
  using Engine::Engine;

  /// What the open decision will do, without what it took back.
  [[nodiscard]] std::vector<ToldCommand> told() const {
    using gpusched::detail::CommandKind;
    std::vector<ToldCommand> told;
    const auto& commands = state().commands;
    for (std::size_t at = 0; at < commands.size(); ++at) {
      const auto& command = commands[at];
      const bool starts = command.kind == CommandKind::start, moves = command.kind == CommandKind::move;
      // A command for a running job comes to nothing where it was stopped afterwards.
      const bool is_for_run = moves || command.kind == CommandKind::adjust || command.kind == CommandKind::hold ||
                              command.kind == CommandKind::resume;
      const bool is_over =
          std::any_of(commands.begin() + static_cast<std::ptrdiff_t>(at), commands.end(), [&](const auto& later) {
            return later.job == command.job && !later.withdrawn &&
                   (later.kind == CommandKind::preempt || later.kind == CommandKind::start);
          });
      const bool is_taken_back = command.withdrawn && command.kind == CommandKind::preempt;
      if ((command.withdrawn && !is_taken_back) ||
          (is_for_run && (is_over || view().phase(command.job) != JobPhase::running)))
        continue;
      ToldCommand it{.kind = command.kind, .job = command.job, .time = command.time, .takes_back = is_taken_back};
      if (starts || moves) {
        view().for_each_grant(command.job, [&](const Grant& grant) { it.nodes.push_back(grant); });
        it.shape = state().held_shape(command.job);
      }
      told.push_back(it);
    }
    return told;
  }
};

/// One instant of a run.
struct Instant {
  Time now{};
  std::vector<Event> events = {};  ///< in the engine's order
  std::vector<ToldCommand> told = {};
  std::vector<Event> carried_out = {};  ///< of the decision
};

inline bool is_same(const ToldCommand& a, const ToldCommand& b) {
  const auto same = [](const Grant& one, const Grant& other) {
    return one.node == other.node && one.tasks == other.tasks && one.devices == other.devices &&
           one.slice == other.slice;
  };
  return a.kind == b.kind && a.takes_back == b.takes_back && a.job == b.job && a.time == b.time && a.shape == b.shape &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same);
}
inline bool is_same(const Instant& a, const Instant& b) {
  return a.now == b.now && a.events == b.events && a.carried_out == b.carried_out &&
         std::equal(a.told.begin(), a.told.end(), b.told.begin(), b.told.end(),
                    [](const ToldCommand& one, const ToldCommand& other) { return is_same(one, other); });
}

}  // namespace gpusched::test
