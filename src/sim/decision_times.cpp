// SPDX-License-Identifier: Apache-2.0
#include "src/sim/decision_times.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace gpusched {
namespace {

constexpr std::uint64_t buckets_of_power = 64;  // buckets of each power of two

// Below 64 ns each value has a bucket; above, values that agree in their first seven bits share one.
std::size_t bucket_of(std::uint64_t ns) {
  if (ns < buckets_of_power) return ns;
  const auto shift = static_cast<std::size_t>(std::bit_width(ns) - 7);
  return (shift + 1) * buckets_of_power + ((ns >> shift) - buckets_of_power);
}

// The largest value of a bucket.
std::uint64_t end_of(std::size_t bucket) {
  if (bucket < buckets_of_power) return bucket;
  const std::size_t shift = bucket / buckets_of_power - 1;
  return ((bucket % buckets_of_power + buckets_of_power + 1) << shift) - 1;
}

}  // namespace

void DecisionTimes::add(std::int64_t nanoseconds) {
  const std::size_t bucket = bucket_of(static_cast<std::uint64_t>(nanoseconds));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  total_ns_ += nanoseconds;
  longest_ns_ = std::max(longest_ns_, nanoseconds);
}

double DecisionTimes::mean_us() const {
  return count_ == 0 ? 0 : static_cast<double>(total_ns_) / static_cast<double>(count_) / 1000;
}

double DecisionTimes::quantile_us(double q) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted && seen > 0) return std::min(static_cast<double>(end_of(bucket)) / 1000, longest_us());
  }
  return 0;
}

}  // namespace gpusched
