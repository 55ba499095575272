// SPDX-License-Identifier: Apache-2.0
/// Rows of a small csv file of measurements, found by the names of their columns.
#pragma once

#include <cstdint>
#include <functional>
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

/// Calls `visit` for each row below the header, whose columns may stand in any order among others; empty lines are
/// passed over. A quoted cell may hold commas and doubled quotes (RFC 4180), but no line break. Errors: the header
/// lacks a required column (with file, line 1 and column), and the first of `visit`.
Result<void> for_each_measured_row(std::string_view text, const std::string& path,
                                   std::span<const MeasuredColumn> columns,
                                   const std::function<Result<void>(const MeasuredRow&)>& visit);

}  // namespace gpusched
