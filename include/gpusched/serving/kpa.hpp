// SPDX-License-Identifier: Apache-2.0
/// The pod autoscaler of Knative with its default configuration (knative.dev, "Configuring concurrency";
/// pkg/autoscaler/scaling of its source).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What Kpa is given.
struct KpaOptions {
  ReplicaLimits limits{.least = 0};        ///< of the answer
  double concurrency = 100;                ///< requests that a replica may hold; above 0
  double utilisation = 0.7;                ///< the part of that which is aimed at; above 0
  Time stable_window = whole_seconds(60);  ///< over which concurrency is averaged
  Time panic_window = whole_seconds(6);    ///< the same, for a sudden rise
  double panic_threshold = 2;              ///< panic when the short window wants so many times what is ready
  double most_up = 1000;                   ///< times the ready replicas, at a time
  double most_down = 2;                    ///< the ready replicas over this are the fewest, at a time; from 1
  Time to_zero_after = whole_seconds(30);  ///< the last replica stays so long when none is wanted any more
  Time period = whole_seconds(2);          ///< between two answers
};

/// ceil(mean concurrency / (70 % of what a replica may hold)) over 60 s; over 6 s, and never down, while that is at
/// least twice what is ready and for 60 s after. The last replica ends when none was wanted for 30 s. A request that
/// finds no replica asks for one at once, whatever the period.
class Kpa {
 public:
  /// By options.
  explicit Kpa(const KpaOptions& options = {}) : options_(options), history_(options.stable_window) {}

  /// The number of replicas wanted.
  [[nodiscard]] std::int32_t wanted(const ServiceLoad& load) {
    const bool wakes = last_.answer == 0 && load.held() > 0;
    if (last_.stands(load.now) && !wakes) return last_.answer;
    history_.add(load);
    const std::int64_t ready = std::max<std::int64_t>(load.ready, 1);
    const std::int64_t most = ceiling(options_.most_up * static_cast<double>(ready));
    const auto least = static_cast<std::int64_t>(std::floor(static_cast<double>(load.ready) / options_.most_down));
    const std::int64_t in_panic_window = wish(options_.panic_window, load);
    const std::int64_t stable = std::min(std::max(wish(options_.stable_window, load), least), most);
    const std::int64_t sudden = std::min(std::max(in_panic_window, least), most);
    const bool rises = static_cast<double>(in_panic_window) >= options_.panic_threshold * static_cast<double>(ready);
    if (rises) {
      if (!panics_) most_in_panic_ = 0;
      panics_ = true;
      panic_until_ = load.now + options_.stable_window;
    } else if (panics_ && panic_until_ < load.now) {
      panics_ = false;
    }
    std::int64_t count = stable;
    if (panics_) count = most_in_panic_ = std::max({most_in_panic_, stable, sudden, std::int64_t{load.ready}});
    if (wakes) count = std::max<std::int64_t>(count, 1);
    return last_.give(options_.limits.clamp(kept_from_zero(count, load)), load.now, options_.period);
  }
  /// How often it is to be asked.
  [[nodiscard]] Time period() const { return options_.period; }
  /// Whether the short window rules.
  [[nodiscard]] bool panics() const { return panics_; }

 private:
  static std::int64_t ceiling(double x) { return static_cast<std::int64_t>(std::min(std::ceil(x), 1e9)); }
  [[nodiscard]] std::int64_t wish(Time window, const ServiceLoad& load) const {
    return ceiling(history_.mean_held(window, load) / (options_.concurrency * options_.utilisation));
  }
  // The last replica stays for a while.
  std::int64_t kept_from_zero(std::int64_t count, const ServiceLoad& load) {
    if (count > 0) {
      none_wanted_since_ = Time::max();
      return count;
    }
    if (load.replicas() == 0) return load.held() > 0 ? 1 : 0;
    if (none_wanted_since_ == Time::max()) none_wanted_since_ = load.now;
    return load.now - none_wanted_since_ >= options_.to_zero_after ? 0 : 1;
  }

  KpaOptions options_;
  LoadHistory history_;
  AnswerPeriod last_;
  bool panics_ = false;
  Time panic_until_{}, none_wanted_since_ = Time::max();
  std::int64_t most_in_panic_ = 0;
};

}  // namespace gpusched
