// SPDX-License-Identifier: Apache-2.0
/// What tests of readers share: reading a text as a file, and the jobs of a trace in short.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/number_text.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"

namespace gpusched::test {

using Lines = std::vector<std::string>;
using Counts = std::map<std::string, std::uint64_t>;

/// What reading `text` gives.
inline Result<Trace> trace_of(const std::string& text, const ReadOptions& options = {}) {
  const TempFolder folder;
  return read_trace(folder.write("trace", text), options);
}

/// The error without the path of its file: what stands behind "trace".
inline std::string error_of(const Result<Trace>& trace) {
  if (trace) return "no error";
  const std::string text = trace.error().to_string();
  return text.substr(text.find("/trace") == std::string::npos ? 0 : text.find("/trace") + 6);
}

/// "ID submit+wait work GPUs" of each job, in seconds; without "+wait" where no start is recorded.
inline Lines short_jobs(const Result<Trace>& trace) {
  if (!trace) return {error_of(trace)};
  Lines lines;
  for (std::uint32_t i = 0; i < trace->jobs.size(); ++i) {
    const JobId job{i};
    const Time start = trace->jobs.start(job);
    const MilliGpu milli = trace->jobs.shape(job).gpu_milli();
    lines.push_back(trace->jobs.external_id(job) + " " + exact_seconds(trace->jobs.submit(job)) +
                    (start == Time::max() ? "" : "+" + exact_seconds(start - trace->jobs.submit(job))) + " " +
                    exact_seconds(trace->jobs.work(job)) + " " + exact_number(static_cast<double>(milli) / 1000));
  }
  return lines;
}

/// Rows that were left out, by reason.
inline Counts left_out(const Result<Trace>& trace) {
  Counts rows;
  if (!trace) return rows;
  for (const DroppedRows& entry : trace->report.dropped) rows[entry.reason] = entry.rows;
  return rows;
}

/// Whether some note of the report holds the text.
inline bool has_note(const Result<Trace>& trace, const std::string& text) {
  if (!trace) return false;
  for (const std::string& note : trace->report.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace gpusched::test
