// SPDX-License-Identifier: Apache-2.0
/// How the models of a device (device_models.hpp) are fitted to timed points. Every fit is deterministic for its Rng.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"
#include "src/calibration/profile/device_models.hpp"

namespace gpusched {

/// One timed piece of work.
struct WorkPoint {
  double flops = 0;    ///< operations
  double bytes = 0;    ///< bytes moved to and from memory, each counted once
  double time_us = 0;  ///< median of its samples
  double depth = 0;    ///< steps that wait for one another; 0 = not counted
};

/// Which ends of a parameter's interval the points determine. A rate that limits none of them could be any rate above
/// those reached; a launch time far below all times could be anything down to 0.
enum class Bound : std::uint8_t { both, at_least, at_most };

/// A 95 % interval.
struct ParameterInterval {
  double low = 0;
  double high = 0;
  Bound bound = Bound::both;  ///< at_least: `high` is only where the search ended; at_most: so is `low`
};

/// A fitted roofline; intervals are 95 % bootstrap intervals in the order t0, P, W, gamma, L (0 to
/// 0 where no point has depth).
struct RooflineEstimate {
  Roofline fit;
  std::array<ParameterInterval, 5> ci95;
  double train_mape_ratio = 0;
};

inline constexpr std::size_t least_roofline_points = 8;

/// Least Huber loss of ln(predicted / timed), by Levenberg-Marquardt from several starts; intervals from `bootstraps`
/// refits to resampled residuals. Error: fewer than that many points, or one without work or time.
Result<RooflineEstimate> fit_roofline(std::span<const WorkPoint> points, std::uint32_t bootstraps, Rng rng);

/// t0 + B/W and its intervals (t0, W).
struct BandwidthEstimate {
  double t0_us = 0;
  double w_gbs = 1;
  std::array<ParameterInterval, 2> ci95;
  double train_mape_ratio = 0;

  [[nodiscard]] double predict_us(double bytes) const { return t0_us + bytes / (w_gbs * 1e3); }
};

/// Least absolute relative error, by reweighted least squares. Error: fewer than 3 points, or no growth with bytes.
Result<BandwidthEstimate> fit_bandwidth(std::span<const WorkPoint> points, std::uint32_t bootstraps, Rng rng);

/// Power at utilisation u: idle + (active - idle) u^beta.
struct PowerPoint {
  double utilisation = 0;  ///< 0..1, duty cycle
  double watts = 0;
};
/// The exponent by least squares in logs over points with 0 < u < 1 above idle; 1 when there are none.
double fit_power_beta(double idle_w, double active_w, std::span<const PowerPoint> points);

/// slowdown(a beside b) = 1 + sensitivity_a * pressure_b, fitted by alternating least squares to the known cells
/// (cells <= 0 are unknown). Fills unknown cells; the fallback for kernels that were never paired.
std::vector<std::vector<double>> complete_interference(const std::vector<std::vector<double>>& slowdown);

/// Errors of predictions against what was timed.
struct ErrorSummary {
  double mape_ratio = 0;  ///< mean of |predicted/timed - 1|
  double p90_ratio = 0;
  std::uint32_t n = 0;
};
ErrorSummary summarise_errors(std::span<const double> predicted, std::span<const double> timed);

/// The q-quantile (0..1) with linear interpolation; 0 for no values.
double quantile(std::vector<double> values, double q);

}  // namespace gpusched
