// SPDX-License-Identifier: Apache-2.0
/// Multiples of a period, counted from time zero: when policies act that decide at fixed times.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// The first multiple of `period` at `t` or later; before time zero too. Precondition: period > 0.
constexpr Time multiple_from(Time t, Time period) {
  const std::int64_t rest = t.us % period.us;  // of the sign of t
  return {t.us - rest + (rest > 0 ? period.us : 0)};
}

/// The first multiple of `period` after `t`. Precondition: period > 0.
constexpr Time multiple_after(Time t, Time period) { return multiple_from(t + Time{1}, period); }

}  // namespace gpusched
