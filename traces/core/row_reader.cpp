// SPDX-License-Identifier: Apache-2.0
#include "traces/core/row_reader.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/job_records.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_header_shown = 300;  // characters of it in a message
constexpr std::size_t longest_row = std::size_t{1}
                                    << 20;  // bytes of a row of several lines: a quote may be a stray one

bool is_no_value(std::string_view text) {
  constexpr std::string_view words[] = {"nan", "NaN", "None", "NULL", "null", "\\N", "NA", "N/A", "n/a", "<NA>", "NaT"};
  return text.empty() || std::find(std::begin(words), std::end(words), text) != std::end(words);
}

// Where a time is not set: Slurm, and numbers at the end of 64 bits that are beyond any clock here.
bool is_unset_word(std::string_view text) {
  constexpr std::string_view words[] = {"Unknown",
                                        "unknown",
                                        "4294967294",
                                        "4294967295",
                                        "9223372036854775807",
                                        "18446744073709551614",
                                        "18446744073709551615"};
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool may_hold_gpus(const std::string& column) {
  const std::string name = lower_case(column);
  return name.find("gpu") != std::string::npos || name.find("gres") != std::string::npos ||
         name.find("tres") != std::string::npos;
}

// "60,5" as "60.5". A comma that may stand between thousands ("1,000") stays, so that the text is no number.
std::string with_point(std::string_view text) {
  std::string number(text);
  const std::size_t comma = number.find(',');
  if (comma == std::string::npos || number.find(',', comma + 1) != std::string::npos) return number;
  const bool thousands = number.size() - comma == 4 && comma > 0 && comma < 4 && number.front() != '0';
  if (!thousands && number.find('.') == std::string::npos) number[comma] = '.';
  return number;
}

// `number` of these units as microseconds; nothing when no clock counts so many.
std::optional<Time> in_units(std::string_view number, const TimeUnit& unit) {
  __extension__ using Wide = __int128;
  const Wide most = end_of_time.us;
  if (const auto whole = parse_integer(number)) {
    const Wide us = static_cast<Wide>(*whole) * unit.numerator / unit.denominator;
    return us < most && us > -most ? std::optional(Time{static_cast<std::int64_t>(us)}) : std::nullopt;
  }
  const auto value = parse_number(number);
  if (!value) return std::nullopt;
  const double us = *value * static_cast<double>(unit.numerator) / static_cast<double>(unit.denominator);
  if (!(std::abs(us) < static_cast<double>(end_of_time.us))) return std::nullopt;
  return Time{std::llround(us)};
}

std::string date_example(DateOrder order) {
  if (order == DateOrder::mdy) return "10/07/2017 01:12:09";
  return order == DateOrder::dmy ? "07.10.2017 01:12:09" : "2017-10-07 01:12:09";
}

// The order may be one of two, which must be said: "11/16/2023 18:15:46".
bool is_date_of_unsaid_order(std::string_view text) {
  return parse_calendar_time(text, DateOrder::mdy) || parse_calendar_time(text, DateOrder::dmy);
}

}  // namespace

bool header_has(std::string_view head, std::initializer_list<std::string_view> columns, char separator) {
  CsvSplitter splitter(separator);
  if (!splitter.split(first_line(head))) return false;
  return std::all_of(columns.begin(), columns.end(), [&](std::string_view column) {
    return std::any_of(splitter.fields().begin(), splitter.fields().end(),
                       [&](std::string_view name) { return trim(name) == column; });
  });
}

bool has_fixed_widths(std::string_view head) {
  const std::size_t end = head.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view second = first_line(head.substr(end + 1));
  return second.starts_with("--") && second.find_first_not_of("- ") == std::string_view::npos;
}

// ---- header ----

