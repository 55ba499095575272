// SPDX-License-Identifier: Apache-2.0
/// NodeWalk: the nodes of a cluster in a circle, passing over blocks of them that hold no room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/engine/cluster_state.hpp"

namespace gpusched {

/// Keeps the greatest free capacity of each block of nodes. A caller that takes or gives back capacity says so by
/// changed().
class NodeWalk {
 public:
  /// The capacity of the node is another than at the last walk.
  void changed(NodeId node) {
    if (index(node) / block < blocks_.size()) blocks_[index(node) / block].known = false;
  }

  /// Calls visit(node) for the nodes from `start` on, once round, until it returns false; nodes that certainly cannot
  /// take a task of `shape` are left out. Returns how many nodes were passed. O(nodes / 64 + those visited).
  template <class Visit>
  std::uint32_t walk(const ClusterState& cluster, const Shape& shape, std::uint32_t start, Visit visit) {
    const std::uint32_t nodes = cluster.node_count();
    blocks_.resize((nodes + block - 1) / block);
    for (std::uint32_t passed = 0; passed < nodes;) {
      const std::uint32_t first = (start + passed) % nodes;
      const std::uint32_t in_block = std::min(nodes, (first / block + 1) * block) - first;
      const std::uint32_t end = first + std::min(in_block, nodes - passed);
      if (!may_take(most_free(cluster, first / block), shape)) {
        passed += end - first;
        continue;
      }
      for (std::uint32_t node = first; node < end; ++node) {
        ++passed;
        if (!visit(NodeId{node})) return passed;
      }
    }
    return nodes;
  }

 private:
  static constexpr std::uint32_t block = 64;
  // The greatest of each over the nodes of a block.
  struct Most {
    bool known = false;
    MilliGpu idle = 0;  // whole GPUs
    MilliGpu gpu = 0;   // all GPUs of a node together
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
  };

  static bool may_take(const Most& most, const Shape& shape) {
    const MilliGpu gpu = shape.is_share() ? most.gpu : most.idle;
    return shape.gpu_milli_per_task <= gpu && shape.cpu_milli_per_task <= most.cpu_milli &&
           shape.memory_mib_per_task <= most.memory_mib;
  }

  const Most& most_free(const ClusterState& cluster, std::uint32_t number) {
    Most& most = blocks_[number];
    if (most.known) return most;
    most = {.known = true};
    const std::uint32_t end = std::min(cluster.node_count(), (number + 1) * block);
    for (std::uint32_t i = number * block; i < end; ++i) {
      const NodeId node{i};
      most.idle = std::max(most.idle, cluster.node_idle_gpus(node) * whole_gpu);
      most.gpu = std::max(most.gpu, cluster.node_free_gpu_milli(node));
      most.cpu_milli = std::max(most.cpu_milli, cluster.node_free_cpu_milli(node));
      most.memory_mib = std::max(most.memory_mib, cluster.node_free_memory_mib(node));
    }
    return most;
  }

  std::vector<Most> blocks_;
};

}  // namespace gpusched
