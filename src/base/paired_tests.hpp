// SPDX-License-Identifier: Apache-2.0
/// Tests of paired differences, and what several runs of one agent say together. Intervals are in statistics.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/base/statistics.hpp"

namespace gpusched {

/// What a difference of 0 counts for.
enum class ZeroDifferences : std::uint8_t {
  pratt,     ///< it is ranked with the others, then left out (Pratt, JASA 54(287), 1959)
  wilcoxon,  ///< it is left out before ranking (Wilcoxon, Biometrics Bulletin 1(6), 1945)
};

/// Wilcoxon's signed-rank test of the null hypothesis that differences are independent and symmetric about 0. Equal
/// sizes share the mean of their ranks.
struct SignedRank {
  std::size_t differences = 0;  ///< all of them
  std::size_t nonzero = 0;
  double positive = 0, negative = 0;  ///< sums of the ranks of differences above and below 0
  double p = 1;                       ///< two-sided; 1 where every difference is 0
  bool exact = true;                  ///< p is that of all 2^nonzero signs, not of the normal approximation
  /// Matched-pairs rank-biserial correlation (Kerby, Comprehensive Psychology 3, 2014): positive less negative over the
  /// sum of all ranks, those of zeros among them. -1: every difference is below 0. 0 where there is none.
  double rank_biserial = 0;
};

/// From so many differences that are not 0 on, p is that of the normal approximation, with the variance of the ranks as
/// they are (ties, zeros) and without correction for continuity.
inline constexpr std::size_t least_normal_differences = 51;

/// Precondition: no difference is infinite or no number.
SignedRank signed_rank_test(std::span<const double> differences, ZeroDifferences zeros = ZeroDifferences::pratt);

/// The sign-flip test (Fisher, The Design of Experiments, 1935, section 21) of two sides of independent pairs: under
/// the null hypothesis that the difference of each pair is symmetric about 0, its sign might as well be the other one.
/// p is the share of all signs, from 16 pairs on of 8,192 patterns drawn once for all, that give as large a sum as was
/// seen. It holds however heavy the tails are: where one pair makes the sum, turning it round makes as large a one.
struct SignFlips {
  double p = 1;  ///< two-sided; 1 where every difference is 0
  /// The 95 % interval of (sum of ours / sum of theirs) - 1: the ratios r whose differences ours - r x theirs have p
  /// above 0.05. It contains 0 just where p is above 0.05. Nothing where it has no upper end, as where theirs are all
  /// 0.
  std::optional<ConfidenceInterval> relative = {};
};

/// Preconditions: as many of both, finite, none below 0.
SignFlips sign_flip_test(std::span<const double> ours, std::span<const double> theirs);

/// "0.004", "<0.001".
std::string p_value_text(double p);

/// P values corrected for their number by Holm's step-down method (Scandinavian Journal of Statistics 6(2), 1979):
/// where those at most 0.05 are called differences, the probability that any of them is none is at most 0.05, however
/// the tests depend on each other.
std::vector<double> holm_corrected(std::span<const double> p_values);

/// Below so many blocks no sign pattern has a two-sided p below 0.05: 2 / 2^5 = 0.0625.
inline constexpr std::size_t least_test_blocks = 6;

/// The test of a series in order of time: over means of neighbours, as many as effective_count() says that the series
/// is worth, because the test takes its values for independent. rank_biserial is that of the single values.
struct BlockedSignedRank {
  SignedRank test;
  std::size_t blocks = 0;
};

/// At most `overlap` values share what they were computed from. Nothing with fewer than least_values values or
/// least_test_blocks blocks.
std::optional<BlockedSignedRank> blocked_signed_rank(std::span<const double> differences, std::size_t overlap);

/// The share of windows and of pairs of runs, one of each side, in which ours is below theirs, half of those in which
/// they are equal among them: the probability of improvement of Agarwal et al. (NeurIPS 2021) with windows as tasks.
/// Precondition: not empty, the same windows in every run.
double probability_below(const RunScores& ours, const RunScores& theirs);

/// The mean over the middle half of all runs and windows of ours over theirs, that is over theirs' interquartile mean
/// of runs in the window (Agarwal et al.: IQM of normalised scores). Nothing where that is not above 0.
std::optional<double> normalised_interquartile_mean(const RunScores& ours, const RunScores& theirs);

/// Runs of a side below which there are no intervals over them: 2 / 2^5 is what intervals of five runs miss at least.
inline constexpr std::size_t least_runs_for_interval = 5;

/// 95 % percentile-bootstrap intervals over the runs, the windows as they are: a run is drawn whole, because it is one
/// network in all windows. (rliable draws the runs of each task apart, which takes runs of two tasks for independent.)
struct RunIntervals {
  ConfidenceInterval below;                      ///< of probability_below()
  std::optional<ConfidenceInterval> normalised;  ///< of normalised_interquartile_mean()
};
/// Nothing where a side of several runs has fewer than least_runs_for_interval, or neither side has several.
std::optional<RunIntervals> run_intervals(const RunScores& ours, const RunScores& theirs, Rng rng,
                                          std::uint32_t resamples = bootstrap_resamples);

}  // namespace gpusched
