// SPDX-License-Identifier: Apache-2.0
/// CardMemory: the account of device memory. It counts where cards have a known amount and jobs with shares of GPUs say
/// what they need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// A value. Cards are numbered over all nodes that tell their GPUs apart; amounts are MiB.
class CardMemory {
 public:
  /// Memory does not count.
  CardMemory() = default;

  /// Everything free.
  CardMemory(const Cluster& cluster, const NameTable& specs, const std::vector<NodeState>& nodes, std::size_t cards) {
    const auto is_known = [](const DeviceType& device) { return device.memory_mib < unlimited; };
    if (std::none_of(cluster.devices.begin(), cluster.devices.end(), is_known)) return;
    std::vector<std::int64_t> needs(specs.size());
    for (std::uint32_t spec = 0; spec < specs.size(); ++spec) needs[spec] = GpuDemand(specs[spec]).memory_mib();
    if (std::all_of(needs.begin(), needs.end(), [](std::int64_t mib) { return mib == 0; })) return;
    of_spec_ = std::move(needs);
    total_.resize(cards);
    for (const NodeState& node : nodes) {
      if (!node.has_devices) continue;
      std::fill_n(total_.begin() + node.first_device, node.gpus, cluster.device(node.gpu_type).memory_mib);
    }
    left_ = total_;
  }

  /// True where memory counts.
  [[nodiscard]] bool counts() const { return !total_.empty(); }
  /// What a task of the shape takes on its card; 0 where memory does not count.
  [[nodiscard]] std::int64_t of(const Shape& shape) const { return of_spec_.empty() ? 0 : of_spec_[shape.gpu_spec]; }
  /// At most `tasks`: those of the shape that the memory left on the card, or on an idle one, holds.
  /// \{
  [[nodiscard]] std::int64_t tasks_that_fit(std::uint32_t card, const Shape& shape, std::int64_t tasks) const {
    const std::int64_t memory = of(shape);
    return memory == 0 ? tasks : std::min(tasks, left_[card] / memory);
  }
  [[nodiscard]] std::int64_t tasks_when_idle(std::uint32_t card, const Shape& shape, std::int64_t tasks) const {
    const std::int64_t memory = of(shape);
    return memory == 0 ? tasks : std::min(tasks, total_[card] / memory);
  }
  /// \}
  /// Takes (sign -1) or gives back (+1) what one task of the shape needs.
  void change(std::uint32_t card, const Shape& shape, std::int64_t sign) {
    const std::int64_t memory = of(shape);
    if (memory == 0) return;
    left_[card] += sign * memory;
    GPUSCHED_ASSERT(left_[card] >= 0 && left_[card] <= total_[card], "device memory out of range");
  }
  /// What is left on the card. Precondition: counts().
  /// \{
  [[nodiscard]] std::int64_t& left(std::uint32_t card) { return left_[card]; }
  [[nodiscard]] std::int64_t left(std::uint32_t card) const { return left_[card]; }
  /// \}
  /// True when nothing is held.
  [[nodiscard]] bool all_free() const { return left_ == total_; }

 private:
  std::vector<std::int64_t> total_, left_;  // by card; empty where memory does not count
  std::vector<std::int64_t> of_spec_;       // by GPU demand; likewise
};

}  // namespace gpusched::detail
