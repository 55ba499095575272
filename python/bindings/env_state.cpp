// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/env_state.hpp"

#include <nanobind/stl/tuple.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>

namespace gpusched::python {
namespace {

void repeat(const EpisodeSteps& steps, Heuristic heuristic, bool ranks, Env& env) {
  std::span<const float> scores = steps.scores;
  for (const std::uint32_t action : steps.actions) {
    if (action == EpisodeSteps::by_heuristic) {
      env.step(heuristic);
    } else if (ranks) {
      env.step(scores.first(action));
      scores = scores.subspan(action);
    } else {
      env.step(action);
    }
  }
}

template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
std::vector<T> values_of(const nb::bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

using Pickled = std::tuple<std::uint64_t, std::uint64_t, nb::bytes, nb::bytes, nb::bytes, nb::bytes, nb::bytes,
                           nb::bytes, std::vector<nb::bytes>, std::vector<nb::bytes>>;

Pickled pickled(const PyEnvState& state) {
  const RecordedState& from = state.recorded;
  std::vector<nb::bytes> actions, scores;
  for (const EpisodeSteps& steps : from.steps) {
    actions.push_back(bytes_of(steps.actions));
    scores.push_back(bytes_of(steps.scores));
  }
  return {from.fingerprint,       from.seed,           bytes_of(from.seeds),   bytes_of(from.episodes),
          bytes_of(from.windows), bytes_of(from.done), bytes_of(from.returns), bytes_of(from.lengths),
          std::move(actions),     std::move(scores)};
}

void unpickle(PyEnvState& state, const Pickled& from) {
  const auto& [fingerprint, seed, seeds, episodes, windows, done, returns, lengths, actions, scores] = from;
  new (&state) PyEnvState{.recorded = {.fingerprint = fingerprint,
                                       .seed = seed,
                                       .seeds = values_of<std::uint64_t>(seeds),
                                       .episodes = values_of<std::uint64_t>(episodes),
                                       .windows = values_of<std::uint32_t>(windows),
                                       .done = values_of<std::uint8_t>(done),
                                       .steps = {},
                                       .returns = values_of<double>(returns),
                                       .lengths = values_of<std::int64_t>(lengths)},
                          .data = nullptr,
                          .state = {}};
  for (std::size_t e = 0; e < actions.size() && e < scores.size(); ++e) {
    state.recorded.steps.push_back({values_of<std::uint32_t>(actions[e]), values_of<float>(scores[e])});
  }
}

}  // namespace

VectorEnv::State replayed(const RecordedState& recorded, const EnvData& data, const VectorEnvOptions& options) {
  VectorEnv::State state{.envs = {},
                         .episodes = recorded.episodes,
                         .windows = recorded.windows,
                         .done = recorded.done,
                         .seed = recorded.seed,
                         .seeds = recorded.seeds};
  const bool ranks = options.env.agenda.mode == ActionMode::preempt;
  for (std::size_t e = 0; e < recorded.windows.size(); ++e) {
    Env& env = state.envs.emplace_back(data.traces.front().world.cluster, options.env);
    env.reset(data.windows[recorded.windows[e]]);
    repeat(recorded.steps[e], options.env.agenda.heuristic, ranks, env);
  }
  return state;
}

void bind_env_state(nb::module_& module) {
  nb::class_<PyEnvState>(module, "EnvState",
                         "Everything that changes in an environment, for its set_state() or that of one made alike. A "
                         "pickled one holds the steps of the open episodes, which set_state() then takes again.")
      .def("__getstate__", &pickled)
      .def("__setstate__", &unpickle)
      .def("__copy__", [](nb::object self) { return self; })
      .def(
          "__deepcopy__", [](nb::object self, const nb::object&) { return self; }, nb::arg("memo"));
}

}  // namespace gpusched::python
