// SPDX-License-Identifier: Apache-2.0
/// PowerLevels: what nodes drew and what caps allowed, over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched::detail {

/// One cap from an instant on, in milliwatts.
struct CapLevel {
  std::int64_t limit_mw = 0, drawn_mw = 0;
  friend bool operator==(const CapLevel&, const CapLevel&) = default;
};

/// A row for each instant after which something differs; within an instant, the last state counts.
class PowerLevels {
 public:
  /// From `since` until the next one.
  struct Level {
    Time since{};
    std::int64_t draw_mw = 0;  ///< of all nodes, losses left out
  };

  PowerLevels() = default;
  explicit PowerLevels(std::size_t caps) : caps_(caps), now_(caps) {}

  /// What holds at `now`; `cap(i)` is a CapLevel. Precondition: `now` is not before the last one.
  template <class CapOf>
  void add(Time now, std::int64_t draw_mw, CapOf cap) {
    if (!levels_.empty() && levels_.back().since == now) drop_last();
    bool differs = levels_.empty() || levels_.back().draw_mw != draw_mw;
    for (std::size_t i = 0; i < caps_; ++i) {
      now_[i] = cap(i);
      differs = differs || now_[i] != of_caps_[of_caps_.size() - caps_ + i];
    }
    if (!differs) return;
    levels_.push_back({now, draw_mw});
    of_caps_.insert(of_caps_.end(), now_.begin(), now_.end());
  }

  /// By time.
  [[nodiscard]] std::span<const Level> levels() const { return levels_; }
  /// The caps of one of them, in the order of PowerModel::caps.
  [[nodiscard]] std::span<const CapLevel> caps(std::size_t level) const {
    return std::span(of_caps_).subspan(level * caps_, caps_);
  }

 private:
  void drop_last() {
    levels_.pop_back();
    of_caps_.resize(of_caps_.size() - caps_);
  }

  std::size_t caps_ = 0;
  std::vector<Level> levels_;
  std::vector<CapLevel> of_caps_;  // caps_ for each level
  std::vector<CapLevel> now_;      // of add()
};

}  // namespace gpusched::detail
