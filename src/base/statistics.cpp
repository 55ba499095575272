// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
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

// Autocovariances of lags 0 to `most`, divided by the length.
std::vector<double> autocovariances(std::span<const double> values, std::size_t most) {
  const double mean = mean_of(values);
  std::vector<double> result;
  for (std::size_t lag = 0; lag <= most; ++lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - mean) * (values[i + lag] - mean);
    result.push_back(sum / static_cast<double>(values.size()));
  }
  return result;
}

// Of lag one; 0 for a constant series.
double first_autocorrelation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const std::vector<double> r = autocovariances(values, 1);
  return r[0] > 0 ? r[1] / r[0] : 0;
}

// The last lag that matters: behind it `quiet` autocorrelations in a row are below the threshold (Politis and White,
// 2004, section 3.2).
std::size_t last_lag(const std::vector<double>& r, std::size_t quiet, double threshold) {
  const auto significant = [&](std::size_t lag) { return std::abs(r[lag]) >= threshold * r[0]; };
  std::size_t last = 0;
  for (std::size_t lag = 1; lag < r.size(); ++lag) {
    if (significant(lag)) {
      last = lag;
    } else if (lag >= last + quiet) {
      break;
    }
  }
  return last;
}

double sum_of_squares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// Variance of the mean of `values` (whose mean is 0), which lie in independent blocks of `block` beside each other.
double variance_of_drawn_mean(std::span<const double> values, std::size_t block) {
  const std::size_t blocks = values.size() / block;
  std::vector<double> means(blocks);
  for (std::size_t i = 0; i < blocks; ++i) means[i] = mean_of(values.subspan(i * block, block));
  const auto count = static_cast<double>(blocks);
  return sum_of_squares(means) / (count - 1) / count;
}

// Variance of the mean of a series (whose mean is 0): the larger of that of overlapping batches of `block` (Meketon
// and Schmeiser, Winter Simulation Conference 1984) and that of a first-order autoregression whose correlation, freed
// of its bias, is at least half a standard error.
double variance_of_mean(std::span<const double> values, std::size_t block) {
  const auto n = static_cast<double>(values.size());
  const double independent = sum_of_squares(values) / (n - 1) / n;
  const double r = first_autocorrelation(values);
  const double unbiased = std::min(0.9, r + 1 / n);
  const double regression = r > 0.5 / std::sqrt(n) ? independent * (1 + unbiased) / (1 - unbiased) : independent;
  if (block == 1) return regression;
  const auto b = static_cast<double>(block);
  double squares = 0;
  for (std::size_t i = 0; i + block <= values.size(); ++i) {
    const double mean = mean_of(values.subspan(i, block));
    squares += mean * mean;
  }
  return std::max(regression, squares * b / ((n - b) * (n - b + 1)));
}

// Blocks of neighbours from anywhere, the first behind the last, until as many are drawn as there are.
void draw_blocks(std::vector<std::size_t>& drawn, std::size_t block, Rng& rng) {
  for (std::size_t taken = 0; taken < drawn.size();) {
    const std::size_t first = rng.below(drawn.size());
    for (std::size_t i = 0; i < block && taken < drawn.size(); ++i, ++taken) drawn[taken] = (first + i) % drawn.size();
  }
}

// One side on the windows and with the runs of a resample.
struct Side {
  std::vector<double> series;  // per window the mean over the middle half of the runs
  double mean = 0;             // its mean: the interquartile mean of the runs' means
  double run_variance = 0;     // of that mean, for how far runs differ; 0 for a single run
};

Side side_of(const RunScores& scores, const std::vector<std::size_t>& runs, const std::vector<std::size_t>& windows) {
  std::vector<std::pair<double, std::size_t>> means;  // with the run
  for (const std::size_t run : runs) {
    double sum = 0;
    for (const std::size_t window : windows) sum += scores[run][window];
    means.emplace_back(sum / static_cast<double>(windows.size()), run);
  }
  std::sort(means.begin(), means.end());
  const std::size_t cut = means.size() / 4;
  const std::size_t end = means.size() - cut;
  const auto kept = static_cast<double>(end - cut);
  Side side{.series = std::vector<double>(windows.size(), 0.0)};
  for (std::size_t i = cut; i < end; ++i) {
    side.mean += means[i].first / kept;
    for (std::size_t w = 0; w < windows.size(); ++w) side.series[w] += scores[means[i].second][windows[w]] / kept;
  }
  if (means.size() < 2) return side;
  // Of a trimmed mean, from the winsorised variance (Tukey and McLaughlin, Sankhya A 25(3), 1963).
  std::vector<double> winsorised;
  for (const auto& [mean, run] : means) winsorised.push_back(std::clamp(mean, means[cut].first, means[end - 1].first));
  const double centre = mean_of(winsorised);
  double squares = 0;
  for (const double mean : winsorised) squares += (mean - centre) * (mean - centre);
  const auto count = static_cast<double>(means.size());
  side.run_variance = squares / (count - 1) * count / (kept * kept);
  return side;
}

