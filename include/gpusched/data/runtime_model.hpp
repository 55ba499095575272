// SPDX-License-Identifier: Apache-2.0
/// RuntimeModel: how fast a job progresses on a GPU type, relative to the reference device of its trace, how much being
/// spread over nodes slows it, and how much the jobs that share its GPU do. The rate of a running job is the product of
/// these factors, in this order, with one rounding each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/gang_rows.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/data/span_model.hpp"

namespace gpusched {

/// A table family x GPU type -> rate, which gangs of a given number of GPUs may have rows of their own in; if one is
/// set, a SpanModel; and, if any is set, one family x family x GPU type -> interference. Immutable once handed to an
/// engine, which borrows it. Empty = everything runs at the reference rate.
class RuntimeModel {
 public:
  /// Everything at the reference rate.
  RuntimeModel() = default;

  /// `families` rows (JobTable::family) by `gpu_types` columns (Cluster GPU type), all at the reference rate.
  RuntimeModel(std::uint32_t families, std::uint32_t gpu_types)
      : gpu_types_(gpu_types), rows_(families), rates_(std::size_t{families} * gpu_types, reference_rate) {}

  /// Sets the rate of a family on a GPU type. Precondition: rate > 0.
  void set(std::uint32_t family, std::uint32_t gpu_type, RatePpm rate) {
    GPUSCHED_ASSERT(rate > 0, "a rate must be positive");
    rates_[std::size_t{family} * gpu_types_ + gpu_type] = rate;
  }

  /// Sets the rate of gangs of `family` on `gpus` whole GPUs of a type, for which set() does not count from then on: a
  /// gang is seldom as fast as its GPUs one by one. Its rates on types that are not set are those of set(), as they are
  /// at the first call for that gang. Precondition: rate > 0, gpus > 0.
  void set_for_gang(std::uint32_t family, std::uint32_t gpus, std::uint32_t gpu_type, RatePpm rate) {
    GPUSCHED_ASSERT(rate > 0 && gpus > 0, "a rate must be positive, and a gang have GPUs");
    const std::uint32_t row = rows_.own_row(family, gpus);
    if (std::size_t{row} * gpu_types_ == rates_.size()) {
      for (std::uint32_t type = 0; type < gpu_types_; ++type) rates_.push_back(this->rate(family, type));
    }
    rates_[std::size_t{row} * gpu_types_ + gpu_type] = rate;
  }

  /// What the rates of gangs of `family` on `gpus` whole GPUs (0: those that have no row of their own) were measured
  /// as, in a unit such as steps a second: `reference` on the reference device, `here` on that GPU type. Precondition:
  /// as of set(), or of set_for_gang() for that gang.
  void set_throughput(std::uint32_t family, std::uint32_t gpus, std::uint32_t gpu_type, double reference, double here) {
    const std::uint32_t row = gpus == 0 ? family : rows_.own_row(family, gpus);
    throughputs_.resize(std::size_t{rows_.size()} * (gpu_types_ + 1), 0.0);
    throughputs_[std::size_t{row} * (gpu_types_ + 1)] = reference;
    throughputs_[std::size_t{row} * (gpu_types_ + 1) + 1 + gpu_type] = here;
  }

  /// Sets the rate of a task of `family` on a MIG instance of that profile (MigModel::profiles()) of a GPU type. Until
  /// then it is that of the type: run times are those of the share that the job asked for. Precondition: rate > 0,
  /// profile < 8.
  void set_slice(std::uint32_t family, std::uint32_t gpu_type, std::uint32_t profile, RatePpm rate) {
    GPUSCHED_ASSERT(rate > 0 && profile < profiles_, "a rate must be positive, and the profile one of a card");
    slices_.resize(std::size_t{rows_.families()} * gpu_types_ * profiles_);
    slices_[slice_place(family, gpu_type, profile)] = rate;
  }

  /// While a task of family `beside` shares a card of `gpu_type` with a task of `own`, the latter is slower:
  /// its time grows by `extra_ppm` millionths of what it takes alone, for each neighbour. 500,000 = 1.5 times; 0 until
  /// set. The
  /// table takes 4 bytes times families squared times GPU types.
  void set_extra(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type, std::uint32_t extra_ppm) {
    if (extras_.empty()) extras_.resize(std::size_t{rows_.families()} * rows_.families() * gpu_types_);
    extras_[extra_place(own, beside, gpu_type)] = extra_ppm;
  }

