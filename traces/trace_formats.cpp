// SPDX-License-Identifier: Apache-2.0
// The one table of formats, recognition, and what is common to reading all of them.
#include <algorithm>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/format_hints.hpp"
#include "traces/core/job_records.hpp"
#include "traces/core/plausibility.hpp"
#include "traces/core/trace_reader.hpp"
#include "traces/synthetic/trace_model.hpp"

namespace gpusched {
namespace {

bool is_swf(std::string_view head) {
  const std::string_view line = first_line(head);
  if (line.starts_with(';')) return true;
  std::size_t fields = 0;
  for (std::string_view rest = trim(line); !rest.empty(); rest = trim(rest)) {
    const std::size_t stop = std::min(rest.find_first_of(" \t"), rest.size());
    if (fields < 18 && !parse_number(rest.substr(0, stop))) return false;
    rest.remove_prefix(stop);
    ++fields;
  }
  return fields >= 18;
}

bool is_philly_json(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && head[start] == '[' && head.find("\"attempts\"") != std::string_view::npos;
}

Result<const TraceFormat*> choose_format(const std::string& path, const ReadOptions& options, std::string_view head) {
  const bool is_auto = options.format == "auto";
  const std::string wanted = is_auto && !options.columns.empty() ? "csv" : options.format;
  std::vector<std::string> names = {"auto"};
  for (const TraceFormat& format : trace_format_table()) {
    names.push_back(format.name);
    if (wanted == "auto" ? format.recognise != nullptr && format.recognise(head) : format.name == wanted)
      return &format;
  }
  if (wanted != "auto") {
    const std::string expected = "expected one of " + joined(names, "|");
    return Unexpected{
        Error{.message = expected + ", not '" + wanted + "'" + suggest_nearest(wanted, names), .field = "--format"}};
  }
  return Unexpected{Error{.message = "format not recognised" + advice_for_unrecognised(head), .file = path, .line = 1}};
}

// Names the lines of an id that appears twice, or of a job that cannot wait for others as it says. The table keeps no
// line numbers, so the trace is read again.
Error error_with_lines(const std::string& path, const ReadOptions& options, Error error) {
  error.file = path;
  JobTableBuilder jobs;
  TraceReport report;
  ReadLog log;
  if (!read_jobs(path, options, jobs, report, &log)) return error;
  if (error.field == "after") {
    error.line = line_of_wrong_after(log, error.message);
    return error;
  }
  std::stable_sort(log.jobs.begin(), log.jobs.end(),
                   [](const ReadLog::Job& a, const ReadLog::Job& b) { return a.id < b.id; });
  const auto twin = std::adjacent_find(log.jobs.begin(), log.jobs.end(),
                                       [](const ReadLog::Job& a, const ReadLog::Job& b) { return a.id == b.id; });
  if (twin == log.jobs.end()) return error;
  error.line = (twin + 1)->line;
  error.message = "job id '" + excerpt(twin->id) + "' is already used at line " + std::to_string(twin->line) +
                  "; ids must be unique";
  return error;
}

}  // namespace

Result<void> check_times(const JobTable& jobs, const std::string& path) {
  Time left = end_of_time;
  const auto take = [&left](Time span) {
    const bool fits = span <= left;
    if (fits) left = left - span;
    return fits;
  };
  const Time first = jobs.submits().front(), last = jobs.submits().back();
  const bool fits = Time{} - end_of_time < first && take(std::max({last, last - first, Time{}})) &&
                    std::all_of(jobs.works().begin(), jobs.works().end(), take);
  if (fits) return {};
  return Unexpected{
      Error{.message = "submissions and run times together exceed 146,000 years, the range of a clock in microseconds",
            .file = path}};
}

std::uint64_t line_of_wrong_after(const ReadLog& log, std::string_view message) {
  for (const ReadLog::Job& job : log.jobs) {
    const std::string who = "job '" + job.id + "' ";
    if (message.starts_with(who + "waits for ") || message.starts_with("jobs wait for each other: " + who)) {
      return job.line;
    }
  }
  return 0;
}

const std::vector<TraceFormat>& trace_format_table() {
  static const std::vector<TraceFormat> table = {
      {"native", "gpusched's own csv (written by trace convert)", "traces/PROVENANCE.md",
       [](std::string_view head) {
         return header_has(head, {"submit_s", "work_s", "gpu_milli_per_task"});
       },
       read_native},
      {"philly-csv", "Microsoft Philly, one line per job: job_id,submit_s,num_gpus,duration_s",
       "Jeon et al., ATC'19; as prepared by RFold",
       [](std::string_view head) {
         return header_has(head, {"submit_s", "num_gpus", "duration_s"});
       },
       read_philly_csv},
      {"philly", "Microsoft Philly cluster_job_log (JSON, every attempt)", "Jeon et al., ATC'19, philly-traces",
       is_philly_json, read_philly_json},
      {"pai", "Alibaba PAI-2020: folder or tar of pai_job_table, pai_task_table",
       "Weng et al., NSDI'22, cluster-trace-gpu-v2020", nullptr, nullptr},
      {"pai-sim", "input columns of Alibaba's PAI simulator", "Weng et al., NSDI'22 artifact",
       [](std::string_view head) {
         return header_has(head, {"submit_time", "num_gpu", "num_inst", "duration"});
       },
       read_pai_sim},
      {"openb", "Alibaba GPU-sharing pods (openb_pod_list_*.csv)", "Weng et al., ATC'23, cluster-trace-gpu-v2023",
       [](std::string_view head) {
         return header_has(head, {"cpu_milli", "gpu_milli", "num_gpu", "creation_time"});
       },
       read_openb},
      {"openb-pods", "the same pods without their times (packing experiments)",
       "Weng et al., ATC'23, cluster-trace-gpu-v2023", [](std::string_view) { return false; }, read_openb_pods},
      {"tiresias", "Tiresias simulator jobs; with iteration_time Muri's, in milliseconds",
       "Gu et al., NSDI'19 artifact; Zhao et al., SIGCOMM'22 artifact",
       [](std::string_view head) {
         return header_has(head, {"num_gpu", "submit_time", "iterations", "model_name", "duration"});
       },
       read_tiresias},
      {"acme", "Shanghai AI Laboratory trace_seren.csv, trace_kalos.csv", "Hu et al., NSDI'24, AcmeTrace",
       [](std::string_view head) {
         return header_has(head, {"gpu_num", "node_num", "type", "submit_time"});
       },
       read_acme},
      {"helios", "SenseTime Helios cluster_log.csv", "Hu et al., SC'21, HeliosData",
       [](std::string_view head) {
         return header_has(head, {"gpu_num", "submit_time", "duration", "state"});
       },
       read_helios},
      {"swf", "Standard Workload Format of the Parallel Workloads Archive", "Chapin et al., JSSPP'99", is_swf,
       read_swf},
      {"sacct", "Slurm accounting, sacct -P with a header line", "slurm.schedmd.com/sacct.html", is_sacct, read_sacct},
      {"sacct-json", "Slurm accounting in JSON, sacct --json", "slurm.schedmd.com/sacct.html", is_sacct_json,
       read_sacct_json},
      {"pbs", "accounting log of PBS Professional, OpenPBS or Torque",
       "PBS Professional Administrator's Guide, Accounting log", is_pbs, read_pbs},
      {"lsf", "lsb.acct of IBM Spectrum LSF", "Spectrum LSF configuration reference, lsb.acct", is_lsf, read_lsf},
      {"pods", "Kubernetes pods, kubectl get pods -A -o json", "kubernetes.io, Pod v1", is_pods, read_pods},
      {"csv", "any csv with a header line; needs --columns", "", nullptr, read_any_csv},
  };
  return table;
}

std::vector<TraceFormatInfo> trace_formats() {
  std::vector<TraceFormatInfo> formats;
  for (const TraceFormat& format : trace_format_table()) {
    formats.push_back({format.name, format.summary, format.source});
  }
  return formats;
}

namespace {

// One pass over a trace.
class Pass {
 public:
  Pass(const std::string& path, const ReadOptions& options, JobTableBuilder& jobs, TraceReport& report, ReadLog* log)
      : path_(path), options_(options), jobs_(jobs), report_(report), log_(log) {}

