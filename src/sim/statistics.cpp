// SPDX-License-Identifier: Apache-2.0
#include "src/sim/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gpusched/config.hpp"

namespace gpusched {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double interquartile_mean(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() / 4;
  return mean_of(std::span(sorted).subspan(cut, sorted.size() - 2 * cut));
}

ConfidenceInterval block_bootstrap(std::span<const double> values, std::size_t block, Rng rng,
                                   std::uint32_t resamples) {
  GPUSCHED_ASSERT(block >= 1 && block <= values.size(), "a block is part of the values");
  std::vector<double> means(resamples);
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t taken = 0; taken < values.size();) {
      const std::size_t first = rng.below(values.size() - block + 1);
      for (std::size_t i = first; i < first + block && taken < values.size(); ++i, ++taken) sum += values[i];
    }
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double p) { return means[static_cast<std::size_t>(std::lround(p * (resamples - 1)))]; };
  return {at(0.025), at(0.975)};
}

std::string_view verdict(const ConfidenceInterval& difference) {
  if (difference.high < 0) return "better";
  if (difference.low > 0) return "worse";
  return "no difference detected";
}

}  // namespace gpusched
