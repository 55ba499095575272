// SPDX-License-Identifier: Apache-2.0
/// Percentiles, as Metrics says how.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpusched::detail {

/// Percentile p in [0, 1] by the rule of Metrics; reorders `values`. Precondition: not empty.
inline double percentile(std::span<std::int64_t> values, double p) {
  const double position = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const auto low = static_cast<double>(*at);
  if (below + 1 >= values.size()) return low;
  const auto high = static_cast<double>(*std::min_element(at + 1, values.end()));
  return low + (high - low) * (position - static_cast<double>(below));
}

}  // namespace gpusched::detail
