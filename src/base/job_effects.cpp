// SPDX-License-Identifier: Apache-2.0
#include "src/base/job_effects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "gpusched/core/config.hpp"
#include "src/base/paired_tests.hpp"

namespace gpusched {
namespace {

constexpr std::size_t effect_count = job_effect_names.size();

// Means of neighbours, so that autocorrelations cost no more than some millions of steps.
std::vector<double> thinned(std::span<const double> values, std::size_t each) {
  std::vector<double> means;
  for (std::size_t first = 0; first + each <= values.size(); first += each) {
    means.push_back(mean_of(values.subspan(first, each)));
  }
  return means;
}

}  // namespace

std::size_t memory_of(std::span<const double> state) {
  constexpr std::size_t most_grains = 4'000;
  constexpr double forgotten = 0.05;
  const std::size_t each = state.size() / most_grains + 1;
  std::vector<double> grains = thinned(state, each);
  const double mean = mean_of(grains);
  for (double& grain : grains) grain -= mean;
  const auto product = [&](std::size_t lag) {
    return std::inner_product(grains.begin(), grains.end() - static_cast<std::ptrdiff_t>(lag),
                              grains.begin() + static_cast<std::ptrdiff_t>(lag), 0.0);
  };
  const double variance = product(0);
  if (!(variance > 0)) return 1;
  for (std::size_t lag = 1; 2 * lag < grains.size(); ++lag) {
    if (product(lag) < forgotten * variance) return 2 * lag * each;
  }
  return state.size();
}

BatchPlan plan_batches(std::size_t jobs, std::size_t memory) {
  GPUSCHED_ASSERT(jobs > 0, "a log of jobs");
  const std::size_t length = std::max(memory, least_batch_jobs);
  return {std::clamp<std::size_t>(jobs / length, 1, most_batches), jobs};
}

namespace {

// How often each batch and each run of both sides counts.
struct Draw {
  std::vector<std::uint32_t> batches, our_runs, their_runs;
};

// Of all effects, ours and theirs.
using EffectValues = std::array<std::pair<double, double>, effect_count>;

// The values of one side, ascending, each with the number of its batch and run.
class SortedSide {
 public:
  SortedSide(const std::vector<std::vector<double>>& runs, const BatchPlan& plan)
      : runs_(runs.size()), sums_(runs.size() * plan.count), jobs_(plan.count) {
    for (std::size_t batch = 0; batch < plan.count; ++batch) {
      jobs_[batch] = plan.first(batch + 1) - plan.first(batch);
      for (std::size_t run = 0; run < runs_; ++run) {
        for (std::size_t job = plan.first(batch); job < plan.first(batch + 1); ++job) {
          entries_.push_back({runs[run][job], static_cast<std::uint32_t>(batch * runs_ + run)});
          sums_[batch * runs_ + run] += runs[run][job];
        }
      }
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.value != b.value ? a.value < b.value : a.unit < b.unit; });
  }

  struct Entry {
    double value;
    std::uint32_t unit;  // batch x runs + run
  };
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t runs() const { return runs_; }

  // How often each unit counts, and the values that these make.
  [[nodiscard]] std::vector<std::uint32_t> weights(const std::vector<std::uint32_t>& batches,
                                                   const std::vector<std::uint32_t>& of_runs) const {
    std::vector<std::uint32_t> result(sums_.size());
    for (std::size_t unit = 0; unit < result.size(); ++unit) {
      result[unit] = batches[unit / runs_] * of_runs[unit % runs_];
    }
    return result;
  }
  [[nodiscard]] std::uint64_t count(const std::vector<std::uint32_t>& weights) const {
    std::uint64_t jobs = 0;
    for (std::size_t unit = 0; unit < weights.size(); ++unit) jobs += weights[unit] * jobs_[unit / runs_];
    return jobs;
  }
  [[nodiscard]] double total(const std::vector<std::uint32_t>& weights) const {
    double sum = 0;
    for (std::size_t unit = 0; unit < weights.size(); ++unit) sum += weights[unit] * sums_[unit];
    return sum;
  }

