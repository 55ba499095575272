// SPDX-License-Identifier: Apache-2.0
/// bf16: the upper half of a float, rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};

inline __nv_bfloat16 __float2bfloat16(float value) {
  if (std::isnan(value)) return {0x7FFF};
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}
