// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/lanes/lane_kernels.hpp"

namespace gpusched {

// Of lane_kernels_isa.cpp.
extern const LaneKernels lane_kernels_plain;
#ifdef GPUSCHED_LANES_X86
extern const LaneKernels lane_kernels_avx2;
extern const LaneKernels lane_kernels_avx512;
#endif

const LaneKernels* lane_kernels_of(std::size_t number) {
#ifdef GPUSCHED_LANES_X86
  if (number == 1 && __builtin_cpu_supports("avx2") != 0) return &lane_kernels_avx2;
  if (number == 2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    return &lane_kernels_avx512;
  }
#endif
  return number == 0 ? &lane_kernels_plain : nullptr;
}

const LaneKernels& lane_kernels() {
  static const LaneKernels* const best = [] {
    std::size_t number = most_lane_sets - 1;
    while (lane_kernels_of(number) == nullptr) --number;
    return lane_kernels_of(number);
  }();
  return *best;
}

}  // namespace gpusched
