// SPDX-License-Identifier: Apache-2.0
/// Statistics of comparisons: means, their intervals when neighbouring values depend on each other, verdicts.
#pragma once

#include <cstdint>
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

/// 95 % interval of the mean by the moving-block bootstrap (Kuensch, Annals of Statistics 17(3), 1989): blocks of
/// `block` neighbours are drawn with replacement, so that windows which overlap do not pass for independent ones;
/// percentiles of `resamples` means. Preconditions: not empty, 1 <= block <= size.
ConfidenceInterval block_bootstrap(std::span<const double> values, std::size_t block, Rng rng,
                                   std::uint32_t resamples = 10'000);

/// One figure of several runs on the same windows: [run][window]. The runs differ by their training seed; a policy
/// without one is a single run.
using RunScores = std::vector<std::vector<double>>;

/// Interquartile mean over the runs of their means over the windows. Precondition: not empty.
double interquartile_mean_of_runs(const RunScores& runs);

/// 95 % intervals of interquartile_mean_of_runs(ours) - interquartile_mean_of_runs(theirs).
struct PairedIntervals {
  ConfidenceInterval difference;
  ConfidenceInterval relative;  ///< of the difference over theirs; 0 where theirs is 0
};

/// By a stratified bootstrap: runs of ours, runs of theirs and blocks of windows are each drawn with replacement. A run
/// is drawn whole, because it is one network in all windows (drawing anew in every window, as for tasks that share no
/// network in Agarwal et al., NeurIPS 2021, would hide how far training seeds differ), and both sides see the windows
/// that were drawn. Preconditions: as block_bootstrap(), and every run has the same windows.
PairedIntervals stratified_bootstrap(const RunScores& ours, const RunScores& theirs, std::size_t block, Rng rng,
                                     std::uint32_t resamples = 10'000);

/// True when at least two disjoint blocks fit: with fewer, every resample is nearly the whole sample, and the interval
/// would be too narrow.
constexpr bool enough_for_blocks(std::size_t values, std::size_t block) { return values >= 2 * block; }

/// The verdict where there is no interval.
inline constexpr std::string_view too_few_windows = "too few windows";

/// What an interval of differences (ours - theirs, of something that should be small) says.
std::string_view verdict(const ConfidenceInterval& difference);

}  // namespace gpusched
