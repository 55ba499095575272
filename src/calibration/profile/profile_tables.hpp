// SPDX-License-Identifier: Apache-2.0
/// Device profiles as text for people.
#pragma once

#include <string>

#include "src/calibration/profile/device_profile.hpp"

namespace gpusched {

/// Every value with its source, slowdowns, steps and gates.
std::string show_device_profile(const DeviceProfile& profile);

/// Every quantity that both profiles or only one has, with the ratio b/a; states where intervals do not overlap.
std::string compare_device_profiles(const DeviceProfile& a, const DeviceProfile& b);

/// Predicted times of the suite's kernels at one large size, and of training steps of known families, on both devices,
/// and how many times faster b is. Where a profile has no prediction, the row says so.
std::string speed_up_table(const DeviceProfile& a, const DeviceProfile& b);

}  // namespace gpusched
