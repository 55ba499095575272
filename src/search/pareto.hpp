// SPDX-License-Identifier: Apache-2.0
/// Pareto dominance between vectors of losses: less is better in each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gpusched {

/// A point in the space of objectives; less is better in each coordinate.
using Losses = std::vector<double>;

/// True when `a` is nowhere worse than `b` and better somewhere. Precondition: the same length.
inline bool dominates(const Losses& a, const Losses& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

/// The numbers, ascending, of those that no other dominates. Of equal points all are given. O(points^2).
inline std::vector<std::size_t> non_dominated(std::span<const Losses> points) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool is_dominated = false;
    for (std::size_t j = 0; j < points.size() && !is_dominated; ++j) is_dominated = dominates(points[j], points[i]);
    if (!is_dominated) front.push_back(i);
  }
  return front;
}

}  // namespace gpusched
