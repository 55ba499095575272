// SPDX-License-Identifier: Apache-2.0
/// calibrate: runs the suite on a backend, fits the models, judges them by the gates and returns the profile.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/process_pairs.hpp"
#include "src/calibration/measure/suite.hpp"
#include "src/calibration/profile/device_profile.hpp"

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

}  // namespace gpusched
