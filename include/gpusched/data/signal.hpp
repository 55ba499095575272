// SPDX-License-Identifier: Apache-2.0
/// Signal: a quantity of the world outside that changes with time: carbon intensity, a price, a power budget, a rate of
/// requests. Forecast: what somebody who does not know the future takes it to be.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// A step function of time: each value holds from its instant to the next one's; the first holds before it, too, and
/// the last for ever. Values are kept as whole millionths of the signal's unit, so that sums and integrals are exact.
/// Immutable while a run lasts.
class Signal {
 public:
  /// Sums of millionths times microseconds exceed 64 bits.
  __extension__ using WideInt = __int128;

  /// From `time` on.
  struct Step {
    Time time{};             ///< when the value begins
    std::int64_t micro = 0;  ///< the value, in millionths of the unit
  };

  /// 0 at all times.
  Signal() = default;
  /// One value at all times.
  explicit Signal(double value) : Signal(std::vector<Step>{{Time{}, to_micro(value)}}) {}
  /// Precondition: at least one step, times strictly ascending.
  explicit Signal(std::vector<Step> steps) : steps_(std::move(steps)), before_(steps_.size()) {
    for (const Step& step : steps_) sum_ += step.micro;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      GPUSCHED_ASSERT(steps_[i - 1].time < steps_[i].time, "a signal's times must ascend");
      before_[i] = before_[i - 1] + over(steps_[i - 1].micro, steps_[i].time - steps_[i - 1].time);
    }
  }

  /// Nearest millionth of a value. Precondition: |value| < 9.2e12.
  static std::int64_t to_micro(double value) { return std::llround(value * 1e6); }

  /// True when nothing was given: 0 at all times.
  [[nodiscard]] bool is_empty() const { return steps_.empty(); }
  /// The steps, by time.
  [[nodiscard]] std::span<const Step> steps() const { return steps_; }
  /// The value at `t`, in millionths. O(log steps), as the others.
  [[nodiscard]] std::int64_t micro_at(Time t) const { return steps_.empty() ? 0 : steps_[step_at(t)].micro; }
  /// The value at `t`.
  [[nodiscard]] double at(Time t) const { return static_cast<double>(micro_at(t)) / 1e6; }
  /// When it changes next, after `t`; Time::max(): never.
  [[nodiscard]] Time next_change(Time t) const {
    const auto next = std::upper_bound(steps_.begin(), steps_.end(), t, before);
    return next == steps_.end() ? Time::max() : next->time;
  }
  /// The integral from `begin` to `end`, in millionths of the unit times microseconds: exact. Precondition: begin <=
  /// end.
  [[nodiscard]] WideInt integral(Time begin, Time end) const {
    return steps_.empty() ? 0 : from_first(end) - from_first(begin);
  }
  /// The integral from the first step to `t`, for instants that ascend: `step` holds where the last call ended, at
  /// first 0. O(1) amortised.
  [[nodiscard]] WideInt integral_to(Time t, std::size_t& step) const {
    if (steps_.empty()) return 0;
    while (step + 1 < steps_.size() && steps_[step + 1].time <= t) ++step;
    return before_[step] + over(steps_[step].micro, t - steps_[step].time);
  }
  /// The mean of the values of the steps, however long they hold.
  [[nodiscard]] double mean() const {
    return steps_.empty() ? 0 : static_cast<double>(sum_) / (1e6 * static_cast<double>(steps_.size()));
  }
  /// The smallest value.
  [[nodiscard]] std::int64_t least_micro() const {
    std::int64_t least = steps_.empty() ? 0 : steps_.front().micro;
    for (const Step& step : steps_) least = std::min(least, step.micro);
    return least;
  }
  /// Number of the step that holds at `t`. Precondition: not empty.
  [[nodiscard]] std::size_t step_at(Time t) const {
    const auto next = std::upper_bound(steps_.begin(), steps_.end(), t, before);
    return next == steps_.begin() ? 0 : static_cast<std::size_t>(next - steps_.begin() - 1);
  }

 private:
  static bool before(Time t, const Step& step) { return t < step.time; }
  static WideInt over(std::int64_t micro, Time span) { return WideInt{micro} * span.us; }
  // From the first step, which may be later than `t`.
  [[nodiscard]] WideInt from_first(Time t) const {
    const std::size_t step = step_at(t);
    return before_[step] + over(steps_[step].micro, t - steps_[step].time);
  }

  std::vector<Step> steps_;
  std::vector<WideInt> before_;  // by step: the integral from the first step to this one
  WideInt sum_ = 0;              // of the steps' values
};

/// How the future of a signal is told to those who decide.
struct Forecast {
  /// What is known of it.
  enum class Kind : std::uint8_t {
    perfect,      ///< the truth, which nobody has: reports mark it
    persistence,  ///< as a whole number of days before, as few as possible
    noisy,        ///< the truth and, for each step, a normal error of its own
  };
  Kind kind = Kind::persistence;  ///< how it is told
  double sigma = 0.05;            ///< of noisy: standard deviation of the error, as a part of the signal's mean
  std::uint64_t seed = 0;         ///< of noisy

  /// The value expected at `t` by somebody at `now`, to whom what was until `now` is known.
  [[nodiscard]] double at(const Signal& signal, Time now, Time t) const {
    if (t <= now || signal.is_empty() || kind == Kind::perfect) return signal.at(t);
    if (kind == Kind::persistence) {
      constexpr std::int64_t day_us = 86'400 * microseconds_per_second;
      const std::int64_t days = ((t - now).us + day_us - 1) / day_us;
      return signal.at(t - Time{days * day_us});
    }
    const std::size_t step = signal.step_at(t);
    if (step == signal.step_at(now)) return signal.at(t);
    Rng rng = Rng(seed).split("forecast").split(step);
    return signal.at(t) + sigma * signal.mean() * rng.normal();
  }

  friend bool operator==(const Forecast&, const Forecast&) = default;  ///< alike in all
};

/// The name of each way to tell the future of a signal.
inline constexpr std::array<NamedValue<Forecast::Kind>, 3> forecast_names{{
    {"persistence", Forecast::Kind::persistence},
    {"perfect", Forecast::Kind::perfect},
    {"noisy", Forecast::Kind::noisy},
}};

}  // namespace gpusched
