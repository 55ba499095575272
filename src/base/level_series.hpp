// SPDX-License-Identifier: Apache-2.0
/// Many values reduced to what a chart can show.
#pragma once

#include <cstddef>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// A point of a cumulative distribution: `share` of the values are at most `x`.
struct SharePoint {
  double x = 0, share = 0;
};

/// The distribution of `values`, in at most `most` points at equal steps of the share, the least and the largest value
/// among them. Precondition: `most` is at least 2.
std::vector<SharePoint> distribution(std::vector<double> values, std::size_t most);

/// A quantity over time that many spans add to, as its mean in each of equal parts of [begin, end).
class LevelSeries {
 public:
  /// Precondition: begin < end, parts > 0.
  LevelSeries(Time begin, Time end, std::size_t parts);

  /// The quantity is larger by `amount` from `from` to `to`; what lies outside [begin, end) does not count.
  void add(Time from, Time to, double amount);

  /// When part `part` begins; of `parts`, the end.
  [[nodiscard]] Time begin_of(std::size_t part) const;
  [[nodiscard]] std::vector<double> means() const;

 private:
  [[nodiscard]] double position(Time t) const;  // in parts since the begin

  Time begin_, end_;
  std::vector<double> partial_;  // of spans that cover a part of it
  std::vector<double> whole_;    // change, at each part, of the sum of spans that cover it whole
};

}  // namespace gpusched
