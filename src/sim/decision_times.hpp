// SPDX-License-Identifier: Apache-2.0
/// DecisionTimes: how long the decisions of a policy took on this machine, as a histogram.
#pragma once

#include <cstdint>
#include <vector>

namespace gpusched {

/// Times of decide() by the wall clock. Sixty-four buckets for each power of two: quantiles are within 1/64 of the true
/// ones. At most 30 KB, however many decisions there are.
class DecisionTimes {
 public:
  /// Takes one more decision into account. Precondition: nanoseconds >= 0.
  void add(std::int64_t nanoseconds);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// In microseconds; 0 without decisions.
  [[nodiscard]] double mean_us() const;
  /// The least time that a share q of the decisions did not exceed, rounded up to its bucket's end; 0 without
  /// decisions. Precondition: 0 < q <= 1.
  [[nodiscard]] double quantile_us(double q) const;
  /// The longest, exactly.
  [[nodiscard]] double longest_us() const { return static_cast<double>(longest_ns_) / 1000; }

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::int64_t total_ns_ = 0, longest_ns_ = 0;
};

}  // namespace gpusched
