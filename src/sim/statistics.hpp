// SPDX-License-Identifier: Apache-2.0
/// Statistics of comparisons: means, their intervals when neighbouring values depend on each other, verdicts.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpusched/rng.hpp"

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

/// What an interval of differences (ours - theirs, of something that should be small) says.
std::string_view verdict(const ConfidenceInterval& difference);

}  // namespace gpusched
