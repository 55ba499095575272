// SPDX-License-Identifier: Apache-2.0
/// F1, the score with the best fit of Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with
/// simulation and machine learning", SC'17: the job of the smallest score goes first.
#pragma once

#include <cmath>

namespace gpusched {

/// log10 of x, and of 0.1 where x is not positive: RLScheduler's guard, which keeps a submission at time 0 in the
/// domain.
inline double log10_from_tenth(double x) { return std::log10(x <= 0 ? 0.1 : x); }

/// Weight of the logarithm of the submission in F1.
inline constexpr int f1_submit_weight = 870;

/// log10(run time) x GPUs + 870 log10(submission), times in seconds.
inline double f1_score(double run_s, double gpus, double submit_s) {
  return log10_from_tenth(run_s) * gpus + f1_submit_weight * log10_from_tenth(submit_s);
}

}  // namespace gpusched
