// SPDX-License-Identifier: Apache-2.0
/// How long an idle container of a function stays, which one goes when memory is short, and when one is loaded ahead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A function, as its containers' costs see it.
struct FunctionCosts {
  double memory_mb = 1;  ///< of a container; above 0
  double warm_s = 1;     ///< mean time of an invocation in a container that is there
  double cold_s = 1;     ///< the same with the container's start
};

/// What to do with a container that becomes idle.
struct KeepPlan {
  Time load_after{};         ///< above 0: end it now, and load one so long after
  Time until = Time::max();  ///< end it so long after it became idle; Time::max(): only when memory is short
};

/// A fixed time, as providers keep containers. Of idle ones the least recently invoked goes first when memory
/// is short.
class FixedKeepAlive {
 public:
  /// `span` from the last departure.
  explicit FixedKeepAlive(Time span = whole_seconds(600)) : span_(span) {}
  void invoked(std::uint32_t /*function*/, Time /*idle*/) {}                             ///< see KeepAlive
  void evicted(double /*rank*/) {}                                                       ///< see KeepAlive
  void gone(std::uint32_t /*function*/) {}                                               ///< see KeepAlive
  [[nodiscard]] KeepPlan plan(std::uint32_t /*function*/) const { return {{}, span_}; }  ///< see KeepAlive
  /// The instant: the least recently invoked has the least.
  [[nodiscard]] double rank(std::uint32_t /*function*/, const FunctionCosts& /*costs*/, Time now) const {
    return static_cast<double>(now.us);
  }

 private:
  Time span_;
};

/// FaasCache's GreedyDual (Fuerst and Sharma, ASPLOS 2021): priority = clock + frequency x (cold - warm) / memory, set
/// at each invocation; the clock is the priority of the last one evicted; frequency is the function's invocations since
/// its first container now alive. Nothing ends before memory is short.
class GreedyDualKeepAlive {
 public:
  /// Counts the invocation.
  void invoked(std::uint32_t function, Time /*idle*/) {
    if (frequency_.size() <= function) frequency_.resize(function + 1, 0);
    ++frequency_[function];
  }
  void evicted(double rank) { clock_ = std::max(clock_, rank); }                ///< moves the clock
  void gone(std::uint32_t function) { frequency_[function] = 0; }               ///< forgets the function
  [[nodiscard]] KeepPlan plan(std::uint32_t /*function*/) const { return {}; }  ///< for ever
  /// The priority.
  [[nodiscard]] double rank(std::uint32_t function, const FunctionCosts& costs, Time /*now*/) const {
    return clock_ + static_cast<double>(frequency_[function]) * (costs.cold_s - costs.warm_s) / costs.memory_mb;
  }

 private:
  double clock_ = 0;
  std::vector<std::int64_t> frequency_;
};

/// What HistogramKeepAlive is given.
struct HistogramOptions {
  /// When the histogram of a function's idle times is taken as it is.
  enum class Conditions : std::uint8_t {
    hybrid,     ///< Shahrad et al., ATC 2020: its bins' counts vary by 2 or more (standard deviation over mean) and at
                ///< most half of the idle times lie beyond it; there is no ARIMA for the other case
    faascache,  ///< Fuerst and Sharma, ASPLOS 2021: the idle times vary by at most 2
  };
  Conditions conditions = Conditions::hybrid;  ///< when it is taken
  std::int32_t bins = 240;                     ///< of it
  Time bin = whole_seconds(60);                ///< their width
  double head = .05;                           ///< quantile of idle times before which nothing is kept
  double tail = .99;                           ///< quantile after which nothing is kept
  double head_margin = .9;                     ///< times the head
  double tail_margin = 1.1;                    ///< times the tail
  std::int64_t least_samples = 5;              ///< below, it is not taken
  Time otherwise = whole_seconds(4 * 3600);    ///< fixed time where it is not taken (FaasCache: 2 h)
};

