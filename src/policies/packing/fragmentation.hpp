// SPDX-License-Identifier: Apache-2.0
/// The fragmentation measure of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC'23): how much of a node's idle
/// GPU capacity the pods that the cluster typically sees could not use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/cluster_state.hpp"

namespace gpusched {

/// A kind of pod and the share of all pods that it stands for.
struct TypicalPod {
  std::int64_t cpu_milli = 0;
  std::uint32_t cards = 0;     ///< GPUs that it needs on one node
  MilliGpu card_milli = 0;     ///< of each: 1000 when `cards` > 1
  std::uint32_t gpu_spec = 0;  ///< index into JobTable::gpu_specs() of the run's table
  double share = 0;            ///< the shares of a measure sum to 1
};

/// A pod's demand on the cards of one node. `shape` is one task's.
constexpr std::uint32_t cards_of(const Shape& shape) {
  return shape.is_share() ? 1 : static_cast<std::uint32_t>(shape.gpu_milli_per_task / whole_gpu);
}
constexpr MilliGpu card_milli_of(const Shape& shape) {
  if (shape.gpu_milli_per_task == 0) return 0;
  return shape.is_share() ? shape.gpu_milli_per_task : whole_gpu;
}

/// The kinds of pods (CPU, cards, milli-GPU a card, GPU demand; not memory), CPU-only ones included, in falling order
/// of count up to and including the one at which `coverage` (0 to 1) of the table's jobs are covered. Ties: larger CPU,
/// then milli-GPU, cards, GPU demand (by name) first. Their GPU demands are numbers of this table: a run on another
/// table needs the same numbers there (JobTableBuilder(like)).
std::vector<TypicalPod> typical_pods(const JobTable& jobs, double coverage = 0.95);

/// A node as the measure sees it.
struct NodeCapacity {
  std::int64_t cpu_milli = 0;             ///< free
  std::span<const MilliGpu> card_left{};  ///< free thousandths of each GPU
  NodeId node = no_node;                  ///< for the GPU types that a kind of pod accepts
};

/// Expected milli-GPU of the node that a typical pod could not use: the sum over kinds of share x f, where f is all
/// that is idle when such a pod does not fit (or needs no GPU), else what is left on the cards too small for it.
double fragmentation(const std::vector<TypicalPod>& pods, const NodeCapacity& node, const ClusterState& cluster);

}  // namespace gpusched
