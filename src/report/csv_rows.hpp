// SPDX-License-Identifier: Apache-2.0
/// Columns of the csv files that gpusched itself writes, by name.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_parser.hpp"
#include "traces/core/csv_splitter.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {

/// Reads a csv file row by row; at() gives the fields of the columns that were asked for, in that order.
class CsvRows {
 public:
  /// Errors: no such file, or a column that it lacks.
  static Result<CsvRows> open(const std::string& path, const std::vector<std::string_view>& columns) {
    auto file = InputFile::open(path);
    if (!file) return Unexpected{file.error()};
    CsvRows rows(*std::move(file));
    std::string_view line;
    if (!rows.file_.next_line(line) || !rows.splitter_.split(line))
      return rows.wrong("expected a line of column names");
    const std::vector<std::string_view>& names = rows.splitter_.fields();
    rows.names_.assign(names.begin(), names.end());
    for (const std::string_view column : columns) {
      const auto place = std::find(names.begin(), names.end(), column);
      if (place == names.end()) return rows.wrong("has no column '" + std::string(column) + "'");
      rows.places_.push_back(static_cast<std::size_t>(place - names.begin()));
    }
    return rows;
  }

  /// The names of a file's columns. Errors: no such file, or no line of names.
  static Result<std::vector<std::string>> columns_of(const std::string& path) {
    const auto rows = open(path, {});
    if (!rows) return Unexpected{rows.error()};
    return rows->names_;
  }

  /// Goes to the next row. False at the end, or where a row is cut or the file damaged: failure() tells which.
  bool next() {
    std::string_view line;
    if (!next_record(line)) {
      if (file_.failure()) failure_ = *file_.failure();
      return false;
    }
    if (splitter_.split(line) && splitter_.fields().size() == names_.size()) return true;
    failure_ = wrong("expected " + std::to_string(names_.size()) + " fields; is the file whole?").error;
    return false;
  }

  [[nodiscard]] std::string_view at(std::size_t column) const { return splitter_.fields()[places_[column]]; }

  /// The field as a time or number. Where it is none, the failure is kept and the value is 0.
  Time seconds(std::size_t column) {
    const auto value = parse_seconds(at(column));
    if (!value) refuse(column, "a time in seconds");
    return value.value_or(Time{});
  }
  double number(std::size_t column) {
    const auto value = parse_number(at(column));
    if (!value) refuse(column, "a number");
    return value.value_or(0);
  }
  /// Nothing where the field is empty.
  std::optional<double> number_or_none(std::size_t column) {
    return at(column).empty() ? std::nullopt : std::optional(number(column));
  }

  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// An error in the line that was read last.
  [[nodiscard]] Unexpected wrong(std::string message) const {
    return {Error{.message = std::move(message), .file = file_.path(), .line = file_.line_number()}};
  }

 private:
  // A line, or those that a quoted field with line breaks takes.
  bool next_record(std::string_view& record) {
    if (!file_.next_line(record)) return false;
    if (!is_open(record)) return true;
    record_.assign(record);
    std::string_view line;
    while (is_open(record_) && file_.next_line(line)) record_.append("\n").append(line);
    record = record_;
    return true;
  }
  // Doubled quotes within a field leave the count even.
  static bool is_open(std::string_view text) { return std::count(text.begin(), text.end(), '"') % 2 != 0; }

  explicit CsvRows(InputFile file) : file_(std::move(file)) {}

  void refuse(std::size_t column, const std::string& expected) {
    if (!failure_) failure_ = wrong("expected " + expected + ", not '" + std::string(at(column)) + "'").error;
  }

  InputFile file_;
  CsvSplitter splitter_;
  std::vector<std::string> names_;  // of all columns
  std::vector<std::size_t> places_;
  std::string record_;  // of several lines
  std::optional<Error> failure_;
};

}  // namespace gpusched
