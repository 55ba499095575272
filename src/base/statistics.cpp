// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gpusched/core/config.hpp"

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

double interquartile_mean_of_runs(const RunScores& runs) {
  std::vector<double> means;
  for (const std::vector<double>& run : runs) means.push_back(mean_of(run));
  return interquartile_mean(means);
}

namespace {

// Blocks of `block` neighbours from random places, until as many values are drawn as there are.
void draw_blocks(std::vector<std::size_t>& drawn, std::size_t block, Rng& rng) {
  for (std::size_t taken = 0; taken < drawn.size();) {
    const std::size_t first = rng.below(drawn.size() - block + 1);
    for (std::size_t i = first; i < first + block && taken < drawn.size(); ++i, ++taken) drawn[taken] = i;
  }
}

double mean_at(const std::vector<double>& values, const std::vector<std::size_t>& places) {
  double sum = 0;
  for (const std::size_t place : places) sum += values[place];
  return sum / static_cast<double>(places.size());
}

// The mean of as many runs as there are, drawn with replacement, on the drawn windows. A single run needs no draw.
double drawn_mean(const RunScores& runs, const std::vector<std::size_t>& windows, Rng& rng) {
  if (runs.size() == 1) return mean_at(runs.front(), windows);
  std::vector<double> means;
  for (std::size_t i = 0; i < runs.size(); ++i) means.push_back(mean_at(runs[rng.below(runs.size())], windows));
  return interquartile_mean(means);
}

ConfidenceInterval percentiles_95(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto most = static_cast<double>(values.size() - 1);
  const auto at = [&](double p) { return values[static_cast<std::size_t>(std::lround(p * most))]; };
  return {at(0.025), at(0.975)};
}

}  // namespace

ConfidenceInterval block_bootstrap(std::span<const double> values, std::size_t block, Rng rng,
                                   std::uint32_t resamples) {
  const std::vector<double> nothing(values.size(), 0.0);
  return stratified_bootstrap({{values.begin(), values.end()}}, {nothing}, block, rng, resamples).difference;
}

PairedIntervals stratified_bootstrap(const RunScores& ours, const RunScores& theirs, std::size_t block, Rng rng,
                                     std::uint32_t resamples) {
  GPUSCHED_ASSERT(block >= 1 && block <= ours.front().size(), "a block is part of the values");
  std::vector<std::size_t> windows(ours.front().size());
  std::vector<double> differences(resamples), relative(resamples);
  for (std::uint32_t i = 0; i < resamples; ++i) {
    draw_blocks(windows, block, rng);
    const double mean = drawn_mean(ours, windows, rng);
    const double other = drawn_mean(theirs, windows, rng);
    differences[i] = mean - other;
    relative[i] = other == 0 ? 0 : (mean - other) / other;
  }
  return {percentiles_95(differences), percentiles_95(relative)};
}

std::string_view verdict(const ConfidenceInterval& difference) {
  if (difference.high < 0) return "better";
  if (difference.low > 0) return "worse";
  return "no difference detected";
}

}  // namespace gpusched
