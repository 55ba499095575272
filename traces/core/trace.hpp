// SPDX-License-Identifier: Apache-2.0
/// Reads job logs of published formats into a JobTable, with a report of the rows that were kept and left out. No row
/// is dropped silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// How to read.
struct ReadOptions {
  std::string format = "auto";  ///< a name of trace_formats(), or "auto"
  std::string columns = {};     ///< for format csv: "submit=COLUMN,gpus=COLUMN,duration=COLUMN[,user=...]"
  std::string where = {};       ///< which jobs to keep: "vc=gpu,gpus>=8" (JobFilter); empty: all
  std::string qos = {};         ///< priorities by quality of service: "high=1000,normal=10" (QosWeights); empty: none
  std::uint64_t seed = 0;       ///< of a synthetic trace
  bool drop_bad_rows = false;   ///< count rows with bad values as dropped instead of refusing the trace
  bool backlog = false;         ///< keep jobs that had not ended when the log was written; they run for their estimate
};

/// Rows left out for one reason.
struct DroppedRows {
  std::string reason;
  std::uint64_t rows = 0;
  std::uint64_t first_line = 0;  ///< 0 when the format has no lines
};

/// What reading did.
struct TraceReport {
  std::string path;
  std::string format;
  std::string sha256;  ///< of the file on disk; empty for a folder or a synthetic trace
  std::uint64_t rows = 0;
  std::uint64_t kept = 0;
  std::vector<DroppedRows> dropped;  ///< in order of first appearance
  std::vector<std::string> notes;    ///< other things a user should know: unsorted rows, clamped jobs
  std::string cluster = {};          ///< the cluster, as --cluster takes it, that a synthetic trace was drawn for
  std::int64_t machine_gpus = 0;     ///< size of the machine as the trace states it (SWF MaxProcs); 0 = not stated
  Time clock{};  ///< at second 0, past midnight (SWF UnixStartTime); times of jobs do not include it

  static constexpr std::size_t most_reasons = 20;  ///< that are told apart; a damaged file has one a row

  /// Counts rows left out for `reason`, the first of them at `line`.
  void drop(const std::string& reason, std::uint64_t line, std::uint64_t count = 1) {
    for (DroppedRows& entry : dropped) {
      if (entry.reason == reason) {
        entry.rows += count;
        return;
      }
    }
    if (dropped.size() < most_reasons) {
      dropped.push_back({reason, count, line});
    } else if (dropped.back().reason == "other reasons") {
      dropped.back().rows += count;
    } else {
      dropped.push_back({"other reasons", count, line});
    }
  }
};

struct Trace {
  JobTable jobs;
  TraceReport report;
};

/// Reads `path` (plain or compressed; "-" is standard input), or draws "synthetic:NAME". Errors carry file, line and
/// field. Refuses a trace whose submissions and run times together exceed what a Time holds.
Result<Trace> read_trace(const std::string& path, const ReadOptions& options = {});

/// A format as `gpusched trace --help` lists it.
struct TraceFormatInfo {
  std::string name;
  std::string summary;
  std::string source;
};
std::vector<TraceFormatInfo> trace_formats();

}  // namespace gpusched
