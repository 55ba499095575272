// SPDX-License-Identifier: Apache-2.0
/// RecentRuns: run times guessed from jobs that have finished, of which the latest count most.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

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
    for_each_level(vc, shape, user, [&](Span span, const Key& key) {
      const double weight = weights_[span].now();
      Mean& mean = means_[key];
      mean.jobs += weight;
      mean.sum += weight * value;
    });
    for (const Span span : {slow, plain, fast}) {
      if (weights_[span].is_due()) renew(span);
    }
  }

  /// Seconds; 0 before any job finished.
  [[nodiscard]] double predict_seconds(std::uint32_t vc, std::uint32_t shape, std::uint32_t user) const {
    double guess = 0;
    for_each_level(vc, shape, user, [&](Span span, const Key& key) {
      const auto found = means_.find(key);
      if (found == means_.end()) return;
      const double prior = key[0] == all ? 0 : prior_jobs * weights_[span].now();
      guess = (found->second.sum + prior * guess) / (found->second.jobs + prior);
    });
    return std::expm1(guess);
  }

 private:
  enum Span : std::uint8_t { slow, plain, fast };
  static constexpr std::array<double, 3> spans{10, 1, 0.1};  // in half-lives
  enum By : std::uint32_t { all, by_vc, by_shape, by_user, by_kind, by_latest_of_kind };
  using Key = std::array<std::uint32_t, 4>;  // By, virtual cluster, shape, user
  struct Mean {
    double jobs = 0, sum = 0;
  };

  // From everybody to those most alike. User 0 is "unknown": nobody's.
  template <class Visit>
  static void for_each_level(std::uint32_t vc, std::uint32_t shape, std::uint32_t user, Visit visit) {
    visit(slow, Key{all, 0, 0, 0});
    visit(slow, Key{by_vc, vc, 0, 0});
    visit(slow, Key{by_shape, vc, shape, 0});
    if (user != 0) visit(slow, Key{by_user, 0, 0, user});
    visit(plain, Key{by_kind, vc, shape, user});
    visit(fast, Key{by_latest_of_kind, vc, shape, user});
  }
  static Span span_of(const Key& key) { return key[0] == by_kind ? plain : key[0] == by_latest_of_kind ? fast : slow; }

  void renew(Span span) {
    const double factor = weights_[span].renew();
    for (auto& [key, mean] : means_) {
      if (span_of(key) != span) continue;
      mean.jobs *= factor;
      mean.sum *= factor;
    }
  }

  std::array<FadingWeight, 3> weights_;
  std::map<Key, Mean> means_;
};

}  // namespace gpusched
