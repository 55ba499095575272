// SPDX-License-Identifier: Apache-2.0
/// What `gpusched evaluate` prints: a table for one trace, a matrix for several, or JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpusched/watch/metrics.hpp"
#include "src/sim/evaluation.hpp"

namespace gpusched {

/// A metric that can be compared; less is better.
struct Figure {
  std::string name;
  double Metrics::*member = nullptr;
};
const std::vector<Figure>& comparable_figures();

/// All contestants on the windows of one trace.
struct TraceEvaluation {
  std::string trace;    ///< as given
  std::string cluster;  ///< name
  EvaluationWindows windows;
  std::vector<Contestant> contestants;
};

/// What is compared with whom.
struct ReportOptions {
  Figure figure;
  std::size_t reference = 0;  ///< contestant that the others are compared with
  std::string backfill;       ///< as given, "none" for none
  std::uint64_t seed = 0;     ///< of the bootstrap
};

/// One trace: a row a contestant, with interval, wins and verdict, and a line for each group of training seeds.
std::string evaluation_table(const TraceEvaluation& evaluation, const ReportOptions& options);

/// Several traces: a row a contestant, a column a trace. Precondition: the same contestants on each.
std::string transfer_table(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options);

/// Everything, one entry a contestant and trace.
nlohmann::ordered_json evaluation_runs_json(const TraceEvaluation& evaluation, const ReportOptions& options);

}  // namespace gpusched
