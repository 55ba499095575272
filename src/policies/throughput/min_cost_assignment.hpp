// SPDX-License-Identifier: Apache-2.0
/// The assignment of least total cost.
#pragma once

#include <cstdint>
#include <vector>

namespace gpusched {

/// Gives every row one of `capacity.size()` columns, each of which takes as many rows as its capacity says, at the
/// least sum of costs. `cost[row * columns + column]` is finite, or infinite where not allowed. Returns the column of
/// each row. Successive shortest paths by Dijkstra with potentials (Edmonds and Karp, JACM 1972; the Hungarian method
/// where capacities are 1): O(rows x columns x (rows + columns)). Ties go to the lower column. Precondition: a finite
/// assignment exists.
std::vector<std::uint32_t> min_cost_assignment(const std::vector<double>& cost,
                                               const std::vector<std::uint32_t>& capacity);

}  // namespace gpusched
