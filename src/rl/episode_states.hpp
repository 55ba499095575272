// SPDX-License-Identifier: Apache-2.0
/// The states of an iteration's episodes, for whoever learns from them: those that the rollout kept, or, where it kept
/// the steps alone, the same ones simulated again. A state of a long queue takes thousands of bytes, a step tens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "gpusched/learn/vector_env.hpp"
#include "src/rl/rollout.hpp"

namespace gpusched {

/// A step of one of the episodes.
struct StepPlace {
  std::uint32_t episode, step;
};

class EpisodeStates {
 public:
  /// Borrows all. `env` is where the episodes took place and ended, of choices among `windows` with these `scales`.
  EpisodeStates(std::span<const Episode> episodes, const VectorEnv& env, std::span<const Window> windows,
                std::span<const double> scales, std::uint32_t threads)
      : episodes_(episodes), env_(env), windows_(windows), scales_(scales), threads_(threads) {}

  /// Makes `states` those of `places`, in their order. Simulating costs least where these come in the order of episodes
  /// and steps and a call goes on where the last one ended: then each step is simulated once.
  void at(std::span<const StepPlace> places, Observation& states);

  /// All states of an episode; `room` holds them where they are simulated. May be called by several threads.
  [[nodiscard]] const Observation& of(std::uint32_t episode, Observation& room) const;

  /// Wall time that at() has spent on simulation.
  [[nodiscard]] double simulated_s() const { return simulated_s_; }

 private:
  // An episode on its way: `step` is the open choice.
  struct Walk {
    std::uint32_t episode, step;
    Env env;
  };

  [[nodiscard]] bool kept(std::uint32_t episode) const { return episodes_[episode].observation.count() > 0; }
  [[nodiscard]] Walk begin(std::uint32_t episode) const;
  void go_to(std::uint32_t step, Walk& walk) const;
  void simulate(std::span<const StepPlace> places, Observation& states);

  std::span<const Episode> episodes_;
  const VectorEnv& env_;
  std::span<const Window> windows_;
  std::span<const double> scales_;
  std::uint32_t threads_;
  std::optional<Walk> last_;  // where the last call ended
  double simulated_s_ = 0;
};

}  // namespace gpusched