// A statistic of two sides, and the windows' part in its error: values of mean 0 whose mean varies as it does.
struct Statistic {
  double value = 0;
  std::vector<double> influence;
  double run_variance_of_ours = 0, run_variance_of_theirs = 0;
};

Statistic difference_of(const Side& ours, const Side& theirs) {
  Statistic result{.value = ours.mean - theirs.mean,
                   .influence = ours.series,
                   .run_variance_of_ours = ours.run_variance,
                   .run_variance_of_theirs = theirs.run_variance};
  for (std::size_t w = 0; w < result.influence.size(); ++w) result.influence[w] -= theirs.series[w] + result.value;
  return result;
}

// The logarithm of ours over theirs, by the delta method: a ratio near 0 or of a few heavy windows is far from normal.
// Precondition: both means are above 0.
Statistic log_ratio_of(const Side& ours, const Side& theirs) {
  Statistic result{.value = std::log(ours.mean / theirs.mean),
                   .influence = std::vector<double>(ours.series.size()),
                   .run_variance_of_ours = ours.run_variance / (ours.mean * ours.mean),
                   .run_variance_of_theirs = theirs.run_variance / (theirs.mean * theirs.mean)};
  for (std::size_t w = 0; w < result.influence.size(); ++w) {
    result.influence[w] = ours.series[w] / ours.mean - theirs.series[w] / theirs.mean;
  }
  return result;
}

// The 97.5 % quantile of Student's t.
double student_t(std::size_t degrees_of_freedom) {
  static constexpr double few[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (degrees_of_freedom <= std::size(few)) return few[degrees_of_freedom - 1];
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * static_cast<double>(degrees_of_freedom));
}

// What the variance among so many runs is multiplied by: few runs say little about it, and draws from them spread less
// than they do.
double few_runs_factor(std::size_t runs) {
  if (runs < 2) return 0;
  const double t = student_t(runs - 1) / 1.959964;
  return t * t * static_cast<double>(runs) / static_cast<double>(runs - 1);
}

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

void draw_runs(std::vector<std::size_t>& runs, std::size_t count, Rng& rng) {
  if (count == 1) return;
  for (std::size_t& run : runs) run = rng.below(count);
}

// The symmetric bootstrap-t of one statistic.
class Studentised {
 public:
  Studentised(Statistic observed, std::size_t block, std::size_t our_runs, std::size_t their_runs)
      : observed_(std::move(observed)), block_(block) {
    error_ = std::sqrt(variance_of_mean(observed_.influence, block) +
                       observed_.run_variance_of_ours * few_runs_factor(our_runs) +
                       observed_.run_variance_of_theirs * few_runs_factor(their_runs));
  }

  void add(const Statistic& drawn) {
    const double error = std::sqrt(variance_of_drawn_mean(drawn.influence, block_) + observed_.run_variance_of_ours +
                                   observed_.run_variance_of_theirs);
    const double distance = std::abs(drawn.value - observed_.value);
    distances_.push_back(distance == 0 ? 0 : distance / error);
  }

  // A resample without a ratio.
  void add_infinite() { distances_.push_back(std::numeric_limits<double>::infinity()); }

  // Consumes what was added.
  ConfidenceInterval interval() {
    std::sort(distances_.begin(), distances_.end());
    const double rank = std::ceil(0.95 * static_cast<double>(distances_.size() + 1));
    const double reach = error_ == 0 ? 0 : distances_[static_cast<std::size_t>(rank) - 1] * error_;
    return {observed_.value - reach, observed_.value + reach};
  }

