// SPDX-License-Identifier: Apache-2.0
/// From measurements to the values of a profile: ceilings, fitted models, slowdowns, power.
#pragma once

#include <cstdint>

#include "gpusched/core/rng.hpp"
#include "src/calibration/measure/measurements.hpp"
#include "src/calibration/profile/device_profile.hpp"

namespace gpusched {

/// Adds everything that follows from the measurements; what too few points allow is left out. `bootstraps`: refits for
/// the intervals.
void fit_profile(DeviceProfile& profile, const Backend& backend, const Measurements& measured, std::uint32_t bootstraps,
                 const Rng& rng);

}  // namespace gpusched
