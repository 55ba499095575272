// SPDX-License-Identifier: Apache-2.0
/// WFP3: the job that has waited longest relative to its run time, weighted by its size.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Score -(w/r)^3 n with w the wait, r the estimated run time and n the number of GPUs. At any instant its order is
/// that of cbrt(n)/r x w, which grows linearly, so that the order is kept without sorting.
PolicyInfo wfp3_info();

/// The same as RLScheduler's code has it. Quirk: the wait is computed from scheduled_time, which is still -1 while a
/// job waits, so that w = -1 - s. The priority is inverted (long jobs first) and does not change over time.
PolicyInfo wfp3_sc20_info();

}  // namespace gpusched
