// SPDX-License-Identifier: Apache-2.0
/// Earliest deadline first, without preemption.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Earliest deadline first; jobs without a deadline come last, in order of submission. Errors when no job has one.
PolicyInfo edf_info();

}  // namespace gpusched
