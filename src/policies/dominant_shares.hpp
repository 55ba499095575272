// SPDX-License-Identifier: Apache-2.0
/// What each user holds of the cluster, as Volcano's plugin drf measures it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/cluster.hpp"
#include "gpusched/job_table.hpp"

namespace gpusched {

/// A share is the largest of allocated / total over GPUs, CPU and memory; a resource that the cluster does not bound
/// does not count. In units of 1e-12, so that sums are exact and a copy can be asked what-if.
class DominantShares {
 public:
  static constexpr std::int64_t whole = 1'000'000'000'000;
  /// Shares that differ by no more count as equal: 1e-6, Volcano's shareDelta.
  static constexpr std::int64_t delta = whole / 1'000'000;

  explicit DominantShares(const Cluster& cluster) {
    for (const Node& node : cluster.nodes) {
      total_[0] += node.gpus * whole_gpu;
      total_[1] = std::min(unlimited, total_[1] + node.cpu_milli);
      total_[2] = std::min(unlimited, total_[2] + node.memory_mib);
    }
  }

  /// The user gets (sign +1) or gives back (-1) what a gang of `shape` holds.
  void add(std::uint32_t user, const Shape& shape, std::int64_t sign) {
    if (user >= held_.size()) {
      held_.resize(user + 1, Resources{});
      shares_.resize(user + 1, 0);
    }
    held_[user] = changed(held_[user], shape, sign);
    shares_[user] = share_of(held_[user]);
  }

  [[nodiscard]] std::int64_t share(std::uint32_t user) const { return user < shares_.size() ? shares_[user] : 0; }
  /// The same after add().
  [[nodiscard]] std::int64_t share_after(std::uint32_t user, const Shape& shape, std::int64_t sign) const {
    return share_of(changed(user < held_.size() ? held_[user] : Resources{}, shape, sign));
  }

 private:
  using Resources = std::array<std::int64_t, 3>;  // GPU thousandths, CPU thousandths, MiB

  static Resources changed(Resources held, const Shape& shape, std::int64_t sign) {
    held[0] += sign * shape.gpu_milli();
    held[1] += sign * shape.tasks * shape.cpu_milli_per_task;
    held[2] += sign * shape.tasks * shape.memory_mib_per_task;
    return held;
  }

  [[nodiscard]] std::int64_t share_of(const Resources& held) const {
    std::int64_t dominant = 0;
    for (std::size_t r = 0; r < total_.size(); ++r) {
      if (total_[r] > 0 && total_[r] < unlimited) dominant = std::max(dominant, mul_div(held[r], whole, total_[r]));
    }
    return dominant;
  }

  Resources total_{};
  std::vector<Resources> held_;       // by user
  std::vector<std::int64_t> shares_;  // of what is held
};

}  // namespace gpusched
