// SPDX-License-Identifier: Apache-2.0
/// Linear programmes, solved by CLP (COIN-OR) where the build has it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace gpusched {

/// True when this program can solve linear programmes: it was built with CLP, and finds its library.
bool has_lp_solver();

/// How to get a solver, where has_lp_solver() is false: "install ...".
const char* how_to_get_lp_solver();

/// maximise objective * x, where x >= 0 and each row lies within its bounds. Built column by column.
class LinearProgram {
 public:
  static constexpr double unbounded = std::numeric_limits<double>::infinity();

  /// A row between these bounds; returns its number.
  int add_row(double lower, double upper);
  /// A variable in [0, upper] with that coefficient in the objective; returns its number. What follows of put() belongs
  /// to it.
  int add_column(double objective, double upper = unbounded);
  /// The coefficient of the latest variable in a row.
  void put(int row, double coefficient);
  /// Replaces the bounds of a row.
  void bound_row(int row, double lower, double upper);
  /// Replaces the coefficient of a variable in the objective.
  void set_objective(int column, double objective) { objective_[static_cast<std::size_t>(column)] = objective; }

  /// An optimal x, a vertex of the feasible set: the same for the same programme and version of CLP. None when nothing
  /// is feasible, or no bound is. Precondition: has_lp_solver().
  [[nodiscard]] std::optional<std::vector<double>> solve() const;

 private:
  std::vector<double> row_lower_, row_upper_;
  std::vector<double> objective_, column_upper_;
  std::vector<int> column_begin_, entry_row_;
  std::vector<double> entry_value_;
};

}  // namespace gpusched
