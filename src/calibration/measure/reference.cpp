// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/reference.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusched {
namespace {

using Size = std::size_t;

std::vector<double> multiply(const KernelData& data, Size m, Size n, Size k) {
  std::vector<double> c(m * n);
  for (Size i = 0; i < m; ++i) {
    for (Size p = 0; p < k; ++p) {
      for (Size j = 0; j < n; ++j) c[i * n + j] += static_cast<double>(data.a[i * k + p]) * data.b[p * n + j];
    }
  }
  return c;
}

/// Images x channels x side x side, weights 3 x 3 x in x out, zeros beyond the edge.
std::vector<double> convolve(const KernelData& data, Size images, Size channels, Size side) {
  std::vector<double> out(images * channels * side * side);
  const auto pixel = [&](Size image, Size channel, Size y, Size x) {
    return ((image * channels + channel) * side + y) * side + x;
  };
  for (Size image = 0; image < images; ++image) {
    for (Size o = 0; o < channels; ++o) {
      for (Size y = 0; y < side; ++y) {
        for (Size x = 0; x < side; ++x) {
          double sum = 0;
          for (Size i = 0; i < channels; ++i) {
            for (Size dy = 0; dy < 3; ++dy) {
              for (Size dx = 0; dx < 3; ++dx) {
                if (y + dy < 1 || y + dy > side || x + dx < 1 || x + dx > side) continue;
                sum += static_cast<double>(data.a[pixel(image, i, y + dy - 1, x + dx - 1)]) *
                       data.b[(o * channels + i) * 9 + dy * 3 + dx];
              }
            }
          }
          out[pixel(image, o, y, x)] = sum;
        }
      }
    }
  }
  return out;
}

/// A tenth of the six neighbours plus four tenths of the centre; cells on the surface are copied.
std::vector<double> relax(const KernelData& data, Size side) {
  std::vector<double> out(data.a.begin(), data.a.end());
  const Size plane = side * side;
  for (Size z = 1; z + 1 < side; ++z) {
    for (Size y = 1; y + 1 < side; ++y) {
      for (Size x = 1; x + 1 < side; ++x) {
        const Size at = z * plane + y * side + x;
        const auto value = [&](Size i) { return static_cast<double>(data.a[i]); };
        out[at] = 0.1 * (value(at - 1) + value(at + 1) + value(at - side) + value(at + side) + value(at - plane) +
                         value(at + plane)) +
                  0.4 * value(at);
      }
    }
  }
  return out;
}

std::vector<double> rows(const KernelCall& call, const KernelData& data) {
  const auto m = static_cast<Size>(call.m);
  const auto n = static_cast<Size>(call.n);
  std::vector<double> out(result_size(call));
  for (Size row = 0; row < m; ++row) {
    const float* a = data.a.data() + row * n;
    double sum = 0;
    for (Size i = 0; i < n; ++i) sum += a[i];
    if (call.kernel == Kernel::reduce) {
      out[row] = sum;
      continue;
    }
    if (call.kernel == Kernel::softmax) {
      const double most = *std::max_element(a, a + n);
      double total = 0;
      for (Size i = 0; i < n; ++i) total += std::exp(a[i] - most);
      for (Size i = 0; i < n; ++i) out[row * n + i] = std::exp(a[i] - most) / total;
      continue;
    }
    const double mean = sum / static_cast<double>(n);
    double square = 0;
    for (Size i = 0; i < n; ++i) square += (a[i] - mean) * (a[i] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(n) + static_cast<double>(layernorm_epsilon));
    for (Size i = 0; i < n; ++i) out[row * n + i] = (a[i] - mean) * scale;
  }
  return out;
}

/// Each chain's 16 x 16 matrix times the shared one, n times over.
std::vector<double> matrix_chains(const KernelCall& call, const KernelData& data) {
  constexpr Size side = 16;
  std::vector<double> out = multiply(data, static_cast<Size>(call.m) * side, side, side);
  for (double& cell : out) cell *= static_cast<double>(call.n);
  return out;
}

std::vector<double> chains(const KernelCall& call, const KernelData& data) {
  std::vector<double> out;
  for (const float a : data.a) {
    double x = 0;
    for (std::int64_t i = 0; i < call.n; ++i) x = x * static_cast<double>(fma_factor) + a;
    out.push_back(x);
  }
  return out;
}

}  // namespace

DataSizes data_sizes(const KernelCall& call) {
  const auto m = static_cast<Size>(call.m);
  const auto n = static_cast<Size>(call.n);
  const auto k = static_cast<Size>(call.k);
  switch (call.kernel) {
    case Kernel::launch: return {};
    case Kernel::triad: return {.a = m, .b = m};
    case Kernel::mma_bf16: return {.a = 256 * m, .b = 256};
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16: return {.a = m * k, .b = k * n};
    case Kernel::reduce:
    case Kernel::softmax:
    case Kernel::layernorm: return {.a = m * n};
    case Kernel::conv2d: return {.a = m * n * k * k, .b = 9 * n * n};
    case Kernel::stencil7: return {.a = m * m * m};
    case Kernel::gather: return {.a = n, .index = m, .index_below = n};
    case Kernel::histogram: return {.index = m, .index_below = 256};
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
    case Kernel::peer_copy: return {.a = (m + 3) / 4};
    default: return {.a = m};
  }
}

