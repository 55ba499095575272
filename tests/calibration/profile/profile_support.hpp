// SPDX-License-Identifier: Apache-2.0
/// What every calibration's profile must be, whatever the device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "src/calibration/profile/device_profile.hpp"

namespace gpusched::test {

/// The profile reads back as the same bytes, every number is finite, and every rate that is told is above 0.
inline void expect_sound(const DeviceProfile& profile) {
  const std::string text = to_json(profile);
  const auto again = parse_device_profile(text);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(to_json(*again), text);
  for (const auto& [path, value] : all_quantities(profile)) {
    EXPECT_TRUE(std::isfinite(value.value)) << path;
    const bool is_rate = path.ends_with("_tflops") || path.ends_with("_gbs");
    if (is_rate && value.source != Source::unavailable) {
      EXPECT_GT(value.value, 0) << path;
    }
  }
}

}  // namespace gpusched::test
