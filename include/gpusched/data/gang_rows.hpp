// SPDX-License-Identifier: Apache-2.0
/// GangRows: numbers the rows of a table by job family, where gangs of some sizes have rows of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A value. Row `f` is that of family `f`; rows of gangs follow in the order in which they were added.
class GangRows {
 public:
  /// No rows.
  GangRows() = default;
  /// A row for each of so many families.
  explicit GangRows(std::uint32_t families) : families_(families) {}

  /// Families with a row.
  [[nodiscard]] std::uint32_t families() const { return families_; }
  /// Rows in all.
  [[nodiscard]] std::uint32_t size() const { return families_ + static_cast<std::uint32_t>(gangs_.size()); }

  /// The row of gangs of `family` on `gpus` whole GPUs; where they have none, a new one, whose number is size() as it
  /// was. Precondition: family < families(), gpus > 0.
  std::uint32_t own_row(std::uint32_t family, std::uint32_t gpus) {
    GPUSCHED_ASSERT(family < families_ && gpus > 0, "no such family, or a gang without GPUs");
    auto place = std::lower_bound(gangs_.begin(), gangs_.end(), Gang{family, gpus});
    if (place == gangs_.end() || Gang{family, gpus} < *place) place = gangs_.insert(place, {family, gpus, size()});
    return place->row;
  }

  /// The row of a gang of that shape: its own, else that of its family. Precondition: family < families().
  [[nodiscard]] std::uint32_t row_of(std::uint32_t family, const Shape& shape) const {
    if (gangs_.empty() || shape.is_share()) return family;
    const Gang gang{family, static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu)};
    const auto place = std::lower_bound(gangs_.begin(), gangs_.end(), gang);
    return place != gangs_.end() && !(gang < *place) ? place->row : family;
  }

 private:
  struct Gang {
    std::uint32_t family = 0;
    std::uint32_t gpus = 0;
    std::uint32_t row = 0;
    friend bool operator<(const Gang& a, const Gang& b) {
      return a.family != b.family ? a.family < b.family : a.gpus < b.gpus;
    }
  };

  std::uint32_t families_ = 0;
  std::vector<Gang> gangs_;  // in order
};

}  // namespace gpusched
