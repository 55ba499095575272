// SPDX-License-Identifier: Apache-2.0
/// The verdict on a trained agent: compared with every plain policy that knows no more of run times than it does, on
/// windows that were used neither for training nor for choosing the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/text_style.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/rl/train_config.hpp"
#include "src/sim/evaluation.hpp"

namespace gpusched {

/// A scheduler in the held-out windows; means over them, nothing over none.
struct HeldOutRow {
  std::string policy;  ///< as `--policy` takes it
  std::optional<double> jct_s = {}, p99_wait_s = {}, slowdown = {};
  Comparison agent = {};  ///< the agent compared with it; empty in the agent's own row
};

/// What a scheduler reaches where the jobs of all windows come in one run.
struct WholeRun {
  std::string policy;
  double value = 0;  ///< of HeldOut::figure
};

/// The best model by validation and the plain policies.
struct HeldOut {
  std::string figure;  ///< the metric that is compared (held_out_figure())
  std::size_t windows = 0;
  std::uint32_t window_jobs = 0;  ///< of each
  HeldOutRow agent;
  std::vector<HeldOutRow> rows;       ///< least figure first
  std::uint32_t whole_jobs = 0;       ///< measured in one run over the test part
  std::vector<WholeRun> whole;        ///< the agent, then the best there of the first rows, the least figure first
  std::vector<std::string> failures;  ///< of policies that left jobs waiting, or measured none, a line each
  Contestant trained = {};            ///< the agent's runs, one a training seed
  ComparisonOptions comparison = {};

  /// The figure of each training seed: means over the windows in which all of them ended, as the next.
  [[nodiscard]] std::vector<double> seed_means() const;
  /// Of the agent's figure; nothing where paired_intervals() gives none.
  [[nodiscard]] std::optional<ConfidenceInterval> interval() const;
};

/// The metric that the agent is judged by: that of its largest weight among jct, wait and bounded_slowdown; avg_jct_s
/// where none of them has one.
std::string held_out_figure(const EnvOptions& options);

/// Every policy of the registry, with each way of passing over jobs and of backfilling, that can be made for these jobs
/// and knows no more of run times than the agent; published programs (`policy@source`) are left out, and recorded
/// starts. Two quanta of las. Then the agent's own choices made by each fixed order.
std::vector<PolicySpec> plain_policies(const PolicyRegistry& registry, const AgendaOptions& agent, const JobTable& jobs,
                                       const Cluster& cluster);

/// Whether a window fits the test part; the error says what is missing.
Result<void> check_test_part(const TrainConfig& config, const JobTable& jobs);

/// Windows side by side over the test part, each alone on an empty cluster, as `gpusched evaluate` runs them. Errors:
/// no window fits the test part; a model cannot be read, or leaves jobs waiting in every window. `folders` hold the
/// models of the training seeds of one configuration, which are compared as one agent of that name, by their
/// interquartile mean. Precondition: at least one.
Result<HeldOut> test_models(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& name, std::span<const std::string> folders);

/// A table of the agent and the best plain policies, the verdict in one sentence, a line on the whole test part, and
/// what to change where a plain policy is better there.
std::string held_out_text(const HeldOut& result, const TextStyle& style = {});

}  // namespace gpusched
