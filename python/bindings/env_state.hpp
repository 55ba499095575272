// SPDX-License-Identifier: Apache-2.0
/// Snapshots of environments that can be written to a file: how each open episode began, and what was done in it. Since
/// episodes are deterministic the same steps lead to the same state.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "python/bindings/env_data.hpp"

namespace gpusched::python {

/// The steps of an open episode.
struct EpisodeSteps {
  static constexpr std::uint32_t by_heuristic = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> actions;  ///< mode preempt: how many scores; by_heuristic: what the heuristic did
  std::vector<float> scores;           ///< mode preempt: of all steps, one after the other

  void clear() {
    actions.clear();
    scores.clear();
  }
};

/// What EnvState holds of its environments, in any process.
struct RecordedState {
  std::uint64_t fingerprint = 0;  ///< EnvData::fingerprint()
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> seeds, episodes;  ///< as VectorEnv::State
  std::vector<std::uint32_t> windows;
  std::vector<std::uint8_t> done;
  std::vector<EpisodeSteps> steps;
  std::vector<double> returns;        ///< of the open episodes so far
  std::vector<std::int64_t> lengths;  ///< their steps so far
};

/// A snapshot. One that was made in this process has the state itself, too.
struct PyEnvState {
  RecordedState recorded;
  std::shared_ptr<const EnvData> data;  ///< null: it comes from elsewhere, and `state` is empty
  VectorEnv::State state;
};

/// The state that the recorded steps lead to. Preconditions: it is of `data`, and of as many environments as its lists.
VectorEnv::State replayed(const RecordedState& recorded, const EnvData& data, const VectorEnvOptions& options);

void bind_env_state(nb::module_& module);

}  // namespace gpusched::python
