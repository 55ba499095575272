// SPDX-License-Identifier: Apache-2.0
/// KernelGrid: a time measured at some points of a grid of up to four axes, and what is taken between them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/core/config.hpp"

namespace gpusched {

/// Interpolation by one axis after the other, linear between the nearest measured values of it. Points may be missing:
/// of an axis' values those are taken first whose measured points enclose what is asked for on the other axes. Beyond
/// the first or last value the line through the nearest two goes on, not below zero. Equal points are averaged.
template <std::size_t Axes>
class KernelGrid {
 public:
  /// A measured point.
  struct Point {
    std::array<std::int64_t, Axes> at{};  ///< where, one coordinate an axis
    double time_us = 0;                   ///< microseconds
  };

  /// Nothing measured.
  KernelGrid() = default;
  /// By any order of points.
  explicit KernelGrid(std::vector<Point> points) {
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.at < b.at; });
    if (!points.empty()) all_.least = all_.most = points.front().at;
    for (const Point& point : points) {
      for (std::size_t i = 0; i < Axes; ++i) {
        all_.least[i] = std::min(all_.least[i], point.at[i]);
        all_.most[i] = std::max(all_.most[i], point.at[i]);
      }
    }
    root_ = build(points.data(), points.data() + points.size(), 0);
  }

  /// Whether nothing was measured.
  [[nodiscard]] bool empty() const { return root_.begin == root_.end; }
  /// The time at a point (us). Precondition: not empty.
  [[nodiscard]] double at(const std::array<double, Axes>& where) const {
    return std::max(0.0, descend(root_.begin, root_.end, 0, where));
  }
  /// The largest value of the first axis. Precondition: not empty.
  [[nodiscard]] std::int64_t last() const { return nodes_[root_.end - 1].key; }
  /// The values of the first axis, ascending.
  [[nodiscard]] std::vector<std::int64_t> keys() const {
    std::vector<std::int64_t> keys;
    for (std::uint32_t i = root_.begin; i < root_.end; ++i) keys.push_back(nodes_[i].key);
    return keys;
  }

 private:
  struct Range {
    std::uint32_t begin = 0, end = 0;
  };
  // A value of an axis; below it lie the values of the next axis, and what they enclose.
  struct Node {
    std::int64_t key = 0;
    Range below = {};
    double time_us = 0;
    std::array<std::int64_t, Axes> least{}, most{};
  };

  Range build(const Point* begin, const Point* end, std::size_t axis) {
    std::vector<Node> nodes;
    while (begin != end) {
      const Point* const first = begin;
      Node node{.key = first->at[axis], .least = first->at, .most = first->at};
      double sum = 0;
      while (begin != end && begin->at[axis] == node.key) {
        for (std::size_t i = 0; i < Axes; ++i) {
          node.least[i] = std::min(node.least[i], begin->at[i]);
          node.most[i] = std::max(node.most[i], begin->at[i]);
        }
        sum += begin->time_us;
        ++begin;
      }
      node.time_us = sum / static_cast<double>(begin - first);
      if (axis + 1 < Axes) node.below = build(first, begin, axis + 1);
      nodes.push_back(node);
    }
    const auto at = static_cast<std::uint32_t>(nodes_.size());
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
    return {at, static_cast<std::uint32_t>(nodes_.size())};
  }

  [[nodiscard]] double value(std::uint32_t node, std::size_t axis, const std::array<double, Axes>& where) const {
    const Node& at = nodes_[node];
    return axis + 1 == Axes ? at.time_us : descend(at.below.begin, at.below.end, axis + 1, where);
  }
  // Whether a value of an axis has measured points on both sides of what is asked for on the axes behind it, or just
  // there. What lies beyond all points counts as at the last ones.
  [[nodiscard]] bool encloses(std::uint32_t node, std::size_t axis, const std::array<double, Axes>& where) const {
    for (std::size_t i = axis + 1; i < Axes; ++i) {
      const auto least = static_cast<double>(nodes_[node].least[i]), most = static_cast<double>(nodes_[node].most[i]);
      const double asked = std::clamp(where[i], static_cast<double>(all_.least[i]), static_cast<double>(all_.most[i]));
      if (asked < least || asked > most) return false;
      if (least == most && where[i] != least && all_.least[i] != all_.most[i]) return false;
    }
    return true;
  }
  [[nodiscard]] double descend(std::uint32_t begin, std::uint32_t end, std::size_t axis,
                               const std::array<double, Axes>& where) const {
    if (end - begin == 1) return value(begin, axis, where);
    const auto [low, high] = neighbours(begin, end, axis, where);
    const double a = value(low, axis, where);
    if (static_cast<double>(nodes_[low].key) == where[axis]) return a;
    const double b = value(high, axis, where);
    const auto from = static_cast<double>(nodes_[low].key), to = static_cast<double>(nodes_[high].key);
    return a + (b - a) * (where[axis] - from) / (to - from);
  }
  // The two values between which, or beyond which, the axis' coordinate lies; those that enclose where there are two.
  // Precondition: two values or more.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> neighbours(std::uint32_t begin, std::uint32_t end,
                                                                   std::size_t axis,
                                                                   const std::array<double, Axes>& where) const {
    std::uint32_t above = begin, past = end;
    while (above < past) {  // the first value above the coordinate
      const std::uint32_t middle = above + (past - above) / 2;
      if (static_cast<double>(nodes_[middle].key) <= where[axis]) {
        above = middle + 1;
      } else {
        past = middle;
      }
    }
    const auto below_of = [this, &begin, &axis, &where,
                           &end](std::uint32_t from) {  // the last that encloses before `from`
      while (from > begin && !encloses(from - 1, axis, where)) --from;
      return from > begin ? from - 1 : end;
    };
    const auto from_on = [this, &end, &axis, &where](std::uint32_t from) {
      while (from < end && !encloses(from, axis, where)) ++from;
      return from;
    };
    std::uint32_t low = below_of(above), high = from_on(above);
    if (low != end && static_cast<double>(nodes_[low].key) == where[axis]) return {low, low};
    if (low == end && high != end) low = high, high = from_on(high + 1);
    if (low != end && high == end) high = low, low = below_of(low);
    if (low != end && high != end) return {low, high};
    high = std::clamp(above, begin + 1, end - 1);
    return {high - 1, high};
  }

  std::vector<Node> nodes_;
  Node all_;  // what all points enclose
  Range root_;
};

}  // namespace gpusched
