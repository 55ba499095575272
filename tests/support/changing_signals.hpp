// SPDX-License-Identifier: Apache-2.0
/// Signals that change every few seconds, for policies that read them in worlds of a minute or two.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/data/power_model.hpp"

namespace gpusched::test {

/// Each holds for `changing_step_s`, the last for ever.
inline constexpr std::int64_t changing_step_s = 4;
inline constexpr std::array<std::int64_t, 24> changing_carbon{7, 5, 9, 3, 3, 8, 2, 6, 4, 9, 1, 7,
                                                              5, 2, 8, 6, 3, 9, 4, 7, 2, 5, 8, 5};
inline constexpr std::array<std::int64_t, 24> changing_price{2, -1, 4, 4,  0, 5, -3, 1, 6, 2, 3,  -2,
                                                             7, 1,  0, -4, 5, 2, 3,  8, 1, 0, -1, 2};

inline Signal changing_signal(std::span<const std::int64_t> values, Time shift = {}) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i) {
    steps.push_back({whole_seconds(changing_step_s * static_cast<std::int64_t>(i)) + shift, values[i] * 1'000'000});
  }
  return Signal(std::move(steps));
}

/// A run's power as far as policies read it when they are made: carbon and prices, `shift` later; and what 16 types of
/// GPUs and up to 16,384 nodes draw.
inline PowerModel changing_signals(Time shift = {}) {
  PowerModel model;
  model.places = {{.carbon_g_per_kwh = changing_signal(changing_carbon, shift),
                   .usd_per_mwh = changing_signal(changing_price, shift)}};
  for (int type = 0; type < 16; ++type) {
    const double full_w = 200.0 + 30 * type;
    model.gpus.push_back({.load = {.idle_w = 20.0 + type, .full_w = full_w},
                          .limits = {{full_w / 2, 0.5, 700'000}, {full_w, 1, reference_rate}}});
  }
  model.kinds = {{.base_w = 50, .cpu = {.idle_w = 20, .full_w = 120}, .cpus = 2}};
  model.kind_of.assign(std::size_t{1} << 14, 0);
  return model;
}

/// The same without a shift, made once.
inline const PowerModel& signals_of_tests() {
  static const PowerModel model = changing_signals();
  return model;
}

}  // namespace gpusched::test
