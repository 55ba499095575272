// SPDX-License-Identifier: Apache-2.0
/// Evaluation: several policies on the same windows of a trace, compared pair by pair.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/engine_state.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/paired_tests.hpp"
#include "src/base/statistics.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/running_work.hpp"
#include "src/world/sites_reader.hpp"
#include "src/world/slurm_site.hpp"

namespace gpusched {

/// Which windows. Jobs are numbered by submission.
struct EvaluationWindows {
  std::uint32_t jobs = 1024;      ///< measured jobs of a window
  std::uint32_t warm_up = 0;      ///< jobs before them that fill the cluster
  std::uint32_t stride = 256;     ///< jobs between the first measured jobs of neighbouring windows
  std::uint32_t first = 0;        ///< the first window's first measured job (at least warm_up)
  std::uint32_t last = no_index;  ///< no window's measured jobs reach beyond this number
  std::uint32_t most = no_index;  ///< so many windows, the first ones

  /// Neighbouring windows that share jobs; 1: none do.
  [[nodiscard]] std::size_t overlap() const { return (jobs + stride - 1) / stride; }
};

/// First measured jobs, ascending. Error: not one window fits.
Result<std::vector<std::uint32_t>> window_starts(const EvaluationWindows& windows, std::uint32_t trace_jobs);

/// One policy on every window.
struct PolicyScores {
  std::string policy;
  bool clairvoyant = false;
  std::vector<std::optional<Metrics>> windows;  ///< nothing where the run did not end
  std::vector<bool> saturated = {};             ///< by window: Saturation::saturated; empty: none
  std::vector<std::uint64_t> left_out = {};     ///< by window: StretchRun::left_out; empty: none
  std::vector<std::string> failures = {};       ///< one line each: the window, and why its run did not end
  std::string run_times = {};                   ///< what it knew of them, as known_run_times() says

  [[nodiscard]] bool is_saturated(std::size_t window) const { return window < saturated.size() && saturated[window]; }
  [[nodiscard]] std::uint64_t left_out_in(std::size_t window) const {
    return window < left_out.size() ? left_out[window] : 0;
  }
  /// A figure of the windows in `of`. Preconditions: the runs ended and know it.
  [[nodiscard]] std::vector<double> values(const MetricInfo& figure, std::span<const std::size_t> of) const {
    std::vector<double> result;
    for (const std::size_t window : of) result.push_back(*figure.value(*windows[window]));
    return result;
  }
};

/// What is laid over the windows.
struct EvaluationOptions {
  EngineOptions engine;
  RunConditions conditions = {};  ///< failures are drawn anew for each window, and nodes are cold when it begins
  EvaluationWindows windows;
  bool history = false;                     ///< predictions know the jobs that had ended before a window (JobEnds)
  std::optional<PolicySpec> backfill = {};  ///< around every policy that is an order and names no way of its own
  /// Of all jobs; policies then are texts as routed_policy() takes them. Null: one cluster.
  std::shared_ptr<const SitesOfRun> sites = {};
  /// Whose slurm.conf gives policies `slurm` their parameters. Null: nobody's.
  std::shared_ptr<const SlurmSite> slurm = {};
};

/// Error: a policy that cannot be made for this trace and cluster. What evaluate_policies() refuses after that is a run
/// that failed.
Result<void> check_policies(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                            std::span<const PolicySpec> policies, const PolicyRegistry& registry);

/// What other threads see of an evaluation while it runs, and how they end it.
struct EvaluationProgress {
  std::atomic<std::uint64_t> done = 0;      ///< finished runs, one for each policy and window
  RunningWork running;                      ///< numbers of the policies that run now
  const std::atomic<bool>* stop = nullptr;  ///< once true, no further run begins
  [[nodiscard]] bool stopped() const { return stop != nullptr && *stop; }
};

/// Runs every policy on every window, up to `threads` runs at a time: each window alone on an empty cluster, nothing
/// arrives after it; random draws of a policy differ from window to window and follow from options.engine.seed. The
/// result does not depend on `threads`. A run that leaves jobs waiting for ever, or that `progress.stop` kept from
/// beginning, is a failure in its policy's scores. Error: a policy that cannot be made, or that fails in every window.
Result<std::vector<PolicyScores>> evaluate_policies(const JobTable& trace, const Cluster& cluster,
                                                    const EvaluationOptions& options,
                                                    std::span<const PolicySpec> policies,
                                                    const PolicyRegistry& registry, std::uint64_t threads,
                                                    EvaluationProgress& progress);

/// A row of a comparison: one policy, or several training seeds of one configuration under a name of their own.
struct Contestant {
  std::string name;
  std::vector<PolicyScores> runs;  ///< at least one, all on the same windows

