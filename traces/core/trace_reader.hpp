// SPDX-License-Identifier: Apache-2.0
/// What a reader of one format is made of. A reader is a function that fills a JobTableBuilder; the table of formats
/// (trace_formats.cpp) lists them all.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/field_parser.hpp"
#include "traces/core/csv_splitter.hpp"
#include "traces/core/input_file.hpp"
#include "traces/core/job_filter.hpp"
#include "traces/core/job_records.hpp"
#include "traces/core/slurm_gpus.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// What reading found, row by row. Kept only for `trace validate` and for the search for a duplicate id.
struct ReadLog {
  /// A job as it was added, in order of rows.
  struct Job {
    std::string id;  ///< empty: the trace has none
    Time submit{}, work{}, estimate{};
    MilliGpu gpu_milli = 0;
    std::uint64_t line = 0;
  };
  /// A row that was left out.
  struct Row {
    std::uint64_t line = 0;
    std::string reason;
    bool bad = false;  ///< a bad value, not a reason that the published trace is known for
  };
  std::vector<Job> jobs;
  std::vector<Row> left_out;

  void add(const JobRecord& job, std::uint64_t line) {
    jobs.push_back({std::string(job.id), job.submit, job.work, job.estimate, job.shape.gpu_milli(), line});
  }
};

/// What a reader works on.
struct ReadContext {
  InputFile& file;
  const ReadOptions& options;
  JobTableBuilder& jobs;
  TraceReport& report;
  ReadLog* log = nullptr;
  JobFilter filter = {};  ///< ReadOptions::where
  NamedRecord named = {};

  /// Adds a job that stands at `line`, if the filter keeps it.
  void add(const JobRecord& record, std::uint64_t line) {
    JobRecord job = named(record);
    count_mig_slices(job.shape, job.gpu_spec);
    if (!filter.keeps_job(job)) return drop(left_out_by_filter, line);
    jobs.add(job);
    if (log != nullptr) log->add(job, line);
  }
  /// Leaves a row out for a reason that the published trace is known for.
  void drop(const std::string& reason, std::uint64_t line) {
    report.drop(reason, line);
    if (log != nullptr) log->left_out.push_back({line, reason});
  }
  /// For a row with a bad value: true when it is counted as dropped (ReadOptions::drop_bad_rows), false when reading
  /// must stop with that error.
  bool tolerate(const Error& error) {
    if (!options.drop_bad_rows) return false;
    report.drop("bad " + error.field + ": " + error.message.substr(0, error.message.find(", found")), error.line);
    if (log != nullptr) log->left_out.push_back({error.line, error.field + ": " + error.message, true});
    return true;
  }
};

/// One format: how to recognise it, how to read it.
struct TraceFormat {
  std::string name;
  std::string summary;
  std::string source;
  bool (*recognise)(std::string_view head);    ///< null: by its name only
  Result<void> (*read)(ReadContext& context);  ///< null: the PAI tables, which are several files
};

/// Every format, in the order in which recognition tries them.
const std::vector<TraceFormat>& trace_format_table();