  /// Sets what being apart costs gangs.
  void set_spans(SpanModel spans) { spans_ = std::move(spans); }

  /// True for the empty model: every job runs at the reference rate.
  [[nodiscard]] bool is_uniform() const { return !has_rates() && spans_.is_empty(); }
  /// True when the rate of a job depends on its family and GPU type.
  [[nodiscard]] bool has_rates() const { return !rates_.empty(); }
  /// What being apart costs gangs; empty until set.
  [[nodiscard]] const SpanModel& spans() const { return spans_; }
  /// True when jobs that share a card slow each other.
  [[nodiscard]] bool has_interference() const { return !extras_.empty(); }

  /// Rate of a job of `family` on `gpu_type`; a family or type outside the table runs at the reference rate.
  [[nodiscard]] RatePpm rate(std::uint32_t family, std::uint32_t gpu_type) const {
    return gpu_type < gpu_types_ && family < rows_.families() ? rates_[std::size_t{family} * gpu_types_ + gpu_type]
                                                              : reference_rate;
  }

  /// The rates of a gang of `family` and `shape` by GPU type; none for a family outside the table, which runs at the
  /// reference rate everywhere.
  [[nodiscard]] std::span<const RatePpm> rates(std::uint32_t family, const Shape& shape) const {
    if (family >= rows_.families()) return {};
    return {rates_.data() + std::size_t{rows_.row_of(family, shape)} * gpu_types_, gpu_types_};
  }

  /// The throughputs of a gang of `family` and `shape`: on the reference device, then by GPU type, 0 where it was not
  /// measured; none where rates alone are known.
  [[nodiscard]] std::span<const double> throughputs(std::uint32_t family, const Shape& shape) const {
    if (family >= rows_.families()) return {};
    const std::size_t begin = std::size_t{rows_.row_of(family, shape)} * (gpu_types_ + 1);
    if (begin >= throughputs_.size() || throughputs_[begin] <= 0) return {};
    return {throughputs_.data() + begin, std::size_t{gpu_types_} + 1};
  }

  /// Rate of a task of `family` on a MIG instance, as set_slice() or else set() set it.
  [[nodiscard]] RatePpm slice_rate(std::uint32_t family, std::uint32_t gpu_type, std::uint32_t profile) const {
    const bool known = family < rows_.families() && gpu_type < gpu_types_ && !slices_.empty();
    const RatePpm own = known ? slices_[slice_place(family, gpu_type, profile)] : 0;
    return own > 0 ? own : rate(family, gpu_type);
  }

  /// As set_extra() set it; 0 for a family or type outside the table.
  [[nodiscard]] std::uint32_t extra(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type) const {
    if (own >= rows_.families() || beside >= rows_.families() || gpu_type >= gpu_types_ || extras_.empty()) return 0;
    return extras_[extra_place(own, beside, gpu_type)];
  }

 private:
  static constexpr std::uint32_t profiles_ = 8;  // of a card, at most

  [[nodiscard]] std::size_t slice_place(std::uint32_t family, std::uint32_t gpu_type, std::uint32_t profile) const {
    return (std::size_t{family} * gpu_types_ + gpu_type) * profiles_ + profile;
  }
  [[nodiscard]] std::size_t extra_place(std::uint32_t own, std::uint32_t beside, std::uint32_t gpu_type) const {
    return (std::size_t{gpu_type} * rows_.families() + own) * rows_.families() + beside;
  }

  std::uint32_t gpu_types_ = 0;
  GangRows rows_;
  std::vector<RatePpm> rates_;  // [row * gpu_types_ + type]
  std::vector<double>
      throughputs_;  // [row * (gpu_types_ + 1)]: on the reference, then by type; may end before the rows
  SpanModel spans_;
  std::vector<std::uint32_t> extras_;
  std::vector<RatePpm> slices_;  // [slice_place()], 0: not set; empty until set
};

}  // namespace gpusched
