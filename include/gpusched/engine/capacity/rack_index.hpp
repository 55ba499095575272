// SPDX-License-Identifier: Apache-2.0
/// RackIndex: the nodes of each rack, and how much room a rack has, without a look at its nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// A value, empty until it is made by the first search that minds racks. Flat, because policies copy it with the
/// cluster.
class RackIndex {
 public:
  /// It has been made.
  [[nodiscard]] bool is_made() const { return !cell_of_node_.empty(); }

  /// Counts what is idle on the nodes now. `classes`: as many as nodes have numbers of classes.
  void make(const std::vector<NodeState>& nodes, std::uint32_t classes) {
    cell_of_node_.resize(nodes.size());
    list_racks(nodes);
    // A cell for the nodes of each class in each rack, those of a class together.
    std::vector<std::uint32_t> order = nodes_by_rack_;
    std::stable_sort(order.begin(), order.end(),
                     [&nodes](std::uint32_t a, std::uint32_t b) { return nodes[a].node_class < nodes[b].node_class; });
    class_begin_.assign(classes + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const NodeState& node = nodes[order[i]];
      const bool is_like_last = i > 0 && nodes[order[i - 1]].node_class == node.node_class &&
                                nodes[order[i - 1]].rack_number == node.rack_number;
      if (!is_like_last) {
        cells_.push_back({node.rack_number, static_cast<std::uint32_t>(levels_.size()), node.gpus, 0});
        levels_.resize(levels_.size() + node.gpus + 1);
        ++class_begin_[node.node_class + 1];
      }
      Cell& cell = cells_.back();
      cell_of_node_[order[i]] = static_cast<std::uint32_t>(cells_.size() - 1);
      cell.idle += node.idle;
      ++levels_[cell.first_level + node.idle];
    }
    for (std::uint32_t number = 0; number < classes; ++number) class_begin_[number + 1] += class_begin_[number];
  }

  /// Node `id` had so many idle GPUs, and has others now.
  void moved(std::uint32_t id, std::uint32_t from, std::uint32_t to) {
    Cell& cell = cells_[cell_of_node_[id]];
    cell.idle += std::int64_t{to} - std::int64_t{from};
    --levels_[cell.first_level + from];
    ++levels_[cell.first_level + to];
  }

  /// The ids of the nodes in the rack, ascending.
  [[nodiscard]] std::span<const std::uint32_t> nodes_of(std::uint32_t rack) const {
    return std::span(nodes_by_rack_).subspan(rack_begin_[rack], rack_begin_[rack + 1] - rack_begin_[rack]);
  }
  /// Number of racks, those without nodes among them.
  [[nodiscard]] std::uint32_t rack_count() const {
    return rack_begin_.empty() ? 0 : static_cast<std::uint32_t>(rack_begin_.size() - 1);
  }

  /// Calls visit(rack, tasks) for the racks of classes of those numbers: as many tasks of so many whole GPUs as its
  /// idle GPUs hold. Those of different classes in separate calls. O(racks), and where a task has several GPUs
  /// O(racks x GPUs per node).
  template <class Visit>
  void for_each_room(const std::vector<std::uint32_t>& classes, std::uint32_t gpus, Visit visit) const {
    for (const std::uint32_t number : classes) {
      for (std::uint32_t at = class_begin_[number]; at < class_begin_[number + 1]; ++at) {
        visit(cells_[at].rack, room_of(cells_[at], gpus));
      }
    }
  }

 private:
  // The nodes of one class in one rack.
  struct Cell {
    std::uint32_t rack = 0;
    std::uint32_t first_level = 0;  // in levels_; there are gpus + 1
    std::uint32_t gpus = 0;         // of each node
    std::int64_t idle = 0;          // GPUs
  };

  void list_racks(const std::vector<NodeState>& nodes) {
    std::uint32_t racks = 0;
    for (const NodeState& node : nodes) racks = std::max(racks, node.rack_number + 1);
    rack_begin_.assign(racks + 1, 0);
    for (const NodeState& node : nodes) ++rack_begin_[node.rack_number + 1];
    for (std::uint32_t rack = 0; rack < racks; ++rack) rack_begin_[rack + 1] += rack_begin_[rack];
    std::vector<std::uint32_t> next(rack_begin_.begin(), rack_begin_.end() - 1);
    nodes_by_rack_.resize(nodes.size());
    for (std::uint32_t id = 0; id < nodes.size(); ++id) nodes_by_rack_[next[nodes[id].rack_number]++] = id;
  }

  [[nodiscard]] std::int64_t room_of(const Cell& cell, std::uint32_t gpus) const {
    if (gpus == 1) return cell.idle;
    std::int64_t tasks = 0;
    for (std::uint32_t idle = gpus; idle <= cell.gpus; ++idle) {
      tasks += std::int64_t{levels_[cell.first_level + idle]} * (idle / gpus);
    }
    return tasks;
  }

  std::vector<std::uint32_t> cell_of_node_;
  std::vector<Cell> cells_;                 // by class
  std::vector<std::uint32_t> levels_;       // of each cell: nodes by idle GPUs
  std::vector<std::uint32_t> class_begin_;  // in cells_, and one more
  std::vector<std::uint32_t> nodes_by_rack_;
  std::vector<std::uint32_t> rack_begin_;  // in nodes_by_rack_, and one more
};

}  // namespace gpusched::detail
