// SPDX-License-Identifier: Apache-2.0
/// Backfilling by name, around any policy that is an order of starting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The ways of backfilling. Rows as in the policy registry; each takes the parameters estimate, noise_sigma and
/// quantile, for the run times that reservations are made from. Their makers are not to be called: use
/// make_backfilled().
const std::vector<PolicyInfo>& backfill_infos();

/// Reads "easy", "conservative{depth=50}", "sc20{estimate=user}". Errors name what was expected.
Result<PolicySpec> parse_backfill(std::string_view text);

/// `policy` with `backfill` around it. Errors: what either refuses, and a policy that is more than an order.
Result<AnyPolicy> make_backfilled(const PolicyRegistry& registry, const PolicySpec& policy, const PolicySpec& backfill,
                                  const PolicyContext& context);

}  // namespace gpusched
