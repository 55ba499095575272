// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/measured_csv.hpp"

#include <algorithm>
#include <cstddef>

#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"

namespace gpusched {
namespace {

constexpr std::size_t missing = ~std::size_t{0};  // as the place of a column

std::vector<std::string> cells_of_line(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quoted && c == '"' && at + 1 < line.size() && line[at + 1] == '"') {
      cells.back() += line[++at];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

}  // namespace

double MeasuredCells::number(std::size_t which, double least) {
  constexpr double most = 1e30;
  const auto value = parse_number(text(which));
  if (value && *value >= least && *value <= most) return *value;
  fail(which, least < 0 ? "a number" : "a number that is not negative");
  return 0;
}

double MeasuredCells::positive(std::size_t which) {
  const double value = number(which, 0);
  if (good() && value <= 0) fail(which, "a number above 0");
  return value;
}

std::int64_t MeasuredCells::count(std::size_t which, std::int64_t least, std::int64_t most) {
  const auto value = parse_integer(text(which));
  if (value && *value >= least && *value <= most) return *value;
  fail(which, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

void MeasuredCells::fail(std::size_t which, const std::string& expected) {
  if (error_) return;
  error_ = Error{.message = "expected " + expected + ", found '" + excerpt(text(which)) + "'",
                 .file = path_,
                 .line = row_.line,
                 .field = columns_[which].name};
}

Result<void> MeasuredCells::done() const {
  if (error_) return Unexpected{*error_};
  return {};
}

Result<void> for_each_measured_row(std::string_view text, const std::string& path,
                                   std::span<const MeasuredColumn> columns,
                                   const std::function<Result<void>(const MeasuredRow&)>& visit) {
  std::vector<std::size_t> place;  // of each column in a line
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::vector<std::string> cells = cells_of_line(text.substr(at, end - at));
    at = end + 1;
    if (++line == 1) {
      for (const MeasuredColumn& column : columns) {
        const auto found = std::find(cells.begin(), cells.end(), column.name);
        if (found == cells.end() && column.absent == nullptr) {
          return Unexpected{
              Error{.message = "the header lacks this column", .file = path, .line = 1, .field = column.name}};
        }
        place.push_back(found == cells.end() ? missing : static_cast<std::size_t>(found - cells.begin()));
      }
      continue;
    }
    if (cells.size() == 1 && cells.front().empty()) continue;
    MeasuredRow row{.cells = {}, .line = line};
    for (std::size_t which = 0; which < columns.size(); ++which) {
      const std::size_t where = place[which];
      row.cells.emplace_back(where == missing ? columns[which].absent : where < cells.size() ? cells[where] : "");
    }
    if (auto done = visit(row); !done) return done;
  }
  return {};
}

Result<void> for_each_measured_cells(const std::string& path, std::span<const MeasuredColumn> columns,
                                     const std::function<void(MeasuredCells&)>& visit) {
  const auto file = read_text_file(path);
  if (!file) return Unexpected{file.error()};
  bool any = false;
  const auto read = for_each_measured_row(*file, path, columns, [&](const MeasuredRow& row) {
    MeasuredCells cells(path, row, columns);
    visit(cells);
    any = true;
    return cells.done();
  });
  if (!read || any) return read;
  return Unexpected{Error{.message = "expected rows below a header", .file = path}};
}

}  // namespace gpusched
