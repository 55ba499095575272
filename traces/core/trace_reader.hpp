// SPDX-License-Identifier: Apache-2.0
/// What a reader of one format is made of. A reader is a function that fills a JobSink; the table of formats
/// (trace_formats.cpp) lists them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/field_parser.hpp"
#include "traces/core/input_file.hpp"
#include "traces/core/job_sink.hpp"
#include "traces/core/row_reader.hpp"
#include "traces/core/slurm_gpus.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

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
Result<void> read_sacct_json(ReadContext& context);
Result<void> read_pbs(ReadContext& context);
Result<void> read_lsf(ReadContext& context);
Result<void> read_pods(ReadContext& context);
Result<void> read_tiresias(ReadContext& context);
Result<void> read_native(ReadContext& context);
Result<void> read_any_csv(ReadContext& context);
/// The PAI-2020 tables in the folder or tar archive `path`; see pai_reader.cpp.
Result<void> read_pai_tables(const std::string& path, JobSink& sink);
/// True when `path` is a folder or a tar archive with a pai_job_table.
bool has_pai_tables(const std::string& path);
/// True when the first lines are those of that format.
/// \{
bool is_sacct(std::string_view head);
bool is_sacct_json(std::string_view head);
bool is_pbs(std::string_view head);
bool is_lsf(std::string_view head);
bool is_pods(std::string_view head);
/// \}

/// Cores of one task beyond any machine's; products of resources with numbers of tasks stay in range.
inline constexpr double most_cores = 1e6;
/// MiB of one task, likewise.
inline constexpr double most_memory_mib = 1e9;

/// An error when all jobs run one after another would end after the end of time (types.hpp). `path` is for the message
/// only. Precondition: there are jobs.
Result<void> check_times(const JobTable& jobs, const std::string& path);

/// The line of the first job that `message`, what JobTableBuilder says of wrong dependencies, names; 0 where none is.
std::uint64_t line_of_wrong_after(const ReadLog& log, std::string_view message);

/// The reading behind read_trace(): fills `jobs` and `report`, and `log` unless it is null.
Result<void> read_jobs(const std::string& path, const ReadOptions& options, JobTableBuilder& jobs, TraceReport& report,
                       ReadLog* log);

}  // namespace gpusched
