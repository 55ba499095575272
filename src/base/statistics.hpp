// SPDX-License-Identifier: Apache-2.0
/// Statistics of comparisons: means, their intervals when neighbouring values depend on each other, verdicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"

namespace gpusched {

/// Precondition of each: not empty.
double mean_of(std::span<const double> values);
/// Mean of the middle half: of n sorted values, without the lowest and highest floor(n / 4) (Agarwal et al., NeurIPS
/// 2021, for runs that differ by their training seed).
double interquartile_mean(std::span<const double> values);

/// The 97.5 % quantile of Student's t; between whole degrees of freedom on a line. Precondition: at least 1.
double student_t_quantile(double degrees_of_freedom);

/// The two-sided p value of a statistic that follows Student's t. Precondition: at least 1 degree of freedom.
double student_t_p(double t, double degrees_of_freedom);

/// Lag-one autocorrelation, freed of the bias that the estimated mean gives it (Kendall, Biometrika 41, 1954); 0 below
/// four values.
double unbiased_autocorrelation(std::span<const double> values);

/// Two ends.
struct ConfidenceInterval {
  double low = 0, high = 0;
};

/// Length of the blocks in which a series is resampled, from its autocorrelation: Politis and White, Econometric
/// Reviews 23(1), 2004, as corrected by Patton, Politis and White, 28(4), 2009, for the circular block bootstrap. 1
/// where no autocorrelation is significant. Precondition: not empty.
std::size_t block_length(std::span<const double> values);

/// How many independent values a series in order of time is worth: n (1 - r) / (1 + r) for an r that is 0.7 standard
/// errors above its lag-one autocorrelation, and at most n / `block`. Precondition: not empty.
double effective_count(std::span<const double> values, std::size_t block);

/// How heavy the tails of values are: the mean of the logarithms of the larger half of the distances from the median,
/// each divided by the median distance (Hill, Annals of Statistics 3(5), 1975). 0.6 for normal values, 1.1 for
/// differences in proportion to a log-normal of sigma 1, 2.1 for sigma 2.5. One very large value hardly moves it: a
/// limit of the variance or kurtosis would keep the samples that the tail is missing from, of which intervals are
/// wrong. Precondition: not empty.
double tail_index(std::span<const double> values);

/// How much longer one tail is than the other: the logarithm of the 90th percentile's distance from the median over the
/// 10th percentile's. 0 where they are equal, 1.3 sigma for a log-normal. Precondition: not empty.
double asymmetry(std::span<const double> values);

/// Below so many effective values there is no interval,
inline constexpr double least_effective_count = 10;
/// and none below so many values: fewer do not show tails or dependence (docs/evaluate.md).
inline constexpr std::size_t least_values = 40;
/// None where tail_index() is above this; more values show more of their tail. Precondition: at least least_values.
double largest_tail_index(std::size_t count);
/// None where the size of asymmetry() is above this. Precondition: at least least_values.
double largest_asymmetry(std::size_t count);

/// One figure of several runs on the same windows: [run][window]. The runs differ by their training seed; a policy
/// without one is a single run.
using RunScores = std::vector<std::vector<double>>;

/// How windows are averaged.
enum class WindowMean : std::uint8_t {
  arithmetic,  ///< every second of waiting counts alike, so that windows of much waiting weigh most
  geometric,   ///< every window counts alike, by the ratio of its scores; all scores must be above 0
};

/// Interquartile mean over the runs of their means over the windows. Precondition: not empty.
double interquartile_mean_of_runs(const RunScores& runs);
/// The same by that mean: of geometric ones, of their logarithms, as a value; nothing where a score is not above 0.
std::optional<double> interquartile_mean_of_runs(const RunScores& runs, WindowMean mean);

/// 95 % intervals of interquartile_mean_of_runs(ours) - interquartile_mean_of_runs(theirs).
struct PairedIntervals {
  ConfidenceInterval difference;
  ConfidenceInterval
      relative;           ///< of the difference over theirs, from the logarithm of their ratio; 0 where theirs is 0
  std::size_t block = 1;  ///< windows in a block
  double effective = 0;   ///< effective_count() of the windows
  /// Two-sided, of the hypothesis that there is no difference: 1 less the level of the widest interval without 0. Of
  /// the relative interval, and of the other one where theirs is 0. No less than 1 / 1000 with 1,999 resamples.
  double p = 1;
};

/// Why there is no interval, as the verdict says it.
inline constexpr std::string_view too_few_windows = "too few windows";
inline constexpr std::string_view too_few_differ = "too few windows differ";
inline constexpr std::string_view too_heavy_tails = "differences too heavy-tailed";
inline constexpr std::string_view too_alike_windows =
    "windows too alike in time";  ///< followed by " (effective blocks 4.2)"
inline constexpr std::string_view no_ratio = "no ratio where a window has 0";

/// Resamples of the windows; more move no end of an interval by a tenth of its width.
inline constexpr std::uint32_t bootstrap_resamples = 1'999;

/// By a studentised block bootstrap of the differences, window by window (equal-tailed bootstrap-t: Hall, Annals of
/// Statistics 16(3), 1988; blocks: Davison and Hall, Biometrika 80(1), 1993). In each resample blocks of neighbouring
/// windows are drawn, the same for both sides, and with them runs of ours and runs of theirs: a run is drawn whole,
/// because it is one network in all windows. A block has the windows of block_length(), at least `overlap` of them.
///
/// The standard error comes from the slowest cosines of the series alone (Lazarus, Lewis, Stock and Watson, Journal of
/// Business & Economic Statistics 36(4), 2018), made flat by its lag-one autocorrelation (Andrews and Monahan,
/// Econometrica 60(4), 1992): it sees dependence that lasts for many windows, and being made of few numbers it gives
/// wide intervals. Of several runs it counts how far they differ, too; its degrees of freedom are those of both.
///
/// The Error's message is too_few_windows with fewer than least_values, or fewer than least_effective_count blocks of
/// windows that overlap; too_few_differ where the sides differ in some windows, but fewer than least_effective_count;
/// too_alike_windows where their effective_count() is below that; too_heavy_tails where the relative difference's
/// tail_index() or asymmetry() is too large; of geometric means
/// no_ratio where a score is not above 0. Their relative interval is that of the ratio of geometric means.
/// Preconditions: not empty, every run has the same windows in order of time, at most `overlap` windows overlap, at
/// least 39 resamples.
Result<PairedIntervals> paired_intervals(const RunScores& ours, const RunScores& theirs, std::size_t overlap, Rng rng,
                                         std::uint32_t resamples = bootstrap_resamples,
                                         WindowMean mean = WindowMean::arithmetic);

/// What an interval of differences (ours - theirs, of something that should be small) says.
std::string_view verdict(const ConfidenceInterval& difference);

}  // namespace gpusched