// Data is a block of draws, repeated at the cost of a copy: random to every cache and multiplier.
constexpr Size random_block = 1 << 16;

void extend_random_floats(std::span<float> values, std::size_t from, Rng rng) {
  if (from < random_block) {
    for (float& value : values.first(std::min(values.size(), random_block))) {
      value = static_cast<float>(2 * rng.uniform() - 1);
    }
  }
  for (Size i = std::max(from, random_block); i < values.size(); ++i) {
    values[i] = values[i - random_block + i / random_block % 7];
  }
}

// Each repetition is moved by a draw of its own, so that positions in a table meet other lines of it.
void fill_random_indices(std::span<std::uint32_t> values, std::uint64_t below, Rng rng) {
  for (std::uint32_t& value : values.first(std::min(values.size(), random_block))) {
    value = static_cast<std::uint32_t>(rng.below(below));
  }
  std::uint64_t move = 0;
  for (Size i = random_block; i < values.size(); ++i) {
    if (i % random_block == 0) move = rng.below(below);
    const std::uint64_t moved = values[i - random_block] + move;
    values[i] = static_cast<std::uint32_t>(moved < below ? moved : moved - below);
  }
}

KernelData random_data(const KernelCall& call, std::uint64_t seed) {
  const DataSizes sizes = data_sizes(call);
  const Rng rng = Rng(seed).split("kernel data");
  KernelData data{.a = std::vector<float>(sizes.a),
                  .b = std::vector<float>(sizes.b),
                  .index = std::vector<std::uint32_t>(sizes.index)};
  extend_random_floats(data.a, 0, rng.split(0));
  extend_random_floats(data.b, 0, rng.split(1));
  fill_random_indices(data.index, sizes.index_below, rng.split(2));
  return data;
}

KernelData check_data(const KernelCall& call) {
  if (call != seed_program) return random_data(call, 7);
  const DataSizes sizes = data_sizes(call);
  return {.a = std::vector<float>(sizes.a, 1), .b = std::vector<float>(sizes.b, 2)};
}

std::size_t result_size(const KernelCall& call) {
  const auto m = static_cast<Size>(call.m);
  const auto n = static_cast<Size>(call.n);
  const auto k = static_cast<Size>(call.k);
  switch (call.kernel) {
    case Kernel::launch: return 0;
    case Kernel::mma_bf16: return 256 * m;
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16:
    case Kernel::softmax:
    case Kernel::layernorm: return m * n;
    case Kernel::conv2d: return m * n * k * k;
    case Kernel::stencil7: return m * m * m;
    case Kernel::histogram: return 256;
    case Kernel::h2d_pinned:
    case Kernel::h2d_pageable:
    case Kernel::d2h_pinned:
    case Kernel::d2h_pageable:
    case Kernel::peer_copy: return (m + 3) / 4;
    default: return m;
  }
}

std::vector<double> reference_result(const KernelCall& call, const KernelData& data) {
  const auto m = static_cast<Size>(call.m);
  const auto n = static_cast<Size>(call.n);
  const auto k = static_cast<Size>(call.k);
  switch (call.kernel) {
    case Kernel::launch: return {};
    case Kernel::triad: {
      std::vector<double> out;
      for (Size i = 0; i < m; ++i) out.push_back(data.a[i] + static_cast<double>(triad_factor) * data.b[i]);
      return out;
    }
    case Kernel::fma_fp32:
    case Kernel::fma_fp64:
    case Kernel::fma_fp16: return chains(call, data);
    case Kernel::mma_bf16: return matrix_chains(call, data);
    case Kernel::gemm_naive16:
    case Kernel::gemm_tiled:
    case Kernel::gemm_fp32:
    case Kernel::gemm_bf16: return multiply(data, m, n, k);
    case Kernel::reduce:
    case Kernel::softmax:
    case Kernel::layernorm: return rows(call, data);
    case Kernel::conv2d: return convolve(data, m, n, k);
    case Kernel::stencil7: return relax(data, m);
    case Kernel::gather: {
      std::vector<double> out;
      for (const std::uint32_t at : data.index) out.push_back(data.a[at]);
      return out;
    }
    case Kernel::histogram: {
      std::vector<double> out(256);
      for (const std::uint32_t value : data.index) out[value] += 1;
      return out;
    }
    default: return {data.a.begin(), data.a.end()};
  }
}

double largest_error(const std::vector<double>& result, const std::vector<double>& reference) {
  if (result.size() != reference.size()) return 1;
  double error = 0;
  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double difference = std::abs(result[i] - reference[i]);
    error = std::isfinite(difference) ? std::max(error, difference) : HUGE_VAL;
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace gpusched
