// SPDX-License-Identifier: Apache-2.0
/// Evaluation: several policies on the same windows of a trace, compared pair by pair.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpusched/cluster.hpp"
#include "gpusched/engine_state.hpp"
#include "gpusched/metrics.hpp"
#include "gpusched/result.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Which windows. Jobs are numbered by submission.
struct EvaluationWindows {
  std::uint32_t jobs = 1024;      ///< measured jobs of a window
  std::uint32_t warm_up = 0;      ///< jobs before them that fill the cluster
  std::uint32_t stride = 256;     ///< jobs between the first measured jobs of neighbouring windows
  std::uint32_t first = 0;        ///< the first window's first measured job (at least warm_up)
  std::uint32_t last = no_index;  ///< no window's measured jobs reach beyond this number
};

/// First measured jobs, ascending. Error: not one window fits.
Result<std::vector<std::uint32_t>> window_starts(const EvaluationWindows& windows, std::uint32_t trace_jobs);

/// One policy on every window.
struct PolicyScores {
  std::string policy;
  bool clairvoyant = false;
  std::vector<Metrics> windows;

  /// A figure of every window.
  [[nodiscard]] std::vector<double> values(double Metrics::*figure) const {
    std::vector<double> result;
    for (const Metrics& window : windows) result.push_back(window.*figure);
    return result;
  }
};

/// Runs every policy on every window: each window alone on an empty cluster, nothing arrives after it. Errors: a policy
/// that cannot be made, one that leaves jobs waiting for ever.
Result<std::vector<PolicyScores>> evaluate_policies(const JobTable& trace, const Cluster& cluster,
                                                    const EngineOptions& options, std::span<const PolicySpec> policies,
                                                    const PolicyRegistry& registry, const EvaluationWindows& windows);

/// How one policy compares with another over the windows, by a figure of which less is better.
struct Comparison {
  double mean = 0, other_mean = 0;
  double low = 0, high = 0;  ///< 95 % interval of the mean difference, mean - other_mean
  double win_rate = 0;       ///< share of windows in which it is lower, ties counting half
  std::string verdict;       ///< better, worse or no difference detected
};

/// `block`: windows in a bootstrap block; those that overlap must share one (EvaluationWindows: jobs / stride, rounded
/// up). Precondition: both have the same windows.
Comparison compare(const PolicyScores& policy, const PolicyScores& other, double Metrics::*figure, std::size_t block,
                   std::uint64_t seed);

}  // namespace gpusched
