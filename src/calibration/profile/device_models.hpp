// SPDX-License-Identifier: Apache-2.0
/// The models of a device by which durations are predicted.
#pragma once

#include <array>
#include <span>

namespace gpusched {

/// t0 + ((F/P)^gamma + (B/W)^gamma + (D L)^gamma)^(1/gamma): a roofline whose knee is rounded by gamma (1 = sum, large
/// = maximum), with a floor of D steps that wait for one another, which work too small to fill a device runs into.
struct Roofline {
  double t0_us = 0;
  double p_tflops = 1;
  double w_gbs = 1;
  double gamma = 2;
  double step_ns = 0;  ///< L

  [[nodiscard]] double predict_us(double flops, double bytes, double depth = 0) const;
};

/// Time of `bytes` from a table of (bytes, us): straight lines in log-log between rows, alpha + bytes/beta outside.
double predict_transfer_us(std::span<const std::array<double, 2>> table, double alpha_us, double beta_gbs,
                           double bytes);

/// For kernels of which no pair was timed: two that use shares u_a and u_b of the scarcest resource slow each other by
/// the factor max(1, u_a + u_b).
constexpr double default_slowdown(double u_a, double u_b) { return u_a + u_b > 1 ? u_a + u_b : 1; }

}  // namespace gpusched
