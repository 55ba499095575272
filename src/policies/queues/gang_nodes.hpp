// SPDX-License-Identifier: Apache-2.0
/// Node choices of published simulators that place a gang by their own rule, over a plain count of free GPUs a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gpusched/engine/cluster_state.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// What published simulators that count whole GPUs take: gangs of one-GPU tasks of any GPU type, one queue.
inline Result<void> check_one_gpu_tasks(const std::string& policy, const PolicyContext& context) {
  for (const Shape& shape : context.jobs->shapes()) {
    if (shape.gpu_milli_per_task != whole_gpu || shape.gpu_spec != 0) {
      return unexpected(policy + " takes jobs of one-GPU tasks of any GPU type only");
    }
  }
  if (!context.cluster->vcs.empty()) return unexpected(policy + " knows no virtual clusters; name a cluster without");
  return {};
}

/// The nodes of one gang of one-GPU tasks.
using GangNodes = std::vector<NodeTasks>;

/// `yarn` placement of the Muri artifact (cluster.py, after the Tiresias simulator), all or nothing. A gang of at most
/// one node's GPUs goes to the first node in id order that holds it; a larger one takes floor(need / node size)
/// completely idle nodes in id order and, for the rest, the first other node that holds it. Written for equal nodes,
/// placing onto an emptied cluster: capacity only shrinks between two calls of reset(), so that each size resumes its
/// search where it last ended; O(1) amortised a gang. When a gang does not fit, no larger one does.
class YarnPlacement {
 public:
  /// Without nodes.
  YarnPlacement() = default;

  /// The nodes of `cluster` that are in service, whoever holds their GPUs, all free.
  explicit YarnPlacement(const ClusterState& cluster) : size_(cluster.node_count()) {
    for (std::uint32_t node = 0; node < size_.size(); ++node) {
      size_[node] = cluster.is_up(NodeId{node}) ? cluster.node_gpus(NodeId{node}) : 0;
      node_gpus_ = std::max(node_gpus_, cluster.node_gpus(NodeId{node}));
    }
    reset();
  }

  /// All GPUs free again.
  void reset() {
    free_ = size_;
    free_gpus_ = std::accumulate(size_.begin(), size_.end(), std::uint64_t{0});
    first_with_.assign(node_gpus_ + 1, 0);
  }

  /// The node goes out of service, or comes back with so many GPUs; from the next reset() on.
  void resize(NodeId node, std::uint32_t gpus) { size_[index(node)] = gpus; }

  /// Of the largest node.
  [[nodiscard]] std::uint32_t node_gpus() const { return node_gpus_; }

  /// Takes GPUs for a gang of at most node_gpus() one-GPU tasks; its node, or no_index when it does not fit.
  std::uint32_t place_on_one(std::uint32_t need) {
    const auto nodes = static_cast<std::uint32_t>(free_.size());
    std::uint32_t at = first_with_[need];
    if (at < nodes && free_[at] < need) {  // a store that the next search has to wait for, so only where needed
      while (at < nodes && free_[at] < need) ++at;
      first_with_[need] = at;
    }
    if (at == nodes) return no_index;
    free_[at] -= need;
    free_gpus_ -= need;
    return at;
  }

  /// Takes GPUs for a gang of `need` >= 1 one-GPU tasks and lists its nodes in `nodes`; false, taking nothing, when the
  /// gang does not fit.
  bool place(std::uint32_t need, GangNodes& nodes) {
    nodes.clear();
    if (need > free_gpus_) return false;
    for (std::uint32_t rest = need; rest >= node_gpus_; rest -= node_gpus_) {
      if (!take_first(node_gpus_, nodes)) return undo(nodes);
    }
    const std::uint32_t rest = need % node_gpus_;
    if (rest > 0 && !take_first(rest, nodes)) return undo(nodes);
    return true;
  }

 private:
  bool take_first(std::uint32_t gpus, GangNodes& nodes) {
    const std::uint32_t node = place_on_one(gpus);
    if (node != no_index) nodes.push_back({NodeId{node}, gpus});
    return node != no_index;
  }

  // The search may have gone past the nodes that are given back.
  bool undo(GangNodes& nodes) {
    for (const NodeTasks& part : nodes) {
      free_[index(part.node)] += part.tasks;
      free_gpus_ += part.tasks;
      for (std::uint32_t& at : first_with_) at = std::min(at, index(part.node));
    }
    nodes.clear();
    return false;
  }

  std::vector<std::uint32_t> size_, free_;  // GPUs, by node
  std::vector<std::uint32_t> first_with_;   // [gpus]: no earlier node has as many free
  std::uint32_t node_gpus_ = 0;             // of the largest node
  std::uint64_t free_gpus_ = 0;             // that no gang has taken
};

}  // namespace gpusched
