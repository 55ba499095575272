// SPDX-License-Identifier: Apache-2.0
/// RecentRuns: run times guessed from jobs that have finished, of which the latest count most.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/core/config.hpp"

namespace gpusched {

/// Weights that halve with every so many events, without touching what was added before: what comes later weighs more
/// instead. A value.
class FadingWeight {
 public:
  /// Nothing fades.
  FadingWeight() = default;
  /// `half_life`: events; 0: nothing fades.
  explicit FadingWeight(double half_life) : growth_(half_life > 0 ? std::exp2(1 / half_life) : 1) {}

  /// One more event; what is added before the next weighs now().
  void step() { now_ *= growth_; }
  /// The weight of what is added now. All that was added is to be divided by it.
  [[nodiscard]] double now() const { return now_; }
  /// Whether renew() is due, before now() leaves the range of numbers.
  [[nodiscard]] bool is_due() const { return now_ > 1e150; }
  /// Begins anew at 1; everything that was added is to be multiplied by what this returns.
  double renew() { return 1 / std::exchange(now_, 1.0); }

 private:
  double growth_ = 1, now_ = 1;
};

/// Means of the logarithm of run times, over ten half-lives for everybody, refined by virtual cluster, by virtual
/// cluster and shape, and by user; then over one half-life and over a tenth of it by virtual cluster, shape and user
/// together. Each level is shrunk towards the one before with the weight of `prior_jobs` jobs that finished just now.
/// Time is counted in finished jobs, so that a trace twice as fast is predicted alike. Its guess is the geometric mean,
/// as RuntimePredictor's. A value; O(log kinds) a job; ids are those of one JobTable (or of tables sliced from it).
class RecentRuns {
 public:
  static constexpr double prior_jobs = 4;  ///< weight of the level before, in jobs

  /// Finished jobs after which one counts half. Precondition: above 0.
  explicit RecentRuns(double half_life_jobs) {
    GPUSCHED_ASSERT(half_life_jobs > 0, "a half-life");
    for (const Span span : {slow, plain, fast}) weights_[span] = FadingWeight(half_life_jobs * spans[span]);
  }

  /// Learns that a job of this virtual cluster, shape and user ran `seconds`.
  void learn(std::uint32_t vc, std::uint32_t shape, std::uint32_t user, double seconds) {
    for (FadingWeight& weight : weights_) weight.step();
    const double value = std::log1p(seconds);
    const auto add = [this, &value](Span span, Mean& mean) {
      const double weight = weights_[span].now();
      mean.jobs += weight;
      mean.sum += weight * value;
    };
    add(slow, all_);
    add(slow, at(by_vc_, vc));
    add(slow, by_shape_[{vc, shape}]);
    if (user != 0) add(slow, at(by_user_, user));
    Kind& kind = by_kind_[{vc, shape, user}];
    add(plain, kind.plain);
    add(fast, kind.fast);
    for (const Span span : {slow, plain, fast}) {
      if (weights_[span].is_due()) renew(span);
    }
  }

  /// Seconds; 0 before any job finished.
  [[nodiscard]] double predict_seconds(std::uint32_t vc, std::uint32_t shape, std::uint32_t user) const {
    if (all_.jobs == 0) return 0;
    double guess = all_.sum / all_.jobs;
    const auto refine = [this, &guess](Span span, const Mean& mean) {
      if (mean.jobs == 0) return;
      const double prior = prior_jobs * weights_[span].now();
      guess = (mean.sum + prior * guess) / (mean.jobs + prior);
    };
    if (vc < by_vc_.size()) refine(slow, by_vc_[vc]);
    if (const auto found = by_shape_.find({vc, shape}); found != by_shape_.end()) refine(slow, found->second);
    if (user < by_user_.size()) refine(slow, by_user_[user]);
    if (const auto found = by_kind_.find({vc, shape, user}); found != by_kind_.end()) {
      refine(plain, found->second.plain);
      refine(fast, found->second.fast);
    }
    return std::expm1(guess);
  }

 private:
  enum Span : std::uint8_t { slow, plain, fast };
  static constexpr std::array<double, 3> spans{10, 1, 0.1};  // in half-lives
  struct Mean {
    double jobs = 0, sum = 0;  // weights; jobs 0: of none
  };
  struct Kind {
    Mean plain, fast;
  };

  static Mean& at(std::vector<Mean>& means, std::uint32_t id) {
    if (id >= means.size()) means.resize(std::size_t{id} + 1);
    return means[id];
  }

  void renew(Span span) {
    const double factor = weights_[span].renew();
    const auto fade = [factor](Mean& mean) {
      mean.jobs *= factor;
      mean.sum *= factor;
    };
    if (span == slow) {
      fade(all_);
      std::ranges::for_each(by_vc_, fade);
      std::ranges::for_each(by_user_, fade);
      for (auto& [key, mean] : by_shape_) fade(mean);
    }
    for (auto& [key, kind] : by_kind_) {
      if (span != slow) fade(span == plain ? kind.plain : kind.fast);
    }
  }

  std::array<FadingWeight, 3> weights_;
  Mean all_;
  std::vector<Mean> by_vc_, by_user_;                      // user 0 is "unknown": nobody's
  std::map<std::array<std::uint32_t, 2>, Mean> by_shape_;  // virtual cluster, shape
  std::map<std::array<std::uint32_t, 3>, Kind> by_kind_;   // virtual cluster, shape, user
};

}  // namespace gpusched
