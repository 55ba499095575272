// SPDX-License-Identifier: Apache-2.0
/// Smallest area first, without preemption.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Smallest estimated run time x GPUs first.
PolicyInfo saf_info();

}  // namespace gpusched
