// SPDX-License-Identifier: Apache-2.0
/// What a rule that sets the number of replicas is told, and means of it over windows of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// The state of a service at an instant. Counters run from the begin of the service, so that each rule takes the
/// windows it wants.
struct ServiceLoad {
  Time now{};                  ///< the instant; does not fall between two calls
  std::int32_t ready = 0;      ///< replicas that serve
  std::int32_t starting = 0;   ///< replicas that are asked for or load
  std::int64_t in_flight = 0;  ///< requests in service
  std::int64_t queued = 0;     ///< requests that wait, wherever they do
  std::int64_t arrived = 0;    ///< requests until now
  std::int64_t held_us = 0;    ///< integral until now of requests in service or waiting, in request-microseconds
  double mean_service_s = 0;   ///< of the requests served so far, or what is expected; 0: unknown

  /// Replicas that exist or come.
  [[nodiscard]] std::int32_t replicas() const { return ready + starting; }
  /// Requests in the system.
  [[nodiscard]] std::int64_t held() const { return in_flight + queued; }
};

/// The least and most that a rule may answer.
struct ReplicaLimits {
  std::int32_t least = 1;    ///< from 0
  std::int32_t most = 1000;  ///< from `least`

  /// `count` within them.
  [[nodiscard]] std::int32_t clamp(std::int64_t count) const {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, least, most));
  }
};

/// When a rule was asked, and what it answered: until its period is over it answers as before.
struct AnswerPeriod {
  bool asked = false;       ///< it was asked at least once
  Time next{};              ///< from when on it looks again
  std::int32_t answer = 0;  ///< its last one

  /// True when the last answer stands at `now`.
  [[nodiscard]] bool stands(Time now) const { return asked && now < next; }
  /// Answers `replicas` at `now`, for `period`.
  std::int32_t give(std::int32_t replicas, Time now, Time period) {
    asked = true;
    next = now + period;
    return answer = replicas;
  }
};

/// The numbers of replicas that a rule wished for lately.
class LatestWishes {
 public:
  /// Adds one of `now`, which does not fall; those of `window` before and earlier are forgotten.
  void add(Time now, std::int32_t replicas, Time window) {
    while (!wishes_.empty() && wishes_.front().time <= now - window) wishes_.pop_front();
    wishes_.push_back({now, replicas});
  }
  /// The largest. Precondition: one was added.
  [[nodiscard]] std::int32_t largest() const {
    const auto fewer = [](const Wish& a, const Wish& b) { return a.replicas < b.replicas; };
    return std::max_element(wishes_.begin(), wishes_.end(), fewer)->replicas;
  }

 private:
  struct Wish {
    Time time;
    std::int32_t replicas;
  };
  std::deque<Wish> wishes_;
};

/// The counters of a service at the instants at which a rule was asked.
class LoadHistory {
 public:
  /// Keeps what is needed for windows up to `longest`.
  explicit LoadHistory(Time longest = whole_seconds(60)) : longest_(longest) {}

  /// Adds the present. The first call also counts what arrived before it, at the same instant.
  void add(const ServiceLoad& load) {
    if (points_.empty()) points_.push_back({load.now, 0, load.held_us});
    points_.push_back({load.now, load.arrived, load.held_us});
    while (points_.size() > 2 && points_[1].time <= load.now - longest_) points_.pop_front();
  }
  /// Arrivals in the last `window` (from the last instant known at or before its begin).
  [[nodiscard]] std::int64_t arrivals(Time window) const {
    return points_.empty() ? 0 : points_.back().arrived - begin(window).arrived;
  }
  /// Arrivals a second in the last `window`, or since the first instant known where that is later; 0 before time
  /// passed.
  [[nodiscard]] double rate(Time window) const {
    const Time span = known(window);
    return span.us > 0 ? static_cast<double>(arrivals(window)) / to_seconds(span) : 0;
  }
  /// Mean number of requests in service or waiting in the last `window`, likewise; the present one before time passed.
  [[nodiscard]] double mean_held(Time window, const ServiceLoad& load) const {
    const Time span = known(window);
    if (span.us <= 0) return static_cast<double>(load.held());
    return static_cast<double>(points_.back().held_us - begin(window).held_us) / static_cast<double>(span.us);
  }

 private:
  struct Point {
    Time time;
    std::int64_t arrived, held_us;
  };
  // The latest point at or before the begin of the window, else the first.
  [[nodiscard]] const Point& begin(Time window) const {
    const Time from = points_.back().time - window;
    const auto after = std::upper_bound(points_.begin(), points_.end(), from,
                                        [](Time t, const Point& point) { return t < point.time; });
    return after == points_.begin() ? points_.front() : *(after - 1);
  }
  [[nodiscard]] Time known(Time window) const {
    return points_.empty() ? Time{} : points_.back().time - begin(window).time;
  }

  Time longest_;
  std::deque<Point> points_;
};

}  // namespace gpusched
