// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/profile_tables.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/calibration/profile/duration_model.hpp"
#include "src/calibration/profile/job_family.hpp"

namespace gpusched {
namespace {

std::string short_number(double value) {
  std::ostringstream text;
  text.precision(5);
  text << value;
  return text.str();
}

std::string cell(const std::string& text, std::size_t width) {
  return text.size() >= width ? text + " " : text + std::string(width - text.size(), ' ');
}

/// True when a's interval lies entirely below b's; an open end is infinite. Precondition: both have an interval.
bool below(const Quantity& a, const Quantity& b) {
  return a.bound != "at_least" && b.bound != "at_most" && (*a.ci95)[1] < (*b.ci95)[0];
}

std::string describe_value(const Quantity& value) {
  if (value.source == Source::unavailable) return "unavailable";
  const std::string unit = value.unit == "1" ? "" : " " + value.unit;
  if (!value.bound.empty() && value.ci95) {
    const bool at_least = value.bound == "at_least";
    return "not identified: " + std::string(at_least ? ">= " : "<= ") + short_number((*value.ci95)[at_least ? 0 : 1]) +
           unit;
  }
  std::string text = short_number(value.value) + unit;
  if (value.ci95) text += " [" + short_number((*value.ci95)[0]) + ", " + short_number((*value.ci95)[1]) + "]";
  return text;
}

/// "12.5 %"; two digits below one percent.
std::string percent(double ratio) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(std::abs(ratio) < 0.00995 ? 2 : 1);
  text << 100 * ratio << " %";
  return text.str();
}

/// A column as wide as its longest text, and a space.
template <class Range, class Text>
std::size_t width_of(const Range& rows, Text text) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, text(row).size());
  return width + 1;
}

/// The training steps and the seed program's product: work with well-known names that was never used in a fit.
std::string show_steps(const std::vector<ValidationPoint>& points) {
  const std::string seed_id = "held " + describe(seed_program);
  std::vector<ValidationPoint> shown;
  for (const ValidationPoint& point : points) {
    if (point.id == seed_id || point.id.starts_with("step ")) shown.push_back(point);
  }
  if (shown.empty()) return {};
  const std::size_t width = width_of(shown, [](const ValidationPoint& point) { return point.id; });
  std::string text = "\n" + cell("never fitted", width) + cell("timed, us", 12) + cell("predicted", 12) + "roofline\n";
  for (const ValidationPoint& point : shown) {
    text += cell(point.id, width) + cell(short_number(point.timed_us), 12) +
            cell(short_number(point.predicted_us), 12) + short_number(point.roofline_us);
    if (point.id == seed_id) text += "  " + short_number(flops_of(seed_program) / point.timed_us / 1e3) + " GFLOP/s";
    text += "\n";
  }
  return text;
}