/// The first line of `head`.
inline std::string_view first_line(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// True when the first line, split at `separator`, has all of these columns.
bool header_has(std::string_view head, std::initializer_list<std::string_view> columns, char separator = ',');

/// Column of a row; none when the trace lacks it.
struct Column {
  std::uint32_t at = no_index;
  explicit operator bool() const { return at != no_index; }
};

/// The rows of a file with a header line: fields by column, with the first bad value of a row remembered. The getters
/// return a harmless value after an error, so that a reader checks once a row.
class RowReader {
 public:
  /// How the fields of a row are written.
  struct Style {
    char separator = ',';
    bool quotes = true;            ///< fields may stand in double quotes, and then hold separators and line ends
    bool last_takes_rest = false;  ///< separators beyond the last column are text of its field
  };

  explicit RowReader(ReadContext& context) : RowReader(context, Style{}) {}
  RowReader(ReadContext& context, Style style)
      : context_(context), splitter_(style.separator, style.quotes), last_takes_rest_(style.last_takes_rest) {}

  /// Reads the header line. Error: the file ended, a column name appears twice, or the filter asks for a column that is
  /// not there.
  Result<void> read_header();
  /// Takes a header from elsewhere (files without one).
  void set_header(std::vector<std::string> names) {
    names_ = std::move(names);
    used_.assign(names_.size(), false);
  }

  /// The first of these columns that the header has, or none.
  [[nodiscard]] Column find(std::initializer_list<std::string_view> names) const;
  /// The same; where the header has none of them there are no rows, and outcome() lists what it has.
  Column require(std::initializer_list<std::string_view> names);

  /// The next row that is not blank; false at the end or after an error (failure() tells).
  bool next();

  [[nodiscard]] std::string_view text(Column column) const {
    return column ? trim(splitter_.fields()[column.at]) : std::string_view();
  }
  [[nodiscard]] bool is_blank(Column column) const {
    const std::string_view value = text(column);
    return value.empty() || value == "nan" || value == "NaN" || value == "None" || value == "NULL" || value == "\\N";
  }
  /// Non-negative seconds.
  Time seconds(Column column);
  /// Seconds since any origin, or a calendar time.
  Time instant(Column column);
  /// An integer in [least, most].
  std::int64_t integer(Column column, std::int64_t least = 0, std::int64_t most = 1'000'000'000);
  /// A number from 0 to `most`.
  double number(Column column, double most = 1e15);

  /// Marks the row as bad: what was expected in a column.
  void expect(Column column, const std::string& expected);
  [[nodiscard]] bool bad() const { return row_error_.has_value(); }

  /// After a bad row: true when it was counted as dropped (ReadOptions::drop_bad_rows), false when reading must stop.
  bool tolerate_bad_row();
  /// Leaves a row out for a reason that the published trace is known for.
  void drop(const std::string& reason) { context_.drop(reason, line()); }
  /// Adds the job of this row.
  void add(const JobRecord& job) { context_.add(job, line()); }
  /// Reports the columns that no reader asked for.
  void note_unused_columns();

  /// Where the row begins.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  /// Whether the filter keeps the row, as far as it looks at the file's columns.
  [[nodiscard]] bool wanted() const { return context_.filter.keeps_row(splitter_.fields()); }
  /// Why there is no row, or no further row, if that is an error.
  [[nodiscard]] Result<void> outcome() const;

 private:
  [[nodiscard]] std::string column_name(Column column) const { return column ? names_[column.at] : ""; }
  bool split_row(std::string_view line);

  ReadContext& context_;
  CsvSplitter splitter_;
  bool last_takes_rest_;
  std::string text_;  // of a row of several lines
  std::uint64_t line_ = 0;
  std::vector<std::string> names_;
  mutable std::vector<bool> used_;  // names_ that find() gave
  std::optional<Error> row_error_;
  std::optional<Error> fatal_;
};

/// Calls `add(row)` for every row, which fills and adds a job, drops the row, or marks it bad.
template <class Add>
Result<void> for_each_row(RowReader& row, ReadContext& context, Add add) {
  while (row.next()) {
    ++context.report.rows;
    if (!row.bad() && !row.wanted()) {
      row.drop(left_out_by_filter);
      continue;
    }
    if (!row.bad()) add(row);
    if (row.bad() && !row.tolerate_bad_row()) break;
  }
  row.note_unused_columns();
  return row.outcome();
}

/// A gang of `gpus` one-GPU tasks; 0 GPUs is one CPU-only task.
inline Shape gang_of(std::int64_t gpus) {
  Shape shape;
  shape.tasks = gpus > 0 ? static_cast<std::uint32_t>(gpus) : 1;
  shape.gpu_milli_per_task = gpus > 0 ? whole_gpu : 0;
  return shape;
}

/// The gang of a job that a Slurm-like scheduler spread evenly over `nodes` machines: one task a machine. Where the
/// nodes do not divide the GPUs, or are not known (0), a gang of single GPUs.
inline Shape gang_on_nodes(std::int64_t gpus, std::int64_t nodes) {
  if (nodes <= 0 || gpus <= 0 || gpus % nodes != 0) return gang_of(gpus);
  Shape shape;
  shape.tasks = static_cast<std::uint32_t>(nodes);
  shape.gpu_milli_per_task = gpus / nodes * whole_gpu;
  return shape;
}

/// The JobStatus for the word of a trace ("Pass", "COMPLETED", "Killed"...).
JobStatus status_from_word(std::string_view word);

// The readers, one file each.
Result<void> read_philly_json(ReadContext& context);
Result<void> read_philly_csv(ReadContext& context);
Result<void> read_pai_sim(ReadContext& context);
Result<void> read_openb(ReadContext& context);
Result<void> read_openb_pods(ReadContext& context);
Result<void> read_helios(ReadContext& context);
Result<void> read_acme(ReadContext& context);
Result<void> read_swf(ReadContext& context);
Result<void> read_sacct(ReadContext& context);
Result<void> read_tiresias(ReadContext& context);
Result<void> read_native(ReadContext& context);
Result<void> read_any_csv(ReadContext& context);
/// The PAI-2020 tables in the folder or tar archive `path`; see pai_reader.cpp.
Result<void> read_pai_tables(const std::string& path, const ReadOptions& options, const JobFilter& filter,
                             JobTableBuilder& jobs, TraceReport& report, ReadLog* log);
/// True when `path` is a folder or a tar archive with a pai_job_table.
bool has_pai_tables(const std::string& path);

/// Cores of one task beyond any machine's; products of resources with numbers of tasks stay in range.
inline constexpr double most_cores = 1e6;
/// MiB of one task, likewise.
inline constexpr double most_memory_mib = 1e9;

/// An error when all jobs run one after another would end after the end of time (types.hpp). `path` is for the message
/// only. Precondition: there are jobs.
Result<void> check_times(const JobTable& jobs, const std::string& path);

/// The reading behind read_trace(): fills `jobs` and `report`, and `log` unless it is null.
Result<void> read_jobs(const std::string& path, const ReadOptions& options, JobTableBuilder& jobs, TraceReport& report,
                       ReadLog* log);

}  // namespace gpusched
