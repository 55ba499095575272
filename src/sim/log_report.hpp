// SPDX-License-Identifier: Apache-2.0
/// What `gpusched evaluate` prints and writes of whole logs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/text_style.hpp"
#include "src/sim/log_evaluation.hpp"

namespace gpusched {

/// One trace's log and what came of it.
struct TraceLog {
  std::string trace;    ///< as given
  std::string cluster;  ///< name
  LogEvaluation evaluation;
  LogFindings findings;
};

/// What the tables say beside it.
struct LogReportOptions {
  const MetricInfo* figure = nullptr;
  std::vector<SideFigure> beside = {};  ///< of all jobs of the log: shown, not compared
  LogCompareOptions compare;
  std::string backfill = "none";  ///< as given
};

/// "better: median, p90; worse: mean, p99; cannot be told: trimmed_mean (about 9 weeks more)".
std::string effects_line(const LogComparison& pair, double measured_s);

/// "about 9 weeks more": what a log of `measured_s` lacks of `needed` times that; empty where it lacks nothing.
std::string more_log(std::optional<double> needed, double measured_s);

/// A row a contestant, then of each but the reference a row an effect.
std::string log_table(const TraceLog& log, const LogReportOptions& options, const TextStyle& style = {});

/// One entry a contestant and trace.
nlohmann::ordered_json log_runs_json(const std::vector<TraceLog>& logs, const LogReportOptions& options);

/// A row a contestant, trace and effect, in full precision.
std::string effects_csv(const std::vector<TraceLog>& logs, const LogReportOptions& options);

/// A row a policy and batch of the measured jobs, as many as most_batches: mean of the quantity and of the jobs that
/// waited when each was submitted.
std::string batches_csv(const std::vector<TraceLog>& logs);

}  // namespace gpusched