/// A histogram of idle times a function: its container ends at once and is loaded again at 0.9 x the head of the idle
/// times (rounded down to a bin; nothing is ended where that is 0), and stays until 1.1 x their tail (rounded up).
class HistogramKeepAlive {
 public:
  /// By options.
  explicit HistogramKeepAlive(const HistogramOptions& options = {}) : options_(options) {}

  /// Counts an idle time; below 0: there was none.
  void invoked(std::uint32_t function, Time idle) {
    if (functions_.size() <= function) functions_.resize(function + 1);
    if (idle.us < 0) return;
    Idle& of = functions_[function];
    if (of.counts.empty()) of.counts.resize(static_cast<std::size_t>(options_.bins), 0);
    const std::int64_t bin = idle.us / options_.bin.us;
    if (bin < options_.bins) {
      of.squares += 2 * of.counts[bin] + 1;
      ++of.counts[bin];
      ++of.inside;
    } else {
      ++of.beyond;
    }
    const double seconds = to_seconds(idle), before = of.mean;
    const auto count = static_cast<double>(of.inside + of.beyond);
    of.mean += (seconds - before) / count;
    of.spread += (seconds - before) * (seconds - of.mean);
  }
  void evicted(double /*rank*/) {}          ///< see KeepAlive
  void gone(std::uint32_t /*function*/) {}  ///< see KeepAlive
  /// O(bins).
  [[nodiscard]] KeepPlan plan(std::uint32_t function) const {
    const Idle& of = functions_[function];
    if (!is_taken(of)) return {{}, options_.otherwise};
    const std::int64_t head = bin_of(of, options_.head) * options_.bin.us;
    const std::int64_t tail = (bin_of(of, options_.tail) + 1) * options_.bin.us;
    return {{static_cast<std::int64_t>(options_.head_margin * static_cast<double>(head))},
            {static_cast<std::int64_t>(options_.tail_margin * static_cast<double>(tail))}};
  }
  /// The instant: the least recently invoked has the least.
  [[nodiscard]] double rank(std::uint32_t /*function*/, const FunctionCosts& /*costs*/, Time now) const {
    return static_cast<double>(now.us);
  }

 private:
  struct Idle {
    std::vector<std::int64_t> counts;
    std::int64_t inside = 0, beyond = 0;
    std::int64_t squares = 0;     // of the counts
    double mean = 0, spread = 0;  // of the times; the sum of squared distances from it
  };

  [[nodiscard]] bool is_taken(const Idle& of) const {
    const std::int64_t all = of.inside + of.beyond;
    if (of.inside == 0 || all < options_.least_samples) return false;
    if (options_.conditions == HistogramOptions::Conditions::faascache) {
      return std::sqrt(of.spread / static_cast<double>(all)) <= 2 * of.mean;
    }
    const double bins = options_.bins, mean = static_cast<double>(of.inside) / bins;
    const double variance = static_cast<double>(of.squares) / bins - mean * mean;
    return 2 * of.beyond <= all && std::sqrt(std::max(variance, 0.0)) >= 2 * mean;
  }
  // The bin that holds a quantile of the times inside.
  static std::int64_t bin_of(const Idle& of, double quantile) {
    const double wanted = quantile * static_cast<double>(of.inside);
    std::int64_t below = 0;
    for (std::size_t bin = 0; bin < of.counts.size(); ++bin) {
      below += of.counts[bin];
      if (below > 0 && static_cast<double>(below) >= wanted) return static_cast<std::int64_t>(bin);
    }
    return static_cast<std::int64_t>(of.counts.size()) - 1;
  }

  HistogramOptions options_;
  std::vector<Idle> functions_;
};

/// One of the rules, as a value. Each has: invoked(function, idle), at each invocation, with the time since the
/// function's last one ended (below 0: it ran or never had); plan(function), when a container becomes idle;
/// rank(function, costs, now), at each invocation: of idle containers that of the least rank goes first when memory is
/// short; evicted(rank) then; gone(function), when its last container ended.
using KeepAlive = std::variant<FixedKeepAlive, GreedyDualKeepAlive, HistogramKeepAlive>;

}  // namespace gpusched
