// SPDX-License-Identifier: Apache-2.0
/// SignalReader: what an agent is told of carbon, prices, draw and caps (SignalFeature).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/data/signal.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched::detail {

/// Reads the signals of one run. A value.
class SignalReader {
 public:
  /// `forecast`: how the future is told.
  explicit SignalReader(const Forecast& forecast) : forecast_(forecast) {}

  /// When a signal changes next, after now; Time::max(): never. Precondition: the run has a power model.
  [[nodiscard]] static Time next_change(const View& view) {
    GPUSCHED_ASSERT(view.knows_power(), "signals need a power model");
    Time next = Time::max();
    for (const PowerPlace& place : view.places()) {
      next =
          std::min({next, place.carbon_g_per_kwh.next_change(view.now()), place.usd_per_mwh.next_change(view.now())});
    }
    for (const PowerCap& cap : view.power_model().caps) next = std::min(next, cap.watts.next_change(view.now()));
    return next;
  }

  /// Writes signal_features floats. The same precondition.
  void write(const View& view, float* out) const {
    if (weights_.empty()) look_up(view);
    std::fill_n(out, int{signal_features}, 0.0f);
    write_figure(view, &PowerPlace::carbon_g_per_kwh, out + carbon_level);
    write_figure(view, &PowerPlace::usd_per_mwh, out + price_level);
    out[draw_share] = cut(view.draw_w() / full_w_);
    out[headroom] = cut(view.headroom_w() / full_w_);
    write_caps(view, out);
  }

 private:
  static constexpr std::int64_t hour_us = 3600 * microseconds_per_second;
  static constexpr int day_h = 24;

  static Time in_hours(Time now, int hours) { return Time{now.us + hours * hour_us}; }
  static float cut(double value) { return static_cast<float>(std::clamp(value, -1.0, 1.0)); }

  // What a run does not change: the share of nodes at each place, and their draw when all work.
  void look_up(const View& view) const {
    const PowerModel& model = view.power_model();
    weights_.assign(std::max<std::size_t>(1, model.places.size()), 0);
    std::int64_t full_mw = 0;  // whole numbers, whose sum no order of nodes changes
    const std::uint32_t nodes = view.cluster().node_count();
    for (std::uint32_t i = 0; i < nodes; ++i) {
      weights_[model.place_of.empty() ? 0 : model.place_of[i]] += 1.0 / nodes;
      const NodePower& kind = model.kinds[model.kind_of[i]];
      double full_w = kind.base_w + kind.cpus * kind.cpu.watts(1);
      const std::uint32_t gpus = view.cluster().node_gpus(NodeId{i});
      if (gpus > 0) full_w += gpus * model.gpus[view.cluster().node_gpu_type(NodeId{i})].load.watts(1);
      full_mw += std::llround(full_w * 1e3);
    }
    full_w_ = static_cast<double>(std::max<std::int64_t>(1, full_mw)) / 1e3;
  }

  // The mean over places.
  template <class Value>
  double mean(const View& view, Signal PowerPlace::*figure, Value value) const {
    double sum = 0;
    for (std::size_t i = 0; i < view.places().size(); ++i) sum += weights_[i] * value(view.places()[i].*figure);
    return sum;
  }

  void write_figure(const View& view, Signal PowerPlace::*figure, float* out) const {
    const auto is_known = [figure](const PowerPlace& place) { return !(place.*figure).is_empty(); };
    if (std::none_of(view.places().begin(), view.places().end(), is_known)) return;
    const Time now = view.now();
    const double present = mean(view, figure, [&now](const Signal& signal) { return signal.at(now); });
    double all = std::abs(present);
    int less = 0;
    for (int hour = 1; hour <= day_h; ++hour) {
      const Time then = in_hours(now, -hour);
      const double past = mean(view, figure, [&then](const Signal& signal) { return signal.at(then); });
      all += std::abs(past);
      less += past < present ? 1 : 0;
    }
    if (all == 0) return;
    const double day_mean = all / (day_h + 1);
    out[carbon_level] = cut(present / day_mean - 1);
    out[carbon_rank] = static_cast<float>(less) / day_h;
    double least = present;
    int least_in = 0;
    for (int hour = 1; hour <= day_h; ++hour) {
      const Time then = in_hours(now, hour);
      const double expected = mean(view, figure, [this, &now, &then](const Signal& signal) {
        return signal.is_empty() ? 0.0 : forecast_.at(signal, now, then);
      });
      if (const int feature = feature_of(hour); feature >= 0) out[feature] = cut((expected - present) / day_mean);
      if (expected >= least) continue;
      least = expected;
      least_in = hour;
    }
    out[carbon_least] = cut((least - present) / day_mean);
    out[carbon_least_in] = static_cast<float>(least_in) / day_h;
  }

  static int feature_of(int hour) {
    switch (hour) {
      case 1: return carbon_1h;
      case 3: return carbon_3h;
      case 6: return carbon_6h;
      case 12: return carbon_12h;
      case 24: return carbon_24h;
      default: return -1;
    }
  }

  void write_caps(const View& view, float* out) const {
    double next = 0, deepest = 0;
    for (const PowerCap& cap : view.power_model().caps) {
      const double present = cap.watts.at(view.now());
      for (int hour = 1; hour <= day_h; ++hour) {
        const double change = forecast_.at(cap.watts, view.now(), in_hours(view.now(), hour)) - present;
        if (hour == 1 && std::abs(change) > std::abs(next)) next = change;
        deepest = std::min(deepest, change);
      }
    }
    out[cap_1h] = cut(next / full_w_);
    out[cap_least] = cut(deepest / full_w_);
  }

  Forecast forecast_;
  mutable std::vector<double> weights_;  // by place; filled when first asked for
  mutable double full_w_ = 1;
};

}  // namespace gpusched::detail