Result<void> RowReader::read_widths(std::string_view header) {
  const std::string names(header);  // the next line takes its place
  std::string_view dashes;
  if (!context_.file.next_line(dashes)) return unexpected("expected a line of dashes under the header");
  for (std::size_t at = dashes.find('-'); at != std::string_view::npos;) {
    const std::size_t stop = std::min(dashes.find(' ', at), dashes.size());
    widths_.emplace_back(at, stop - at);
    at = dashes.find('-', stop);
  }
  std::vector<std::string> columns;
  for (const auto& [begin, length] : widths_) {
    columns.emplace_back(trim(std::string_view(names).substr(std::min(begin, names.size()), length)));
  }
  return use_header(std::move(columns));
}

Result<void> RowReader::read_header() {
  std::string_view line;
  if (!context_.file.next_line(line)) {
    if (context_.file.failure()) return Unexpected{*context_.file.failure()};
    return Unexpected{Error{.message = "is empty; expected a header line", .file = context_.file.path()}};
  }
  if (style_.fixed_widths) return read_widths(line);
  style_.ends_with_separator = style_.ends_with_separator && line.ends_with(style_.separator);
  if (style_.ends_with_separator) line.remove_suffix(1);
  if (!splitter_.split(line)) {
    return Unexpected{Error{.message = "a quote in the header is not closed", .file = context_.file.path(), .line = 1}};
  }
  std::vector<std::string> names;
  for (const std::string_view name : splitter_.fields()) names.emplace_back(trim(name));
  return use_header(std::move(names));
}

Result<void> RowReader::use_header(std::vector<std::string> names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const auto repeated = first_repeated(views)) {
    return Unexpected{Error{.message = "column '" + excerpt(views[*repeated]) + "' appears twice in the header",
                            .file = context_.file.path(),
                            .line = 1}};
  }
  set_header(std::move(names));
  return context_.filter.bind(names_);
}

void RowReader::set_header(std::vector<std::string> names) {
  names_ = std::move(names);
  used_.assign(names_.size(), false);
  const auto is_free = [&](const std::string& name) {
    return std::find(style_.free_texts.begin(), style_.free_texts.end(), name) != style_.free_texts.end();
  };
  while (text_columns_ < names_.size() && is_free(names_[names_.size() - 1 - text_columns_])) ++text_columns_;
  // With such a text farther in front, nobody can tell which of them a separator belongs to.
  const auto front = names_.end() - static_cast<std::ptrdiff_t>(text_columns_);
  if (std::any_of(names_.begin(), front, is_free)) text_columns_ = 0;
}

Column RowReader::find(std::initializer_list<std::string_view> names) const {
  const auto place_of = [&](auto same) {
    return static_cast<std::size_t>(std::find_if(names_.begin(), names_.end(), same) - names_.begin());
  };
  for (const std::string_view name : names) {
    std::size_t place = place_of([&](const std::string& known) { return known == name; });
    if (place == names_.size() && style_.any_case) {
      place = place_of([&](const std::string& known) { return lower_case(known) == lower_case(name); });
    }
    if (place == names_.size()) continue;
    used_[place] = true;
    return {static_cast<std::uint32_t>(place)};
  }
  return {};
}

Column RowReader::require(std::initializer_list<std::string_view> names) {
  const Column column = find(names);
  if (column || fatal_) return column;
  std::string wanted;
  for (const std::string_view name : names) wanted += (wanted.empty() ? "'" : " or '") + std::string(name) + "'";
  fatal_ = Error{
      .message = "missing column " + wanted + "; the header has " + excerpt(joined(names_, ","), most_header_shown),
      .file = context_.file.path(),
      .line = 1};
  return column;
}

void RowReader::set_unit(Column column, TimeUnit unit) {
  if (units_.empty()) units_.resize(names_.size());
  if (column) units_[column.at] = unit;
}

// ---- rows ----

