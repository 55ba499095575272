// SPDX-License-Identifier: Apache-2.0
/// KineticTournament: the first of a set of waiting jobs in an order that may change as they wait, without sorting.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A waiting job's place in an order.
struct Claim {
  double weight = 0;  ///< fixed order: the score, smallest first. Ageing order: growth per second of waiting, > 0
  Time submit{};
  JobId job = no_job;
  std::uint32_t number = 0;  ///< of its place (QueuePlace), for ties
};

namespace detail {

// Of claims that may be equal: aligns the mantissas.
GPUSCHED_RARE inline int compare_close_growth(const Claim& a, const Claim& b, Time now) {
  const std::int64_t wait_a = (now - a.submit).us;
  const std::int64_t wait_b = (now - b.submit).us;
  if (wait_a == 0 || wait_b == 0) return (wait_a > 0 ? 1 : 0) - (wait_b > 0 ? 1 : 0);
  __extension__ using Wide = unsigned __int128;
  int exponent_a = 0;
  int exponent_b = 0;
  const auto mantissa = [](double weight, int& exponent) {
    return static_cast<std::uint64_t>(std::ldexp(std::frexp(weight, &exponent), 53));
  };
  Wide wide_a = Wide{mantissa(a.weight, exponent_a)} * static_cast<std::uint64_t>(wait_a);
  Wide wide_b = Wide{mantissa(b.weight, exponent_b)} * static_cast<std::uint64_t>(wait_b);
  // The products agree to 1e-14, so that aligning the exponents shifts the narrower one to about the width of the
  // other.
  if (exponent_a > exponent_b) wide_a <<= exponent_a - exponent_b;
  if (exponent_b > exponent_a) wide_b <<= exponent_b - exponent_a;
  return wide_a > wide_b ? 1 : wide_a < wide_b ? -1 : 0;
}

/// Sign of a.weight x (now - a.submit) - b.weight x (now - b.submit), exactly: products of a 53-bit mantissa and a
/// 63-bit time fit 128 bits. Preconditions: weights positive and finite, neither claim submitted after now.
inline int compare_growth(const Claim& a, const Claim& b, Time now) {
  const double product_a = a.weight * static_cast<double>((now - a.submit).us);
  const double product_b = b.weight * static_cast<double>((now - b.submit).us);
  constexpr double clear = 1 + 1e-14;  // beyond the rounding of the three operations
  if (product_a > product_b * clear) return 1;
  if (product_b > product_a * clear) return -1;
  return compare_close_growth(a, b, now);
}

}  // namespace detail

/// Which of two claims comes first, and for how long.
struct ClaimOrder {
  bool ages = false;

  /// True when `a` comes before `b` at `now`; ties go to the earlier place.
  [[nodiscard]] GPUSCHED_HOT bool before(const Claim& a, const Claim& b, Time now) const {
    if (!ages) return a.weight != b.weight ? a.weight < b.weight : came_before(a, b);
    const int sign = detail::compare_growth(a, b, now);
    return sign != 0 ? sign > 0 : came_before(a, b);
  }
  [[nodiscard]] static bool came_before(const Claim& a, const Claim& b) {
    return a.number != b.number ? a.number < b.number : index(a.job) < index(b.job);
  }

  /// An instant after `now` and not after the one at which `behind` overtakes.
  [[nodiscard]] Time overtaking(const Claim& ahead, const Claim& behind, Time now) const {
    if (!ages || behind.weight <= ahead.weight) return Time::max();
    const double head_start = static_cast<double>((behind.submit - ahead.submit).us);
    const double wait = ahead.weight * head_start / (behind.weight - ahead.weight);
    constexpr double early = 1 - 1e-12;  // beyond the rounding of the line above
    constexpr double never = 9e18;
    if (wait * early >= never - static_cast<double>(behind.submit.us)) return Time::max();
    const Time crossing = behind.submit + Time{static_cast<std::int64_t>(wait * early) - 1};
    return std::max(crossing, now + Time{1});
  }
};