 private:
  std::size_t runs_;
  std::vector<Entry> entries_;
  std::vector<double> sums_;         // by unit
  std::vector<std::uint64_t> jobs_;  // of one run, by batch
};

// Walks up the values of one side, each as often as it counts, and notes what lies at the places asked for: percentile
// p of n sorted values interpolates linearly at position p (n - 1), as in Metrics.
class Climb {
 public:
  explicit Climb(std::uint64_t count) : kept_(static_cast<std::uint64_t>(kept_share * static_cast<double>(count))) {
    kept_ = std::max<std::uint64_t>(kept_, 1);
    constexpr std::array<double, 3> shares{0.5, 0.9, 0.99};
    for (std::size_t q = 0; q < shares.size(); ++q) {
      const double position = shares[q] * static_cast<double>(count - 1);
      places_[2 * q] = static_cast<std::uint64_t>(position);
      places_[2 * q + 1] = std::min(places_[2 * q] + 1, count - 1);
      parts_[q] = position - static_cast<double>(places_[2 * q]);
    }
  }

  void pass(double value, std::uint32_t times) {
    passed_ += times;
    while (next_ < places_.size() && places_[next_] < passed_) at_[next_++] = value;
    if (passed_ <= kept_) {
      kept_sum_ += value * times;
      highest_kept_ = value;
    } else if (passed_ - times < kept_) {
      kept_sum_ += value * static_cast<double>(kept_ - (passed_ - times));
      highest_kept_ = value;
    }
  }

  [[nodiscard]] double quantile(std::size_t q) const { return at_[2 * q] + (at_[2 * q + 1] - at_[2 * q]) * parts_[q]; }
  [[nodiscard]] double trimmed() const { return kept_sum_ / static_cast<double>(kept_); }
  [[nodiscard]] double winsorised() const {
    return (kept_sum_ + static_cast<double>(passed_ - kept_) * highest_kept_) / static_cast<double>(passed_);
  }
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

 private:
  std::uint64_t kept_, passed_ = 0;
  std::array<std::uint64_t, 6> places_{};
  std::array<double, 6> at_{};
  std::array<double, 3> parts_{};
  std::size_t next_ = 0;
  double kept_sum_ = 0, highest_kept_ = 0;
};

// Both sides, of which every effect can be had for any draw.
class PairedSides {
 public:
  PairedSides(const JobValues& values, const BatchPlan& plan)
      : ours_(values.ours, plan), theirs_(values.theirs, plan), plan_(plan) {
    for (std::size_t batch = 0; batch < plan.count; ++batch) {
      for (const std::vector<double>& own : values.ours) {
        for (const std::vector<double>& other : values.theirs) {
          std::uint64_t better = 0, worse = 0;
          for (std::size_t job = plan.first(batch); job < plan.first(batch + 1); ++job) {
            better += own[job] < other[job] ? 1 : 0;
            worse += own[job] > other[job] ? 1 : 0;
          }
          better_.push_back(static_cast<double>(better));
          worse_.push_back(static_cast<double>(worse));
        }
      }
    }
  }

  // Every batch and run once.
  [[nodiscard]] Draw all() const {
    return {std::vector<std::uint32_t>(plan_.count, 1), std::vector<std::uint32_t>(ours_.runs(), 1),
            std::vector<std::uint32_t>(theirs_.runs(), 1)};
  }

  // Precondition: the draw is not empty.
  [[nodiscard]] EffectValues values(const Draw& draw) const {
    const auto own = ours_.weights(draw.batches, draw.our_runs), other = theirs_.weights(draw.batches, draw.their_runs);
    const std::uint64_t our_jobs = ours_.count(own), their_jobs = theirs_.count(other);
    Climb us(our_jobs), them(their_jobs);
    const double random =
        climb(us, own, them, other) / (static_cast<double>(our_jobs) * static_cast<double>(their_jobs));
    const auto [better, worse] = shares_off(draw);
    return {{{ours_.total(own) / static_cast<double>(our_jobs), theirs_.total(other) / static_cast<double>(their_jobs)},
             {us.trimmed(), them.trimmed()},
             {us.winsorised(), them.winsorised()},
             {us.quantile(0), them.quantile(0)},
             {us.quantile(1), them.quantile(1)},
             {us.quantile(2), them.quantile(2)},
             {better, worse},
             {random, 1 - random}}};
  }

