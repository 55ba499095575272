// SPDX-License-Identifier: Apache-2.0
/// DominantShares: each owner's dominant share of the cluster.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/policies/queues/owners.hpp"

namespace gpusched {

/// A share is the largest of held / total over GPUs, CPU and memory, divided by the owner's weight; a resource that the
/// cluster does not bound does not count (Ghodsi et al., "Dominant Resource Fairness", NSDI'11). In units of 1e-12,
/// computed from exact sums, so that the order of changes does not matter.
class DominantShares {
 public:
  static constexpr std::int64_t whole = 1'000'000'000'000;
  /// Shares that differ by no more count as equal: 1e-6, Volcano's shareDelta.
  static constexpr std::int64_t delta = whole / 1'000'000;

  explicit DominantShares(const Cluster& cluster, OwnerWeights weights = {}) : weights_(std::move(weights)) {
    for (const Node& node : cluster.nodes) {
      total_[0] += node.gpus * whole_gpu;
      total_[1] = std::min(unlimited, total_[1] + node.cpu_milli);
      total_[2] = std::min(unlimited, total_[2] + node.memory_mib);
    }
  }

  /// The owner gets (sign +1) or gives back (-1) what a gang of `shape` holds.
  void add(std::uint32_t owner, const Shape& shape, std::int64_t sign) {
    if (owner >= held_.size()) {
      held_.resize(owner + 1, Resources{});
      shares_.resize(owner + 1, 0);
    }
    held_[owner] = changed(held_[owner], shape, sign);
    shares_[owner] = share_of(owner, held_[owner]);
  }

  [[nodiscard]] std::int64_t share(std::uint32_t owner) const { return owner < shares_.size() ? shares_[owner] : 0; }
  /// What share(owner) would be after add() of these arguments.
  [[nodiscard]] std::int64_t share_after(std::uint32_t owner, const Shape& shape, std::int64_t sign) const {
    return share_of(owner, changed(owner < held_.size() ? held_[owner] : Resources{}, shape, sign));
  }

 private:
  using Resources = std::array<std::int64_t, 3>;  // GPU thousandths, CPU thousandths, MiB

  static Resources changed(Resources held, const Shape& shape, std::int64_t sign) {
    held[0] += sign * shape.gpu_milli();
    held[1] += sign * shape.tasks * shape.cpu_milli_per_task;
    held[2] += sign * shape.tasks * shape.memory_mib_per_task;
    return held;
  }

  [[nodiscard]] std::int64_t share_of(std::uint32_t owner, const Resources& held) const {
    std::int64_t dominant = 0;
    for (std::size_t r = 0; r < total_.size(); ++r) {
      if (total_[r] > 0 && total_[r] < unlimited) dominant = std::max(dominant, mul_div(held[r], whole, total_[r]));
    }
    const std::int64_t weight_milli = weights_.milli(owner);
    return weight_milli == 1000 ? dominant : mul_div(dominant, 1000, weight_milli);
  }

  OwnerWeights weights_;
  Resources total_{};
  std::vector<Resources> held_;       // by owner
  std::vector<std::int64_t> shares_;  // of what is held
};

}  // namespace gpusched
