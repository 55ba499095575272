// SPDX-License-Identifier: Apache-2.0
/// DrawTable: milliwatts of GPUs and processors, computed once for each family, type and power limit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/data/power_model.hpp"

namespace gpusched::detail {

/// Whole milliwatts, so that what goes is exactly what came. Power limits of all types are levels: 0 is the lowest of
/// each, top() none.
class DrawTable {
 public:
  DrawTable() = default;
  /// `model` must outlive this.
  DrawTable(const PowerModel& model, std::uint32_t families) : model_(&model) {
    const auto types = static_cast<std::uint32_t>(model.gpus.size());
    families = std::max(families, 1u);
    for (std::uint32_t family = 0; family < families; ++family) {
      for (std::uint32_t type = 0; type < types; ++type) {
        levels_ = std::max(levels_, static_cast<std::uint32_t>(model.limits(family, type).size()));
      }
    }
    for (const GpuPower& gpu : model.gpus) idle_mw_.push_back(milliwatts(gpu.load.idle_w));
    busy_mw_.reserve(std::size_t{families} * types * levels_);
    for (std::uint32_t family = 0; family < families; ++family) {
      for (std::uint32_t type = 0; type < types; ++type) {
        for (std::uint32_t level = 0; level < levels_; ++level) {
          busy_mw_.push_back(milliwatts(
              busy_w(type, model.busy_share(family, type), model.full_w(family, type), limit(family, type, level))));
        }
      }
    }
  }

  /// How many levels there are, and the highest, at which nothing is limited.
  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::uint32_t top() const { return levels_ - 1; }
  /// The limit at a level of a GPU of that type that runs the family.
  [[nodiscard]] PowerLimit limit(std::uint32_t family, std::uint32_t type, std::uint32_t level) const {
    const std::vector<PowerLimit>& limits = model_->limits(family, type);
    if (limits.empty() || level >= top()) return {.limit_w = std::numeric_limits<double>::infinity()};
    return limits[std::size_t{level} * (limits.size() - 1) / top()];
  }
  /// The greatest level at which no such GPU is set above `watts`; 0 at least.
  [[nodiscard]] std::uint32_t level_below(std::uint32_t family, std::uint32_t type, double watts) const {
    const std::vector<PowerLimit>& limits = model_->limits(family, type);
    if (limits.empty() || watts >= limits.back().limit_w) return top();
    std::uint32_t level = 0;
    while (level + 1 < top() && limit(family, type, level + 1).limit_w <= watts) ++level;
    return level;
  }
  /// A GPU that nobody uses.
  [[nodiscard]] std::int64_t idle_mw(std::uint32_t type) const { return idle_mw_[type]; }
  /// What a job of that family, alone on a GPU, adds to that.
  [[nodiscard]] std::int64_t busy_mw(std::uint32_t family, std::uint32_t type, std::uint32_t level) const {
    return busy_mw(family, type)[level];
  }
  /// The same by level.
  [[nodiscard]] std::span<const std::int64_t> busy_mw(std::uint32_t family, std::uint32_t type) const {
    return std::span(busy_mw_).subspan((std::size_t{family} * model_->gpus.size() + type) * levels_, levels_);
  }
  /// What jobs that keep a GPU busy for `share` of the time add under a limit, whose draw when it is always busy is
  /// `full_w`.
  [[nodiscard]] double busy_w(std::uint32_t type, double share, double full_w, const PowerLimit& limit) const {
    LoadPower load = model_->gpus[type].load;
    if (full_w != load.full_w) {
      load.full_w = full_w;
      load.points.clear();
    }
    const double above_idle = (load.watts(std::min(share, 1.0)) - load.idle_w) * limit.draw;
    return std::min(above_idle, std::max(limit.limit_w - load.idle_w, 0.0));
  }
  /// What processors of a node draw when `load` of all their cores work.
  [[nodiscard]] static double cpus_w(const NodePower& kind, double load, double cores) {
    if (kind.cpus == 0) return 0;
    if (kind.cores_per_cpu <= 0) return kind.cpu.watts(std::min(load, 1.0)) * kind.cpus;
    const double full = std::min<double>(kind.cpus, std::ceil(cores / kind.cores_per_cpu - 1e-9));
    return full * kind.cpu.full_w + (kind.cpus - full) * kind.cpu.idle_w;
  }
  static std::int64_t milliwatts(double watts) { return std::llround(1e3 * watts); }

 private:
  const PowerModel* model_ = nullptr;
  std::uint32_t levels_ = 1;
  std::vector<std::int64_t> idle_mw_;  // by type
  std::vector<std::int64_t> busy_mw_;  // [(family * types + type) * levels + level]
};

}  // namespace gpusched::detail