  // Totals of `blocks` stretches of as many batches, over all runs.
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> totals(std::size_t blocks) const {
    std::pair<std::vector<double>, std::vector<double>> result;
    Draw draw = all();
    for (std::size_t block = 0; block < blocks; ++block) {
      for (std::size_t batch = 0; batch < plan_.count; ++batch) {
        draw.batches[batch] = batch * blocks / plan_.count == block ? 1 : 0;
      }
      result.first.push_back(ours_.total(ours_.weights(draw.batches, draw.our_runs)) /
                             static_cast<double>(ours_.runs()));
      result.second.push_back(theirs_.total(theirs_.weights(draw.batches, draw.their_runs)) /
                              static_cast<double>(theirs_.runs()));
    }
    return result;
  }

 private:
  // The pairs of jobs, one of each side, of which ours has the lower value, ties half.
  double climb(Climb& us, const std::vector<std::uint32_t>& own, Climb& them,
               const std::vector<std::uint32_t>& other) const {
    const auto& entries = ours_.entries();
    double pairs = 0;
    std::size_t next = 0;
    std::uint64_t at_or_below = 0;  // of ours, as each of theirs is passed
    std::uint64_t below = 0;
    double value_of_below = -1;
    for (const SortedSide::Entry& theirs : theirs_.entries()) {
      if (theirs.value != value_of_below) {
        for (; next < entries.size() && entries[next].value < theirs.value; ++next) {
          us.pass(entries[next].value, own[entries[next].unit]);
        }
        below = us.passed();
        for (; next < entries.size() && entries[next].value <= theirs.value; ++next) {
          us.pass(entries[next].value, own[entries[next].unit]);
        }
        at_or_below = us.passed();
        value_of_below = theirs.value;
      }
      const std::uint32_t times = other[theirs.unit];
      them.pass(theirs.value, times);
      pairs += times * (static_cast<double>(below) + static_cast<double>(at_or_below)) / 2;
    }
    for (; next < entries.size(); ++next) us.pass(entries[next].value, own[entries[next].unit]);
    return pairs;
  }

  // Of the jobs, and of pairs of runs.
  [[nodiscard]] std::pair<double, double> shares_off(const Draw& draw) const {
    double better = 0, worse = 0, all = 0;
    std::size_t at = 0;
    for (std::size_t batch = 0; batch < plan_.count; ++batch) {
      const auto jobs = static_cast<double>(plan_.first(batch + 1) - plan_.first(batch));
      for (const std::uint32_t own : draw.our_runs) {
        for (const std::uint32_t other : draw.their_runs) {
          const double times = static_cast<double>(draw.batches[batch]) * own * other;
          better += times * better_[at];
          worse += times * worse_[at++];
          all += times * jobs;
        }
      }
    }
    return {better / all, worse / all};
  }

  SortedSide ours_, theirs_;
  BatchPlan plan_;
  std::vector<double> better_, worse_;  // [batch][our run][their run]
};

// Of several draws the values of one effect, on the scale on which its interval lies: logarithms of ratios, or
// differences; above 0 where ours is larger.
std::vector<double> scaled(const std::vector<EffectValues>& draws, std::size_t effect, bool relative) {
  std::vector<double> result;
  for (const EffectValues& draw : draws) {
    const auto [ours, theirs] = draw[effect];
    result.push_back(relative ? std::log(ours / theirs) : ours - theirs);
  }
  return result;
}

bool all_above_zero(const std::vector<EffectValues>& draws, std::size_t effect) {
  return std::all_of(draws.begin(), draws.end(),
                     [effect](const EffectValues& draw) { return draw[effect].first > 0 && draw[effect].second > 0; });
}

double variance_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size());
}

// What the jackknife values of an effect say of its error.
struct Spread {
  double dependence = 1;  // how much more the variance is than that of independent batches
  double degrees_of_freedom = 1;
  double independent = 0;  // batches that they are worth
};

