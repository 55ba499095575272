// SPDX-License-Identifier: Apache-2.0
/// RowReader: the rows of a file whose lines hold the fields of a job, under a header line or not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_parser.hpp"
#include "traces/core/csv_splitter.hpp"
#include "traces/core/input_file.hpp"
#include "traces/core/job_sink.hpp"

namespace gpusched {

/// What a reader works on.
struct ReadContext : JobSink {
  ReadContext(InputFile& input, const ReadOptions& how, JobTableBuilder& into, TraceReport& told,
              ReadLog* found = nullptr)
      : JobSink(how, into, told, found), file(input) {}

  InputFile& file;
};

/// The first line of `head`.
inline std::string_view first_line(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// True when the first line, split at `separator`, has all of these columns.
bool header_has(std::string_view head, std::initializer_list<std::string_view> columns, char separator = ',');

/// True for a table of fixed widths: the second line is dashes that show how wide the columns are.
bool has_fixed_widths(std::string_view head);

/// Column of a row; none when the trace lacks it.
struct Column {
  std::uint32_t at = no_index;
  explicit operator bool() const { return at != no_index; }
};

/// How the rows of a file are written.
struct RowStyle {
  char separator = ',';
  bool quotes = true;                 ///< fields may stand in double quotes, and then hold separators and line ends
  bool fixed_widths = false;          ///< fields stand in columns of fixed widths (has_fixed_widths)
  bool any_case = false;              ///< names of columns are found whatever their case
  bool ends_with_separator = false;   ///< a separator at the end of the header line ends each row, too
  bool decimal_comma = false;         ///< "60,5" is sixty and a half
  std::vector<std::string> no_value;  ///< words for "no value" besides NA, nan and the like
  /// Columns of text that people write. Where the header ends with such, further separators and line ends belong to it.
  std::span<const std::string_view> free_texts = {};
  /// Whether a line whose first field this is begins a row; null: every line does. For free texts with line ends.
  bool (*begins_row)(std::string_view first_field) = nullptr;
  std::string advice;  ///< how to export instead, as the end of a message
};

/// The unit of a column of times.
struct TimeUnit {
  std::int64_t numerator = microseconds_per_second;  ///< microseconds of `denominator` units
  std::int64_t denominator = 1;
  DateOrder dates = DateOrder::ymd;
  bool spans = false;  ///< a span may say its units itself ("1 day, 6:00:16")
};

/// Fields by column, with the first bad value of a row remembered. The getters return a harmless value after an error,
/// so that a reader checks once a row.
class RowReader {
 public:
  explicit RowReader(ReadContext& context) : RowReader(context, RowStyle{}) {}
  RowReader(ReadContext& context, RowStyle style)
      : context_(context), style_(std::move(style)), splitter_(style_.separator, style_.quotes) {}

  /// Reads the header line. Error: the file ended, a column name appears twice, or the filter asks for a column that is
  /// not there.
  Result<void> read_header();
  /// Takes a header from elsewhere (files without one).
  void set_header(std::vector<std::string> names);
  /// The same, with the errors of read_header().
  Result<void> use_header(std::vector<std::string> names);

  /// The first of these columns that the header has, or none.
  [[nodiscard]] Column find(std::initializer_list<std::string_view> names) const;
  /// The same; where the header has none of them there are no rows, and outcome() lists what it has.
  Column require(std::initializer_list<std::string_view> names);
  /// Names of all columns.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  /// Says in which unit a column's times are.
  void set_unit(Column column, TimeUnit unit);

  /// The next row that is not blank; false at the end or after an error (outcome() tells).
  bool next();

  [[nodiscard]] std::string_view text(Column column) const {
    return column ? trim(fields()[column.at]) : std::string_view();
  }
  /// Whether the field says that there is no value: it is empty, or a word such as NA, nan, None or NULL.
  [[nodiscard]] bool is_blank(Column column) const;
  /// Non-negative seconds.
  Time seconds(Column column);
  /// The same, or Time::max() where the column is not there, blank, or says that there is no such span.
  Time seconds_if(Column column);
  /// Seconds since any origin, or a calendar time.
  Time instant(Column column);
  /// The same, or Time::max() where the column is not there, blank, or says that the time is not set.
  Time instant_if(Column column);
  /// An integer in [least, most].
  std::int64_t integer(Column column, std::int64_t least = 0, std::int64_t most = 1'000'000'000);
  /// A number from 0 to `most`.
  double number(Column column, double most = 1e15);

  /// Whom a job waits for, "a;b", and how long after their ends. The job borrows `ids`.
  void read_after(Column after, Column delay, std::vector<std::string>& ids, JobRecord& job);

  /// Marks the row as bad: what was expected in a column.
  void expect(Column column, const std::string& expected);
  [[nodiscard]] bool bad() const { return row_error_.has_value(); }
  /// Hands a bad row to the sink.
  void leave_out_bad_row();

  /// The columns of the times, for messages.
  struct TimeColumns {
    Column submit, start, end;
  };
  /// What the one check of times says of the row. Nothing where it is bad.
  std::optional<JudgedTimes> judge(LoggedTimes& times, const TimeColumns& columns);
  /// Gives `job` its start and work, by that check. False where there is no such job: the row is dropped, or bad.
  bool take_times(JobRecord& job, LoggedTimes times, const TimeColumns& columns);

  /// Leaves a row out for a reason that the published trace is known for.
  void drop(const std::string& reason) { context_.drop(reason, line()); }
  /// The same, whatever is wrong with it.
  void drop_unread(const std::string& reason) {
    row_error_.reset();
    drop(reason);
  }
  /// Adds the job of this row.
  void add(const JobRecord& job) { context_.add(job, line()); }
  /// Reports the columns that no reader asked for, and those among them that may hold GPUs.
  void note_unused_columns();

  /// Where the row begins.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  /// Whether the filter keeps the row, as far as it looks at the file's columns.
  [[nodiscard]] bool wanted() const { return context_.filter.keeps_row(fields()); }
  /// The same of a run that a job may end with (JobFilter::ask_last_runs).
  [[nodiscard]] bool wanted_as_last() const { return context_.filter.keeps_run(fields()); }
  /// Why there is no row, or no further row, if that is an error.
  [[nodiscard]] Result<void> outcome() const;

 private:
  [[nodiscard]] const std::vector<std::string_view>& fields() const {
    return style_.fixed_widths ? fixed_fields_ : splitter_.fields();
  }
  [[nodiscard]] std::string column_name(Column column) const { return column ? names_[column.at] : ""; }
  [[nodiscard]] std::optional<double> parsed_number(Column column) const;
  [[nodiscard]] std::optional<Time> scaled_time(Column column) const;
  [[nodiscard]] const TimeUnit& unit_of(Column column) const;
  Result<void> read_widths(std::string_view header);
  bool split_row(std::string_view line);
  [[nodiscard]] bool goes_on_with_text() const;
  [[nodiscard]] std::string why_too_many() const;

  ReadContext& context_;
  RowStyle style_;
  CsvSplitter splitter_;
  std::vector<std::pair<std::size_t, std::size_t>> widths_;  // of fixed widths: where a column begins, how long it is
  std::vector<std::string_view> fixed_fields_;
  std::size_t text_columns_ = 0;  // of free text at the end of the header
  std::uint64_t text_lines_ = 0;  // that go on with such a text
  bool has_row_ = false;          // some row was read
  std::string text_;              // of a row of several lines
  std::uint64_t line_ = 0;
  std::vector<std::string> names_;
  std::vector<TimeUnit> units_;     // by column; empty: all seconds
  mutable std::vector<bool> used_;  // names_ that find() gave
  bool local_times_ = false;        // the row has a calendar time without a zone
  std::optional<Error> row_error_;
  std::optional<Error> fatal_;
};

/// Calls `add(row)` for every row, which fills and adds a job, drops the row, or marks it bad. Bad rows go to the
/// context, whose outcome() tells of them.
template <class Add>
Result<void> for_each_row(RowReader& row, ReadContext& context, Add add) {
  while (row.next()) {
    ++context.report.rows;
    if (!row.bad() && !row.wanted()) {
      row.drop(left_out_by_filter);
      continue;
    }
    if (!row.bad()) add(row);
    if (row.bad()) row.leave_out_bad_row();
  }
  row.note_unused_columns();
  return row.outcome();
}

}  // namespace gpusched
