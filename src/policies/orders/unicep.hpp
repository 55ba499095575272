// SPDX-License-Identifier: Apache-2.0
/// UNICEP: the wait relative to the run time, favouring small jobs.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Score -w / (log2(n) r) with w the wait, r the estimated run time and n the number of GPUs. It is linear in the wait,
/// so that the order is kept without sorting. As in RLScheduler, e = 1e-15 is added to w and n; log2(1 + e) is not 0,
/// and gives one-GPU jobs a priority above all others.
PolicyInfo unicep_info();

/// The same as RLScheduler's code has it. Quirk: the wait is computed from scheduled_time, which is still -1 while a
/// job waits, so that w = -1 - s. The priority is inverted (one-GPU jobs last) and does not change over time.
PolicyInfo unicep_sc20_info();

}  // namespace gpusched
