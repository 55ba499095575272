// SPDX-License-Identifier: Apache-2.0
/// Pairs of kernels in two processes that share a device, as the jobs of a cluster do.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/backend.hpp"

namespace gpusched {

/// Opens the device that is calibrated once more, in whichever process calls it.
using OpenBackend = std::function<Result<std::unique_ptr<Backend>>()>;

/// slowdown[a][b]: how many times longer call a takes while another process runs call b, each looping for about
/// `seconds` / 3 alone and `seconds` / 3 beside the other. Takes `seconds` for every pair. Errors: a process cannot be
/// started, or one of the two ends early.
Result<std::vector<std::vector<double>>> co_locate_processes(const OpenBackend& open, std::span<const KernelCall> calls,
                                                             double seconds);

}  // namespace gpusched
