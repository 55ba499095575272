// SPDX-License-Identifier: Apache-2.0
/// Calls of every kernel with sizes on and around the edges of tiles, warps, blocks and vectors.
#pragma once

#include <array>
#include <vector>

#include "src/calibration/profile/kernel.hpp"

namespace gpusched {

inline std::vector<KernelCall> calls_on_edges() {
  std::vector<KernelCall> calls;
  for (const Kernel kernel : {Kernel::gemm_naive16, Kernel::gemm_tiled, Kernel::gemm_fp32, Kernel::gemm_bf16}) {
    for (const auto& [m, n, k] : {std::array{1, 1, 1},
                                  {16, 16, 16},
                                  {64, 64, 64},
                                  {65, 63, 17},
                                  {1, 256, 300},
                                  {70, 133, 97},
                                  {128, 64, 1000}}) {
      calls.push_back({kernel, m, n, k});
    }
  }
  for (const Kernel kernel : {Kernel::reduce, Kernel::softmax, Kernel::layernorm}) {
    for (const auto& [m, n] : {std::array{1, 1}, {37, 300}, {5, 256}, {3, 8192}, {2, 8193}, {1000, 31}}) {
      calls.push_back({kernel, m, n});
    }
  }
  for (const auto& [images, channels, side] : {std::array{1, 1, 1}, {3, 8, 13}, {2, 33, 16}, {1, 70, 9}, {5, 3, 31}}) {
    calls.push_back({Kernel::conv2d, images, channels, side});
  }
  for (const Kernel kernel : {Kernel::copy, Kernel::triad, Kernel::histogram, Kernel::h2d_pinned, Kernel::h2d_pageable,
                              Kernel::d2h_pinned, Kernel::d2h_pageable, Kernel::peer_copy}) {
    for (const int m : {1, 3, 4, 255, 1024, 10007, 1 << 20}) calls.push_back({kernel, m});
  }
  for (const Kernel kernel : {Kernel::fma_fp32, Kernel::fma_fp64, Kernel::fma_fp16, Kernel::mma_bf16}) {
    for (const auto& [m, n] : {std::array{1, 1}, {7, 64}, {1000, 64}, {1025, 17}}) calls.push_back({kernel, m, n});
  }
  for (const int side : {1, 2, 3, 19, 40}) calls.push_back({Kernel::stencil7, side});
  for (const auto& [m, n] : {std::array{1, 1}, {10007, 5003}, {300, 100000}}) calls.push_back({Kernel::gather, m, n});
  return calls;
}

}  // namespace gpusched
