// SPDX-License-Identifier: Apache-2.0
/// Rates: how fast work passes, and their product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Speed in parts per million of the reference device; 1,000,000 = work passes in real time. Also a factor on a speed.
using RatePpm = std::uint32_t;
inline constexpr RatePpm reference_rate = 1'000'000;  ///< the speed of the reference device; the factor 1

/// `rate` times `factor`, rounded down but at least 1: the one rounding of each factor of a job's rate.
constexpr RatePpm scaled_rate(RatePpm rate, RatePpm factor) {
  if (factor == reference_rate) return rate;
  const std::uint64_t product = std::uint64_t{rate} * factor / reference_rate;
  return static_cast<RatePpm>(std::clamp<std::uint64_t>(product, 1, std::numeric_limits<RatePpm>::max()));
}

/// Work that passes in `span` at `rate`, rounded down.
constexpr Time work_done(RatePpm rate, Time span) {
  if (rate == reference_rate) return span;
  return {mul_div(span.us, rate, reference_rate)};
}

/// Time that `work` takes at `rate`, rounded up, so that an end never comes early; Time::max() when it never comes.
/// With work_done() the one home of rounding.
constexpr Time time_needed(RatePpm rate, Time work) {
  if (rate == reference_rate) return work;
  return rate == 0 ? Time::max() : Time{mul_div_up(work.us, reference_rate, rate)};
}

}  // namespace gpusched
