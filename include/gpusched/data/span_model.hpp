// SPDX-License-Identifier: Apache-2.0
/// SpanModel: how much slower a gang is whose tasks are apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/gang_rows.hpp"
#include "gpusched/data/rate.hpp"

namespace gpusched {

/// How far apart the tasks of a gang are: the widest thing of which they occupy several. It is also the level of the
/// link that the farthest two of them talk over.
enum class Span : std::uint8_t {
  node,     ///< one node, and one island of it: together
  islands,  ///< several islands of one node (Node::island_gpus)
  nodes,    ///< several nodes of one rack
  racks,    ///< several racks of one site
  sites,    ///< several sites
};
inline constexpr std::size_t span_count = 5;  ///< values of Span

/// Every span by its name in files and options, from the narrowest to the widest.
inline constexpr std::array<NamedValue<Span>, span_count> span_names{{{"node", Span::node},
                                                                      {"islands", Span::islands},
                                                                      {"nodes", Span::nodes},
                                                                      {"racks", Span::racks},
                                                                      {"sites", Span::sites}}};

/// A factor for each span, in its order.
using SpanSpeeds = std::array<RatePpm, span_count>;
/// The factors of what does not slow down when it is apart.
inline constexpr SpanSpeeds no_slowdown{reference_rate, reference_rate, reference_rate, reference_rate, reference_rate};

/// The factor of one gang at its present span, by GPU type. Borrows the SpanModel.
class SpanFactor {
 public:
  /// 1 on every GPU type.
  SpanFactor() = default;
  /// Used by SpanModel: `types` neighbours from `speeds` on, one a GPU type.
  SpanFactor(const SpanSpeeds* speeds, std::uint32_t types, Span span) : speeds_(speeds), types_(types), span_(span) {}

  /// The factor of tasks on GPUs of that type.
  [[nodiscard]] RatePpm on(std::uint32_t gpu_type) const {
    return gpu_type < types_ ? speeds_[gpu_type][static_cast<std::size_t>(span_)] : reference_rate;
  }

 private:
  const SpanSpeeds* speeds_ = nullptr;
  std::uint32_t types_ = 0;
  Span span_ = Span::node;
};

/// A table family x GPU type x span -> factor on the rate, which gangs of a given number of GPUs may have rows of their
/// own in. Immutable once an engine runs with it. Empty: apart is as fast as together.
class SpanModel {
 public:
  /// No slowdown.
  SpanModel() = default;
  /// `families` rows (JobTable::family) by `gpu_types` columns (Cluster GPU type), all without slowdown.
  SpanModel(std::uint32_t families, std::uint32_t gpu_types)
      : rows_(families), gpu_types_(gpu_types), speeds_(std::size_t{families} * gpu_types, no_slowdown) {}

  /// Sets the factors of a family on a GPU type. Precondition: each is above 0.
  void set(std::uint32_t family, std::uint32_t gpu_type, const SpanSpeeds& speeds) { put(family, gpu_type, speeds); }

  /// Sets those of gangs of `family` on `gpus` whole GPUs of a type, for which set() does not count from then on; on
  /// other types they are as set() gives at the first call for that gang. Precondition: as set(), gpus > 0.
  void set_for_gang(std::uint32_t family, std::uint32_t gpus, std::uint32_t gpu_type, const SpanSpeeds& speeds) {
    const std::uint32_t row = rows_.own_row(family, gpus);
    if (std::size_t{row} * gpu_types_ == speeds_.size()) {
      for (std::uint32_t type = 0; type < gpu_types_; ++type) {
        speeds_.push_back(SpanSpeeds(speeds_[std::size_t{family} * gpu_types_ + type]));
      }
    }
    put(row, gpu_type, speeds);
  }

  /// Marks a family of models with a few very large tensors, which Placement::skew keeps together.
  void mark_skewed(std::uint32_t family) {
    skewed_.resize(std::max<std::size_t>(skewed_.size(), family + 1));
    skewed_[family] = true;
  }
  /// True where mark_skewed() was called for the family.
  [[nodiscard]] bool is_skewed(std::uint32_t family) const { return family < skewed_.size() && skewed_[family]; }

  /// True when no span slows anything down.
  [[nodiscard]] bool is_empty() const { return speeds_.empty(); }

  /// The factor of a gang of `family` and `shape` whose tasks are that far apart; 1 for a family outside the table.
  [[nodiscard]] SpanFactor factor(std::uint32_t family, const Shape& shape, Span span) const {
    if (family >= rows_.families()) return {};
    return {speeds_.data() + std::size_t{rows_.row_of(family, shape)} * gpu_types_, gpu_types_, span};
  }

 private:
  void put(std::uint32_t row, std::uint32_t gpu_type, const SpanSpeeds& speeds) {
    for ([[maybe_unused]] const RatePpm speed : speeds) GPUSCHED_ASSERT(speed > 0, "a factor must be positive");
    speeds_[std::size_t{row} * gpu_types_ + gpu_type] = speeds;
  }

  GangRows rows_;
  std::uint32_t gpu_types_ = 0;
  std::vector<SpanSpeeds> speeds_;  // [row * gpu_types_ + type]
  std::vector<bool> skewed_;        // by family
};

}  // namespace gpusched
