// SPDX-License-Identifier: Apache-2.0
/// What every kernel must compute: random operands, and the result in double precision by the simplest loop. A backend
/// whose result differs by more than error_limit() is wrong, and its times are refused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/calibration/measure/kernel_constants.hpp"
#include "src/calibration/profile/kernel.hpp"

namespace gpusched {

/// Host operands of a call. Which are used depends on the kernel.
struct KernelData {
  std::vector<float> a = {};              ///< first operand; m bytes of it for transfers, as floats
  std::vector<float> b = {};              ///< second operand (weights, second vector)
  std::vector<std::uint32_t> index = {};  ///< gather positions, histogram values (0..255)
};

/// How much of each operand a call takes.
struct DataSizes {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t index = 0;
  std::uint64_t index_below = 1;  ///< positions and values lie below this
};
DataSizes data_sizes(const KernelCall& call);

/// Uniform in [-1, 1); never zeros, which run faster than real data.
KernelData random_data(const KernelCall& call, std::uint64_t seed);

/// What Backend::check() runs a call on: random data, but for the seed program's product its ones and twos.
KernelData check_data(const KernelCall& call);

/// Fills `values` from position `from` on: uniform in [-1, 1). Precondition: what lies before came from the same `rng`.
void extend_random_floats(std::span<float> values, std::size_t from, Rng rng);
/// Uniform below `below`.
void fill_random_indices(std::span<std::uint32_t> values, std::uint64_t below, Rng rng);

/// Elements of the result.
std::size_t result_size(const KernelCall& call);

/// The result in double precision.
std::vector<double> reference_result(const KernelCall& call, const KernelData& data);

/// The largest |result - reference| over the largest |reference|.
double largest_error(const std::vector<double>& result, const std::vector<double>& reference);

}  // namespace gpusched
