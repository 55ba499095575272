// SPDX-License-Identifier: Apache-2.0
/// Statistics of comparisons: means, their intervals when neighbouring values depend on each other, verdicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"

namespace gpusched {

/// Precondition of each: not empty.
double mean_of(std::span<const double> values);
/// Mean of the middle half: of n sorted values, without the lowest and highest floor(n / 4) (Agarwal et al., NeurIPS
/// 2021, for runs that differ by their training seed).
double interquartile_mean(std::span<const double> values);

struct ConfidenceInterval {
  double low = 0, high = 0;
};

/// Length of the blocks in which a series is resampled, from its autocorrelation: Politis and White, Econometric
/// Reviews 23(1), 2004, as corrected by Patton, Politis and White, 28(4), 2009, for the circular block bootstrap. 1
/// where no autocorrelation is significant. Precondition: not empty.
std::size_t block_length(std::span<const double> values);

/// How many independent values a series in order of time is worth, at the least that its lag-one autocorrelation leaves
/// open: n (1 - r) / (1 + r) for an r that is 9 / n above the estimate (1.4 standard errors with 40 values), and at
/// most n / `block`.
double effective_count(std::span<const double> values, std::size_t block);

/// How heavy the tails of values are: the mean of the logarithms of the larger half of the distances from the median,
/// each divided by the median distance (Hill, Annals of Statistics 3(5), 1975). 0.6 for normal values, 1.1 for
/// differences in proportion to a log-normal of sigma 1, 2.1 for sigma 2.5. One very large value hardly moves it: a
/// limit of the variance or kurtosis would keep the samples that the tail is missing from, of which intervals are
/// wrong. Precondition: not empty.
double tail_index(std::span<const double> values);

/// Below so many effective values there is no interval,
inline constexpr double least_effective_count = 10;
/// and none where tail_index() is above this; more of such values show more of their tail. `count`: effective values.
double largest_tail_index(double count);
/// and none below so many values (tests/sim/interval_coverage_test.cpp).
inline constexpr std::size_t least_values = 20;

/// One figure of several runs on the same windows: [run][window]. The runs differ by their training seed; a policy
/// without one is a single run.
using RunScores = std::vector<std::vector<double>>;

/// Interquartile mean over the runs of their means over the windows. Precondition: not empty.
double interquartile_mean_of_runs(const RunScores& runs);

/// 95 % intervals of interquartile_mean_of_runs(ours) - interquartile_mean_of_runs(theirs).
struct PairedIntervals {
  ConfidenceInterval difference;
  ConfidenceInterval
      relative;           ///< of the difference over theirs, from the logarithm of their ratio; 0 where theirs is 0
  std::size_t block = 1;  ///< windows in a block
};

/// By a studentised block bootstrap of the differences, window by window (equal-tailed bootstrap-t: Hall, Annals of
/// Statistics 16(3), 1988; blocks: Davison and Hall, Biometrika 80(1), 1993). In each resample blocks of neighbouring
/// windows are drawn, the same for both sides, and with them runs of ours and runs of theirs: a run is drawn whole,
/// because it is one network in all windows. A block has the windows of block_length(), at least `overlap` of them. The
/// standard error counts what autocorrelation adds and, of several runs, how far they differ; its degrees of freedom
/// are those of both together.
///
/// Nothing with fewer than least_values windows, fewer than least_effective_count effective ones, a
/// relative difference with a tail_index() above largest_tail_index(), or fewer than least_effective_count windows in
/// which the sides differ, unless they differ in none. Preconditions: not empty, every run has the same windows in
/// order of time, at most `overlap` windows overlap, at least 39 resamples.
std::optional<PairedIntervals> paired_intervals(const RunScores& ours, const RunScores& theirs, std::size_t overlap,
                                                Rng rng, std::uint32_t resamples = 1'999);

/// The verdict where there is no interval.
inline constexpr std::string_view too_few_windows = "too few windows";

/// What an interval of differences (ours - theirs, of something that should be small) says.
std::string_view verdict(const ConfidenceInterval& difference);

}  // namespace gpusched
