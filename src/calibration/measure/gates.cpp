// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/gates.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/base/number_text.hpp"
#include "src/calibration/profile/duration_model.hpp"

namespace gpusched {
namespace {

constexpr double repeat_limit = 0.03;
constexpr double co_location_mae_limit = 0.10;
constexpr double co_location_gain_limit = 0.80;  // of the error of assuming no interference
constexpr double energy_limit = 0.15;

/// Predicted and timed values of some points, with the roofline of a sheet's peaks beside.
struct Judged {
  std::vector<double> predicted, baseline, timed;
  std::vector<ValidationPoint> points;

  [[nodiscard]] ErrorSummary errors() const { return summarise_errors(predicted, timed); }
  [[nodiscard]] ErrorSummary baseline_errors() const { return summarise_errors(baseline, timed); }
};

/// Those of a role; `only`: of that kernel.
Judged judge(const DeviceProfile& profile, const DeviceProfile& sheet, const Measurements& measured, PointRole role,
             std::optional<Kernel> only = {}) {
  Judged judged;
  for (const SuitePoint& point : measured.suite) {
    if (point.role != role || (only && point.step.front().kernel != *only)) continue;
    const auto fit = predict(profile, point.step);
    const auto peaks = predict_from_peaks(sheet, point.step);
    if (!fit || !peaks) continue;
    judged.predicted.push_back(fit->time_us);
    judged.baseline.push_back(*peaks);
    judged.timed.push_back(measured.time_us.at(point.id));
    judged.points.push_back({.id = point.id,
                             .timed_us = judged.timed.back(),
                             .predicted_us = judged.predicted.back(),
                             .roofline_us = judged.baseline.back()});
  }
  return judged;
}

/// Each pair predicted from all others by sensitivity and pressure, as speeds (1 / slowdown).
std::vector<Gate> co_location_gates(const std::vector<std::vector<double>>& slowdown) {
  double error = 0;
  double none_error = 0;
  std::uint32_t n = 0;
  for (std::size_t a = 0; a < slowdown.size(); ++a) {
    for (std::size_t b = 0; b < slowdown.size(); ++b) {
      if (a == b) continue;
      auto known = slowdown;
      known[a][b] = 0;
      const double speed = 1 / slowdown[a][b];
      error += std::abs(1 / complete_interference(known)[a][b] - speed);
      none_error += std::abs(1 - speed);
      ++n;
    }
  }
  error /= n;
  none_error /= n;
  const double gain = none_error > 0 ? error / none_error : 1;
  return {{.name = "co-location MAE",
           .status = error <= co_location_mae_limit ? "pass" : "fail",
           .value_ratio = error,
           .limit_ratio = co_location_mae_limit,
           .n = n,
           .note = "of the speed of pairs left out of the fit"},
          {.name = "co-location gain",
           .status = gain <= co_location_gain_limit ? "pass" : "fail",
           .value_ratio = gain,
           .limit_ratio = co_location_gain_limit,
           .n = n,
           .note = "of the error of assuming no interference, " + percent_text(none_error)}};
}

/// Microjoules of a call: its representative's draw, scaled by how busy the call keeps the device beside it.
double predicted_energy(const DeviceProfile& profile, const Measurements& measured, const KernelCall& call) {
  const auto time = predict(profile, call);
  const std::string kernel = representative_of(call.kernel);
  const auto& all = measured.representatives;
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.first == kernel; });
  const auto representative = predict(profile, known->second);
  if (!time || !representative) return 0;
  const double idle_w = profile.power->idle_w.value;
  const double u = std::min(time->busy_share / representative->busy_share, 1 / representative->busy_share);
  const double above_w = profile.power->active_w.at(kernel).value - idle_w;
  return time->time_us * (idle_w + above_w * std::pow(u, profile.power->beta.value));
}

Gate energy_gate(const DeviceProfile& profile, const Measurements& measured) {
  Gate gate{.name = "energy of steps", .limit_ratio = energy_limit};
  if (!measured.power) {
    gate.note = "no power sensor, or windows shorter than it needs";
    return gate;
  }
  std::vector<double> predicted_j;
  std::vector<double> measured_j;
  for (const SuitePoint& point : measured.suite) {
    const auto drawn = measured.power->step_w.find(point.id);
    if (drawn == measured.power->step_w.end()) continue;
    double joule = 0;
    for (const KernelCall& call : point.step) joule += predicted_energy(profile, measured, call);
    predicted_j.push_back(joule);
    measured_j.push_back(measured.time_us.at(point.id) * drawn->second);
  }
  const ErrorSummary errors = summarise_errors(predicted_j, measured_j);
  gate.value_ratio = errors.mape_ratio;
  gate.n = errors.n;
  gate.status = errors.mape_ratio <= energy_limit ? "pass" : "fail";
  return gate;
}

}  // namespace

