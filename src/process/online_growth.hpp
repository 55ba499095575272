// SPDX-License-Identifier: Apache-2.0
/// Which policies of `serve` take jobs as they come, and which of them need no jobs that are over.
#pragma once

#include "gpusched/online/online_scheduler.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// How a scheduler of that policy, on nodes that may fail or not, may meet jobs that were not announced. Of a policy
/// that is not known to allow more, and of estimates that are learned from jobs that are over: as little as possible.
OnlineGrowth online_growth(const PolicyRegistry& registry, const PolicySpec& policy, bool nodes_may_fail);

}  // namespace gpusched
