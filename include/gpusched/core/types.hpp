// SPDX-License-Identifier: Apache-2.0
/// Core value types: time, ids and quantities. Every quantity is an integer, so that order and sums are exact.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "gpusched/core/config.hpp"

namespace gpusched {

/// An instant since the start of the simulation, or a span between two instants, in microseconds.
/// 64 bits hold 292,000 years, twice what simulated time uses (end_of_time).
struct Time {
  std::int64_t us = 0;  ///< microseconds

  /// Later than every instant a simulation can reach; "never" and "unknown" are spelled with it.
  static constexpr Time max() { return {std::numeric_limits<std::int64_t>::max()}; }

  /// Exact comparison, sum and difference of microseconds; sums are not checked for overflow.
  /// \{
  friend constexpr auto operator<=>(const Time&, const Time&) = default;  // NOLINT(modernize-use-nullptr): as Shape's
  friend constexpr Time operator+(Time a, Time b) { return {a.us + b.us}; }
  friend constexpr Time operator-(Time a, Time b) { return {a.us - b.us}; }
  constexpr Time& operator+=(Time b) {
    us += b.us;
    return *this;
  }
  constexpr Time& operator-=(Time b) {
    us -= b.us;
    return *this;
  }
  /// \}
};

inline constexpr std::int64_t microseconds_per_second = 1'000'000;  ///< the unit of Time

/// `span` after `t`, or Time::max() when that is beyond what 64 bits tell. Precondition: span >= 0.
constexpr Time later_by(Time t, Time span) {
  return t.us > 0 && span.us > Time::max().us - t.us ? Time::max() : t + span;
}

/// Nearest microsecond to `s` seconds, halves away from zero. Precondition: |s| < 9.2e12.
inline Time from_seconds(double s) {
  return {static_cast<std::int64_t>(std::llround(s * static_cast<double>(microseconds_per_second)))};
}

/// `s` seconds, exactly. Precondition: |s| < 9.2e12.
constexpr Time whole_seconds(std::int64_t s) { return {s * microseconds_per_second}; }

/// Simulated time lies between minus and plus this, 146,000 years, so that the difference of two instants fits. What a
/// run plans for later never happens.
inline constexpr Time end_of_time = whole_seconds(4'600'000'000'000);

/// Seconds as a double: exact to a microsecond up to 285 years.
constexpr double to_seconds(Time t) { return static_cast<double>(t.us) / static_cast<double>(microseconds_per_second); }

/// Position of a job in its JobTable: 0 is the earliest submitted.
enum class JobId : std::uint32_t {};
/// Position of a node in its Cluster.
enum class NodeId : std::uint32_t {};

/// The column index of an id.
constexpr std::uint32_t index(JobId id) { return static_cast<std::uint32_t>(id); }
/// The column index of an id.
constexpr std::uint32_t index(NodeId id) { return static_cast<std::uint32_t>(id); }

inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();  ///< "none" among indexes
inline constexpr JobId no_job{no_index};    ///< no job: the job of a wake event
inline constexpr NodeId no_node{no_index};  ///< no node: the gang fits nowhere

/// Thousandths of one GPU; a whole GPU is 1000.
using MilliGpu = std::int64_t;

/// A capacity or quota without a bound; two of them still add up within 64 bits.
inline constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;
inline constexpr MilliGpu whole_gpu = 1000;  ///< thousandths in one GPU

/// Of storage: 1 GiB is 2^30 bytes.
inline constexpr double bytes_per_gib = 1024.0 * 1024 * 1024;

/// Of energy: 1 kWh is 3.6 MJ.
inline constexpr double joules_per_kwh = 3.6e6;

/// a * b / c rounded down, without overflow in between; the largest integer when the result does not fit.
/// Preconditions: a, b >= 0, c > 0.
constexpr std::int64_t mul_div(std::int64_t a, std::int64_t b, std::int64_t c) {
  __extension__ using Wide = __int128;
  const Wide quotient = static_cast<Wide>(a) * b / c;
  return quotient > Time::max().us ? Time::max().us : static_cast<std::int64_t>(quotient);
}

/// a * b / c rounded up, likewise.
constexpr std::int64_t mul_div_up(std::int64_t a, std::int64_t b, std::int64_t c) {
  __extension__ using Wide = __int128;
  const Wide quotient = (static_cast<Wide>(a) * b + (c - 1)) / c;
  return quotient > Time::max().us ? Time::max().us : static_cast<std::int64_t>(quotient);
}

}  // namespace gpusched
