// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
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

namespace {

// Nothing where a score is not above 0.
std::optional<RunScores> logarithms_of(const RunScores& runs) {
  RunScores result = runs;
  for (std::vector<double>& run : result) {
    for (double& score : run) {
      if (!(score > 0)) return std::nullopt;
      score = std::log(score);
    }
  }
  return result;
}

}  // namespace

std::optional<double> interquartile_mean_of_runs(const RunScores& runs, WindowMean mean) {
  if (mean == WindowMean::arithmetic) return interquartile_mean_of_runs(runs);
  const auto logarithms = logarithms_of(runs);
  return logarithms ? std::optional(std::exp(interquartile_mean_of_runs(*logarithms))) : std::nullopt;
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

}  // namespace

double unbiased_autocorrelation(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return n > 3 ? (n * first_autocorrelation(values) + 1) / (n - 3) : 0;
}

namespace {

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

// How many independent values a first-order autoregression of so many is worth.
double worth(double count, double autocorrelation) { return count * (1 - autocorrelation) / (1 + autocorrelation); }

// An estimated variance and its degrees of freedom.
struct Variance {
  double value = 0;
  double degrees_of_freedom = 1;
};

// What a series' slowest movements say of the variance of its mean.
class SlowCosines {
 public:
  // Two terms up to 60 values, three with 80, seven with 320: fewer see slower dependence, more give narrower
  // intervals (rate: Lazarus, Lewis, Stock and Watson, 2018).
  explicit SlowCosines(std::size_t count)
      : count_(count), terms_(std::max(2L, std::lround(0.14 * std::pow(static_cast<double>(count), 2.0 / 3)))) {
    for (std::size_t term = 0; term < terms_; ++term) {
      for (std::size_t t = 0; t < count; ++t) {
        cosines_.push_back(std::cos(angle(term) * (static_cast<double>(t) + 0.5)));
      }
    }
  }

  [[nodiscard]] std::size_t terms() const { return terms_; }

  // Of a series whose mean is 0. Each term is divided by the share of a first-order autoregression's slowest movement
  // that such an autoregression would have at its frequency.
  [[nodiscard]] double variance_of_mean(std::span<const double> values) const {
    const auto n = static_cast<double>(count_);
    const double r = std::clamp(unbiased_autocorrelation(values) + 0.5 / std::sqrt(n), 0.0, 0.9);
    double variance = 0;
    for (std::size_t term = 0; term < terms_; ++term) {
      double sum = 0;
      for (std::size_t t = 0; t < count_; ++t) sum += cosines_[term * count_ + t] * values[t];
      const double share = (1 - r) * (1 - r) / (1 + r * r - 2 * r * std::cos(angle(term)));
      variance += 2 / n * sum * sum / share;
    }
    return variance / static_cast<double>(terms_) / n;
  }

 private:
  // Of a term from one value to the next.
  [[nodiscard]] double angle(std::size_t term) const {
    return std::numbers::pi * static_cast<double>(term + 1) / static_cast<double>(count_);
  }

