// SPDX-License-Identifier: Apache-2.0
/// DoublingLevels: amounts of service or time in levels that double in length.
#pragma once

#include <bit>
#include <cstdint>

namespace gpusched {

/// Amounts of microseconds (times GPUs) cut into levels: below `first` is level 0, then every doubling is cut into
/// `steps` equal ones. Precondition: `steps` is a power of two and divides `first`.
struct DoublingLevels {
  std::int64_t first;  ///< where level 0 ends, in microseconds (times GPUs)
  std::int64_t steps;  ///< levels per doubling

  /// The level that an amount lies in. Precondition: amount >= 0.
  [[nodiscard]] constexpr std::uint32_t level(std::int64_t amount) const {
    const std::int64_t units = amount / (first / steps);
    if (units < steps) return 0;
    const int doublings = bits(units) - bits(steps);
    return static_cast<std::uint32_t>(1 + doublings * steps + (units >> doublings) - steps);
  }
  /// Where a level begins.
  [[nodiscard]] constexpr std::int64_t begin(std::uint32_t level) const {
    if (level == 0) return 0;
    const std::int64_t past = level - 1;
    return first / steps * ((steps + past % steps) << (past / steps));
  }
  /// Times that the amount doubled to reach the level, 0 for level 0.
  [[nodiscard]] constexpr float doublings(std::uint32_t level) const {
    return static_cast<float>(level) / static_cast<float>(steps);
  }

 private:
  static constexpr int bits(std::int64_t x) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x))); }
};

}  // namespace gpusched
