// SPDX-License-Identifier: Apache-2.0
// The one table of formats, recognition, and what is common to reading all of them.
#include <algorithm>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/job_records.hpp"
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
    if (!parse_number(rest.substr(0, stop))) return false;
    rest.remove_prefix(stop);
    ++fields;
  }
  return fields == 18;
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
  return Unexpected{Error{.message = "format not recognised; name it with --format, or say which column is which with "
                                     "--columns submit=NAME,gpus=NAME,duration=NAME",
                          .file = path,
                          .line = 1}};
}

// Names both lines of an id that appears twice. The table keeps no line numbers, so the trace is read again.
Error duplicate_error(const std::string& path, const ReadOptions& options, Error error) {
  error.file = path;
  JobTableBuilder jobs;
  TraceReport report;
  ReadLog log;
  if (!read_jobs(path, options, jobs, report, &log)) return error;
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
      {"sacct", "Slurm accounting, sacct -P with a header line", "slurm.schedmd.com/sacct.html",
       [](std::string_view head) {
         return header_has(head, {"JobID", "Submit"}, '|');
       },
       read_sacct},
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

Result<void> read_jobs(const std::string& path, const ReadOptions& options, JobTableBuilder& jobs, TraceReport& report,
                       ReadLog* log) {
  report.path = path;
  auto filter = JobFilter::parse(options.where);
  if (!filter) return Unexpected{filter.error()};
  if (options.format == "pai" || (options.format == "auto" && options.columns.empty() && has_pai_tables(path))) {
    report.format = "pai";
    if (auto bound = filter->bind({}); !bound) return bound;
    return read_pai_tables(path, options, *filter, jobs, report, log);
  }
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  const auto format = choose_format(path, options, file->head());
  if (!format) return Unexpected{format.error()};
  report.format = (*format)->name;
  ReadContext context{*file, options, jobs, report, log, *std::move(filter)};
  if (auto outcome = (*format)->read(context); !outcome) {
    Error error = outcome.error();
    if (error.file.empty()) error.file = path;
    return Unexpected{std::move(error)};
  }
  if (const auto others = file->other_files(); !others.empty()) {
    report.notes.push_back(counted(others.size(), "further file") +
                           " of the archive not read: " + excerpt(joined(others, ", "), 200));
  }
  report.sha256 = file->sha256();
  return {};
}

Result<Trace> read_trace(const std::string& path, const ReadOptions& options) {
  constexpr std::string_view synthetic = "synthetic:";
  if (path.starts_with(synthetic)) {
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
  if (!table) return Unexpected{duplicate_error(path, options, table.error())};
  trace.jobs = *std::move(table);
  if (auto fits = check_times(trace.jobs, path); !fits) return Unexpected{fits.error()};
  return trace;
}

}  // namespace gpusched
