// SPDX-License-Identifier: Apache-2.0
/// ServiceEndings: of the finished jobs that reached a doubling of GPU service, how many ended in it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/learn/doubling_levels.hpp"

namespace gpusched {

/// Counts over all finished jobs and over those of each shape. A value.
class ServiceEndings {
 public:
  /// Levels of service, in GPU-microseconds: below a GPU-minute, then each doubling.
  static constexpr DoublingLevels levels{whole_seconds(60).us, 1};

  /// A job of this shape ended after `service_us` GPU-microseconds.
  void learn(std::uint32_t shape, std::int64_t service_us) {
    if (counts_.size() <= shape + 1) counts_.resize(shape + 2);
    const std::uint32_t last = levels.level(service_us);
    for (Counts* of : {&counts_.front(), &counts_[shape + 1]}) {
      for (std::uint32_t k = 0; k <= last; ++k) of->reached[k] += 1;
      of->ended[last] += 1;
    }
  }

  /// Of the finished jobs of a shape that reached the level of this service, the share that ended in it: shrunk, with
  /// the weight of four jobs, towards that of all jobs, and that towards one half.
  [[nodiscard]] float share(std::uint32_t shape, std::int64_t service_us) const {
    if (counts_.empty()) return 0.5f;
    const std::uint32_t level = levels.level(service_us);
    const auto shrunk = [level](const Counts& of, float towards, float weight) {
      return (of.ended[level] + weight * towards) / (of.reached[level] + weight);
    };
    const float all = shrunk(counts_.front(), 0.5f, 2);
    return shape + 1 < counts_.size() ? shrunk(counts_[shape + 1], all, 4) : all;
  }

 private:
  struct Counts {
    std::array<float, 48> reached{}, ended{};
  };
  std::vector<Counts> counts_;  // of all jobs, then by shape
};

}  // namespace gpusched