Spread spread_of(const std::vector<double>& jackknife) {
  const auto count = static_cast<double>(jackknife.size());
  const double variance = variance_of(jackknife), mean = mean_of(jackknife);
  if (variance <= 0) return {1, count - 1, count};
  double fourth = 0;
  for (const double value : jackknife) fourth += std::pow(value - mean, 4);
  const double kurtosis = fourth / count / (variance * variance);
  const double r = std::clamp(unbiased_autocorrelation(jackknife), 0.0, 0.9);
  const double worth = count * (1 - r) / (1 + r);
  const double freedom = 2 * worth / (kurtosis - (count - 3) / (count - 1));
  return {(1 + r) / (1 - r), std::clamp(freedom, 1.0, std::max(1.0, worth - 1)), worth};
}

// Sum of squared deviations of the values without one run each, as a jackknife weighs them; 0 for a single run.
double run_variance(const std::vector<double>& without_one) {
  const auto count = static_cast<double>(without_one.size());
  return without_one.size() < 2 ? 0 : variance_of(without_one) * (count - 1);
}

// Everything that an interval is made from.
struct Replicates {
  EffectValues seen{};
  std::vector<EffectValues> without_batch, without_our_run, without_their_run, resamples;

  [[nodiscard]] bool above_zero(std::size_t effect) const {
    return all_above_zero({seen}, effect) && all_above_zero(without_batch, effect) &&
           all_above_zero(without_our_run, effect) && all_above_zero(without_their_run, effect) &&
           all_above_zero(resamples, effect);
  }
};

std::vector<EffectValues> without_each(const PairedSides& sides, std::vector<std::uint32_t> Draw::*of) {
  std::vector<EffectValues> result;
  Draw draw = sides.all();
  if ((draw.*of).size() < 2) return result;
  for (std::uint32_t& times : draw.*of) {
    times = 0;
    result.push_back(sides.values(draw));
    times = 1;
  }
  return result;
}

void draw_again(std::vector<std::uint32_t>& times, Rng& rng) {
  if (times.size() == 1) return;
  std::fill(times.begin(), times.end(), 0u);
  for (std::size_t i = 0; i < times.size(); ++i) ++times[rng.below(times.size())];
}

Replicates replicates_of(const PairedSides& sides, Rng rng, std::uint32_t resamples) {
  Replicates result{.seen = sides.values(sides.all()),
                    .without_batch = without_each(sides, &Draw::batches),
                    .without_our_run = without_each(sides, &Draw::our_runs),
                    .without_their_run = without_each(sides, &Draw::their_runs),
                    .resamples = {}};
  Draw draw = sides.all();
  for (std::uint32_t i = 0; i < resamples; ++i) {
    draw_again(draw.batches, rng);
    draw_again(draw.our_runs, rng);
    draw_again(draw.their_runs, rng);
    result.resamples.push_back(sides.values(draw));
  }
  return result;
}

// The deviations of resamples from what was seen, ascending, as far as they are believed.
class Deviations {
 public:
  Deviations(const Replicates& replicates, std::size_t effect, bool relative) {
    seen_ = scaled({replicates.seen}, effect, relative).front();
    sizes_ = scaled(replicates.resamples, effect, relative);
    const double drawn = variance_of(sizes_);
    for (double& size : sizes_) size -= seen_;
    std::sort(sizes_.begin(), sizes_.end());
    spread_ = spread_of(scaled(replicates.without_batch, effect, relative));
    if (drawn <= 0) return;
    double of_runs = 0, drawn_of_runs = 0;
    double squares = 0;
    for (const auto* runs : {&replicates.without_our_run, &replicates.without_their_run}) {
      if (runs->empty()) continue;
      const double own = run_variance(scaled(*runs, effect, relative));
      const auto count = static_cast<double>(runs->size());
      of_runs += own;
      drawn_of_runs += own * (count - 1) / count;
      squares += own * own / (count - 1);
    }
    const auto batches = static_cast<double>(replicates.without_batch.size());
    const double of_batches = std::max(0.0, drawn - drawn_of_runs) * batches / (batches - 1) * spread_.dependence;
    const double whole = of_batches + of_runs;
    squares += of_batches * of_batches / spread_.degrees_of_freedom;
    const double freedom = std::max(1.0, whole * whole / squares);
    const double stretch = std::sqrt(whole / drawn) * student_t_quantile(freedom) / student_t_quantile(1e9);
    for (double& size : sizes_) size *= stretch;
  }

