// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/profile_fit.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace gpusched {
namespace {

/// Which of its kernel's fits a call belongs to: "_row", "_l2", "_l3" or, for other products and for memory, "".
std::string place_of(const KernelCall& call, const SuiteLimits& limits) {
  if (model_of(call.kernel) == KernelModel::roofline) return is_row_product(call) ? "_row" : "";
  if (footprint_of(call) <= 0.5 * limits.cache_bytes) return "_l2";
  if (footprint_of(call) <= 0.5 * limits.last_cache_bytes) return "_l3";
  return "";
}

std::uint32_t tile_side(Kernel kernel, const DeviceFacts& facts) {
  const auto side = facts.tile_sides.find(kernel);
  return side == facts.tile_sides.end() ? 1 : side->second;
}

/// The points that a kernel is fitted to; `place`: only those of that place.
std::vector<WorkPoint> points_of(const Measurements& measured, Kernel kernel, std::optional<std::string> place = {}) {
  std::vector<WorkPoint> points;
  for (const SuitePoint& point : measured.suite) {
    const KernelCall& call = point.step.front();
    if (point.role != PointRole::fit || call.kernel != kernel) continue;
    if (place && place_of(call, measured.facts.limits) != *place) continue;
    points.push_back({.flops = flops_of(in_whole_tiles(call, tile_side(kernel, measured.facts))),
                      .bytes = bytes_of(call),
                      .time_us = measured.time_us.at(point.id),
                      .depth = measured.facts.has_step_floor ? depth_of(call) : 0});
  }
  return points;
}

Quantity fitted_quantity(std::string_view key, double value, const ParameterInterval& ci95, std::size_t n) {
  Quantity fitted = quantity(key, value, Source::fitted);
  fitted.ci95 = {ci95.low, ci95.high};
  if (ci95.bound != Bound::both) fitted.bound = ci95.bound == Bound::at_least ? "at_least" : "at_most";
  fitted.n = static_cast<std::uint32_t>(n);
  return fitted;
}

/// What the fits of one kernel share.
struct KernelFit {
  const Measurements& measured;
  Kernel kernel;
  std::uint32_t bootstraps;
  Rng rng;

