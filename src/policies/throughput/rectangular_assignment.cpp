// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/rectangular_assignment.hpp"

#include <limits>
#include <utility>

#include "gpusched/core/types.hpp"

namespace gpusched {
namespace {

using Cost = std::function<double(std::uint32_t, std::uint32_t)>;

class AugmentingPaths {
 public:
  AugmentingPaths(std::uint32_t rows, std::uint32_t columns, const Cost& cost)
      : cost_(cost), row_dual_(rows, 0.0), column_dual_(columns, 0.0), column_of_(rows, no_index) {
    row_of_.assign(columns, no_index);
    before_.resize(columns);
  }

  std::vector<std::uint32_t> assign() {
    for (std::uint32_t row = 0; row < column_of_.size(); ++row) augment(row, shortest_path(row));
    return std::move(column_of_);
  }

 private:
  // From `row` to the nearest free column, which it returns; then raises the dual variables along it.
  std::uint32_t shortest_path(std::uint32_t row) {
    const auto columns = static_cast<std::uint32_t>(row_of_.size());
    std::vector<double> distance(columns, std::numeric_limits<double>::infinity());
    std::vector<std::uint32_t> left(columns), rows, reached;
    for (std::uint32_t i = 0; i < columns; ++i) left[i] = columns - 1 - i;
    double length = 0;
    std::uint32_t end = no_index;
    for (std::uint32_t from = row; end == no_index;) {
      rows.push_back(from);
      std::size_t nearest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < left.size(); ++i) {
        const std::uint32_t column = left[i];
        const double through = length + cost_(from, column) - row_dual_[from] - column_dual_[column];
        if (through < distance[column]) {
          distance[column] = through;
          before_[column] = from;
        }
        if (distance[column] < least || (distance[column] == least && row_of_[column] == no_index)) {
          least = distance[column];
          nearest = i;
        }
      }
      length = least;
      const std::uint32_t column = left[nearest];
      reached.push_back(column);
      left[nearest] = left.back();
      left.pop_back();
      from = row_of_[column];
      if (from == no_index) end = column;
    }
    row_dual_[row] += length;
    for (const std::uint32_t other : rows) {
      if (other != row) row_dual_[other] += length - distance[column_of_[other]];
    }
    for (const std::uint32_t column : reached) column_dual_[column] -= length - distance[column];
    return end;
  }

  // Each row of the path to `end` takes the column after it.
  void augment(std::uint32_t row, std::uint32_t end) {
    for (std::uint32_t column = end;;) {
      const std::uint32_t from = before_[column];
      row_of_[column] = from;
      std::swap(column_of_[from], column);
      if (from == row) return;
    }
  }

  const Cost& cost_;
  std::vector<double> row_dual_, column_dual_;
  std::vector<std::uint32_t> column_of_, row_of_;  // of each row, of each column
  std::vector<std::uint32_t> before_;              // the row before a column on the shortest path to it
};

}  // namespace

std::vector<std::uint32_t> rectangular_assignment(std::uint32_t rows, std::uint32_t columns, const Cost& cost) {
  GPUSCHED_ASSERT(rows <= columns, "more rows than columns");
  return AugmentingPaths(rows, columns, cost).assign();
}

}  // namespace gpusched
