// SPDX-License-Identifier: Apache-2.0
/// Nodes alike in GPU type, size and idle GPUs: as the groups that an observation shows, and as the kinds of node that
/// a job could start on.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched {

/// Nodes alike in GPU type, size and idle GPUs, whatever owns them.
struct NodeGroup {
  std::uint64_t key;                      ///< of these three
  std::array<float, group_features> row;  ///< of GroupFeature
};

/// The groups of a cluster and what of it is fragmented, worked out anew when it has changed.
class NodeGroups {
 public:
  /// What follows is out of date from now on.
  void cluster_changed() { updated_ = false; }

  /// Brings the groups up to date: of the nodes in service. O(groups of the ClusterState) when the cluster has changed;
  /// O(nodes) while one is out of service.
  void update(const View& view) {
    if (updated_) return;
    updated_ = true;
    const ClusterState& cluster = view.cluster();
    if (cluster.node_count() == 1 && groups_.size() == 1 && cluster.is_up(NodeId{0})) {
      update_only_node(cluster);
      return;
    }
    groups_.clear();
    fragmented_ = 0;
    cluster.for_each_idle_level(
        [this, &cluster](std::uint32_t type, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
          if (gpus == 0) return;
          if (idle < gpus && cluster.node_count() > 1) fragmented_ += std::int64_t{idle} * nodes;
          node_gpus_ = std::max<std::int64_t>(node_gpus_, gpus);
          const std::uint64_t key = key_of(type, gpus, idle);
          const auto same =
              std::find_if(groups_.begin(), groups_.end(), [key](const NodeGroup& other) { return other.key == key; });
          const auto share = static_cast<float>(gpus) * static_cast<float>(nodes);
          if (same == groups_.end()) {
            groups_.push_back({key,
                               {static_cast<float>(idle) / static_cast<float>(gpus), static_cast<float>(nodes),
                                static_cast<float>(gpus), share}});
            return;
          }
          same->row[log_nodes] += static_cast<float>(nodes);
          same->row[group_gpu_share] += share;
        });
    if (cluster.up_gpus() < cluster.total_gpus()) leave_out_down(cluster);
    for (auto& [key, row] : groups_) {
      row[log_nodes] = detail::fast_log1p(row[log_nodes]) / 5;
      row[log_node_gpus] = detail::fast_log1p(row[log_node_gpus]) / 5;
      row[group_gpu_share] /= gpus_of(cluster);
    }
  }

  /// The groups, as of the last update().
  [[nodiscard]] std::span<const NodeGroup> list() const { return groups_; }

  /// Free GPUs on partly used nodes; 0 in a cluster of one node.
  [[nodiscard]] std::int64_t fragmented_gpus() const { return fragmented_; }

  /// True when a gang of `need` whole GPUs on one node fills exactly what is idle there, or takes whole nodes.
  /// Approximate by design: "whole" is the size of the largest node.
  [[nodiscard]] bool leaves_no_fragment(const View& view, std::int64_t need) const {
    const ClusterState& cluster = view.cluster();
    if (cluster.node_count() == 1) return need == cluster.node_idle_gpus(NodeId{0});
    if (node_gpus_ > 0 && need % node_gpus_ == 0) return true;
    const auto wanted = static_cast<float>(need % std::max<std::int64_t>(1, node_gpus_));
    return std::any_of(groups_.begin(), groups_.end(), [this, &wanted](const NodeGroup& group) {
      return std::fabs(group.row[idle_fraction] * static_cast<float>(node_gpus_) - wanted) < 0.5f;
    });
  }

 private:
  static std::uint64_t key_of(std::uint32_t type, std::uint32_t gpus, std::uint32_t idle) {
    return std::uint64_t{type} << 48 | std::uint64_t{gpus} << 24 | std::uint64_t{idle};
  }

  // What it has never changes.
  void update_only_node(const ClusterState& cluster) {
    const auto gpus = static_cast<float>(cluster.node_gpus(NodeId{0}));
    groups_.front().row[idle_fraction] = static_cast<float>(cluster.node_idle_gpus(NodeId{0})) / gpus;
  }

  // Nodes out of service have nothing idle.
  void leave_out_down(const ClusterState& cluster) {
    for (std::uint32_t id = 0; id < cluster.node_count(); ++id) {
      const NodeId node{id};
      const std::uint32_t gpus = cluster.node_gpus(node);
      if (gpus == 0 || cluster.is_up(node)) continue;
      const std::uint64_t key = key_of(cluster.node_gpu_type(node), gpus, 0);
      const auto full =
          std::find_if(groups_.begin(), groups_.end(), [key](const NodeGroup& other) { return other.key == key; });
      full->row[log_nodes] -= 1;
      full->row[group_gpu_share] -= static_cast<float>(gpus);
    }
    std::erase_if(groups_, [](const NodeGroup& group) { return group.row[log_nodes] == 0; });
  }

  std::vector<NodeGroup> groups_;
  std::int64_t node_gpus_ = 0, fragmented_ = 0;
  bool updated_ = false;
};

/// Nodes alike that a job could start on.
struct NodeKind {
  NodeId node;  ///< the first of them
  std::uint32_t gpu_type, gpus, idle;
};

/// Fills `kinds` with those of which the first node could take the whole job now, fullest first, `most` at most; with
/// none for shares of a GPU, nor in a cluster of one node. O(nodes x kinds).
inline void list_node_kinds(const View& view, JobId job, std::size_t most, std::vector<NodeKind>& kinds) {
  kinds.clear();
  const Shape& shape = view.shape(job);
  const ClusterState& cluster = view.cluster();
  if (shape.is_share() || cluster.node_count() == 1) return;
  for (std::uint32_t id = 0; id < cluster.node_count(); ++id) {
    const NodeId node{id};
    const NodeKind kind{node, cluster.node_gpu_type(node), cluster.node_gpus(node), cluster.node_idle_gpus(node)};
    if (std::int64_t{kind.idle} * whole_gpu < shape.gpu_milli() || kind.gpus == 0) continue;
    const bool listed = std::any_of(kinds.begin(), kinds.end(), [&kind](const NodeKind& other) {
      return other.gpu_type == kind.gpu_type && other.gpus == kind.gpus && other.idle == kind.idle;
    });
    if (listed || !cluster.node_allowed(node, shape, view.queue_of(job))) continue;
    if (cluster.tasks_that_fit(node, shape) >= shape.tasks) kinds.push_back(kind);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const NodeKind& a, const NodeKind& b) { return a.idle < b.idle; });
  if (kinds.size() > most) kinds.resize(most);
}

}  // namespace gpusched
