// SPDX-License-Identifier: Apache-2.0
/// calibrate: runs the suite on a backend, fits the models, judges them by the gates and returns the profile.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "gpusched/result.hpp"
#include "src/calibration/backend.hpp"
#include "src/calibration/device_profile.hpp"
#include "src/calibration/fit.hpp"
#include "src/calibration/process_pairs.hpp"
#include "src/calibration/suite.hpp"

namespace gpusched {

struct CalibrateOptions {
  SuiteScale scale = SuiteScale::full;
  std::uint64_t seed = 1;
  std::string samples_path = {};       ///< raw samples, also what a later run goes on from; empty = memory only
  std::string checkpoint_folder = {};  ///< where checkpoint writing and reading is timed; empty = not measured
  std::uint32_t bootstraps = 200;
  /// Opens the device in another process: for co-location of processes and the job mix. Empty: neither is measured.
  OpenBackend open = {};
  bool job_mix = false;  ///< also run a mix of jobs for real and compare with the simulator; needs `open`
  std::stop_token stop = {};
  /// Called before each measurement with those done, all, and the name of the next.
  std::function<void(std::uint32_t done, std::uint32_t total, const std::string& next)> progress = {};
};

/// Errors: a kernel computes a wrong result, the device is lost, no room for samples, or a stop was asked for (what was
/// measured is in the samples file).
Result<DeviceProfile> calibrate(Backend& backend, const CalibrateOptions& options);

// ---- the gates ----

/// Passes when the mean error is at most `mape_limit` and the 90th percentile at most `p90_limit`.
Gate error_gate(std::string name, const ErrorSummary& errors, double mape_limit, double p90_limit);
/// Passes when the fit's mean error is below the baseline's.
Gate better_gate(std::string name, const ErrorSummary& fitted, const ErrorSummary& baseline);
/// Passes when the 95th percentile of |a/b - 1| is at most `limit`. Precondition: equally many.
Gate repeat_gate(std::span<const double> first, std::span<const double> second, double limit);
/// "fail" when one failed, "pass" when at least one ran and none failed.
std::string verdict_of(std::span<const Gate> gates);

}  // namespace gpusched
