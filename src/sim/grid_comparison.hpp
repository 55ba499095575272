// SPDX-License-Identifier: Apache-2.0
/// Policies compared over the runs of a grid: pairs of runs that differ in the policy alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/base/paired_tests.hpp"
#include "src/base/statistics.hpp"

namespace gpusched {

/// The figures that are compared, names of metrics; less is better in each.
inline constexpr const char* grid_figures[] = {"avg_jct_s", "p99_wait_s", "avg_bounded_slowdown"};

/// A run that has figures.
struct GridRun {
  std::vector<std::string> values;             ///< by key that varies
  std::vector<std::optional<double>> figures;  ///< in the order of grid_figures
  double jobs = 0;                             ///< measured ones
  bool saturated = false;
  bool clairvoyant = false;  ///< the policy knew true run times
};

/// What the keys that vary are for.
enum class GridRole : std::uint8_t {
  contestant,  ///< `policy` and `parameters.`
  replicate,   ///< `seed` and `window.`: repetitions of one setting
  setting,     ///< all others
};
GridRole grid_role(const std::string& key);

/// "las{quantum_gpu_s=60}"; "" where no key is a contestant's.
std::string grid_contestant(const std::vector<std::string>& keys, const std::vector<std::string>& values);
/// "load 0.8, cluster 8x8": the values of the keys of that role.
std::string grid_text(const std::vector<std::string>& keys, const std::vector<std::string>& values, GridRole role);

/// One contestant against the first of the grid, in one setting and figure.
struct GridComparison {
  std::string setting, contestant, against, figure;
  bool clairvoyant = false, against_clairvoyant = false;  ///< knew true run times
  std::string unit;                                       ///< what a pair is: "seed" or "window"
  std::size_t pairs =
      0;  ///< of such units; pairs equal in every figure, as a seed that changes nothing gives, count once
  std::size_t saturated = 0;                   ///< pairs of runs of which one is saturated
  double mean = 0, other = 0;                  ///< over the pairs
  std::optional<ConfidenceInterval> relative;  ///< of the difference over `other`
  std::string verdict;                         ///< as in evaluate, or why there is no interval
  std::optional<SignedRank> test;
  double p_holm = 1;  ///< corrected for the tests of this figure

  [[nodiscard]] std::optional<double> relative_difference() const {
    return other > 0 ? std::optional(mean / other - 1) : std::nullopt;
  }
};

inline constexpr std::string_view too_few_seeds = "too few seeds";
inline constexpr std::string_view too_few_seeds_differ = "too few seeds differ";

/// Pairs over the seeds of one window, which are independent: sign_flip_test(), whose verdict it is, and Wilcoxon's
/// test, from least_test_blocks seeds on. Over several windows of a trace, which are not: a pair is a
/// window, its seeds averaged, with paired_intervals() and blocked_signed_rank(). In the order of settings, contestants
/// and figures; empty where the policy does not vary. `backfill` is a setting or, where no two policies share one, a
/// part of the policy's name. Over seeds the verdict is better or worse
/// only where p_holm is at most 0.05 too.
std::vector<GridComparison> compare_grid(const std::vector<std::string>& keys, const std::vector<GridRun>& runs);

/// A row a comparison, in full precision.
std::string grid_comparison_csv(const std::vector<GridComparison>& comparisons);

}  // namespace gpusched
