// SPDX-License-Identifier: Apache-2.0
#include "src/base/paired_tests.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gpusched/core/config.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::vector<std::size_t> order_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

// Twice the rank of each size, so that the mean of two ranks is whole.
std::vector<std::uint64_t> doubled_ranks(const std::vector<double>& sizes) {
  const std::vector<std::size_t> order = order_of(sizes);
  std::vector<std::uint64_t> ranks(sizes.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && sizes[order[end]] == sizes[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = first + 1 + end;  // of places first + 1 to end
    first = end;
  }
  return ranks;
}

// Both tails of the sum of the positive ranks, each sign as likely as the other. The shares are sums of powers of 1/2.
double exact_p(const std::vector<std::uint64_t>& ranks, std::uint64_t positive) {
  const std::uint64_t sum = std::accumulate(ranks.begin(), ranks.end(), std::uint64_t{0});
  std::vector<double> share(sum + 1, 0.0);
  share[0] = 1;
  std::uint64_t reached = 0;
  for (const std::uint64_t rank : ranks) {
    for (std::uint64_t total = reached + 1; total-- > 0;) {
      const double half = share[total] / 2;
      share[total] = half;
      share[total + rank] += half;
    }
    reached += rank;
  }
  const std::uint64_t lesser = std::min(positive, sum - positive);
  const double tail = std::accumulate(share.begin(), share.begin() + static_cast<std::ptrdiff_t>(lesser) + 1, 0.0);
  return std::min(1.0, 2 * tail);
}

// Under the null hypothesis the sum has mean sum(r) / 2 and variance sum(r^2) / 4, whatever the ranks are: for ranks
// 1..n with ties this is Lehmann's n (n + 1) (2 n + 1) / 24 - sum(t^3 - t) / 48 (Nonparametrics, 1975).
double normal_p(const std::vector<std::uint64_t>& ranks, std::uint64_t positive) {
  double sum = 0, squares = 0;
  for (const std::uint64_t rank : ranks) {
    sum += static_cast<double>(rank);
    squares += static_cast<double>(rank) * static_cast<double>(rank);
  }
  const double z = (static_cast<double>(positive) - sum / 2) / std::sqrt(squares / 4);
  return std::erfc(std::abs(z) / std::sqrt(2.0));
}

}  // namespace

SignedRank signed_rank_test(std::span<const double> differences, ZeroDifferences zeros) {
  SignedRank result{.differences = differences.size()};
  std::vector<double> kept, sizes;
  for (const double difference : differences) {
    GPUSCHED_ASSERT(std::isfinite(difference), "differences are numbers");
    if (difference == 0 && zeros == ZeroDifferences::wilcoxon) continue;
    kept.push_back(difference);
    sizes.push_back(std::abs(difference));
  }
  const std::vector<std::uint64_t> all = doubled_ranks(sizes);
  std::vector<std::uint64_t> ranks;  // of those that are not 0
  std::uint64_t positive = 0, negative = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == 0) continue;
    ranks.push_back(all[i]);
    (kept[i] > 0 ? positive : negative) += all[i];
  }
  result.nonzero = ranks.size();
  result.positive = static_cast<double>(positive) / 2;
  result.negative = static_cast<double>(negative) / 2;
  if (ranks.empty()) return result;
  const double doubled_sum = static_cast<double>(kept.size()) * static_cast<double>(kept.size() + 1);
  result.rank_biserial = 2 * (result.positive - result.negative) / doubled_sum;
  result.exact = ranks.size() < least_normal_differences;
  result.p = result.exact ? exact_p(ranks, positive) : normal_p(ranks, positive);
  return result;
}

