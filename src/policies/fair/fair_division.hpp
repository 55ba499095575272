// SPDX-License-Identifier: Apache-2.0
/// FairDivision: weighted max-min shares of many, kept up to date as demands change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Weighted max-min: a total is divided by weight; no party gets more than its demand, and what it leaves is divided
/// among the others. Shares are rounded down. Those whose demand is met are the ones of the least demand by weight:
/// who they are is kept, and a change costs O(log n + the levels of demand by weight whose state it changes).
class FairDivision {
 public:
  /// No party demands anything yet. Weights are positive.
  explicit FairDivision(std::vector<std::int64_t> weights) : weights_(std::move(weights)), demands_(weights_.size()) {
    for (const std::int64_t weight : weights_) change({0, weight}, +1);
  }

  /// From now on, `who` demands so much.
  void demand(std::size_t who, std::int64_t amount) {
    change({demands_[who], weights_[who]}, -1);
    demands_[who] = amount;
    change({demands_[who], weights_[who]}, +1);
  }

  /// Divides `total`. Comes after changes of demands and before share().
  void divide(std::int64_t total) {
    total_ = total;
    auto next = first_short_ ? levels_.lower_bound(*first_short_) : levels_.end();
    while (next != levels_.begin()) {
      const auto last = std::prev(next);
      change_met(last->second, -1);
      if (can_meet(last->first)) {
        change_met(last->second, +1);
        break;
      }
      next = last;
    }
    for (; next != levels_.end() && can_meet(next->first); ++next) change_met(next->second, +1);
    first_short_ = next == levels_.end() ? std::nullopt : std::optional(next->first);
  }

  /// What `who` gets.
  [[nodiscard]] std::int64_t share(std::size_t who) const {
    if (is_met({demands_[who], weights_[who]})) return demands_[who];
    return mul_div(static_cast<std::int64_t>(left()), weights_[who], static_cast<std::int64_t>(weight_left()));
  }

  /// No party gets more than this times its weight; infinite when all demands are met.
  [[nodiscard]] double most_by_weight() const {
    if (weight_left() == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(left()) / static_cast<double>(weight_left());
  }

 private:
  __extension__ using Wide = __int128;  // demands may be without bound, and many

  // Demand by weight, exactly.
  struct Level {
    std::int64_t demand = 0;
    std::int64_t weight = 1;
    bool operator<(const Level& other) const { return Wide{demand} * other.weight < Wide{other.demand} * weight; }
  };
  struct Sums {
    Wide demand = 0;
    Wide weight = 0;
  };

  [[nodiscard]] Wide left() const { return total_ - met_.demand; }
  [[nodiscard]] Wide weight_left() const { return all_weight_ - met_.weight; }
  [[nodiscard]] bool is_met(const Level& level) const { return !first_short_ || level < *first_short_; }
  // Whether an equal part of what is left is enough.
  [[nodiscard]] bool can_meet(const Level& level) const {
    return Wide{level.demand} * weight_left() <= left() * level.weight;
  }

  void change_met(const Sums& sums, int sign) {
    met_.demand += sign * sums.demand;
    met_.weight += sign * sums.weight;
  }

  void change(const Level& level, int sign) {
    const auto at = levels_.try_emplace(level).first;
    at->second.demand += sign * Wide{level.demand};
    at->second.weight += sign * Wide{level.weight};
    if (at->second.weight == 0) levels_.erase(at);
    all_weight_ += sign * Wide{level.weight};
    if (is_met(level)) change_met({level.demand, level.weight}, sign);
  }

  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> demands_;
  std::map<Level, Sums> levels_;      // those of equal demand by weight, together
  std::optional<Level> first_short_;  // this level and those above it are not met; none: all are
  Sums met_;
  Wide all_weight_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace gpusched
