// SPDX-License-Identifier: Apache-2.0
/// How fast checkpoints are written to a folder and read back.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/suite.hpp"

namespace gpusched {

/// Of the checkpoint that is written at this scale.
double checkpoint_bytes(SuiteScale scale);

/// Error: the folder cannot be asked, or has less room. Asked before anything is measured, since checkpoints come last.
Result<void> check_room(const std::string& folder, double bytes);

/// GB/s of writing `bytes` to a file until it is on the disk, then of reading it back. Error: that cannot be done
/// there.
Result<std::vector<double>> time_checkpoint(const std::string& folder, double bytes);

}  // namespace gpusched
