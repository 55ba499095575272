// SPDX-License-Identifier: Apache-2.0
/// The gates: acceptance rules for a calibration, from what was measured and what the profile predicts.
#pragma once

#include <span>
#include <string>

#include "src/calibration/measure/measurements.hpp"
#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/measure/regression.hpp"

namespace gpusched {

/// Adds gates, points that were never fitted, and the verdict.
void judge_profile(DeviceProfile& profile, const Backend& backend, const Measurements& measured);

/// Passes when the mean error is at most `mape_limit` and the 90th percentile at most `p90_limit`.
Gate error_gate(std::string name, const ErrorSummary& errors, double mape_limit, double p90_limit);
/// Passes when the fit's mean error is below the baseline's.
Gate better_gate(std::string name, const ErrorSummary& fitted, const ErrorSummary& baseline);
/// Passes when the 95th percentile of |a/b - 1| is at most `limit`. Precondition: equally many.
Gate repeat_gate(std::span<const double> first, std::span<const double> second, double limit);
/// "fail" when one failed, "pass" when at least one ran and none failed.
std::string verdict_of(std::span<const Gate> gates);

}  // namespace gpusched
