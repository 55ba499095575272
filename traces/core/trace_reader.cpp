// SPDX-License-Identifier: Apache-2.0
#include "traces/core/trace_reader.hpp"

#include <algorithm>

#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_header_shown = 300;  // characters of it in a message
constexpr std::size_t longest_row = std::size_t{1}
                                    << 20;  // bytes of a row of several lines: a quote may be a stray one

}  // namespace

bool header_has(std::string_view head, std::initializer_list<std::string_view> columns, char separator) {
  CsvSplitter splitter(separator);
  if (!splitter.split(first_line(head))) return false;
  return std::all_of(columns.begin(), columns.end(), [&](std::string_view column) {
    return std::any_of(splitter.fields().begin(), splitter.fields().end(),
                       [&](std::string_view name) { return trim(name) == column; });
  });
}

Result<void> RowReader::read_header() {
  std::string_view line;
  if (!context_.file.next_line(line)) {
    if (context_.file.failure()) return Unexpected{*context_.file.failure()};
    return Unexpected{Error{.message = "is empty; expected a header line", .file = context_.file.path()}};
  }
  if (!splitter_.split(line)) {
    return Unexpected{Error{.message = "a quote in the header is not closed", .file = context_.file.path(), .line = 1}};
  }
  std::vector<std::string_view> names = splitter_.fields();
  std::transform(names.begin(), names.end(), names.begin(), trim);
  if (const auto repeated = first_repeated(names)) {
    return Unexpected{Error{.message = "column '" + excerpt(names[*repeated]) + "' appears twice in the header",
                            .file = context_.file.path(),
                            .line = 1}};
  }
  names_.assign(names.begin(), names.end());
  used_.assign(names_.size(), false);
  return context_.filter.bind(names_);
}

Column RowReader::find(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto place = std::find(names_.begin(), names_.end(), name);
    if (place == names_.end()) continue;
    used_[static_cast<std::size_t>(place - names_.begin())] = true;
    return {static_cast<std::uint32_t>(place - names_.begin())};
  }
  return {};
}

Column RowReader::require(std::initializer_list<std::string_view> names) {
  const Column column = find(names);
  if (column || fatal_) return column;
  std::string wanted;
  for (const std::string_view name : names) wanted += (wanted.empty() ? "'" : " or '") + std::string(name) + "'";
  std::string known = joined(names_, ",");
  known = excerpt(known, most_header_shown);
  fatal_ = Error{
      .message = "missing column " + wanted + "; the header has " + known, .file = context_.file.path(), .line = 1};
  return column;
}

bool RowReader::next() {
  if (fatal_) return false;
  row_error_.reset();
  std::string_view line;
  do {
    if (!context_.file.next_line(line)) {
      fatal_ = context_.file.failure();
      return false;
    }
  } while (trim(line).empty());
  line_ = context_.file.line_number();
  const bool closed = split_row(line);
  if (last_takes_rest_ && splitter_.fields().size() > names_.size()) splitter_.join_from(names_.size());
  if (!closed || splitter_.fields().size() != names_.size()) {
    const std::string found = closed ? "found " + std::to_string(splitter_.fields().size()) : "a quote is not closed";
    row_error_ = Error{.message = "expected " + std::to_string(names_.size()) + " fields, " + found,
                       .file = context_.file.path(),
                       .line = line_,
                       .field = "row"};
  }
  return true;
}

// A row whose quotes are open at the end of a line goes on in the next.
bool RowReader::split_row(std::string_view line) {
  if (splitter_.split(line)) return true;
  if (!splitter_.open()) return false;
  text_ = line;
  while (splitter_.open() && text_.size() < longest_row && context_.file.next_line(line)) {
    text_ += '\n';
    text_ += line;
    if (!splitter_.stays_open(line)) return splitter_.split(text_);
  }
  return false;
}

void RowReader::expect(Column column, const std::string& expected) {
  if (row_error_) return;
  row_error_ = Error{.message = "expected " + expected + ", found '" + excerpt(text(column)) + "'",
                     .file = context_.file.path(),
                     .line = line(),
                     .field = column_name(column)};
}

Time RowReader::seconds(Column column) {
  const auto value = parse_seconds(text(column));
  if (value && value->us >= 0) return *value;
  expect(column, "a number of seconds >= 0");
  return {};
}

Time RowReader::instant(Column column) {
  const std::string_view value = text(column);
  if (const auto time = parse_seconds(value)) return *time;
  if (const auto time = parse_calendar(value)) return *time;
  expect(column, "seconds or a time like 2017-10-07 01:12:09");
  return {};
}

std::int64_t RowReader::integer(Column column, std::int64_t least, std::int64_t most) {
  const auto value = parse_integer(text(column));
  if (value && *value >= least && *value <= most) return *value;
  expect(column,
         "an integer >= " + std::to_string(least) + (value && *value > most ? " and <= " + std::to_string(most) : ""));
  return least;
}

double RowReader::number(Column column, double most) {
  const auto value = parse_number(text(column));
  if (value && *value >= 0 && *value <= most) return *value;
  expect(column, "a number >= 0" + (value && *value > most ? formatted(" and <= %g", most) : std::string()));
  return 0;
}

bool RowReader::tolerate_bad_row() {
  if (context_.tolerate(*row_error_)) {
    row_error_.reset();
    return true;
  }
  fatal_ = row_error_;
  return false;
}

void RowReader::note_unused_columns() {
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!used_[i]) unused.push_back(names_[i]);
  }
  if (!unused.empty()) context_.report.notes.push_back("columns not used: " + joined(unused, ", "));
}

Result<void> RowReader::outcome() const {
  if (fatal_) return Unexpected{*fatal_};
  return {};
}

JobStatus status_from_word(std::string_view word) {
  const std::string lower = lower_case(word);
  const auto is_any = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return lower.starts_with(w); });
  };
  if (is_any({"pass", "completed", "succe", "terminated"})) return JobStatus::passed;
  if (is_any({"fail", "node_fail", "out_of_memory", "timeout", "boot_fail"})) return JobStatus::failed;
  if (is_any({"kill", "cancel", "preempted", "revoked", "deadline"})) return JobStatus::killed;
  return JobStatus::unknown;
}

}  // namespace gpusched