  std::size_t count_, terms_;
  std::vector<double> cosines_;  // [term][t]
};

// Not below a fifth of what a first-order autoregression gives, where autocorrelation is significant: the few terms can
// all be small by chance. Where it is not, resamples have as many such chances, and count them.
double least_variance_of_mean(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double r = std::min(unbiased_autocorrelation(values), 0.9);
  if (r <= 2 / std::sqrt(n)) return 0;
  return 0.2 * sum_of_squares(values) / (n - 1) / worth(n, r);
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
};

// Runs with their means over the windows, ascending.
using RankedRuns = std::vector<std::pair<double, std::size_t>>;

RankedRuns ranked(const RunScores& scores, const std::vector<std::size_t>& runs,
                  const std::vector<std::size_t>& windows) {
  RankedRuns means;
  for (const std::size_t run : runs) {
    double sum = 0;
    for (const std::size_t window : windows) sum += scores[run][window];
    means.emplace_back(sum / static_cast<double>(windows.size()), run);
  }
  std::sort(means.begin(), means.end());
  return means;
}

std::span<const std::pair<double, std::size_t>> middle_half(const RankedRuns& runs) {
  const std::size_t cut = runs.size() / 4;
  return std::span(runs).subspan(cut, runs.size() - 2 * cut);
}

Side side_of(const RunScores& scores, const RankedRuns& runs, const std::vector<std::size_t>& windows) {
  const auto middle = middle_half(runs);
  const auto kept = static_cast<double>(middle.size());
  Side side{.series = std::vector<double>(windows.size(), 0.0)};
  for (const auto& [mean, run] : middle) {
    side.mean += mean / kept;
    for (std::size_t w = 0; w < windows.size(); ++w) side.series[w] += scores[run][windows[w]] / kept;
  }
  return side;
}

// Variance within the runs of the middle half that neither the run nor the window explains: of one value.
double interaction_variance(const RunScores& scores, const RankedRuns& runs, const Side& side) {
  const auto middle = middle_half(runs);
  double squares = 0;
  for (const auto& [mean, run] : middle) {
    for (std::size_t w = 0; w < side.series.size(); ++w) {
      const double rest = scores[run][w] - mean - side.series[w] + side.mean;
      squares += rest * rest;
    }
  }
  return squares / static_cast<double>((middle.size() - 1) * (side.series.size() - 1));
}

// What the runs of a side add to the variance of its mean.
struct RunSpread {
  Variance among;    // of the mean, for how far the runs differ, and each from window to window
  double twice = 0;  // the last of these, which the variance of the windows holds too

