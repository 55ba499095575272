// SPDX-License-Identifier: Apache-2.0
/// MigLayouts: what cutting cards anew costs runs whose layout changes as jobs come.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/capacity.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// An effect: a run waits until its MIG cards have the instances that it holds. Capacity keeps the layouts.
class MigLayouts {
 public:
  static constexpr bool counts_costs() { return true; }

  /// No layout ever changes.
  MigLayouts() = default;
  explicit MigLayouts(const EffectWorld& world) : is_active_(world.cuts_cards) {}

  /// True when some layout may change.
  [[nodiscard]] bool active() const { return is_active_; }
  /// How many were changed so far.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// GPU time of these changes, past or to come.
  [[nodiscard]] Time gpu_time() const { return gpu_time_; }

  template <class Kernel>
  Time begin(Kernel& kernel, JobId job) {
    Time longest{};
    auto& cluster = kernel.state.cluster;
    for (std::uint32_t at = kernel.state[job].grants; at != no_index; at = cluster.grant(at).next) {
      const Capacity::Reconfiguration change = cluster.configure(cluster.grant(at));
      changes_ += change.cards;
      gpu_time_ += Time{mul_div(change.time.us, change.milli, whole_gpu)};
      longest = std::max(longest, change.time);
    }
    return longest;
  }
  template <class Kernel>
  Time moved(Kernel& kernel, JobId job, const std::vector<NodeId>&) {
    return begin(kernel, job);
  }

 private:
  bool is_active_ = false;
  std::uint64_t changes_ = 0;
  Time gpu_time_{};
};

}  // namespace gpusched::detail
