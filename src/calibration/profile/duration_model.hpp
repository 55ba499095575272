// SPDX-License-Identifier: Apache-2.0
/// DurationModel: how long kernels take on a device, from its profile: by the fitted model where there is one, else by
/// the roofline of the peaks. Every answer names the values it was computed from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/profile/kernel.hpp"

namespace gpusched {

/// A value of a profile that a prediction used.
struct UsedValue {
  std::string profile_id;
  std::string path;  ///< "/fits/gemm_bf16/p_tflops"
  double value = 0;
  std::string unit;
  Source source = Source::unavailable;
  std::string ref = {};

  friend bool operator==(const UsedValue&, const UsedValue&) = default;
};

/// A predicted time and the values behind it.
struct Prediction {
  double time_us = 0;
  double busy_share = 1;  ///< of that time, in which the resource that bounds the kernel works at its full rate
  std::vector<UsedValue> used = {};
};

/// Time of one call. Order: the kernel's own fit; a fit of a kernel bound by the same peak; the peaks' roofline with an
/// assumed launch time. Error: the profile has neither; names the missing JSON path.
Result<Prediction> predict(const DeviceProfile& profile, const KernelCall& call);

/// Sum over the calls of a step, which run one after another.
Result<Prediction> predict(const DeviceProfile& profile, std::span<const KernelCall> step);

/// The prediction of the peaks alone: max(F/P, B/W), without launch time. A calibration must be better than this.
/// Error: no peak.
Result<double> predict_from_peaks(const DeviceProfile& profile, std::span<const KernelCall> step);

}  // namespace gpusched
