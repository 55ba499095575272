// SPDX-License-Identifier: Apache-2.0
/// Longest and largest job first, without preemption.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Longest estimated run time first.
PolicyInfo ljf_info();

/// Most GPUs first.
PolicyInfo lpjf_info();

}  // namespace gpusched