std::string show_gates(const std::vector<Gate>& gates) {
  const std::size_t width = width_of(gates, [](const Gate& gate) { return gate.name; });
  std::string text = "\n";
  for (const Gate& gate : gates) {
    text += cell(gate.status, 8);
    if (gate.status == "not_run") {
      text += cell(gate.name, width) + gate.note + "\n";
      continue;
    }
    const std::string found = percent(gate.value_ratio) + " of at most " + percent(gate.limit_ratio);
    text += cell(gate.name, width) + cell(found, 26) + cell("n=" + std::to_string(gate.n), 7) + gate.note;
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

std::string show_interference(const Interference& matrix) {
  std::string text =
      "\nslowdown of row beside column (" + matrix.mode + ", " + std::string(to_string(matrix.source)) + ")\n";
  text += cell("", 10);
  for (const std::string& kernel : matrix.kernels) text += cell(kernel, 9);
  for (std::size_t row = 0; row < matrix.kernels.size(); ++row) {
    text += "\n" + cell(matrix.kernels[row], 10);
    for (const double slowdown : matrix.slowdown[row]) text += cell(short_number(std::round(slowdown * 100) / 100), 9);
  }
  return text + "\n";
}

struct SpeedUp {
  std::string what;
  Result<Prediction> on_a, on_b;
};

}  // namespace

std::string show_device_profile(const DeviceProfile& profile) {
  std::string text = profile.profile_id + ": " + profile.vendor + " " + profile.model + " (" + profile.kind +
                     "), backend " + profile.backend + ", " + profile.created_utc + "\n";
  for (const auto& [name, fact] : profile.environment) text += "  " + cell(name, 22) + fact + "\n";
  text += "\n";
  const auto quantities = all_quantities(profile);
  const std::size_t path_width = width_of(quantities, [](const auto& row) { return row.first; });
  const std::size_t value_width = width_of(quantities, [](const auto& row) { return describe_value(row.second); });
  for (const auto& [path, value] : quantities) {
    text += cell(path, path_width) + cell(describe_value(value), value_width) + std::string(to_string(value.source));
    if (value.n > 0) text += " n=" + std::to_string(value.n);
    if (!value.ref.empty()) text += " " + value.ref;
    text += "\n";
  }
  for (const auto* matrix : {&profile.interference, &profile.process_interference}) {
    if (*matrix) text += show_interference(**matrix);
  }
  text += show_steps(profile.validation.points);
  if (!profile.validation.gates.empty()) text += show_gates(profile.validation.gates);
  return text + "verdict: " + profile.validation.verdict + "\n";
}

std::string compare_device_profiles(const DeviceProfile& a, const DeviceProfile& b) {
  const auto all_of_a = all_quantities(a);
  std::map<std::string, Quantity> of_b;
  for (auto& [path, value] : all_quantities(b)) of_b[path] = value;
  const auto path_of = [](const auto& row) { return row.first; };
  const auto text_of = [](const auto& row) { return describe_value(row.second); };
  const std::size_t path_width = std::max(width_of(all_of_a, path_of), width_of(of_b, path_of));
  const std::size_t a_width = width_of(all_of_a, text_of);
  const std::size_t b_width = width_of(of_b, text_of);
  std::string text = "a = " + a.profile_id + ", b = " + b.profile_id + "\n";
  for (const auto& [path, value] : all_of_a) {
    const auto other = of_b.find(path);
    text += cell(path, path_width) + cell(describe_value(value), a_width);
    if (other == of_b.end()) {
      text += cell("", b_width) + "only in a\n";
      continue;
    }
    text += cell(describe_value(other->second), b_width);
    if (value.value > 0 && value.source != Source::unavailable && other->second.source != Source::unavailable) {
      text += "b/a " + short_number(other->second.value / value.value);
    }
    if (value.ci95 && other->second.ci95) {
      if (below(value, other->second) || below(other->second, value)) text += ", intervals do not overlap";
    }
    text += "\n";
    of_b.erase(other);
  }
  for (const auto& [path, value] : of_b)
    text += cell(path, path_width) + cell("", a_width) + cell(describe_value(value), b_width) + "only in b\n";
  return text;
}

std::string speed_up_table(const DeviceProfile& a, const DeviceProfile& b) {
  constexpr std::int64_t mebi = 1 << 20;
  const std::vector<KernelCall> calls = {seed_program,
                                         {Kernel::gemm_tiled, 2048, 2048, 2048},
                                         {Kernel::gemm_fp32, 4096, 4096, 4096},
                                         {Kernel::gemm_bf16, 4096, 4096, 4096},
                                         {Kernel::conv2d, 32, 64, 56},
                                         {Kernel::copy, 64 * mebi},
                                         {Kernel::softmax, 65536, 1024},
                                         {Kernel::layernorm, 65536, 1024},
                                         {Kernel::stencil7, 400},
                                         {Kernel::gather, 16 * mebi, 64 * mebi},
                                         {Kernel::histogram, 64 * mebi},
                                         {Kernel::h2d_pageable, 256 * mebi}};
  std::vector<SpeedUp> rows;
  rows.reserve(calls.size());
  for (const KernelCall& call : calls) {
    rows.push_back({describe(call), predict(a, call), predict(b, call)});
  }
  for (const JobFamily& family : job_families()) {
    if (!family.words.empty()) {
      rows.push_back({"step " + family.name, predict_step(a, family.name), predict_step(b, family.name)});
    }
  }
  const std::size_t width = width_of(rows, [](const SpeedUp& row) { return row.what; });
  std::string text = "\n" + cell("predicted time, us", width) + cell("a", 12) + cell("b", 12) + "a/b\n";
  for (const SpeedUp& row : rows) {
    const auto time = [](const Result<Prediction>& known) { return known ? short_number(known->time_us) : "unknown"; };
    text += cell(row.what, width) + cell(time(row.on_a), 12) + cell(time(row.on_b), 12);
    if (row.on_a && row.on_b) text += short_number(row.on_a->time_us / row.on_b->time_us);
    text += "\n";
  }
  return text;
}

}  // namespace gpusched
