// SPDX-License-Identifier: Apache-2.0
/// Explain: why a job of a run waited. The run is that of a folder of `replay --out`: its scenario is run again with an
/// observer of the job, and is the same run, which the hash of its history proves.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/scenario.hpp"

namespace gpusched {

/// A job of a folder's run, ready to be run again.
struct ExplainPlan {
  std::string folder;
  Scenario scenario;
  ReplayInput input;
  JobId job = no_job;
  std::vector<std::string> hashes;  ///< of the histories of input.specs, as the manifest has them
};

/// Reads the manifest of `folder`, and what it names. `policy`: one of its policies; empty: all. Errors are the user's:
/// no folder of replay, a policy or job that is not there, a trace that is not the manifest's.
Result<ExplainPlan> load_explanation(const std::string& folder, const std::string& job, const std::string& policy,
                                     const PolicyRegistry& registry);

/// Runs the policies again. Errors: a run that is no longer the folder's, or does not end.
Result<std::vector<PolicyRun>> run_explanation(const ExplainPlan& plan, const PolicyRegistry& registry,
                                               ReplayProgress& progress);

/// In words, a table of intervals for each policy.
std::string explanation_text(const ExplainPlan& plan, const std::vector<PolicyRun>& runs);
/// {"job", "runs": [{"policy", ..., "spans": [...]}]}.
std::string explanation_json(const ExplainPlan& plan, const std::vector<PolicyRun>& runs);

}  // namespace gpusched
