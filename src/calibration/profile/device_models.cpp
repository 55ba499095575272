// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/device_models.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gpusched {

double Roofline::predict_us(double flops, double bytes, double depth) const {
  const double compute = flops / (p_tflops * 1e6);
  const double memory = bytes / (w_gbs * 1e3);
  const double chain = depth * step_ns * 1e-3;
  const double larger = std::max({compute, memory, chain});
  if (larger <= 0) return t0_us;
  double sum = 0;
  for (const double part : {compute, memory, chain}) sum += std::pow(part / larger, gamma);
  return t0_us + larger * std::pow(sum, 1 / gamma);
}

double predict_transfer_us(std::span<const std::array<double, 2>> table, double alpha_us, double beta_gbs,
                           double bytes) {
  if (table.size() < 2 || bytes < table.front()[0] || bytes > table.back()[0])
    return alpha_us + bytes / (beta_gbs * 1e3);
  std::size_t right = 1;
  while (table[right][0] < bytes) ++right;
  const auto& a = table[right - 1];
  const auto& b = table[right];
  const double share = std::log(bytes / a[0]) / std::log(b[0] / a[0]);
  return a[1] * std::pow(b[1] / a[1], share);
}

}  // namespace gpusched
