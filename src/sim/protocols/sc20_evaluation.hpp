// SPDX-License-Identifier: Apache-2.0
/// `gpusched evaluate --protocol sc20` for programs: policies on the ten windows of RLScheduler (SC'20).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/evaluate_scenario.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/protocols/sc20_protocol.hpp"
#include "src/sim/report.hpp"

namespace gpusched {

/// What was run on which machine.
struct Sc20Evaluation {
  struct Row {
    std::string policy;  ///< as written
    std::vector<Sc20Result> windows;
  };
  std::string trace, cluster;
  std::vector<Row> rows;
};

/// Runs the scenario's policies, up to scenario.threads at a time; the result does not depend on that number.
/// `progress` counts policies. Errors are the user's: bad input or usage, a policy that the protocol cannot run.
Result<Sc20Evaluation> run_sc20_evaluation(const EvaluateScenario& scenario, const PolicyRegistry& registry,
                                           EvaluationProgress& progress);

/// The means over the windows, a row a policy.
std::string sc20_text(const Sc20Evaluation& evaluation);

/// {"manifest": {...}, "runs": [...]}.
std::string sc20_json(const EvaluateScenario& scenario, const Sc20Evaluation& evaluation, const Execution& execution);

/// The files of --out: name and content.
std::vector<std::pair<std::string, std::string>> sc20_files(const EvaluateScenario& scenario,
                                                            const Sc20Evaluation& evaluation,
                                                            const Execution& execution);

}  // namespace gpusched
