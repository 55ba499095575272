// SPDX-License-Identifier: Apache-2.0
/// Observations as arrays of one shape: rows of waiting jobs, then zeros, and WAIT in the last place. What a network
/// sees in training (VectorEnv) and when it decides as a policy (Agent) is made here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/observation.hpp"
#include "python/bindings/common.hpp"
#include "src/base/field_table.hpp"

namespace gpusched::python {

/// Rows of each array for one environment.
struct PaddedShape {
  std::uint32_t tokens = 0;  ///< also the number of the action WAIT
  std::uint32_t groups = 0;  ///< of nodes; at most so many are ever seen
};
PaddedShape padded_shape(const AgendaOptions& options, const Cluster& cluster);

/// Where one environment's arrays begin: [tokens, job_features], [tokens + 1] twice, [groups, group_features].
struct PaddedRows {
  float* jobs;
  float* prior;
  std::int8_t* mask;
  float* groups;
};
/// Writes environment `e` of `seen`. `before`: tokens that the rows held until now; what is behind them is 0 already.
void pad(const Observation& seen, std::uint32_t e, const PaddedShape& shape, const PaddedRows& rows,
         std::uint32_t before);

/// The same as new arrays by name, `global` too. `batched`: with a first axis of length 1.
nb::dict padded_observation(const Observation& seen, std::uint32_t e, const PaddedShape& shape, bool batched);

/// The rows of what an agent chooses and knows. The pointers live as long as
/// `options`.
FieldTable agent_fields(AgendaOptions& options);
/// What a JSON object of them gives. Throws InputError.
AgendaOptions agenda_options(const std::string& json);
/// Throws InputError: a combination that is none.
void check_agenda(const AgendaOptions& options);
/// The reverse of agenda_options(): every key.
std::string agent_options_text(const AgendaOptions& options);

/// A numpy array over `values`, which it owns.
template <class Value>
nb::object shaped(std::vector<Value> values, std::vector<std::size_t> shape) {
  auto* const held = new std::vector<Value>(std::move(values));
  const nb::capsule owner(held, [](void* memory) noexcept { delete static_cast<std::vector<Value>*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, Value>(held->data(), shape.size(), shape.data(), owner));
}

}  // namespace gpusched::python
