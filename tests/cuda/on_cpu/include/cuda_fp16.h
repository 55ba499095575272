// SPDX-License-Identifier: Apache-2.0
/// Half precision (IEEE 754 binary16) in pairs, with the device's rounding: to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuda_on_cpu {

/// The nearest half, as a double.
inline double rounded_to_half(double x) {
  if (!std::isfinite(x)) return x;
  if (std::abs(x) < 0x1p-14) {
    // Below the least normal half all are multiples of 2^-24: so is a sum with this, whose last digit that is.
    constexpr double shift = 0x1.8p28;
    return std::copysign(x + shift - shift, x);
  }
  // Of a double's 52 digits behind the point 10 stay.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr unsigned dropped = 42;
  const std::uint64_t half_a_digit = (std::uint64_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  const double rounded = std::bit_cast<double>((bits + half_a_digit) >> dropped << dropped);
  return std::abs(rounded) > 65504 ? std::copysign(HUGE_VAL, x) : rounded;
}

}  // namespace cuda_on_cpu

struct __half2 {
  float low, high;
};

inline __half2 __floats2half2_rn(float low, float high) {
  return {static_cast<float>(cuda_on_cpu::rounded_to_half(low)),
          static_cast<float>(cuda_on_cpu::rounded_to_half(high))};
}
inline __half2 __float2half2_rn(float value) { return __floats2half2_rn(value, value); }
inline float __low2float(__half2 pair) { return pair.low; }
inline float __high2float(__half2 pair) { return pair.high; }

/// x y + z in each half with one rounding: the product of two halves and its sum with a third fit a double, but for
/// sums so far apart that the smaller cannot move the larger by half a digit.
inline __half2 __hfma2(__half2 x, __half2 y, __half2 z) {
  const auto joined = [](float a, float b, float c) {
    return static_cast<float>(
        cuda_on_cpu::rounded_to_half(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c)));
  };
  return {joined(x.low, y.low, z.low), joined(x.high, y.high, z.high)};
}