namespace {

constexpr std::size_t most_exact_pairs = 15;
constexpr std::size_t drawn_patterns = 8192;

// The sums of both sides under each pattern of signs, the first one as seen. A pattern and its opposite give the same
// size, so that the first pair keeps its sign.
class FlippedSums {
 public:
  FlippedSums(std::span<const double> ours, std::span<const double> theirs) {
    const std::size_t pairs = ours.size();
    const bool exact = pairs <= most_exact_pairs;
    const std::size_t patterns = exact ? std::size_t{1} << (pairs - 1) : drawn_patterns;
    Rng rng = Rng(0).split("sign flips");
    for (std::size_t pattern = 0; pattern < patterns; ++pattern) {
      double own = ours[0], other = theirs[0];
      for (std::size_t i = 1; i < pairs; ++i) {
        const bool flipped = exact ? (pattern >> (i - 1) & 1) != 0 : pattern > 0 && rng.uniform() < 0.5;
        own += flipped ? -ours[i] : ours[i];
        other += flipped ? -theirs[i] : theirs[i];
      }
      sums_.emplace_back(own, other);
    }
  }

  // Of the differences ours - ratio x theirs.
  [[nodiscard]] double p(double ratio) const {
    return share([ratio](const auto& sums) { return std::abs(sums.first - ratio * sums.second); });
  }
  // Of an infinite ratio.
  [[nodiscard]] double p_of_theirs() const {
    return share([](const auto& sums) { return std::abs(sums.second); });
  }
  [[nodiscard]] double ratio() const { return sums_.front().first / sums_.front().second; }

 private:
  template <class Size>
  [[nodiscard]] double share(Size size) const {
    const double seen = size(sums_.front()) * (1 - 1e-12);  // sums of other signs may differ in rounding
    const auto as_large =
        std::count_if(sums_.begin(), sums_.end(), [&](const auto& sums) { return size(sums) >= seen; });
    return static_cast<double>(as_large) / static_cast<double>(sums_.size());
  }

  std::vector<std::pair<double, double>> sums_;
};

constexpr double rejected_p = 0.05;

// Where p falls to 0.05 between a ratio that is not rejected and one that is.
double edge(const FlippedSums& sums, double kept, double rejected) {
  for (int step = 0; step < 50; ++step) {
    const double middle = (kept + rejected) / 2;
    (sums.p(middle) > rejected_p ? kept : rejected) = middle;
  }
  return kept;
}

}  // namespace

SignFlips sign_flip_test(std::span<const double> ours, std::span<const double> theirs) {
  const FlippedSums sums(ours, theirs);
  SignFlips result{.p = sums.p(1)};
  if (sums.p_of_theirs() > rejected_p || !std::isfinite(sums.ratio())) return result;
  const double middle = sums.ratio();
  double beyond = std::max(2 * middle, 1.0);
  while (sums.p(beyond) > rejected_p && beyond < 1e300) beyond *= 2;
  double low = sums.p(0) > rejected_p ? 0 : edge(sums, middle, 0);
  double high = edge(sums, middle, beyond);
  // p need not fall evenly towards both sides: what it says of 1 counts.
  if (result.p > rejected_p) {
    low = std::min(low, 1.0);
    high = std::max(high, 1.0);
  } else if (middle < 1) {
    high = std::min(high, std::nextafter(1.0, 0.0));
  } else {
    low = std::max(low, std::nextafter(1.0, 2.0));
  }
  result.relative = ConfidenceInterval{low - 1, high - 1};
  return result;
}

std::string p_value_text(double p) { return p < 0.001 ? "<0.001" : formatted("%.3f", p); }

std::vector<double> holm_corrected(std::span<const double> p_values) {
  std::vector<double> corrected(p_values.size());
  double least = 0;
  std::size_t left = p_values.size();
  for (const std::size_t place : order_of(p_values)) {
    least = std::max(least, std::min(1.0, static_cast<double>(left--) * p_values[place]));
    corrected[place] = least;
  }
  return corrected;
}

