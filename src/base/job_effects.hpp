// SPDX-License-Identifier: Apache-2.0
/// How the same jobs fared under two policies in one long run each: means, quantiles and shares of jobs, with intervals
/// by batches of consecutive jobs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/rng.hpp"
#include "src/base/statistics.hpp"

namespace gpusched {

/// Fewer batches give no interval; more say nothing more.
inline constexpr std::size_t least_batches = 20, most_batches = 200;
/// Jobs of a batch at least.
inline constexpr std::size_t least_batch_jobs = 10;
/// A log of fewer jobs tells nothing.
inline constexpr std::size_t least_log_jobs = least_batches * least_batch_jobs;

/// How many jobs later nothing is left of what a job found: twice the first lag at which the autocorrelation of `state`
/// (the length of the queue, as each job in turn finds it) is below 0.05. Batches of so many jobs hardly depend on each
/// other. The length of the series where it never falls so low. Precondition: not empty.
std::size_t memory_of(std::span<const double> state);

/// Batches of consecutive jobs, equal in length but for one job.
struct BatchPlan {
  std::size_t count = 0;  ///< may be below least_batches
  std::size_t jobs = 0;   ///< in the whole log

  /// The first job of a batch; of batch `count`, the number of jobs.
  [[nodiscard]] std::size_t first(std::size_t batch) const { return batch * jobs / count; }
  [[nodiscard]] std::size_t batch_jobs() const { return jobs / count; }
  [[nodiscard]] bool enough() const { return count >= least_batches; }
};

/// As many as have `memory` jobs, and no more than most_batches. Precondition: at least one job.
BatchPlan plan_batches(std::size_t jobs, std::size_t memory);

/// What is compared of two policies' jobs. A completion time, a wait and a slowdown are better the less they are.
enum class JobEffect : std::uint8_t {
  mean,             ///< ratio of the totals
  trimmed_mean,     ///< mean of the lowest 95 % of the values, of each policy its own
  winsorised_mean,  ///< mean with the highest 5 % of the values set to the highest of the rest
  median,           ///< quantiles of each policy's own jobs
  p90,
  p99,
  better_off,  ///< share of the jobs that do better under the one policy, less the share that do better under the other
  random_job,  ///< probability that a job drawn at random does better than one drawn from the other policy's, ties half
};
/// The name of each.
inline constexpr std::array<NamedValue<JobEffect>, 8> job_effect_names{{
    {"mean", JobEffect::mean},
    {"trimmed_mean", JobEffect::trimmed_mean},
    {"winsorised_mean", JobEffect::winsorised_mean},
    {"median", JobEffect::median},
    {"p90", JobEffect::p90},
    {"p99", JobEffect::p99},
    {"better_off", JobEffect::better_off},
    {"random_job", JobEffect::random_job},
}};
/// Share of the values that trimmed_mean and winsorised_mean leave as they are.
inline constexpr double kept_share = 0.95;

/// Whether it is a share of jobs, of which more is better.
[[nodiscard]] constexpr bool is_share(JobEffect effect) {
  return effect == JobEffect::better_off || effect == JobEffect::random_job;
}

/// One effect.
struct EffectEstimate {
  JobEffect effect = JobEffect::mean;
  /// The value of each policy; of a share, that of the jobs that do better and of those that do worse.
  double ours = 0, theirs = 0;
  /// What the interval is of: ours / theirs - 1, or, of shares and where a value may be 0, ours - theirs.
  bool relative = false;
  std::optional<ConfidenceInterval> interval = {};  ///< 95 %; nothing where batches are too few or too unequal
  double p = 1;                                     ///< two-sided: 1 less the level of the widest interval without 0
  /// So many times the log would tell the difference from 0 at this level, if it stays what it is; at most 1: it is
  /// told. Nothing: no length can be named.
  std::optional<double> needed = {};

  /// ours / theirs - 1 or ours - theirs.
  [[nodiscard]] double difference() const { return relative ? ours / theirs - 1 : ours - theirs; }
  /// Whether ours does better (-1), worse (1) or neither, by the sign of difference().
  [[nodiscard]] int direction() const {
    const double worse = is_share(effect) ? -difference() : difference();
    return worse < 0 ? -1 : worse > 0 ? 1 : 0;
  }
};

/// The values of the same jobs, in order of submission: [run][job]. Runs differ by their training seed; a policy
/// without one is a single run.
struct JobValues {
  const std::vector<std::vector<double>>& ours;
  const std::vector<std::vector<double>>& theirs;
};

/// Resamples of the batches.
inline constexpr std::uint32_t effect_resamples = 1'999;

/// Every effect, in the order of job_effect_names. The batches are drawn with replacement (and the runs of a side, each
/// whole), the same for all effects. The deviations of a resample from what was seen are stretched
///
/// - by the dependence of neighbouring batches: (1 + r) / (1 - r) of the variance, r the lag-one autocorrelation of
/// what
///   each batch adds to the effect (its jackknife values);
/// - by Student's t with the degrees of freedom that the kurtosis of these leaves of the batches (O'Neill, The American
///   Statistician 68(4), 2014), so that an effect that hangs on few batches has a wide interval.
///
/// Ratios are taken as logarithms. The interval of the ratio of totals also holds that of the sign-flip test over
/// batches (sign_flip_test()), which holds however heavy the tails are.
///
/// Without enough batches there are values alone. `family`: as many comparisons as `needed` has to tell apart from 0
/// together (Bonferroni). Preconditions: as many jobs in every run as in the plan; all values finite, none below 0.
std::vector<EffectEstimate> job_effects(const JobValues& values, const BatchPlan& plan, std::size_t family, Rng rng,
                                        std::uint32_t resamples = effect_resamples);

}  // namespace gpusched
