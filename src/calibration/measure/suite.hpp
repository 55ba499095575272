// SPDX-License-Identifier: Apache-2.0
/// The suite: which calls a calibration times, sized for a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/calibration/measure/backend.hpp"

namespace gpusched {

/// How much is measured: `tiny` seconds with small sizes (tests), `quick` under a minute, `full` under five.
enum class SuiteScale : std::uint8_t { tiny, quick, full };

enum class PointRole : std::uint8_t {
  fit,        ///< parameters are fitted to it
  held_out,   ///< same distribution, never fitted
  composite,  ///< a training step of several kernels, never fitted
};

/// One measurement of the suite.
struct SuitePoint {
  std::string id;  ///< unique, stable: names it in the samples file
  PointRole role = PointRole::fit;
  std::vector<KernelCall> step;  ///< one call, or the calls of a composite step
};

/// All points for what the backend supports; same seed, same list.
std::vector<SuitePoint> make_suite(const Backend& backend, SuiteScale scale, std::uint64_t seed);

/// The kernels paired with each other for interference: compute, memory, cache, random reads, small launches, matrix
/// product.
std::vector<std::pair<std::string, KernelCall>> interference_kernels(const Backend& backend);

/// Small calls, one for each supported kernel, and the seed program's product, for Backend::check.
std::vector<KernelCall> check_calls(const Backend& backend);

/// Training steps of the four classes at three batch sizes (mlp, cnn, transformer, gnn).
std::vector<SuitePoint> composite_steps(const Backend& backend, SuiteScale scale);

}  // namespace gpusched
