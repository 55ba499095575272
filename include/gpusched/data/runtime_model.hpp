// SPDX-License-Identifier: Apache-2.0
/// RuntimeModel: how fast a job progresses on a GPU type, relative to the reference device of its trace, and how much
/// the jobs that share its GPU slow it.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Speed in parts per million of the reference device; 1,000,000 = work passes in real time.
using RatePpm = std::uint32_t;
inline constexpr RatePpm reference_rate = 1'000'000;  ///< the speed of the reference device

/// A table family x GPU type -> rate, and, if any is set, one family x family x GPU type -> interference. Immutable
/// once handed to an engine, which borrows it. Empty = everything runs at the reference rate.
class RuntimeModel {
 public:
  /// Everything at the reference rate.
  RuntimeModel() = default;

  /// `families` rows (JobTable::family) by `gpu_types` columns (Cluster GPU type), all at the reference rate.
  RuntimeModel(std::uint32_t families, std::uint32_t gpu_types)
      : gpu_types_(gpu_types), rates_(std::size_t{families} * gpu_types, reference_rate) {}

  /// Sets the rate of a family on a GPU type. Precondition: rate > 0.
  void set(std::uint32_t family, std::uint32_t gpu_type, RatePpm rate) {
    GPUSCHED_ASSERT(rate > 0, "a rate must be positive");
    rates_[std::size_t{family} * gpu_types_ + gpu_type] = rate;
  }

  /// While a task of family `beside` shares a card of `gpu_type` with a task of `own`, the latter is slower:
  /// its time grows by `extra_ppm` millionths of what it takes alone, for each neighbour. 500,000 = 1.5 times; 0 until
  /// set. The
  /// table takes 4 bytes times families squared times GPU types.
  void set_extra(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type, std::uint32_t extra_ppm) {
    if (extras_.empty()) extras_.resize(rates_.size() * families());
    extras_[extra_place(own, beside, gpu_type)] = extra_ppm;
  }

  /// True for the empty model: every job runs at the reference rate.
  [[nodiscard]] bool is_uniform() const { return rates_.empty(); }
  /// True when jobs that share a card slow each other.
  [[nodiscard]] bool has_interference() const { return !extras_.empty(); }

  /// Rate of a job of `family` on `gpu_type`; a family or type outside the table runs at the reference rate.
  [[nodiscard]] RatePpm rate(std::uint32_t family, std::uint32_t gpu_type) const {
    const std::size_t place = std::size_t{family} * gpu_types_ + gpu_type;
    return gpu_type < gpu_types_ && place < rates_.size() ? rates_[place] : reference_rate;
  }

  /// As set_extra() set it; 0 for a family or type outside the table.
  [[nodiscard]] std::uint32_t extra(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type) const {
    if (own >= families() || beside >= families() || gpu_type >= gpu_types_ || extras_.empty()) return 0;
    return extras_[extra_place(own, beside, gpu_type)];
  }

 private:
  [[nodiscard]] std::uint32_t families() const {
    return gpu_types_ == 0 ? 0 : static_cast<std::uint32_t>(rates_.size() / gpu_types_);
  }
  [[nodiscard]] std::size_t extra_place(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type) const {
    return (std::size_t{gpu_type} * families() + own) * families() + beside;
  }

  std::uint32_t gpu_types_ = 0;
  std::vector<RatePpm> rates_;
  std::vector<std::uint32_t> extras_;
};

}  // namespace gpusched
