// SPDX-License-Identifier: Apache-2.0
/// Every irregularity of a trace with its line: `gpusched trace validate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// One oddity. Kinds: "no job", "bad value", "twin id" and "wrong dependency", which read_trace() refuses; "left out",
/// a row that the reader drops with a reason; "out of order", "no work", "work above estimate", "larger than the
/// machine", which it keeps.
struct TraceOddity {
  std::string kind;
  std::uint64_t line = 0;  ///< 0 when the format has no lines
  std::string message;
};

struct TraceValidation {
  TraceReport report;
  std::vector<TraceOddity> oddities;  ///< by line
  std::uint64_t refusals = 0;         ///< how many of them read_trace() would refuse
};

/// Reads the whole trace and lists its irregularities. An error only where reading cannot continue: a missing or
/// damaged file, an unknown format, a missing column.
Result<TraceValidation> validate_trace(const std::string& path, const ReadOptions& options = {});

/// For people: the verdict, then each kind with its count and its first `most` lines.
std::string validation_text(const TraceValidation& validation, std::size_t most = 10);

/// {"path", "format", "rows", "kept", "refusals", "oddities": [{"kind", "line", "message"}]}
std::string validation_json(const TraceValidation& validation);

}  // namespace gpusched
