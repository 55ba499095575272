// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/min_cost_assignment.hpp"

#include <algorithm>
#include <limits>

#include "gpusched/core/types.hpp"

namespace gpusched {

std::vector<std::uint32_t> min_cost_assignment(const std::vector<double>& cost,
                                               const std::vector<std::uint32_t>& capacity) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto columns = static_cast<std::uint32_t>(capacity.size());
  const auto rows = static_cast<std::uint32_t>(cost.size() / capacity.size());
  std::vector<std::vector<std::uint32_t>> rows_of(columns);
  std::vector<std::uint32_t> column_of(rows, no_index);
  // With these potentials the reduced cost cost - row - column of a pair is never negative, and 0 where it is assigned.
  std::vector<double> row_potential(rows, 0.0), column_potential(columns, 0.0);
  for (std::uint32_t added = 0; added < rows; ++added) {
    std::vector<double> distance(columns, never);
    std::vector<std::uint32_t> from_row(columns, no_index);  // the row before a column on the shortest path to it
    std::vector<bool> done(columns, false);
    const auto relax = [&](std::uint32_t row, double so_far) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        if (done[column]) continue;
        const double reduced =
            cost[std::size_t{row} * columns + column] - row_potential[row] - column_potential[column];
        if (so_far + reduced >= distance[column]) continue;
        distance[column] = so_far + reduced;
        from_row[column] = row;
      }
    };
    relax(added, 0);
    std::uint32_t end = no_index;
    while (end == no_index) {
      std::uint32_t nearest = no_index;
      for (std::uint32_t column = 0; column < columns; ++column) {
        if (!done[column] && distance[column] < never &&
            (nearest == no_index || distance[column] < distance[nearest])) {
          nearest = column;
        }
      }
      GPUSCHED_ASSERT(nearest != no_index, "no assignment has a finite cost");
      done[nearest] = true;
      if (rows_of[nearest].size() < capacity[nearest]) {
        end = nearest;
      } else {
        for (const std::uint32_t row : rows_of[nearest]) relax(row, distance[nearest]);
      }
    }
    const double length = distance[end];
    for (std::uint32_t column = 0; column < columns; ++column) {
      if (!done[column]) continue;
      for (const std::uint32_t row : rows_of[column]) row_potential[row] += length - distance[column];
      column_potential[column] -= length - distance[column];
    }
    row_potential[added] += length;
    for (std::uint32_t column = end;;) {
      const std::uint32_t row = from_row[column], before = column_of[row];
      column_of[row] = column;
      rows_of[column].push_back(row);
      if (row == added) break;
      rows_of[before].erase(std::find(rows_of[before].begin(), rows_of[before].end(), row));
      column = before;
    }
  }
  return column_of;
}

}  // namespace gpusched
