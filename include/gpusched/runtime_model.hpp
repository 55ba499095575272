// SPDX-License-Identifier: Apache-2.0
/// RuntimeModel: how fast a job progresses on a GPU type, relative to the reference device of its trace.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/types.hpp"

namespace gpusched {

/// Speed in parts per million of the reference device; 1,000,000 = work passes in real time.
using RatePpm = std::uint32_t;
inline constexpr RatePpm reference_rate = 1'000'000;

/// A table family x GPU type -> rate. Immutable once handed to an engine, which borrows it. Empty = everything runs at
/// the reference rate.
class RuntimeModel {
 public:
  RuntimeModel() = default;

  /// `families` rows (JobTable::family) by `gpu_types` columns (Cluster GPU type), all at the reference rate.
  RuntimeModel(std::uint32_t families, std::uint32_t gpu_types)
      : gpu_types_(gpu_types), rates_(std::size_t{families} * gpu_types, reference_rate) {}

  /// Precondition: rate > 0.
  void set(std::uint32_t family, std::uint32_t gpu_type, RatePpm rate) {
    GPUSCHED_ASSERT(rate > 0, "a rate must be positive");
    rates_[std::size_t{family} * gpu_types_ + gpu_type] = rate;
  }

  [[nodiscard]] bool is_uniform() const { return rates_.empty(); }

  /// Rate of a job of `family` on `gpu_type`; a family or type outside the table runs at the reference rate.
  [[nodiscard]] RatePpm rate(std::uint32_t family, std::uint32_t gpu_type) const {
    const std::size_t place = std::size_t{family} * gpu_types_ + gpu_type;
    return gpu_type < gpu_types_ && place < rates_.size() ? rates_[place] : reference_rate;
  }

 private:
  std::uint32_t gpu_types_ = 0;
  std::vector<RatePpm> rates_;
};

}  // namespace gpusched