  [[nodiscard]] double seen() const { return seen_; }
  [[nodiscard]] const Spread& spread() const { return spread_; }
  [[nodiscard]] ConfidenceInterval interval(double level) const {
    return {seen_ + sizes_[tail(level) - 1], seen_ + sizes_[sizes_.size() - tail(level)]};
  }
  // Of the hypothesis that there is no difference.
  [[nodiscard]] double p() const {
    const auto beyond = static_cast<double>(std::count_if(
        sizes_.begin(), sizes_.end(), [&](double size) { return seen_ > 0 ? seen_ + size <= 0 : seen_ + size >= 0; }));
    return std::min(1.0, 2 * (beyond + 1) / static_cast<double>(sizes_.size() + 1));
  }

 private:
  [[nodiscard]] std::size_t tail(double level) const {
    const double places = (1 - level) / 2 * static_cast<double>(sizes_.size() + 1);
    return std::max<std::size_t>(1, static_cast<std::size_t>(places + 1e-9));
  }

  double seen_ = 0;
  Spread spread_;
  std::vector<double> sizes_;
};

ConfidenceInterval outward(const ConfidenceInterval& scaled_ends, bool relative) {
  if (!relative) return scaled_ends;
  return {std::expm1(scaled_ends.low), std::expm1(scaled_ends.high)};
}

// How many times as much log: an interval is as wide as the root of what it is made of.
std::optional<double> needed_log(const Deviations& deviations, std::size_t family) {
  if (deviations.seen() == 0) return std::nullopt;
  const ConfidenceInterval ends = deviations.interval(1 - 0.05 / static_cast<double>(std::max<std::size_t>(family, 1)));
  const double width = deviations.seen() > 0 ? deviations.seen() - ends.low : ends.high - deviations.seen();
  const double ratio = width / std::abs(deviations.seen());
  return ratio * ratio;
}

// Of the ratio of totals: wide enough for the sign-flip test.
void add_sign_flips(EffectEstimate& mean, const PairedSides& sides, const Spread& spread) {
  const auto blocks = static_cast<std::size_t>(spread.independent);
  if (blocks < least_test_blocks) {
    mean.interval.reset();
    mean.p = 1;
    return;
  }
  const auto [ours, theirs] = sides.totals(blocks);
  const SignFlips flips = sign_flip_test(ours, theirs);
  mean.p = std::max(mean.p, flips.p);
  if (!flips.relative) {
    mean.interval.reset();
    mean.needed.reset();
    return;
  }
  mean.interval->low = std::min(mean.interval->low, flips.relative->low);
  mean.interval->high = std::max(mean.interval->high, flips.relative->high);
}

}  // namespace

std::vector<EffectEstimate> job_effects(const JobValues& values, const BatchPlan& plan, std::size_t family, Rng rng,
                                        std::uint32_t resamples) {
  GPUSCHED_ASSERT(resamples >= 39, "a resample in each tail");
  const PairedSides sides(values, plan);
  const Replicates replicates = plan.enough() ? replicates_of(sides, rng, resamples)
                                              : Replicates{.seen = sides.values(sides.all()),
                                                           .without_batch = {},
                                                           .without_our_run = {},
                                                           .without_their_run = {},
                                                           .resamples = {}};
  std::vector<EffectEstimate> result;
  for (std::size_t effect = 0; effect < effect_count; ++effect) {
    const JobEffect kind = job_effect_names[effect].value;
    EffectEstimate estimate{.effect = kind,
                            .ours = replicates.seen[effect].first,
                            .theirs = replicates.seen[effect].second,
                            .relative = !is_share(kind) && replicates.above_zero(effect)};
    if (plan.enough()) {
      const Deviations deviations(replicates, effect, estimate.relative);
      estimate.interval = outward(deviations.interval(0.95), estimate.relative);
      estimate.p = deviations.p();
      estimate.needed = needed_log(deviations, family);
      if (kind == JobEffect::mean && estimate.relative) add_sign_flips(estimate, sides, deviations.spread());
    }
    result.push_back(estimate);
  }
  return result;
}

}  // namespace gpusched
