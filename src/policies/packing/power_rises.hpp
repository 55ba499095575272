// SPDX-License-Identifier: Apache-2.0
/// PowerRises: by how much the draw of a node rises when a task comes to it, the score of PWR (Lettich et al., "Power-
/// and Fragmentation-aware Online Scheduling for GPU Datacenters", CCGrid 2025).
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/engine/effects/node_draw.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// A value that follows the runs on each node, those that a decision begins among them. Nodes count as awake, and GPUs
/// as not limited.
class PowerRises {
 public:
  /// `model` must outlive this. `families`: of the table's jobs.
  PowerRises(const PowerModel& model, const Cluster& cluster, std::uint32_t families)
      : model_(&model), draws_(model, cluster, families), runs_(cluster.nodes.size()) {}

  /// The job holds GPUs or cores, as View::for_each_grant tells; it left the node. O(runs on its nodes).
  /// \{
  void began(const View& view, JobId job);
  void left(NodeId node, JobId job);
  /// \}

  /// Whole watts, cut towards 0, that one task of the job adds to the node; `device`: the card of a share, or no_index.
  [[nodiscard]] std::int32_t watts(const View& view, JobId job, NodeId node, std::uint32_t device);

  /// Nodes of one kind draw alike when they hold the same.
  [[nodiscard]] std::uint32_t kind_of(NodeId node) const { return model_->kind_of[index(node)]; }

 private:
  struct NodeRuns {
    std::vector<detail::Occupant> occupants;  // in their order
    std::int64_t mw = -1;                     // what the node draws with them; < 0: not known
  };

  [[nodiscard]] std::uint8_t top_level() const { return static_cast<std::uint8_t>(draws_.table().top()); }
  [[nodiscard]] std::int64_t measure(NodeId node, const std::vector<detail::Occupant>& occupants);

  const PowerModel* model_;
  detail::NodeDraws draws_;
  std::vector<NodeRuns> runs_;                  // by node
  std::vector<detail::Occupant> with_task_;     // of watts()
  std::vector<const detail::Occupant*> there_;  // of measure()
  std::vector<std::int64_t> parts_;             // likewise
};

}  // namespace gpusched
