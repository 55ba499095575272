// SPDX-License-Identifier: Apache-2.0
/// DecayingUsage: past GPU time that counts half after each half-life.
#pragma once

#include <cmath>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// An owner's GPU time with a half-life: what was used one half-life ago counts half.
class DecayingUsage {
 public:
  explicit DecayingUsage(double half_life_s) : half_life_s_(half_life_s) {}

  /// GPUs held from now on.
  void hold(Time now, MilliGpu change) {
    settle(now);
    held_ += change;
  }
  /// Uses what `before` did until now, and holds what it holds itself.
  void inherit(const DecayingUsage& before, Time now) {
    used_ = before.at(now);
    settled_ = now;
  }
  /// GPU-seconds used until `now`, decayed.
  [[nodiscard]] double at(Time now) const {
    if (held_ == 0 && used_ == 0) return 0;  // before the first hold, which may be long before time 0
    const double dt = to_seconds(now - settled_);
    const double kept = std::exp2(-dt / half_life_s_);
    const double gpus = static_cast<double>(held_) / static_cast<double>(whole_gpu);
    return used_ * kept + gpus * half_life_s_ / ln2 * (1 - kept);
  }

 private:
  static constexpr double ln2 = 0.693147180559945309;
  void settle(Time now) {
    used_ = at(now);
    settled_ = now;
  }

  double half_life_s_;
  double used_ = 0;
  Time settled_{};
  MilliGpu held_ = 0;
};

}  // namespace gpusched
