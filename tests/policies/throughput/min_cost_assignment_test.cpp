// SPDX-License-Identifier: Apache-2.0
// The assignment of least cost, against all assignments that there are.
#include "src/policies/throughput/min_cost_assignment.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <vector>

#include "tests/differential/check_many.hpp"

namespace gpusched::test {
namespace {

double least_cost(const std::vector<double>& cost, std::vector<std::uint32_t> capacity, std::size_t row) {
  const std::size_t columns = capacity.size();
  if (row * columns == cost.size()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t column = 0; column < columns; ++column) {
    if (capacity[column] == 0) continue;
    --capacity[column];
    best = std::min(best, cost[row * columns + column] + least_cost(cost, capacity, row + 1));
    ++capacity[column];
  }
  return best;
}

TEST(MinCostAssignment, IsAsCheapAsTheCheapestOfAll) {
  check_many(500, [] {
    const auto columns = *rc::gen::inRange<std::size_t>(1, 5);
    const auto capacity =
        *rc::gen::container<std::vector<std::uint32_t>>(columns, rc::gen::inRange<std::uint32_t>(1, 4));
    std::size_t room = 0;
    for (const std::uint32_t places : capacity) room += places;
    const auto rows = *rc::gen::inRange<std::size_t>(0, std::min<std::size_t>(room, 6) + 1);
    // The first column takes everybody at some cost, so that an assignment exists wherever it has room.
    std::vector<double> cost;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const bool allowed = i % columns == 0 || rows > capacity[0] || *rc::gen::inRange(0, 3) > 0;
      cost.push_back(allowed ? *rc::gen::inRange(0, 20) : std::numeric_limits<double>::infinity());
    }
    const std::vector<std::uint32_t> column_of = min_cost_assignment(cost, capacity);
    RC_ASSERT(column_of.size() == rows);
    std::vector<std::uint32_t> used(columns, 0);
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      ++used[column_of[row]];
      sum += cost[row * columns + column_of[row]];
    }
    for (std::size_t column = 0; column < columns; ++column) RC_ASSERT(used[column] <= capacity[column]);
    RC_ASSERT(sum == least_cost(cost, capacity, 0));
  });
}

}  // namespace
}  // namespace gpusched::test
