// SPDX-License-Identifier: Apache-2.0
/// How long a station's replica serves a request or a batch of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// A request that carries a service time of its own is served so long; others as said here.
struct ServiceTimes {
  /// Where the time comes from.
  enum class Kind : std::uint8_t {
    fixed,        ///< the mean
    exponential,  ///< drawn when the request is submitted
    by_batch,     ///< from a table by the size of the batch; a request's own time does not count
  };
  /// A batch's time.
  struct Batch {
    std::int32_t size = 1;  ///< requests, from 1
    Time time{};            ///< of the whole batch
  };

  Kind kind = Kind::fixed;       ///< where the time comes from
  Time mean = whole_seconds(1);  ///< of fixed and exponential; from 0
  std::vector<Batch> table =
      {};                ///< of by_batch: sizes ascending, at least one; linear between, the first below its size
  Time longest_delay{};  ///< of by_batch: how long a batch that is not full may wait for more, from its first request

  /// The largest batch.
  [[nodiscard]] std::int32_t most_in_batch() const {
    return kind == Kind::by_batch && !table.empty() ? table.back().size : 1;
  }
  /// Of a batch of `size`. Precondition: by_batch, size from 1 to most_in_batch().
  [[nodiscard]] Time of_batch(std::int32_t size) const {
    std::size_t high = 0;
    while (table[high].size < size) ++high;
    if (high == 0 || table[high].size == size) return table[high].time;
    const Batch &a = table[high - 1], &b = table[high];
    return {a.time.us + (b.time - a.time).us * (size - a.size) / (b.size - a.size)};
  }
  /// Of one request. Precondition: not by_batch.
  [[nodiscard]] Time draw(Rng& rng) const {
    if (kind == Kind::fixed) return mean;
    return {static_cast<std::int64_t>(rng.exponential(static_cast<double>(mean.us)) + 0.5)};
  }
};

}  // namespace gpusched