bool RowReader::next() {
  if (fatal_) return false;
  row_error_.reset();
  local_times_ = false;
  bool closed = true;
  for (std::string_view line;;) {
    do {
      if (!context_.file.next_line(line)) {
        fatal_ = context_.file.failure();
        return false;
      }
    } while (trim(line).empty());
    line_ = context_.file.line_number();
    closed = split_row(line);
    if (!has_row_ || !goes_on_with_text()) break;
    ++text_lines_;
  }
  has_row_ = true;
  if (text_columns_ > 0 && !style_.quotes && fields().size() > names_.size()) splitter_.join_from(names_.size());
  if (closed && fields().size() == names_.size()) return true;
  const std::size_t found = fields().size();
  row_error_ = Error{.message = "expected " + std::to_string(names_.size()) + " fields, " +
                                (closed ? "found " + std::to_string(found) : "a quote is not closed") +
                                (closed && found > names_.size() ? why_too_many() : ""),
                     .file = context_.file.path(),
                     .line = line_,
                     .field = "row"};
  return true;
}

bool RowReader::goes_on_with_text() const {
  if (text_columns_ == 0 || style_.begins_row == nullptr || fields().size() >= names_.size()) return false;
  return fields().size() == 1 || !style_.begins_row(trim(fields().front()));
}

std::string RowReader::why_too_many() const {
  const std::string separator = style_.separator == '\t' ? "a tab" : "a '" + std::string(1, style_.separator) + "'";
  if (style_.quotes) return ": " + separator + " in a value without quotes";
  std::string texts;
  for (const std::string& name : names_) {
    const bool is_free = std::find(style_.free_texts.begin(), style_.free_texts.end(), name) != style_.free_texts.end();
    if (is_free) texts += (texts.empty() ? "" : " or ") + name;
  }
  return ": " + separator + " in " + (texts.empty() ? "a value" : "the text of " + texts + "; put such a column last") +
         style_.advice;
}

