// SPDX-License-Identifier: Apache-2.0
// The one table of formats, recognition, and what is common to reading all of them.
#include <algorithm>

#include "src/sim/nearest_name.hpp"
#include "traces/synthetic.hpp"
#include "traces/trace_reader.hpp"

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

// Tells Error's field where a duplicate id stands: the reading itself keeps no line numbers, so the rows are read
// again.
Error with_path(Error error, const std::string& path) {
  if (error.file.empty()) error.file = path;
  return error;
}

}  // namespace

const std::vector<TraceFormat>& trace_format_table() {
  static const std::vector<TraceFormat> table = {
      {"native", "gpusched's own csv (written by trace convert)", "docs/traces.md",
       [](std::string_view head) {
         return header_has(head, {"submit_s", "work_s", "gpu_milli_per_task"});
       },
       read_native},
      {"philly-csv", "Microsoft Philly jobs, one line each: job_id,submit_s,num_gpus,duration_s",
       "Jeon et al., ATC'19; as prepared by RFold",
       [](std::string_view head) {
         return header_has(head, {"submit_s", "num_gpus", "duration_s"});
       },
       read_philly_csv},
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
      {"openb-pods", "the same pods as mere demands, every row, times ignored (packing experiments)",
       "Weng et al., ATC'23, cluster-trace-gpu-v2023", [](std::string_view) { return false; }, read_openb_pods},
      {"tiresias", "Tiresias simulator jobs; with iteration_time also Muri's, in milliseconds",
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
      {"csv", "any csv with a header, through --columns", "", [](std::string_view) { return false; }, read_any_csv},
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

Result<Trace> read_trace(const std::string& path, const ReadOptions& options) {
  constexpr std::string_view synthetic = "synthetic:";
  if (path.starts_with(synthetic)) return synthetic_trace(path.substr(synthetic.size()), options.seed);
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  const TraceFormat* chosen = nullptr;
  std::vector<std::string> names = {"auto"};
  const std::string wanted = options.format == "auto" && !options.columns.empty() ? "csv" : options.format;
  for (const TraceFormat& format : trace_format_table()) {
    names.push_back(format.name);
    if (chosen == nullptr && (wanted == "auto" ? format.recognise(file->head()) : format.name == wanted)) {
      chosen = &format;
    }
  }
  if (chosen == nullptr && wanted == "auto") {
    return Unexpected{
        Error{.message = "format not recognised; name it with --format, or map the columns with --columns",
              .file = path,
              .line = 1}};
  }
  if (chosen == nullptr) return unexpected("unknown trace format '" + wanted + "'" + suggest_nearest(wanted, names));

  Trace trace;
  trace.report.path = path;
  trace.report.format = chosen->name;
  JobTableBuilder builder;
  ReadContext context{*file, options, builder, trace.report};
  if (auto read = chosen->read(context); !read) return Unexpected{with_path(read.error(), path)};
  trace.report.kept = builder.size();
  trace.report.sha256 = file->sha256();
  if (builder.size() == 0) {
    return Unexpected{
        Error{.message = "holds no job" + std::string(trace.report.rows > 0 ? " that ran" : ""), .file = path}};
  }
  auto jobs = std::move(builder).build();
  if (!jobs) return Unexpected{with_path(jobs.error(), path)};
  trace.jobs = std::move(*jobs);
  return trace;
}

}  // namespace gpusched
