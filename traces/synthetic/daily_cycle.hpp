// SPDX-License-Identifier: Apache-2.0
/// The daily cycle of the model of Lublin and Feitelson: how busy each half hour of the day is.
#pragma once

#include <array>
#include <cstddef>

#include "traces/synthetic/gamma_distribution.hpp"

namespace gpusched {

/// Turns weighted seconds, of which a busy half hour has more than a quiet one, into seconds of the clock and back. A
/// day has 86,400 of either. Time 0 is a midnight.
class DailyCycle {
 public:
  static constexpr std::size_t slots = 48;  ///< half hours of a day
  static constexpr double slot_s = 1800;    ///< their length
  static constexpr std::size_t first = 10;  ///< where the cycle begins, 05:00, the quietest time of day

  /// The weight of the slot that is the k-th of the cycle, from first + 1 on, is the probability of k - 1/2 to k + 1/2
  /// under `count`. Precondition: has_weight(count).
  explicit DailyCycle(const GammaDistribution& count);

  /// Whether `count` leaves the cycle a probability above 1e-6.
  static bool has_weight(const GammaDistribution& count);

  /// Weight of a half hour; their mean is 1.
  [[nodiscard]] double weight(std::size_t slot) const { return weight_[slot]; }
  /// The time at which so many weighted seconds have passed since midnight of day 0. Precondition: >= 0.
  [[nodiscard]] double clock_s(double weighted_s) const;
  /// Weighted seconds between midnight of day 0 and that time. Precondition: >= 0.
  [[nodiscard]] double weighted_s(double clock_s) const;

 private:
  std::array<double, slots> weight_{};
  std::array<double, slots + 1> upto_s_{};  ///< weighted seconds of a day until a slot begins
};

}  // namespace gpusched
