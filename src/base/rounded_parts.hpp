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

/// Each part in whole units, so that their sum is that of the parts, rounded to the nearest unit (a half up): each is
/// rounded down, and what is left goes to those with the largest remainders, the first of equals first. Parts may be
/// negative. Precondition: unit > 0.
template <class Wide>
std::vector<std::int64_t> rounded_parts(std::span<const Wide> parts, Wide unit) {
  const auto floor = [unit](Wide value) {
    const Wide down = value / unit;
    return down * unit > value ? down - 1 : down;
  };
  std::vector<std::int64_t> whole(parts.size());
  Wide sum = 0, given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    whole[i] = static_cast<std::int64_t>(floor(parts[i]));
    sum += parts[i];
    given += whole[i];
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parts[a] - whole[a] * unit > parts[b] - whole[b] * unit;
  });
  const auto left = static_cast<std::size_t>(floor(sum + unit / 2) - given);
  for (std::size_t i = 0; i < std::min(left, order.size()); ++i) ++whole[order[i]];
  return whole;
}

}  // namespace gpusched
