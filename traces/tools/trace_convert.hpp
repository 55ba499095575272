// SPDX-License-Identifier: Apache-2.0
/// Writing traces: `gpusched trace convert`. Any trace that read_trace() reads becomes gpusched's own csv, which keeps
/// everything, or the Standard Workload Format, which other simulators read.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// The text of a trace file, how many jobs it holds, and notes on what the format cannot express.
struct TraceText {
  std::string text;
  std::uint64_t jobs = 0;
  std::vector<std::string> notes;
};

/// The native csv, whose second 0 is at midnight (JobTable::midnight_to_zero). Reading it gives the same jobs with the
/// same ids and names. Columns that no job has a value for are
/// not written. Precondition: names are as read_trace() gives them (src/base/name_text.hpp).
TraceText write_native(const JobTable& jobs);

/// The Standard Workload Format 2.2. GPUs become processors, a share of a GPU a whole one; times count from the first
/// submission (UnixStartTime in the header), recorded starts become waits; memory counts by processor. Users, groups
/// and virtual clusters become numbers in order of first appearance, where not all of a column are distinct numbers
/// already. Who waits for several jobs that are written waits for the last that ends in the log, where that is known,
/// else for nothing. Jobs without a GPU are left out. Ids that are not distinct positive numbers become 1, 2, ... The
/// notes say how many jobs each of these touched. `machine_gpus`: of the machine (MaxProcs in the header); 0: not
/// known.
TraceText write_swf(const JobTable& jobs, std::int64_t machine_gpus = 0);

/// Formats that convert_trace() writes: "native", "swf".
std::vector<std::string> writable_trace_formats();

/// Writes the trace to `path` ("-": standard output) in `format` under a temporary name, then renames. `machine_gpus`:
/// as write_swf() takes it. Errors: unknown format (with the nearest name), or the file cannot be
/// written.
Result<TraceText> convert_trace(const JobTable& jobs, const std::string& format, const std::string& path,
                                std::int64_t machine_gpus = 0);

}  // namespace gpusched
