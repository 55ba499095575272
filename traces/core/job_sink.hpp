// SPDX-License-Identifier: Apache-2.0
/// JobSink: where the reader of a format puts what it reads, job by job, and what it leaves out. The rules that all
/// formats share stand here: names, filters, what counts as a job that ran, and what becomes of bad rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/core/job_filter.hpp"
#include "traces/core/job_records.hpp"
#include "traces/core/job_times.hpp"
#include "traces/core/qos_weights.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// What reading found, row by row. Kept only for `trace validate` and for the search for a line.
struct ReadLog {
  /// A job as it was added, in order of rows.
  struct Job {
    std::string id;  ///< empty: the trace has none
    Time submit{}, work{}, estimate{};
    Time longest{};  ///< attempt: what its estimate is of
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
};

/// Why a job that did not run is not in a trace.
/// \{
inline constexpr const char* never_started = "never started";
inline constexpr const char* still_waiting = "still waiting at the end of the trace";
inline constexpr const char* still_running = "still running at the end of the trace";
/// \}

/// Why a row is left out that an overlapping export repeats.
inline constexpr const char* same_run_again = "the same run again";

/// The work of a job of the backlog that ran for so long, at most ten years, and whose time limit is not known: beyond
/// all known ones. JobSink::finish() puts another in its place.
/// \{
constexpr Time unknown_work(Time ran) { return Time::max() - (ran < ten_years ? ran : ten_years); }
constexpr bool is_unknown_work(Time work) { return work >= unknown_work(ten_years); }
constexpr Time ran_of_unknown_work(Time work) { return Time::max() - work; }
/// \}

/// Where a record stands, and what its times are called there; for messages.
struct RecordPlace {
  std::string file;
  std::uint64_t line = 0;
  std::string submit, start, end;
};

class JobSink {
 public:
  JobSink(const ReadOptions& how, JobTableBuilder& into, TraceReport& told, ReadLog* found = nullptr)
      : options(how), report(told), log(found), jobs_(into) {}

  /// Adds a job that stands at `line`, unless the filter leaves it out or its times are far outside the log.
  void add(const JobRecord& record, std::uint64_t line);
  /// Leaves a row out for a reason that the published trace is known for.
  void drop(const std::string& reason, std::uint64_t line);
  /// Leaves a row with a bad value out and goes on. Unless such rows may be dropped (ReadOptions::drop_bad_rows), the
  /// first of them is what reading the trace gives in the end: outcome().
  void bad_row(const Error& error);
  /// Takes over what another sink, of a part of the trace, found bad.
  void take_bad_rows(const JobSink& part);

  /// Gives `job` its start and its work, by the one check of times. Where it did not run, the reason for leaving it
  /// out; with ReadOptions::backlog a job that still waits or runs has its estimate as its work, or unknown_work(). The
  /// record stands for `jobs`. Precondition: `times` are not bad.
  const char* why_left_out(JobRecord& job, const LoggedTimes& times, const JudgedTimes& judged, std::uint64_t jobs = 1);
  /// The same for a reader without columns: judges the times, counts a record that is left out or bad, and is true when
  /// `job` is to be added.
  bool take_times(JobRecord& job, const LoggedTimes& times, const RecordPlace& place);
  /// Counts a record as bad whose times are.
  void bad_times(const LoggedTimes& times, const JudgedTimes& judged, const RecordPlace& place);
  /// Counts what the check of times explained of a job that ran, for the notes. why_left_out() does it too.
  void count_explained(const LoggedTimes& times, const JudgedTimes& judged);

  /// Notes that so many ids are used again by later jobs, which are told apart by "#2" and so on behind them.
  void note_ids_used_again(std::uint64_t ids);

  /// Success, or the first bad row where such may not be dropped.
  [[nodiscard]] Result<void> outcome() const;
  /// The same where reading went otherwise as `read` says: what came first in the file. Says how many rows are bad.
  [[nodiscard]] Result<void> outcome(const Result<void>& read) const;

  /// Who waits for a job that is not in the log does not wait for it.
  void ignore_missing_predecessors() { jobs_.ignore_missing_predecessors(); }
  /// After the last job: adds those of the backlog without a time limit, whose work is the median of the jobs that
  /// ended, and notes what the check of times explained.
  void finish();

  const ReadOptions& options;
  TraceReport& report;
  ReadLog* log;
  JobFilter filter = {};   ///< ReadOptions::where
  TimeWindow window = {};  ///< where times may lie
  QosWeights qos = {};     ///< ReadOptions::qos

  /// The first and last instant of all jobs added.
  [[nodiscard]] const JobSpan& extent() const { return extent_; }
  /// Keeps the span of each job added.
  void collect_spans(std::vector<JobSpan>& spans) { spans_ = &spans; }

 private:
  // A job of the backlog that waits for finish(), with its names.
  struct HeldJob {
    JobRecord record;
    std::vector<std::string> names;
    std::uint64_t line = 0;
  };
  void hold(const JobRecord& job, std::uint64_t line);

  JobTableBuilder& jobs_;
  NamedRecord named_;
  std::vector<Time> works_;  // of the jobs added, with a backlog
  std::vector<HeldJob> held_;
  std::optional<Error> first_bad_;
  std::uint64_t bad_rows_ = 0, clock_moved_ = 0, start_not_recorded_ = 0, backlog_ = 0;
  JobSpan extent_{.first = Time::max(), .last = Time{} - end_of_time};
  std::vector<JobSpan>* spans_ = nullptr;
};

}  // namespace gpusched
