// SPDX-License-Identifier: Apache-2.0
/// Evaluation of a whole log: every policy runs all of it at once, as a cluster would, and the jobs are compared in
/// batches of consecutive ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/job_effects.hpp"
#include "src/sim/evaluation.hpp"
#include "src/sim/stretch_run.hpp"

namespace gpusched {

/// Which jobs of a trace are the log, and where further runs begin.
struct LogOptions {
  std::uint32_t first = 0, jobs = 0;       ///< numbers of the trace's jobs
  std::vector<std::uint32_t> starts = {};  ///< jobs of the log, ascending, above 0: further runs begin there
};

/// What the jobs of a figure are compared by.
enum class JobQuantity : std::uint8_t { jct, wait, slowdown };

/// A figure of the jobs: of which quantity it is which effect.
struct JobFigure {
  JobQuantity quantity = JobQuantity::jct;
  JobEffect effect = JobEffect::mean;
};
/// Nothing for a figure of a run as a whole, such as makespan_s.
std::optional<JobFigure> job_figure(const MetricInfo& figure);
/// The figures that are: "avg_jct_s, median_jct_s, ...".
std::string job_figure_names();

/// One policy's run of the log.
struct LogRun {
  Metrics metrics;  ///< of all of its jobs
  Saturation saturation;
  /// Jobs of the log that nobody cancels and no limit refused, by number; what follows is by these.
  std::vector<std::uint32_t> job = {};
  std::vector<double> values;  ///< of the quantity
  std::vector<double> wait_s;
  std::vector<double> found;   ///< jobs that waited when it was submitted
  std::vector<bool> censored;  ///< as JobLog::censored
  /// By further start: how many jobs after it the total of the values that follow is within forgotten_within of that of
  /// the run from the beginning; nothing where it never is within the first half of what follows.
  std::vector<std::optional<std::uint32_t>> forgotten_after;
};

/// One policy on the log, or one training seed of a group.
struct LogScores {
  std::string policy;
  bool clairvoyant = false;
  std::string run_times;      ///< what it knew of them
  std::optional<LogRun> run;  ///< nothing where it did not end
  std::string failure;        ///< why
};

/// What a start on an empty cluster may still change in the totals of what follows, as a share.
inline constexpr double forgotten_within = 0.01;
/// Above this share, half of the log after a start, the policy does not forget it: its queue grows.
inline constexpr double not_forgotten = 0.1;

/// Runs every policy on the log, from its beginning and from each further start, up to `threads` runs at a time, all
/// with the same seed: jobs, failures and changes are the same for all. The result does not depend on `threads`. A run
/// that does not end is a failure in its policy's scores. Error: a policy that cannot be made.
Result<std::vector<LogScores>> run_log(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                                       const LogOptions& log, JobQuantity quantity,
                                       std::span<const PolicySpec> policies, const PolicyRegistry& registry,
                                       std::uint64_t threads, EvaluationProgress& progress);

/// The same of several quantities from one run of each: [quantity][policy]. Precondition: at least one quantity.
Result<std::vector<std::vector<LogScores>>> run_log_of(const JobTable& trace, const Cluster& cluster,
                                                       const EvaluationOptions& options, const LogOptions& log,
                                                       std::span<const JobQuantity> quantities,
                                                       std::span<const PolicySpec> policies,
                                                       const PolicyRegistry& registry, std::uint64_t threads,
                                                       EvaluationProgress& progress);

/// A row of the comparison.
struct LogContestant {
  std::string name;
  std::vector<LogScores> runs;  ///< at least one

  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool clairvoyant() const;
  /// What the runs knew of run times; where they differ, each once, separated by commas.
  [[nodiscard]] std::string run_times() const;
};

/// Everything that was run of one trace's log.
struct LogEvaluation {
  LogOptions log = {};
  double span_s = 0;  ///< from the first submission to the last
  std::vector<LogContestant> contestants = {};
};

/// What a contestant's runs say of themselves, of its measured jobs.
struct LogStanding {
  std::optional<double> value;  ///< of the figure, over the runs' measured jobs; nothing where a run did not end
  std::size_t memory = 0;       ///< memory_of() the queue, or its logarithm: the largest of its runs
  std::size_t censored = 0;     ///< jobs, mean over the runs
  double censored_share = 0;    ///< of the total of the quantity
  double longest_share = 0;     ///< share of all waiting at the hundredth of the jobs that wait longest
  std::string grows;            ///< why its values grow with the log's length; empty: they do not
};

/// How one contestant compares with the reference.
struct LogComparison {
  BatchPlan plan;
  std::vector<EffectEstimate> effects;  ///< empty where a run of either did not end
  /// The figure of each if the jobs that had ended under the other policy alone had got twice as much of it.
  double ours_if_longer = 0, theirs_if_longer = 0;
  std::vector<double> p_holm;         ///< by effect: corrected for the comparisons of this effect, on every trace
  std::vector<std::string> verdicts;  ///< by effect
  std::string verdict;                ///< of the figure, and why
};

/// All comparisons of a log.
struct LogFindings {
  std::uint32_t warm_up = 0;  ///< jobs of the log that are not measured, because some policy remembers its start
  double measured_s = 0;      ///< from the first measured submission to the last
  std::vector<LogStanding> standings = {};
  std::vector<std::optional<LogComparison>> comparisons =
      {};  ///< nothing for the reference, where a run did not end, and where no job counts under both
};

/// What is compared with whom.
struct LogCompareOptions {
  JobFigure figure = {};
  std::size_t reference = 0;
  std::uint64_t seed = 0;  ///< of the resamples
  std::uint32_t resamples = effect_resamples;
};

/// P values are corrected for all logs together.
std::vector<LogFindings> compare_logs(const std::vector<LogEvaluation>& logs, const LogCompareOptions& options);

/// Whether some comparison has enough batches, or a queue that grows: what running the log can say.
bool tells(const LogFindings& findings);
/// "the queue of fifo is remembered for 4,210 jobs, so that the log has 7 batches and not 20"; of the first that is so.
std::string why_too_short(const LogEvaluation& log, const LogFindings& findings);

inline constexpr std::string_view cannot_be_told = "cannot be told";
inline constexpr std::string_view is_better = "better", is_worse = "worse", is_the_same = "the same";
inline constexpr std::string_view log_too_short = "log too short";

}  // namespace gpusched
