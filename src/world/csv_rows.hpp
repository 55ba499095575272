// SPDX-License-Identifier: Apache-2.0
/// The rows of a small csv text that is in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_parser.hpp"
#include "traces/core/csv_splitter.hpp"

namespace gpusched {

/// Calls `row(fields)`, which returns a Result<void>, for each line that is not empty, and stops at the first error,
/// which gets the file and the line. A field may not hold a line break.
template <class Row>
Result<void> for_each_csv_row(std::string_view text, const std::string& file, Row row) {
  CsvSplitter splitter;
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view cells = trim(text.substr(at, end - at));
    if (cells.ends_with('\r')) cells = trim(cells.substr(0, cells.size() - 1));
    at = end + 1;
    ++line;
    if (cells.empty()) continue;
    if (!splitter.split(cells)) {
      return Unexpected{
          Error{.message = "expected a closing quote before a comma or the line's end", .file = file, .line = line}};
    }
    const std::vector<std::string_view>& fields = splitter.fields();
    if (Result<void> done = row(fields); !done) {
      Error error = done.error();
      error.file = file;
      error.line = line;
      return Unexpected{error};
    }
  }
  return {};
}

}  // namespace gpusched
