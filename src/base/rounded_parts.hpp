// SPDX-License-Identifier: Apache-2.0
/// Rounds parts so that they still add up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace gpusched {

/// Each part in whole units, so that they add up to `whole_sum`: each is rounded down, and what is left goes to those
/// with the largest remainders, the first of equals first. Parts may be negative. Preconditions: unit > 0; `whole_sum`
/// is the sum of the parts in units, rounded down or up.
template <class Wide>
std::vector<std::int64_t> rounded_parts(std::span<const Wide> parts, Wide unit, Wide whole_sum) {
  const auto floor = [unit](Wide value) {
    const Wide down = value / unit;
    return down * unit > value ? down - 1 : down;
  };
  std::vector<std::int64_t> whole(parts.size());
  Wide given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    whole[i] = static_cast<std::int64_t>(floor(parts[i]));
    given += whole[i];
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parts[a] - whole[a] * unit > parts[b] - whole[b] * unit;
  });
  const auto left = static_cast<std::size_t>(whole_sum - given);
  for (std::size_t i = 0; i < std::min(left, order.size()); ++i) ++whole[order[i]];
  return whole;
}

/// The same with the sum of the parts rounded to the nearest unit, a half up.
template <class Wide>
std::vector<std::int64_t> rounded_parts(std::span<const Wide> parts, Wide unit) {
  const Wide raised = std::accumulate(parts.begin(), parts.end(), Wide{0}) + unit / 2;
  const Wide down = raised / unit;
  return rounded_parts(parts, unit, down * unit > raised ? down - 1 : down);
}

}  // namespace gpusched