  // Jobs outside of the window are bad rows; the span of each other is added to `spans` unless that is null.
  Result<void> read(const TimeWindow& window, std::vector<JobSpan>* spans) {
    window_ = window;
    spans_ = spans;
    report_.path = path_;
    if (options_.format == "pai" || (options_.format == "auto" && options_.columns.empty() && has_pai_tables(path_))) {
      return read_tables();
    }
    return read_file();
  }

  [[nodiscard]] const JobSpan& extent() const { return extent_; }

 private:
  Result<void> prepare(JobSink& sink) {
    auto filter = JobFilter::parse(options_.where);
    if (!filter) return Unexpected{filter.error()};
    sink.filter = *std::move(filter);
    auto qos = QosWeights::parse(options_.qos);
    if (!qos) return Unexpected{qos.error()};
    sink.qos = *std::move(qos);
    sink.window = window_;
    if (spans_ != nullptr) sink.collect_spans(*spans_);
    return {};
  }

  Result<void> finish(JobSink& sink, const Result<void>& read) {
    sink.finish();
    extent_ = sink.extent();
    const auto outcome = sink.outcome(read);
    if (outcome) return outcome;
    Error error = outcome.error();
    if (error.file.empty()) error.file = path_;
    return Unexpected{std::move(error)};
  }

