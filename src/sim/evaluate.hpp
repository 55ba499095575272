// SPDX-License-Identifier: Apache-2.0
/// Evaluate: loads what an EvaluateScenario names, runs every policy on the whole log or on every window and gives the
/// report: what `gpusched evaluate` does, for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/evaluate_scenario.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/evaluation_report.hpp"
#include "src/sim/log_report.hpp"
#include "src/sim/report.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {

/// The rows that are compared: each row's name and where its policies lie in `policies`.
struct Lineup {
  struct Entry {
    std::string name;
    std::size_t first = 0, count = 1;
  };
  std::vector<PolicySpec> policies;
  std::vector<Entry> entries;
};
/// Errors: a policy list or group that cannot be read, an unknown policy.
Result<Lineup> lineup_of(const EvaluateScenario& scenario, const PolicyRegistry& registry);

/// One trace and what is laid over it.
struct EvaluationInput {
  std::string path;
  RunInput run;
  EvaluationOptions options;
  std::vector<std::uint32_t> starts;  ///< of the windows: first measured jobs; empty where no window fits
  LogOptions log;
};

/// What is compared: a running cluster, or windows.
enum class EvaluationMode : std::uint8_t {
  log,           ///< every policy on the whole log, from its beginning and from further starts
  automatic,     ///< the same where tells() says that the log is long enough, else windows
  windows,       ///< windows, with the value of the whole log beside
  windows_only,  ///< windows alone
};

/// Everything that an evaluation needs: read once and checked.
struct EvaluationPlan {
  Lineup lineup;
  std::vector<EvaluationInput> inputs;  ///< one a trace
  EvaluationMode mode = EvaluationMode::windows;
  std::string why_windows;  ///< a line: why mode auto compares windows; empty where it need not be said
  ReportOptions report;
  std::optional<JobFigure> job_figure;  ///< of the figure; nothing where only windows have it
  std::vector<std::string> files;       ///< read besides the traces: clusters, trained policies

  /// Runs that the evaluation is made of; of mode automatic those of the log.
  [[nodiscard]] std::uint64_t runs() const;
};

/// What came of it: windows or logs, one a trace.
struct EvaluationOutcome {
  std::vector<TraceEvaluation> windows;
  std::vector<TraceLog> logs;
  std::string note;  ///< a line: which log is too short for batches, or why mode automatic compares windows; else empty
};

/// Reads traces and clusters and resolves every name. Precondition: protocol "windows". Errors are the user's: bad
/// input or usage, a policy that cannot be made for a trace.
Result<EvaluationPlan> load_evaluation(const EvaluateScenario& scenario, const PolicyRegistry& registry);

/// Runs it, up to `threads` runs at a time; the result does not depend on that number. `done` counts finished runs.
/// Error: a run that failed.
Result<EvaluationOutcome> run_evaluation(const EvaluationPlan& plan, const PolicyRegistry& registry,
                                         std::uint64_t threads, EvaluationProgress& progress);

/// What a careful reader should know: settings of Slurm that are not used, rows left out, jobs outside the virtual
/// clusters; one line each.
std::vector<std::string> evaluation_notes(const EvaluationPlan& plan);

/// The table, or for several traces the matrix; of logs one table after the other.
std::string evaluation_text(const EvaluationPlan& plan, const EvaluationOutcome& outcome, const TextStyle& style = {});

/// What the manifest of any evaluation says. `windows`: one entry a trace.
nlohmann::ordered_json evaluate_manifest(const EvaluateScenario& scenario, const nlohmann::ordered_json& windows,
                                         const std::vector<std::string>& files, const Execution& execution);

/// {"manifest": {...}, "runs": [...]}.
std::string evaluation_json(const EvaluateScenario& scenario, const EvaluationPlan& plan,
                            const EvaluationOutcome& outcome, const Execution& execution);

/// The tables among the files of --out: name and content.
std::vector<std::pair<std::string, std::string>> evaluation_tables(const EvaluationPlan& plan,
                                                                   const EvaluationOutcome& outcome);

/// The files of --out: name and content.
std::vector<std::pair<std::string, std::string>> evaluation_files(const EvaluateScenario& scenario,
                                                                  const EvaluationPlan& plan,
                                                                  const EvaluationOutcome& outcome,
                                                                  const Execution& execution);

}  // namespace gpusched