 private:
  Statistic observed_;
  std::size_t block_;
  double error_ = 0;
  std::vector<double> distances_;  // in standard errors
};

}  // namespace

std::size_t block_length(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const auto quiet = static_cast<std::size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(n)))));
  const std::size_t most = std::min(static_cast<std::size_t>(std::ceil(std::sqrt(n))) + quiet, values.size() - 1);
  const std::vector<double> r = autocovariances(values, most);
  if (r[0] <= 0) return 1;
  const std::size_t last = last_lag(r, quiet, 2 * std::sqrt(std::log10(n) / n));
  if (last == 0) return 1;
  const std::size_t width = std::min(2 * last, most);
  double slope = 0;
  double spectrum = r[0];
  for (std::size_t lag = 1; lag <= width; ++lag) {
    const double t = static_cast<double>(lag) / static_cast<double>(width);
    const double weight = t <= 0.5 ? 1 : 2 * (1 - t);  // the flat-top window
    slope += 2 * weight * static_cast<double>(lag) * r[lag];
    spectrum += 2 * weight * r[lag];
  }
  const double longest = std::ceil(std::min(3 * std::sqrt(n), n / 3));
  const double square = 4.0 / 3 * spectrum * spectrum;
  if (square <= 0) return static_cast<std::size_t>(longest);
  const double best = std::cbrt(2 * slope * slope / square * n);
  return static_cast<std::size_t>(std::clamp(std::ceil(best), 1.0, longest));
}

double effective_count(std::span<const double> values, std::size_t block) {
  const auto n = static_cast<double>(values.size());
  const double r = std::clamp(first_autocorrelation(values) + 1 / n + 2 / std::sqrt(n), 0.0, 0.95);
  return std::min(n * (1 - r) / (1 + r), n / static_cast<double>(block));
}

std::optional<PairedIntervals> paired_intervals(const RunScores& ours, const RunScores& theirs, std::size_t overlap,
                                                Rng rng, std::uint32_t resamples) {
  const std::size_t count = ours.front().size();
  GPUSCHED_ASSERT(count > 0 && overlap >= 1, "windows to compare");
  if (count < least_values) return std::nullopt;
  std::vector<std::size_t> windows = all_of(count);
  std::vector<std::size_t> our_runs = all_of(ours.size());
  std::vector<std::size_t> their_runs = all_of(theirs.size());
  const Side us = side_of(ours, our_runs, windows);
  const Side them = side_of(theirs, their_runs, windows);
  std::size_t different = 0;
  for (std::size_t w = 0; w < count; ++w) different += us.series[w] != them.series[w] ? 1 : 0;
  if (different > 0 && static_cast<double>(different) < least_effective_count) return std::nullopt;
  const Statistic difference = difference_of(us, them);
  const std::size_t block = std::max(overlap, block_length(difference.influence));
  if (effective_count(difference.influence, block) < least_effective_count) return std::nullopt;
  Studentised absolute(difference, block, ours.size(), theirs.size());
  const bool has_ratio = us.mean > 0 && them.mean > 0;
  Studentised relative(has_ratio ? log_ratio_of(us, them) : difference, block, ours.size(), theirs.size());
  for (std::uint32_t i = 0; i < resamples; ++i) {
    draw_blocks(windows, block, rng);
    draw_runs(our_runs, ours.size(), rng);
    draw_runs(their_runs, theirs.size(), rng);
    const Side our_side = side_of(ours, our_runs, windows);
    const Side their_side = side_of(theirs, their_runs, windows);
    absolute.add(difference_of(our_side, their_side));
    if (!has_ratio) continue;
    if (our_side.mean > 0 && their_side.mean > 0) {
      relative.add(log_ratio_of(our_side, their_side));
    } else {
      relative.add_infinite();
    }
  }
  PairedIntervals result{.difference = absolute.interval(), .relative = {}, .block = block};
  if (has_ratio) {
    const ConfidenceInterval logarithms = relative.interval();
    result.relative = {std::expm1(logarithms.low), std::expm1(logarithms.high)};
  } else if (them.mean > 0) {
    result.relative = {result.difference.low / them.mean, result.difference.high / them.mean};
  }
  return result;
}

std::string_view verdict(const ConfidenceInterval& difference) {
  if (difference.high < 0) return "better";
  if (difference.low > 0) return "worse";
  return "no difference detected";
}

}  // namespace gpusched