/// A tournament tree over claims. In an ageing order every claim is a line in time, and two lines cross at most once;
/// each match therefore holds until a computed instant, and only matches whose instant has passed are played again
/// (a kinetic segment tree). push, erase: O(log n). first: O(1) in a fixed order; in an ageing order O(log^2 n)
/// amortised over the crossings, each of which is paid once.
class KineticTournament {
 public:
  explicit KineticTournament(bool ages = false) : order_{ages} {}

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] bool before(const Claim& a, const Claim& b, Time now) const { return order_.before(a, b, now); }

  /// Adds a claim and returns the slot that erase() wants. Precondition: no call went before with a later `now`.
  std::uint32_t push(const Claim& claim, Time now) {
    catch_up(now);
    if (free_.empty()) grow(now);
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    claims_[slot] = claim;
    ++size_;
    replay_from(slot, now);
    return slot;
  }

  void erase(std::uint32_t slot, Time now) {
    catch_up(now);
    claims_[slot].job = no_job;
    free_.push_back(slot);
    if (--size_ == 0) {  // empty again: forget the used slots
      claims_.clear();
      matches_.clear();
      free_.clear();
      return;
    }
    replay_from(slot, now);
  }

  /// The slot of the first claim at `now`. Precondition: not empty.
  std::uint32_t first(Time now) {
    catch_up(now);
    return matches_[1].winner;
  }

  [[nodiscard]] const Claim& operator[](std::uint32_t slot) const { return claims_[slot]; }

  /// Every slot used since it was last empty; those that are free now hold no_job.
  [[nodiscard]] const std::vector<Claim>& slots() const { return claims_; }

 private:
  struct Match {
    std::uint32_t winner = no_index;
    Time holds_until = Time::max();  // of this match and all below it; from that instant on it must be played again
  };

  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(claims_.size()); }

  [[nodiscard]] Match leaf(std::uint32_t slot) const {
    return {claims_[slot].job == no_job ? no_index : slot, Time::max()};
  }
  [[nodiscard]] Match child(std::uint32_t node) const {
    return node >= capacity() ? leaf(node - capacity()) : matches_[node];
  }

  void play(std::uint32_t node, Time now) {
    const Match left = child(2 * node);
    const Match right = child(2 * node + 1);
    Match& match = matches_[node];
    match.holds_until = std::min(left.holds_until, right.holds_until);
    if (left.winner == no_index || right.winner == no_index) {
      match.winner = left.winner == no_index ? right.winner : left.winner;
      return;
    }
    const bool left_wins = before(claims_[left.winner], claims_[right.winner], now);
    match.winner = left_wins ? left.winner : right.winner;
    if (!order_.ages) return;
    const Claim& ahead = claims_[match.winner];
    const Claim& behind = claims_[left_wins ? right.winner : left.winner];
    match.holds_until = std::min(match.holds_until, order_.overtaking(ahead, behind, now));
  }

  void replay_from(std::uint32_t slot, Time now) {
    for (std::uint32_t node = (slot + capacity()) / 2; node >= 1; node /= 2) play(node, now);
  }

  void catch_up(Time now) {
    if (!matches_.empty() && matches_[1].holds_until <= now) catch_up(1, now);
  }
  void catch_up(std::uint32_t node, Time now) {
    for (const std::uint32_t next : {2 * node, 2 * node + 1}) {
      if (next < capacity() && matches_[next].holds_until <= now) catch_up(next, now);
    }
    play(node, now);
  }

  void grow(Time now) {
    const std::uint32_t before = capacity();
    const std::uint32_t after = before == 0 ? 2 : 2 * before;
    claims_.resize(after);
    matches_.assign(after, Match{});
    for (std::uint32_t slot = after; slot-- > before;) free_.push_back(slot);
    for (std::uint32_t node = after; node-- > 1;) play(node, now);
  }

  ClaimOrder order_;
  std::uint32_t size_ = 0;
  std::vector<Claim> claims_;   // a power of two of slots
  std::vector<Match> matches_;  // node k has children 2k and 2k + 1; leaves are the slots
  std::vector<std::uint32_t> free_;
};

}  // namespace gpusched
