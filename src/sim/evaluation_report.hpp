// SPDX-License-Identifier: Apache-2.0
/// What `gpusched evaluate` prints: a table for one trace, a matrix for several, or JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/text_style.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/window_comparison.hpp"

namespace gpusched {

/// "agent: interquartile mean of 5 training seeds 271.81 [268.20, 275.11]; seeds 266.31, ...", and a line end; empty
/// where there is no window in which all of them ended.
std::string seeds_line(const Contestant& contestant, const MetricInfo& figure, const ComparisonOptions& options);

/// "agent against sjf: probability of improvement 71.0% [60.2%, 80.1%]; ...", and a line end; empty for a single run.
std::string improvement_line(const Contestant& contestant, const std::string& reference, const Comparison& pair);

/// One trace: a row a contestant, with interval, wins and verdict, and a line for each group of training seeds.
std::string evaluation_table(const TraceEvaluation& evaluation, const ReportOptions& options,
                             const TextStyle& style = {});

/// Several traces: a row a contestant, a column a trace. Precondition: the same contestants on each.
std::string transfer_table(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options,
                           const TextStyle& style = {});

/// Everything, one entry a contestant and trace. P values are corrected for the tests of all traces.
nlohmann::ordered_json evaluation_runs_json(const std::vector<TraceEvaluation>& evaluations,
                                            const ReportOptions& options);

/// A row a window and policy, with every metric: trace, name of the row (a policy, or its group), policy, window (from
/// 0), first measured job, metrics; empty where a run does not know one.
std::string windows_csv(const std::vector<TraceEvaluation>& evaluations);

/// A row a contestant and trace: what the table says, in full precision.
std::string comparison_csv(const std::vector<TraceEvaluation>& evaluations, const ReportOptions& options);

}  // namespace gpusched