  [[nodiscard]] RunSpread over(double divisor) const {
    return {{among.value / divisor, among.degrees_of_freedom}, twice / divisor};
  }
};

// Of a trimmed mean, from the winsorised variance (Tukey and McLaughlin, Sankhya A 25(3), 1963).
RunSpread run_spread(const RunScores& scores, const RankedRuns& runs, const Side& side) {
  if (runs.size() < 2) return {};
  const auto middle = middle_half(runs);
  std::vector<double> winsorised;
  for (const auto& [mean, run] : runs) {
    winsorised.push_back(std::clamp(mean, middle.front().first, middle.back().first));
  }
  const double centre = mean_of(winsorised);
  double squares = 0;
  for (const double mean : winsorised) squares += (mean - centre) * (mean - centre);
  const auto kept = static_cast<double>(middle.size());
  return {{squares / (kept * (kept - 1)), kept - 1},
          interaction_variance(scores, runs, side) / kept / static_cast<double>(side.series.size())};
}

// A statistic of two sides, and the windows' part in its error: values of mean 0 whose mean varies as it does.
struct Statistic {
  double value = 0;
  std::vector<double> influence;
};

Statistic difference_of(const Side& ours, const Side& theirs) {
  Statistic result{.value = ours.mean - theirs.mean, .influence = ours.series};
  for (std::size_t w = 0; w < result.influence.size(); ++w) result.influence[w] -= theirs.series[w] + result.value;
  return result;
}

// The logarithm of ours over theirs, by the delta method: a ratio near 0 or of a few heavy windows is far from normal.
// Precondition: both means are above 0.
Statistic log_ratio_of(const Side& ours, const Side& theirs) {
  Statistic result{.value = std::log(ours.mean / theirs.mean), .influence = std::vector<double>(ours.series.size())};
  for (std::size_t w = 0; w < result.influence.size(); ++w) {
    result.influence[w] = ours.series[w] / ours.mean - theirs.series[w] / theirs.mean;
  }
  return result;
}

// Degrees of freedom of a sum of estimated variances (Welch and Satterthwaite, Biometrics Bulletin 2(6), 1946).
double degrees_of_freedom(const std::vector<Variance>& parts) {
  double sum = 0, squares = 0;
  for (const Variance& part : parts) {
    sum += part.value;
    squares += part.value * part.value / std::max(1.0, part.degrees_of_freedom);
  }
  return squares > 0 ? std::max(1.0, sum * sum / squares) : 1;
}

double skewness(std::span<const double> values) {
  double cubes = 0;
  for (const double value : values) cubes += value * value * value;
  const double squares = sum_of_squares(values);
  return squares > 0 ? cubes / std::pow(squares, 1.5) * std::sqrt(static_cast<double>(values.size())) : 0;
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

// Of the observed variance, what a resample's counts for at least: an eighth of the error. A chi-squared variable of
// four degrees of freedom, the fewest that cosines give, is below that once in two thousand draws.
constexpr double least_part_of_variance = 1.0 / 64;

// The equal-tailed bootstrap-t of one statistic.
class Studentised {
 public:
  Studentised(Statistic observed, const SlowCosines& cosines, const RunSpread& ours, const RunSpread& theirs)
      : observed_(std::move(observed)), cosines_(&cosines), runs_differ_(ours.among.value + theirs.among.value > 0) {
    const std::vector<double>& influence = observed_.influence;
    Variance windows{std::max(cosines.variance_of_mean(influence), least_variance_of_mean(influence)),
                     static_cast<double>(cosines.terms())};
    least_variance_ = windows.value * least_part_of_variance;
    windows.value = std::max(0.0, windows.value - ours.twice - theirs.twice);
    const double sum = windows.value + ours.among.value + theirs.among.value;
    drawn_freedom_ = windows.degrees_of_freedom;
    drawn_t_ = student_t_quantile(drawn_freedom_);
    // Resamples know the quantiles of so many cosines, not those of few runs.
    error_ = std::sqrt(sum) * student_t_quantile(degrees_of_freedom({windows, ours.among, theirs.among})) / drawn_t_;
  }

  void add(const Statistic& drawn) {
    distances_.push_back(drawn.value - observed_.value);
    variances_.push_back(std::max(cosines_->variance_of_mean(drawn.influence), least_variance_));
  }

  // Takes what was added; then there is an interval.
  void close() {
    const double among_runs =
        runs_differ_
            ? std::max(0.0, sum_of_squares(distances_) / static_cast<double>(distances_.size()) - mean_of(variances_))
            : 0;
    for (std::size_t i = 0; i < distances_.size(); ++i) {
      if (distances_[i] != 0) distances_[i] /= std::sqrt(variances_[i] + among_runs);
    }
    std::sort(distances_.begin(), distances_.end());
    skew_ = skewness(observed_.influence);
  }

  [[nodiscard]] ConfidenceInterval interval() const {
    const auto in_tail = static_cast<std::size_t>(0.025 * static_cast<double>(distances_.size() + 1));
    double lowest = distances_[in_tail - 1], highest = distances_[distances_.size() - in_tail];
    if (runs_differ_) {  // few runs drawn with replacement have shorter tails than what they are drawn from
      lowest = std::min(lowest, -drawn_t_);
      highest = std::max(highest, drawn_t_);
    }
    return {observed_.value - highest * error_ * stretch(-skew_), observed_.value - lowest * error_ * stretch(skew_)};
  }

  // PairedIntervals::p.
  [[nodiscard]] double p() const {
    if (observed_.value == 0 || error_ == 0) return observed_.value == 0 ? 1 : 0;
    const bool above = observed_.value > 0;
    const double distance = observed_.value / (error_ * stretch(above ? -skew_ : skew_));
    const auto beyond = std::count_if(distances_.begin(), distances_.end(),
                                      [&](double drawn) { return above ? drawn >= distance : drawn <= distance; });
    const double drawn = 2 * static_cast<double>(beyond + 1) / static_cast<double>(distances_.size() + 1);
    return std::min(1.0, runs_differ_ ? std::max(drawn, student_t_p(distance, drawn_freedom_)) : drawn);
  }

 private:
  // Of the end on the side of a long tail. Windows that pass for lightly skewed hold fewer of a tail than there are.
  static double stretch(double skew) { return 1 + 0.3 * std::max(0.0, skew - 0.5); }

  Statistic observed_;
  const SlowCosines* cosines_;
  bool runs_differ_;
  double drawn_freedom_ = 1, drawn_t_ = 0;  // of resamples of normal values, and the quantile that they have
  double error_ = 0, skew_ = 0;
  // Of a resample: one that lacks the few windows that differ from all others would pass for exact.
  double least_variance_ = 0;
  std::vector<double> distances_, variances_;  // of resamples: from what was observed, and of the windows' mean
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
  const double r = unbiased_autocorrelation(values) + 0.7 / std::sqrt(n);
  return std::min(worth(n, std::clamp(r, 0.0, 0.95)), n / static_cast<double>(block));
}

double tail_index(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t count = sorted.size();
  const double median = (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
  for (double& value : sorted) value = std::abs(value - median);
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted[count - count / 2 - 1];
  if (sorted.back() == 0) return 0;
  if (middle == 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  const std::size_t above = count / 2;
  for (std::size_t i = count - above; i < count; ++i) sum += std::log(sorted[i] / middle);
  return sum / static_cast<double>(above);
}

namespace {

// Percentile p in [0, 1] by linear interpolation (type 7 of Hyndman and Fan, 1996).
double percentile_of(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (sorted[below + 1] - sorted[below]) * (position - static_cast<double>(below));
}

}  // namespace

double asymmetry(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double median = percentile_of(sorted, 0.5);
  const double above = percentile_of(sorted, 0.9) - median;
  const double below = median - percentile_of(sorted, 0.1);
  return above == below ? 0 : std::log(above / below);
}

namespace {

// How often the least number of values for which the tests' samples were looked at, 20, has doubled.
double doublings(std::size_t count) { return std::log2(static_cast<double>(count) / 20); }

}  // namespace

double largest_tail_index(std::size_t count) { return 0.9 + 0.1 * doublings(count); }

double largest_asymmetry(std::size_t count) { return 0.8 + 0.2 * doublings(count); }

namespace {

// Where the sides differ, and in which way they are compared.
struct Compared {
  Statistic difference;
  Statistic decisive;      // of what the verdict is
  bool has_ratio = false;  // the decisive one is a logarithm of ratios
};

Compared compared(const Side& ours, const Side& theirs, bool of_logarithms) {
  Compared result{.difference = difference_of(ours, theirs), .decisive = {}};
  result.has_ratio = !of_logarithms && ours.mean > 0 && theirs.mean > 0;
  result.decisive = result.has_ratio ? log_ratio_of(ours, theirs) : result.difference;
  return result;
}

std::size_t differing_windows(const Side& ours, const Side& theirs) {
  std::size_t count = 0;
  for (std::size_t w = 0; w < ours.series.size(); ++w) count += ours.series[w] != theirs.series[w] ? 1 : 0;
  return count;
}

Unexpected none(std::string_view why) { return unexpected(std::string(why)); }

// Whether these windows can give an interval: the error says why not.
Result<void> are_enough(std::span<const double> influence, std::size_t different, std::size_t overlap,
                        double effective) {
  const std::size_t count = influence.size();
  const double blocks = static_cast<double>(count) / static_cast<double>(overlap);
  if (count < least_values || blocks < least_effective_count) return none(too_few_windows);
  if (different == 0) return {};
  if (static_cast<double>(different) < least_effective_count) return none(too_few_differ);
  if (effective < least_effective_count) {
    char number[32];
    std::snprintf(number, sizeof number, " (effective blocks %.1f)", effective);
    return none(std::string(too_alike_windows) + number);
  }
  const bool light =
      tail_index(influence) <= largest_tail_index(count) && std::abs(asymmetry(influence)) <= largest_asymmetry(count);
  if (!light) return none(too_heavy_tails);
  return {};
}

Result<PairedIntervals> intervals_of(const RunScores& ours, const RunScores& theirs, std::size_t overlap, Rng rng,
                                     std::uint32_t resamples, bool of_logarithms) {
  const std::size_t count = ours.front().size();
  std::vector<std::size_t> windows = all_of(count);
  std::vector<std::size_t> our_runs = all_of(ours.size());
  std::vector<std::size_t> their_runs = all_of(theirs.size());
  const RankedRuns our_ranks = ranked(ours, our_runs, windows);
  const RankedRuns their_ranks = ranked(theirs, their_runs, windows);
  const Side us = side_of(ours, our_ranks, windows);
  const Side them = side_of(theirs, their_ranks, windows);
  const auto [difference, decisive, has_ratio] = compared(us, them, of_logarithms);
  const std::size_t block = std::max(overlap, block_length(decisive.influence));
  const double effective = effective_count(decisive.influence, block);
  if (auto enough = are_enough(decisive.influence, differing_windows(us, them), overlap, effective); !enough) {
    return Unexpected{enough.error()};
  }
  const SlowCosines cosines(count);
  const RunSpread our_spread = run_spread(ours, our_ranks, us);
  const RunSpread their_spread = run_spread(theirs, their_ranks, them);
  Studentised absolute(difference, cosines, our_spread, their_spread);
  Studentised relative(decisive, cosines, our_spread.over(has_ratio ? us.mean * us.mean : 1),
                       their_spread.over(has_ratio ? them.mean * them.mean : 1));
  for (std::uint32_t i = 0; i < resamples; ++i) {
    draw_blocks(windows, block, rng);
    draw_runs(our_runs, ours.size(), rng);
    draw_runs(their_runs, theirs.size(), rng);
    const Side our_side = side_of(ours, ranked(ours, our_runs, windows), windows);
    const Side their_side = side_of(theirs, ranked(theirs, their_runs, windows), windows);
    absolute.add(difference_of(our_side, their_side));
    if (!has_ratio) continue;
    if (our_side.mean <= 0 || their_side.mean <= 0) return none(too_heavy_tails);  // few windows carry the ratio
    relative.add(log_ratio_of(our_side, their_side));
  }
  absolute.close();
  PairedIntervals result{
      .difference = absolute.interval(), .relative = {}, .block = block, .effective = effective, .p = absolute.p()};
  if (has_ratio) {
    relative.close();
    const ConfidenceInterval logarithms = relative.interval();
    result.p = relative.p();
    result.relative = {std::expm1(logarithms.low), std::expm1(logarithms.high)};
  } else if (them.mean > 0) {
    result.relative = {result.difference.low / them.mean, result.difference.high / them.mean};
  }
  return result;
}

}  // namespace

Result<PairedIntervals> paired_intervals(const RunScores& ours, const RunScores& theirs, std::size_t overlap, Rng rng,
                                         std::uint32_t resamples, WindowMean mean) {
  GPUSCHED_ASSERT(!ours.front().empty() && overlap >= 1 && resamples >= 39,
                  "windows to compare, and a resample in each tail");
  if (mean == WindowMean::arithmetic) return intervals_of(ours, theirs, overlap, rng, resamples, false);
  const auto our_logarithms = logarithms_of(ours);
  const auto their_logarithms = logarithms_of(theirs);
  if (!our_logarithms || !their_logarithms) return none(no_ratio);
  auto result = intervals_of(*our_logarithms, *their_logarithms, overlap, rng, resamples, true);
  if (!result) return result;
  const double level = *interquartile_mean_of_runs(theirs, mean);
  result->relative = {std::expm1(result->difference.low), std::expm1(result->difference.high)};
  result->difference = {level * result->relative.low, level * result->relative.high};
  return result;
}

std::string_view verdict(const ConfidenceInterval& difference) {
  if (difference.high < 0) return "better";
  if (difference.low > 0) return "worse";
  return "no difference detected";
}

}  // namespace gpusched
