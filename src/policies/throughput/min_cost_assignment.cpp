// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/min_cost_assignment.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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
  // Of columns whose distance is settled `open` is infinite and `barred` makes every way to them infinitely long, so
  // that the loops over all columns ask nothing else.
  std::vector<double> distance(columns), open(columns), barred(columns);
  std::vector<std::uint32_t> from_row(columns), done;  // the row before a column on the shortest path to it
  for (std::uint32_t added = 0; added < rows; ++added) {
    std::fill(open.begin(), open.end(), never);
    barred = column_potential;
    done.clear();
    const auto relax = [&](std::uint32_t row, double so_far) {
      const double* const costs = &cost[std::size_t{row} * columns];
      const double potential = row_potential[row];
      for (std::uint32_t column = 0; column < columns; ++column) {
        const double through = so_far + (costs[column] - potential - barred[column]);
        if (through >= open[column]) continue;
        open[column] = through;
        from_row[column] = row;
      }
    };
    relax(added, 0);
    std::uint32_t end = no_index;
    while (end == no_index) {
      // A branch that is seldom taken: std::min_element would wait for each comparison.
      std::uint32_t nearest = no_index;
      double least = never;
      for (std::uint32_t column = 0; column < columns; ++column) {
        if (open[column] < least) [[unlikely]] {
          least = open[column];
          nearest = column;
        }
      }
      GPUSCHED_ASSERT(nearest != no_index, "no assignment has a finite cost");
      distance[nearest] = std::exchange(open[nearest], never);
      barred[nearest] = -never;
      done.push_back(nearest);
      if (rows_of[nearest].size() < capacity[nearest]) {
        end = nearest;
      } else {
        for (const std::uint32_t row : rows_of[nearest]) relax(row, distance[nearest]);
      }
    }
    const double length = distance[end];
    for (const std::uint32_t column : done) {
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