std::optional<BlockedSignedRank> blocked_signed_rank(std::span<const double> differences, std::size_t overlap) {
  const std::size_t count = differences.size();
  if (count < least_values) return std::nullopt;
  const double worth = effective_count(differences, std::max(overlap, block_length(differences)));
  const auto blocks = static_cast<std::size_t>(worth);
  if (blocks < least_test_blocks) return std::nullopt;
  std::vector<double> means;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t first = b * count / blocks, end = (b + 1) * count / blocks;
    means.push_back(mean_of(differences.subspan(first, end - first)));
  }
  BlockedSignedRank result{.test = signed_rank_test(means), .blocks = blocks};
  result.test.rank_biserial = signed_rank_test(differences).rank_biserial;
  return result;
}

namespace {

double share_below(const std::vector<double>& ours, const std::vector<double>& theirs) {
  double below = 0;
  for (std::size_t w = 0; w < ours.size(); ++w) below += ours[w] < theirs[w] ? 1 : ours[w] == theirs[w] ? 0.5 : 0;
  return below / static_cast<double>(ours.size());
}

// [ours][theirs]
std::vector<std::vector<double>> shares_below(const RunScores& ours, const RunScores& theirs) {
  std::vector<std::vector<double>> shares;
  for (const auto& run : ours) {
    shares.emplace_back();
    for (const auto& other : theirs) shares.back().push_back(share_below(run, other));
  }
  return shares;
}

std::vector<std::size_t> drawn(std::size_t count, Rng& rng) {
  std::vector<std::size_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = count == 1 ? 0 : rng.below(count);
  return places;
}

RunScores chosen(const RunScores& runs, const std::vector<std::size_t>& places) {
  RunScores result;
  for (const std::size_t place : places) result.push_back(runs[place]);
  return result;
}

// Consumes its values.
ConfidenceInterval middle_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto in_tail = static_cast<std::size_t>(0.025 * static_cast<double>(values.size() + 1));
  return {values[in_tail - 1], values[values.size() - in_tail]};
}

}  // namespace

double probability_below(const RunScores& ours, const RunScores& theirs) {
  double sum = 0;
  for (const auto& row : shares_below(ours, theirs)) sum += mean_of(row);
  return sum / static_cast<double>(ours.size());
}

std::optional<double> normalised_interquartile_mean(const RunScores& ours, const RunScores& theirs) {
  std::vector<double> ratios, here(theirs.size());
  for (std::size_t w = 0; w < ours.front().size(); ++w) {
    for (std::size_t run = 0; run < theirs.size(); ++run) here[run] = theirs[run][w];
    const double level = interquartile_mean(here);
    if (!(level > 0)) return std::nullopt;
    for (const auto& run : ours) ratios.push_back(run[w] / level);
  }
  return interquartile_mean(ratios);
}

std::optional<RunIntervals> run_intervals(const RunScores& ours, const RunScores& theirs, Rng rng,
                                          std::uint32_t resamples) {
  GPUSCHED_ASSERT(resamples >= 39, "a resample in each tail");
  const auto too_few = [](const RunScores& runs) { return runs.size() > 1 && runs.size() < least_runs_for_interval; };
  if (too_few(ours) || too_few(theirs) || (ours.size() == 1 && theirs.size() == 1)) return std::nullopt;
  const auto shares = shares_below(ours, theirs);
  std::vector<double> below, normalised;
  for (std::uint32_t i = 0; i < resamples; ++i) {
    const std::vector<std::size_t> our_places = drawn(ours.size(), rng), their_places = drawn(theirs.size(), rng);
    double sum = 0;
    for (const std::size_t a : our_places) {
      for (const std::size_t b : their_places) sum += shares[a][b];
    }
    below.push_back(sum / static_cast<double>(ours.size() * theirs.size()));
    const auto mean = normalised_interquartile_mean(chosen(ours, our_places), chosen(theirs, their_places));
    if (mean) normalised.push_back(*mean);
  }
  RunIntervals result{.below = middle_95(std::move(below)), .normalised = {}};
  if (normalised.size() == resamples) result.normalised = middle_95(std::move(normalised));
  return result;
}

}  // namespace gpusched
