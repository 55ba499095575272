// SPDX-License-Identifier: Apache-2.0
/// The assignment of least total cost, with the ties of a particular algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace gpusched {

/// Gives each of `rows` a column of its own, of `columns` >= rows, at the least sum of costs; returns the column of
/// each row. Shortest augmenting paths, a row at a time (Crouse, "On implementing 2D rectangular assignment
/// algorithms", IEEE Transactions on Aerospace and Electronic Systems 52(4), 2016). Of columns at equal distance a path
/// goes to a free one, the lowest, as SciPy's linear_sum_assignment does: published programs choose among assignments
/// of equal cost by that. `cost(row, column)` is finite. O(rows^2 x columns).
std::vector<std::uint32_t> rectangular_assignment(std::uint32_t rows, std::uint32_t columns,
                                                  const std::function<double(std::uint32_t, std::uint32_t)>& cost);

}  // namespace gpusched
