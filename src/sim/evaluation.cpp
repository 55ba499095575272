// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation.hpp"

#include <algorithm>

#include "gpusched/simulate.hpp"
#include "src/sim/statistics.hpp"

namespace gpusched {

Result<std::vector<std::uint32_t>> window_starts(const EvaluationWindows& windows, std::uint32_t trace_jobs) {
  GPUSCHED_ASSERT(windows.jobs > 0 && windows.stride > 0, "windows of no jobs");
  const std::uint32_t last = std::min(windows.last, trace_jobs);
  std::vector<std::uint32_t> starts;
  for (std::uint64_t start = std::max(windows.first, windows.warm_up); start + windows.jobs <= last;
       start += windows.stride) {
    starts.push_back(static_cast<std::uint32_t>(start));
  }
  if (starts.empty()) {
    return unexpected("no window of " + std::to_string(windows.jobs) + " jobs fits between jobs " +
                      std::to_string(windows.first) + " and " + std::to_string(last));
  }
  return starts;
}

Result<std::vector<PolicyScores>> evaluate_policies(const JobTable& trace, const Cluster& cluster,
                                                    const EngineOptions& options, std::span<const PolicySpec> policies,
                                                    const PolicyRegistry& registry, const EvaluationWindows& windows) {
  const auto starts = window_starts(windows, trace.size());
  if (!starts) return Unexpected{starts.error()};
  std::vector<PolicyScores> scores;
  for (const PolicySpec& spec : policies) scores.push_back({.policy = spec.text, .windows = {}});
  for (const std::uint32_t start : *starts) {
    const JobTable jobs = trace.slice(start - windows.warm_up, windows.warm_up + windows.jobs);
    const MeasureWindow measured{.first = windows.warm_up, .count = windows.jobs};
    for (std::size_t p = 0; p < policies.size(); ++p) {
      auto policy = registry.make(policies[p], {.jobs = &jobs, .cluster = &cluster, .seed = options.seed});
      if (!policy) return Unexpected{policy.error()};
      scores[p].clairvoyant = policy->clairvoyant();
      Engine engine(jobs, cluster, options);
      RunLog log(measured);
      if (!simulate(engine, *policy, log)) {
        return unexpected("policy " + policies[p].text + " left jobs of the window at job " + std::to_string(start) +
                          " waiting for ever");
      }
      scores[p].windows.push_back(compute_metrics(engine, log, measured));
    }
  }
  return scores;
}

Comparison compare(const PolicyScores& policy, const PolicyScores& other, double Metrics::*figure, std::size_t block,
                   std::uint64_t seed) {
  const std::vector<double> ours = policy.values(figure);
  const std::vector<double> theirs = other.values(figure);
  GPUSCHED_ASSERT(ours.size() == theirs.size() && !ours.empty(), "the same windows for both");
  std::vector<double> differences;
  double wins = 0;
  for (std::size_t w = 0; w < ours.size(); ++w) {
    differences.push_back(ours[w] - theirs[w]);
    wins += ours[w] < theirs[w] ? 1 : ours[w] == theirs[w] ? 0.5 : 0;
  }
  const ConfidenceInterval interval =
      block_bootstrap(differences, std::clamp<std::size_t>(block, 1, differences.size()), Rng(seed).split("bootstrap"));
  return {.mean = mean_of(ours),
          .other_mean = mean_of(theirs),
          .low = interval.low,
          .high = interval.high,
          .win_rate = wins / static_cast<double>(ours.size()),
          .verdict = std::string(verdict(interval))};
}

}  // namespace gpusched
