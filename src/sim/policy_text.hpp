// SPDX-License-Identifier: Apache-2.0
/// The registry for people: what `gpusched policies` prints.
#pragma once

#include <string>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// One line a policy, and one a way of backfilling.
std::string policy_list_text(const PolicyRegistry& registry);

/// The policy as everyone would write it: by its first name, parameters in the order of the alphabet, no empty braces.
/// Policies of one such text are the same policy.
std::string canonical_text(const PolicySpec& policy, const PolicyRegistry& registry);

/// Everything about one policy, its parameters with defaults and ranges.
std::string policy_text(const PolicyInfo& policy);

/// Everything about one way of backfilling, its parameters with defaults and ranges.
std::string backfill_text(const BackfillInfo& way);

/// {"policies": [...], "backfill": [...]}: each row with its parameters (type, default, unit, range or words). Of a
/// policy also whether it knows true run times with its defaults ("clairvoyant") and whether it can be backfilled.
std::string policies_json(const PolicyRegistry& registry);
/// One such row, as an object of its own.
std::string policy_json(const PolicyRegistry& registry, const PolicyInfo& policy);
std::string backfill_json(const BackfillInfo& way);

}  // namespace gpusched