  Result<void> read_tables() {
    report_.format = "pai";
    JobSink sink(options_, jobs_, report_, log_);
    if (auto ready = prepare(sink); !ready) return ready;
    if (auto bound = sink.filter.bind({}); !bound) return bound;
    return finish(sink, read_pai_tables(path_, sink));
  }

  Result<void> read_file() {
    auto file = InputFile::open(path_);
    if (!file) return Unexpected{file.error()};
    const auto format = choose_format(path_, options_, file->head());
    if (!format) return Unexpected{format.error()};
    report_.format = (*format)->name;
    ReadContext context(*file, options_, jobs_, report_, log_);
    if (auto ready = prepare(context); !ready) return ready;
    if (auto outcome = finish(context, (*format)->read(context)); !outcome) return outcome;
    if (const auto others = file->other_files(); !others.empty()) {
      report_.notes.push_back("read " + excerpt(file->entry_name()) + ", the first file of the archive; " +
                              counted(others.size(), "further file") +
                              " not read: " + excerpt(joined(others, ", "), 200));
    }
    if (auto whole = file->check_rest(); !whole) return whole;
    if (file->without_checksum()) {
      report_.notes.emplace_back("was packed without a checksum: damage may pass unnoticed");
    }
    report_.sha256 = file->sha256();
    return {};
  }

  const std::string& path_;
  const ReadOptions& options_;
  JobTableBuilder& jobs_;
  TraceReport& report_;
  ReadLog* log_;
  TimeWindow window_;
  std::vector<JobSpan>* spans_ = nullptr;
  JobSpan extent_;
};

}  // namespace

// Times far outside the log are found by a second pass, once the log is known; a third leaves them out. Both are rare.
Result<void> read_jobs(const std::string& path, const ReadOptions& options, JobTableBuilder& jobs, TraceReport& report,
                       ReadLog* log) {
  const auto pass = [&](const TimeWindow& window, std::vector<JobSpan>* spans, JobSpan& extent) -> Result<void> {
    jobs = JobTableBuilder();
    report = TraceReport();
    if (log != nullptr) *log = ReadLog();
    Pass one(path, options, jobs, report, log);
    const auto outcome = one.read(window, spans);
    extent = one.extent();
    return outcome;
  };
  JobSpan extent;
  const auto outcome = pass({}, nullptr, extent);
  if (!outcome || jobs.size() < 3 || later_by(extent.first, ten_years) >= extent.last) return outcome;
  std::vector<JobSpan> spans;
  if (const auto again = pass({}, &spans, extent); !again) return again;
  const TimeWindow window = window_of(std::move(spans));
  if (window.holds(extent.first, extent.last)) return outcome;
  return pass(window, nullptr, extent);
}

Result<Trace> read_trace(const std::string& path, const ReadOptions& options) {
  constexpr std::string_view synthetic = "synthetic:";
  if (path.starts_with(synthetic)) {
    const bool has_columns = !options.columns.empty();
    if (has_columns || (options.format != "auto" && options.format != "synthetic")) {
      return unexpected(path + ": is drawn, not read from a file; expected no " + (has_columns ? "columns" : "format") +
                        " for it");
    }
    auto drawn = synthetic_trace(path.substr(synthetic.size()), options.seed);
    return drawn ? keep_jobs(*std::move(drawn), options.where) : drawn;
  }
  Trace trace;
  JobTableBuilder jobs;
  if (auto outcome = read_jobs(path, options, jobs, trace.report, nullptr); !outcome) {
    return Unexpected{outcome.error()};
  }
  trace.report.kept = jobs.size();
  if (jobs.size() < trace.report.rows) jobs.ignore_missing_predecessors();
  if (jobs.size() == 0) {
    const std::string rows = std::to_string(trace.report.rows);
    std::string message = "holds no job";
    for (const DroppedRows& dropped : trace.report.dropped) {
      message += ", " + std::to_string(dropped.rows) + " of " + rows + " rows left out: " + dropped.reason;
    }
    return Unexpected{Error{.message = message, .file = path}};
  }
  if (const std::uint32_t rows = jobs.rows_out_of_order(); rows > 0) {
    trace.report.notes.push_back(counted(rows, "row") + " submitted before the row above; sorted by submission");
  }
  auto table = std::move(jobs).build();
  if (!table) return Unexpected{error_with_lines(path, options, table.error())};
  trace.jobs = *std::move(table);
  trace.jobs.set_midnight_to_zero(trace.report.clock);
  if (auto fits = check_times(trace.jobs, path); !fits) return Unexpected{fits.error()};
  for (std::string& note : plausibility_notes(trace.jobs)) trace.report.notes.push_back(std::move(note));
  return trace;
}

}  // namespace gpusched
