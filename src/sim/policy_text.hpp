// SPDX-License-Identifier: Apache-2.0
/// The registry for people: what `gpusched policies` prints.
#pragma once

#include <string>

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// One line a policy.
std::string policy_list_text(const PolicyRegistry& registry);

/// Everything about one policy, its parameters with defaults and ranges.
std::string policy_text(const PolicyInfo& policy);

}  // namespace gpusched