  /// The windows in which every run ended, ascending.
  [[nodiscard]] std::vector<std::size_t> finished_windows() const;
  /// Of those, the windows of which every run knows the figure (of deadlines: a job has one), ascending.
  [[nodiscard]] std::vector<std::size_t> windows_with(const MetricInfo& figure) const;
  /// Of those, the windows in which a run was saturated.
  [[nodiscard]] std::size_t saturated_windows() const;
  /// Precondition: every run ended in these windows, and knows the figure.
  [[nodiscard]] RunScores scores(const MetricInfo& figure, std::span<const std::size_t> windows) const;
  [[nodiscard]] bool clairvoyant() const;
  /// What the runs knew of run times; where they differ, each once, separated by commas.
  [[nodiscard]] std::string run_times() const;
};

/// The windows in which every run of both ended and knows the figure, ascending.
std::vector<std::size_t> common_windows(const Contestant& contestant, const Contestant& other,
                                        const MetricInfo& figure);

/// How one contestant compares with another over common_windows().
struct Comparison {
  std::size_t windows = 0;                  ///< so many; if none, what follows is empty
  std::optional<double> mean, other_mean;   ///< interquartile_mean_of_runs()
  std::optional<PairedIntervals> interval;  ///< none where paired_intervals() gives none
  double win_rate = 0;  ///< share of windows (and pairs of runs) in which it is better, ties counting half: with
                        ///< several runs the probability of improvement of Agarwal et al. (NeurIPS 2021)
  std::optional<double> normalised = {};  ///< normalised_interquartile_mean(), of several runs
  std::optional<ConfidenceInterval> win_rate_interval = {},
                                    normalised_interval = {};  ///< over the runs, of run_intervals()
  std::string verdict;  ///< better, worse, no difference detected, or why there is no interval
};

/// A figure shown beside the one that is compared: a metric's mean over the windows, or over the tenth of the windows
/// (rounded up) that are worst in it, each run's own.
struct SideFigure {
  std::string name;  ///< as given: "p99_wait_s", "worst_tenth:avg_jct_s"
  const MetricInfo* metric = nullptr;
  bool worst_tenth = false;
};
/// Error: no metric is called so.
Result<SideFigure> side_figure(const std::string& name);

/// What a contestant reaches in a figure, and another; nothing where no run of either ended, and of geometric means
/// where a window has 0.
struct SideValues {
  std::optional<double> own, other;
};
/// Over the windows in which all runs of both ended. `mean` is that over the windows, as in compare(). Preconditions:
/// both have the same windows and know the metric.
SideValues side_values(const Contestant& contestant, const Contestant& other, const SideFigure& figure,
                       WindowMean mean);

/// How contestants are compared.
struct ComparisonOptions {
  std::size_t overlap = 1;  ///< EvaluationWindows::overlap()
  std::uint64_t seed = 0;   ///< of the bootstrap
  WindowMean mean = WindowMean::arithmetic;
};

/// The verdict of one comparison alone: of the relative interval, which holds better than the other: a window of many
/// jobs waiting weighs on both sides of a ratio. Precondition: both have the same windows.
Comparison compare(const Contestant& contestant, const Contestant& other, const MetricInfo& figure,
                   const ComparisonOptions& options);

/// Wilcoxon's test of the differences (of geometric means: of their logarithms) between the interquartile means over
/// the runs, in the windows in which all runs of both ended; the runs as they are. Nothing where blocked_signed_rank()
/// gives none or a logarithm does not exist. Precondition: both have the same windows.
std::optional<BlockedSignedRank> test_differences(const Contestant& contestant, const Contestant& other,
                                                  const MetricInfo& figure, const ComparisonOptions& options);

/// The 95 % interval of interquartile_mean_of_runs(): compared with a policy that has 0 in every window (of geometric
/// means: 1). Nothing where paired_intervals() gives none.
std::optional<ConfidenceInterval> own_interval(const RunScores& scores, const ComparisonOptions& options);

}  // namespace gpusched
