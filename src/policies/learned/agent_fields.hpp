// SPDX-License-Identifier: Apache-2.0
/// The rows of what an agent chooses and of its network, the same in a model, in a training configuration and in
/// Python's environments.
#pragma once

#include <optional>
#include <string>

#include "gpusched/core/result.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "src/base/field_table.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

/// Paths begin with `prefix`: "env.". `most_jobs`: of max_jobs. The pointers live as long as `options`.
FieldTable agenda_fields(AgendaOptions& options, const std::string& prefix, std::uint32_t most_jobs);

/// The same of a network: "network.".
FieldTable network_fields(NetworkSpec& spec, const std::string& prefix);

/// What is wrong with a combination of a network's values: the field is its path below the network. Nothing: fine.
std::optional<Error> network_contradiction(const NetworkSpec& spec);

}  // namespace gpusched
