// SPDX-License-Identifier: Apache-2.0
/// F1 to F4: scores found by regression on simulated schedules.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The score with the best fit, log10(r) n + 870 log10(s), and the three that follow it; r is the estimated run time in
/// seconds, n the number of GPUs, s the submission in seconds from the trace's origin. All smallest first.
PolicyInfo f1_info();
/// sqrt(r) n + 25600 log10(s).
PolicyInfo f2_info();
/// r n + 6860000 log10(s).
PolicyInfo f3_info();
/// r sqrt(n) + 530000 log10(s).
PolicyInfo f4_info();

}  // namespace gpusched