void judge_profile(DeviceProfile& profile, const Backend& backend, const Measurements& measured) {
  // The vendor's datasheet where one is shipped, else the peaks just measured.
  const auto shipped = shipped_profile_of_model(profile.model);
  const DeviceProfile& sheet = shipped ? *shipped : profile;
  const std::string against = shipped ? "datasheet roofline" : "roofline of measured peaks";
  std::vector<Gate>& gates = profile.validation.gates;
  gates.push_back(repeat_gate(measured.pass_us[0], measured.pass_us[1], repeat_limit));
  const Judged held_out = judge(profile, sheet, measured, PointRole::held_out);
  const Judged steps = judge(profile, sheet, measured, PointRole::composite);
  gates.push_back(error_gate("held-out sizes", held_out.errors(), 0.10, 0.20));
  // Each product separately too: good predictions of one product must not hide bad ones of another.
  for (const Kernel product : {Kernel::gemm_naive16, Kernel::gemm_tiled, Kernel::gemm_fp32, Kernel::gemm_bf16}) {
    if (!backend.supports(product)) continue;
    const Judged of_product = judge(profile, sheet, measured, PointRole::held_out, product);
    gates.push_back(error_gate("held-out " + std::string(to_string(product)), of_product.errors(), 0.10, 0.20));
  }
  gates.push_back(error_gate("composite steps", steps.errors(), 0.10, measured.facts.is_hopper ? 0.20 : 0.15));
  gates.push_back(better_gate("steps against " + against, steps.errors(), steps.baseline_errors()));
  if (shipped) gates.back().note = "the sheet of " + shipped->model;
  for (const Judged* judged : {&held_out, &steps}) {
    profile.validation.points.insert(profile.validation.points.end(), judged->points.begin(), judged->points.end());
  }
  gates.push_back(energy_gate(profile, measured));
  for (Gate& gate : co_location_gates(measured.slowdown)) gates.push_back(std::move(gate));
  profile.validation.verdict = verdict_of(gates);
}

Gate error_gate(std::string name, const ErrorSummary& errors, double mape_limit, double p90_limit) {
  Gate gate{.name = std::move(name), .value_ratio = errors.mape_ratio, .limit_ratio = mape_limit, .n = errors.n};
  if (errors.n == 0) return gate;
  gate.status = errors.mape_ratio <= mape_limit && errors.p90_ratio <= p90_limit ? "pass" : "fail";
  gate.note = "p90 " + percent_text(errors.p90_ratio) + " of at most " + percent_text(p90_limit);
  return gate;
}

Gate better_gate(std::string name, const ErrorSummary& fitted, const ErrorSummary& baseline) {
  Gate gate{
      .name = std::move(name), .value_ratio = fitted.mape_ratio, .limit_ratio = baseline.mape_ratio, .n = fitted.n};
  if (fitted.n == 0) return gate;
  gate.status = fitted.mape_ratio < baseline.mape_ratio ? "pass" : "fail";
  return gate;
}

Gate repeat_gate(std::span<const double> first, std::span<const double> second, double limit) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(std::abs(first[i] / second[i] - 1));
  Gate gate{.name = "repeat", .limit_ratio = limit, .n = static_cast<std::uint32_t>(differences.size())};
  if (differences.empty()) return gate;
  gate.note = "95th percentile between two passes; median " + percent_text(quantile(differences, 0.5));
  gate.value_ratio = quantile(std::move(differences), 0.95);
  gate.status = gate.value_ratio <= limit ? "pass" : "fail";
  return gate;
}

std::string verdict_of(std::span<const Gate> gates) {
  bool ran = false;
  for (const Gate& gate : gates) {
    if (gate.status == "fail") return "fail";
    ran = ran || gate.status == "pass";
  }
  return ran ? "pass" : "not_run";
}

}  // namespace gpusched