  [[nodiscard]] std::string name() const { return std::string(to_string(kernel)); }
};

/// Adds the line of the kernel at `place`, where there are points enough.
void fit_line(DeviceProfile& profile, const KernelFit& of, const std::string& place, const Rng& rng) {
  const std::vector<WorkPoint> points = points_of(of.measured, of.kernel, place);
  const auto fit = fit_bandwidth(points, of.bootstraps, rng);
  if (!fit) return;
  profile.ops[of.name() + place] = {.t0_us = fitted_quantity("t0_us", fit->t0_us, fit->ci95[0], points.size()),
                                    .w_gbs = fitted_quantity("w_gbs", fit->w_gbs, fit->ci95[1], points.size())};
}

void fit_product(DeviceProfile& profile, const KernelFit& of) {
  std::vector<WorkPoint> points = points_of(of.measured, of.kernel, "");
  if (points.size() >= least_roofline_points) fit_line(profile, of, "_row", of.rng.split("row"));
  if (!profile.ops.contains(of.name() + "_row")) points = points_of(of.measured, of.kernel);
  const auto fit = fit_roofline(points, of.bootstraps, of.rng);
  if (!fit) return;
  const std::size_t n = points.size();
  RooflineFit& roofline = profile.fits[of.name()];
  roofline = {.t0_us = fitted_quantity("t0_us", fit->fit.t0_us, fit->ci95[0], n),
              .p_tflops = fitted_quantity("p_tflops", fit->fit.p_tflops, fit->ci95[1], n),
              .w_gbs = fitted_quantity("w_gbs", fit->fit.w_gbs, fit->ci95[2], n),
              .gamma = fitted_quantity("gamma", fit->fit.gamma, fit->ci95[3], n),
              .tile_side = tile_side(of.kernel, of.measured.facts),
              .train_mape_ratio = measured_quantity("train_mape_ratio", fit->train_mape_ratio, n)};
  if (fit->fit.step_ns > 0) roofline.step_ns = fitted_quantity("step_ns", fit->fit.step_ns, fit->ci95[4], n);
}

void fit_transfer(DeviceProfile& profile, const KernelFit& of) {
  const std::vector<WorkPoint> points = points_of(of.measured, of.kernel);
  const auto fit = fit_bandwidth(points, of.bootstraps, of.rng);
  if (!fit) return;
  TransferFit& transfer = profile.transfers[of.name()];
  transfer = {.alpha_us = fitted_quantity("alpha_us", fit->t0_us, fit->ci95[0], points.size()),
              .beta_gbs = fitted_quantity("beta_gbs", fit->w_gbs, fit->ci95[1], points.size())};
  for (const WorkPoint& point : points) transfer.table_bytes_us.push_back({point.bytes, point.time_us});
}

void fit_kernel(DeviceProfile& profile, const KernelFit& of) {
  switch (model_of(of.kernel)) {
    case KernelModel::roofline: return fit_product(profile, of);
    case KernelModel::bandwidth:
      for (const char* place : {"_l2", "_l3", ""}) fit_line(profile, of, place, of.rng);
      return;
    case KernelModel::transfer: return fit_transfer(profile, of);
    case KernelModel::ceiling:
    case KernelModel::launch: return;
  }
}

void add_peaks(DeviceProfile& profile, const Backend& backend, const Measurements& measured) {
  const auto tflops = [](const WorkPoint& point) { return point.flops / point.time_us / 1e6; };
  const bool has_matrix_units = backend.supports(Kernel::mma_bf16) || backend.supports(Kernel::gemm_bf16);
  for (const Kernel kernel : {Kernel::fma_fp32, Kernel::fma_fp64, Kernel::fma_fp16}) {
    for (const WorkPoint& point : points_of(measured, kernel)) {
      // What sheets call the fp16 peak of such a device is that of its matrix units, not of its plain ones.
      const bool plain = kernel == Kernel::fma_fp16 && has_matrix_units;
      const std::string key = plain ? "fp16_plain_tflops" : std::string(peak_of(kernel));
      (plain ? profile.resources : profile.peaks)[key] = measured_quantity(key, tflops(point), 1);
    }
  }
  double p = 0;
  for (const Kernel kernel : {Kernel::gemm_bf16, Kernel::mma_bf16}) {
    for (const WorkPoint& point : points_of(measured, kernel)) p = std::max(p, tflops(point));
  }
  if (p > 0) profile.peaks["bf16_tflops"] = measured_quantity("bf16_tflops", p, 1);
  for (const auto& [place, key] : {std::pair{"_l2", "l2_gbs"}, std::pair{"", "memory_gbs"}}) {
    double w = 0;
    for (const Kernel kernel : {Kernel::copy, Kernel::triad}) {
      for (const WorkPoint& point : points_of(measured, kernel, place)) {
        w = std::max(w, point.bytes / point.time_us / 1e3);
      }
    }
    if (w > 0) profile.peaks[key] = measured_quantity(key, w, 1);
  }
}

void add_starts_and_checkpoints(DeviceProfile& profile, const Measurements& measured) {
  if (const auto launch = measured.time_us.find("launch 1"); launch != measured.time_us.end()) {
    profile.resources["launch_us"] = measured_quantity("launch_us", launch->second, measured.samples.at("launch 1"));
  }
  const std::vector<double>& starts = measured.cold_start_s;
  if (!starts.empty()) {
    profile.cold_start["context_s"] = measured_quantity("context_s", quantile(starts, 0.5), starts.size());
    profile.cold_start["context_p90_s"] = measured_quantity("context_p90_s", quantile(starts, 0.9), starts.size());
  }
  if (measured.checkpoint_gbs.size() == 2) {
    for (const auto& [key, rate] : {std::pair{"checkpoint_write_gbs", measured.checkpoint_gbs[0]},
                                    std::pair{"checkpoint_read_gbs", measured.checkpoint_gbs[1]}}) {
      profile.resources[key] = measured_quantity(key, rate, 1);
    }
  }
}

void add_interference(DeviceProfile& profile, const Measurements& measured) {
  Interference matrix{.mode = measured.facts.co_location_mode};
  for (const auto& [name, call] : measured.representatives) matrix.kernels.push_back(name);
  matrix.slowdown = measured.slowdown;
  profile.interference = matrix;
  if (measured.process_slowdown.empty()) return;
  matrix.mode = "processes";
  matrix.slowdown = measured.process_slowdown;
  profile.process_interference = matrix;
}

void add_power(DeviceProfile& profile, const PowerMeasurements& measured) {
  PowerProfile power{.idle_w = measured_quantity("idle_w", measured.idle_w, 1),
                     .beta = quantity("beta", 1, Source::fitted),
                     .sensor = "energy_counter"};
  double beta = 0;
  for (const auto& [name, watts] : measured.active_w) {
    power.active_w[name] = measured_quantity("active_w", watts, 1);
    const std::vector<PowerPoint>& points = measured.duty_points.at(name);
    if (points.size() < 2) continue;
    beta += fit_power_beta(measured.idle_w, watts, points);
    ++power.beta.n;
  }
  power.beta.value = std::max(beta / std::max(power.beta.n, 1U), 0.0);
  profile.power = power;
}

}  // namespace

void fit_profile(DeviceProfile& profile, const Backend& backend, const Measurements& measured, std::uint32_t bootstraps,
                 const Rng& rng) {
  profile.resources = measured.facts.resources;
  add_peaks(profile, backend, measured);
  for (std::size_t i = 0; i < kernel_count; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    fit_kernel(profile, {measured, kernel, bootstraps, rng.split(to_string(kernel))});
  }
  add_starts_and_checkpoints(profile, measured);
  if (!backend.supports(Kernel::peer_copy)) {
    profile.transfers["peer_copy"] = {.alpha_us = quantity("alpha_us", 0, Source::unavailable),
                                      .beta_gbs = quantity("beta_gbs", 0, Source::unavailable)};
  }
  add_interference(profile, measured);
  if (measured.power) add_power(profile, *measured.power);
}

}  // namespace gpusched