// A row whose quotes are open at the end of a line goes on in the next.
bool RowReader::split_row(std::string_view line) {
  if (style_.fixed_widths) {
    fixed_fields_.clear();
    for (const auto& [begin, length] : widths_) {
      const bool is_last = begin == widths_.back().first;
      fixed_fields_.push_back(line.substr(std::min(begin, line.size()), is_last ? line.size() : length));
    }
    return true;
  }
  if (style_.ends_with_separator && line.ends_with(style_.separator)) line.remove_suffix(1);
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

// ---- values ----

void RowReader::expect(Column column, const std::string& expected) {
  if (row_error_) return;
  const std::string_view found = text(column);
  const bool is_cut = style_.fixed_widths && found.ends_with('+');
  row_error_ = Error{.message = "expected " + expected + ", found '" + excerpt(found) + "'" +
                                (is_cut ? ", which is cut to the width of its column" + style_.advice : ""),
                     .file = context_.file.path(),
                     .line = line(),
                     .field = column_name(column)};
}

bool RowReader::is_blank(Column column) const {
  const std::string_view value = text(column);
  return is_no_value(value) ||
         std::find(style_.no_value.begin(), style_.no_value.end(), value) != style_.no_value.end();
}

const TimeUnit& RowReader::unit_of(Column column) const {
  static const TimeUnit seconds;
  return column && !units_.empty() ? units_[column.at] : seconds;
}

std::optional<double> RowReader::parsed_number(Column column) const {
  return style_.decimal_comma ? parse_number(with_point(text(column))) : parse_number(text(column));
}

// A number of the column's unit; a span that says its units itself where the column may hold such.
std::optional<Time> RowReader::scaled_time(Column column) const {
  const TimeUnit& unit = unit_of(column);
  const std::string_view value = text(column);
  const bool in_seconds = unit.numerator == microseconds_per_second && unit.denominator == 1;
  std::optional<Time> time;
  if (style_.decimal_comma) {
    time = in_units(with_point(value), unit);
  } else {
    time = in_seconds ? parse_seconds(value) : in_units(value, unit);
  }
  return time || !unit.spans ? time : parse_span(value);
}

Time RowReader::seconds(Column column) {
  const auto value = scaled_time(column);
  if (value && value->us >= 0) return *value;
  expect(column, std::string("a number of seconds >= 0") +
                     (unit_of(column).spans ? ", or a span like 1-06:00:16, 1 day, 6:00:16 or PT6H" : ""));
  return {};
}

void RowReader::read_after(Column after, Column delay, std::vector<std::string>& ids, JobRecord& job) {
  split_ids(is_blank(after) ? std::string_view() : text(after), ids);
  job.after = ids;
  if (!delay || is_blank(delay)) return;
  job.after_delay = seconds(delay);
  if (ids.empty() && job.after_delay > Time{}) expect(delay, "no delay where the job waits for no other");
}

Time RowReader::instant(Column column) {
  TimeUnit unit = unit_of(column);
  const std::string_view value = text(column);
  const bool may_be_number = !unit.spans || value.find_first_of("/:T") == std::string_view::npos;
  if (may_be_number) {
    if (const auto time = scaled_time(column)) return *time;
  }
  if (const auto time = parse_calendar_time(value, unit.dates)) {
    local_times_ = local_times_ || !time->zoned;
    return time->time;
  }
  expect(column, "seconds or a time like " + date_example(unit.dates) +
                     (unit.spans && unit.dates == DateOrder::ymd && is_date_of_unsaid_order(value)
                          ? " (of other dates, say the order behind the column: submit=COLUMN:mdy or :dmy)"
                          : ""));
  return {};
}

Time RowReader::seconds_if(Column column) {
  const bool is_there = column && !is_blank(column) && !is_unset_word(text(column));
  return is_there ? seconds(column) : Time::max();
}

Time RowReader::instant_if(Column column) {
  const bool is_there = column && !is_blank(column) && !is_unset_word(text(column));
  return is_there ? instant(column) : Time::max();
}

std::int64_t RowReader::integer(Column column, std::int64_t least, std::int64_t most) {
  const auto value = parse_integer(text(column));
  if (value && *value >= least && *value <= most) return *value;
  expect(column,
         "an integer >= " + std::to_string(least) + (value && *value > most ? " and <= " + std::to_string(most) : ""));
  return least;
}

double RowReader::number(Column column, double most) {
  const auto value = parsed_number(column);
  if (value && *value >= 0 && *value <= most) return *value;
  expect(column, "a number >= 0" + (value && *value > most ? formatted(" and <= %g", most) : std::string()));
  return 0;
}

// ---- what becomes of a row ----

void RowReader::leave_out_bad_row() {
  context_.bad_row(*row_error_);
  row_error_.reset();
}

std::optional<JudgedTimes> RowReader::judge(LoggedTimes& times, const TimeColumns& columns) {
  if (bad()) return std::nullopt;
  times.local = local_times_;
  const JudgedTimes judged = judge_times(times);
  if (judged.fate != JobFate::bad) return judged;
  const bool is_start = judged.wrong == LoggedTime::start;
  const bool after_start = !is_start && columns.start && !is_unset_time(times.start, times.submit);
  expect(is_start ? columns.start : columns.end, (is_start ? "a start not before " : "an end not before ") +
                                                     column_name(after_start ? columns.start : columns.submit));
  return std::nullopt;
}

bool RowReader::take_times(JobRecord& job, LoggedTimes times, const TimeColumns& columns) {
  const auto judged = judge(times, columns);
  if (!judged) return false;
  const char* const reason = context_.why_left_out(job, times, *judged);
  if (reason != nullptr) drop(reason);
  return reason == nullptr;
}

void RowReader::note_unused_columns() {
  std::vector<std::string> unused, of_gpus;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (used_[i] || names_[i].empty()) continue;
    unused.push_back(names_[i]);
    if (may_hold_gpus(names_[i])) of_gpus.push_back(names_[i]);
  }
  std::vector<std::string>& notes = context_.report.notes;
  if (!unused.empty()) {
    notes.push_back("columns not used: " + joined(unused, ", ") +
                    (of_gpus.empty() ? "" : "; of these, GPUs may stand in " + joined(of_gpus, ", ")));
  }
  if (text_lines_ > 0) {
    notes.push_back(counted(text_lines_, "line goes", "lines go") + " on with the text of " + names_.back() +
                    " of the row above");
  }
}

Result<void> RowReader::outcome() const {
  if (fatal_) return Unexpected{*fatal_};
  return {};
}

}  // namespace gpusched
