// SPDX-License-Identifier: Apache-2.0
/// Rows of a small csv file of measurements, found by the names of their columns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// A column that a reader looks for.
struct MeasuredColumn {
  const char* name = "";
  const char* absent = nullptr;  ///< the cells of a file that lacks the column; null: it must have it
};

/// A row: its cells in the order of the columns that were looked for.
struct MeasuredRow {
  std::vector<std::string> cells;  ///< trimmed; empty where the row is too short
  std::uint64_t line = 0;          ///< of the file, from 1
};

/// The cells of a row as values; the first that is none stays as an error. Borrows what it is made of.
class MeasuredCells {
 public:
  MeasuredCells(const std::string& path, const MeasuredRow& row, std::span<const MeasuredColumn> columns)
      : path_(path), row_(row), columns_(columns) {}

  /// As it stands.
  [[nodiscard]] const std::string& text(std::size_t which) const { return row_.cells[which]; }
  /// A number from `least` to 10^30. Of what is none: 0.
  double number(std::size_t which, double least);
  /// A number above 0.
  double positive(std::size_t which);
  /// A whole number. Of what is none: `least`.
  std::int64_t count(std::size_t which, std::int64_t least, std::int64_t most = 1'000'000'000);
  /// Makes a cell the row's error, if it is the first: "expected `expected`, found '...'".
  void fail(std::size_t which, const std::string& expected);
  /// False once a cell was wrong.
  [[nodiscard]] bool good() const { return !error_; }
  /// The first error.
  [[nodiscard]] Result<void> done() const;

 private:
  const std::string& path_;
  const MeasuredRow& row_;
  std::span<const MeasuredColumn> columns_;
  std::optional<Error> error_;
};

/// Calls `visit` for each row below the header, whose columns may stand in any order among others; empty lines are
/// passed over. A quoted cell may hold commas and doubled quotes (RFC 4180), but no line break. Errors: the header
/// lacks a required column (with file, line 1 and column), and the first of `visit`.
Result<void> for_each_measured_row(std::string_view text, const std::string& path,
                                   std::span<const MeasuredColumn> columns,
                                   const std::function<Result<void>(const MeasuredRow&)>& visit);
/// The same of a file, as values; the first cell that is wrong ends it. Also an error: no row.
Result<void> for_each_measured_cells(const std::string& path, std::span<const MeasuredColumn> columns,
                                     const std::function<void(MeasuredCells&)>& visit);

}  // namespace gpusched
