// SPDX-License-Identifier: Apache-2.0
/// The backends by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/calibration/measure/backend.hpp"

namespace gpusched {

struct BackendOptions {
  std::uint32_t threads = 0;  ///< of cpu; 0 = all
  std::uint64_t seed = 1;     ///< of analytic
};

/// Opens "cuda", "cpu" or "analytic". Errors: no such backend; cuda without support built in, driver or device.
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const BackendOptions& options);

#ifdef GPUSCHED_HAS_CUDA_BACKEND
/// Device 0 (cuda/cuda_backend.cpp), opened in a process of its own: this one stays free of CUDA and may go on forking.
/// Error: no driver, no device.
Result<std::unique_ptr<Backend>> open_cuda_backend();
#endif

}  // namespace gpusched
