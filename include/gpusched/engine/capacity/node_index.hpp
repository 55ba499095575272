// SPDX-License-Identifier: Apache-2.0
/// NodeIndex: nodes in classes, each with an index of its members by the number of their idle GPUs, which answers "the
/// fullest node that still has 4 idle" in O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/core/id_set.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// Nodes alike in owner, GPU type, GPU count and MIG layout: the unit of search. A class of one node (a pool) needs no
/// index.
struct NodeClass {
  std::uint32_t vc = no_index;
  std::uint32_t vc_group = no_index;
  std::uint32_t gpu_type = 0;
  std::uint32_t gpus = 0;
  std::uint32_t mig = no_index;
  std::uint32_t whole_gpus = 0;  ///< of each member
  std::int64_t idle_gpus = 0;
  MilliGpu free_milli = 0;
  std::vector<std::uint32_t> members;  ///< node ids, ascending
  std::vector<IdSet> by_idle;          ///< by_idle[k]: ranks of members with exactly k idle GPUs; empty: no index
  IdSet occupied_levels;               ///< the k for which by_idle[k] is not empty
};

/// A value. It does not own the accounts of nodes: who changes a node's idle GPUs calls set_idle().
class NodeIndex {
 public:
  /// Nothing.
  NodeIndex() = default;

  /// Sets the class and rank of every node, all of whose GPUs are free.
  explicit NodeIndex(std::vector<NodeState>& nodes) {
    for (std::uint32_t id = 0; id < nodes.size(); ++id) {
      NodeState& node = nodes[id];
      NodeClass& alike = class_like(node);
      node.node_class = static_cast<std::uint32_t>(&alike - classes_.data());
      node.rank = static_cast<std::uint32_t>(alike.members.size());
      alike.members.push_back(id);
      alike.idle_gpus += node.idle;
      alike.free_milli += node.free_milli;
    }
    for (NodeClass& alike : classes_) {
      if (alike.members.size() == 1) continue;
      alike.by_idle.assign(alike.gpus + 1, IdSet(static_cast<std::uint32_t>(alike.members.size())));
      alike.occupied_levels = IdSet(alike.gpus + 1);
      alike.occupied_levels.insert(alike.whole_gpus);
      for (std::uint32_t rank = 0; rank < alike.members.size(); ++rank) alike.by_idle[alike.whole_gpus].insert(rank);
    }
  }

  /// All classes, in the order of their first nodes.
  [[nodiscard]] const std::vector<NodeClass>& classes() const { return classes_; }
  /// The class of that number.
  [[nodiscard]] const NodeClass& operator[](std::uint32_t number) const { return classes_[number]; }
  /// GPUs of which no part is held.
  [[nodiscard]] std::int64_t idle_gpus() const {
    std::int64_t sum = 0;
    for (const NodeClass& alike : classes_) sum += alike.idle_gpus;
    return sum;
  }

  /// True when members are listed by idle GPUs. Every look into the index asks this first.
  [[nodiscard]] bool has_index(const NodeClass& alike) const {
    GPUSCHED_ASSERT(!is_deferred_, "the index was asked before refresh()");
    return !alike.by_idle.empty();
  }
  /// The least number of idle GPUs, at least `need`, that some member of the class has; or no_index.
  [[nodiscard]] std::uint32_t fewest_idle(const NodeClass& alike, std::uint32_t need) const {
    if (has_index(alike)) return alike.occupied_levels.next(need);
    const auto idle = static_cast<std::uint32_t>(alike.idle_gpus);
    return idle >= need ? idle : no_index;
  }
  /// The greatest number of idle GPUs that a member has.
  [[nodiscard]] std::uint32_t most_idle(const NodeClass& alike) const {
    return has_index(alike) ? alike.occupied_levels.last() : static_cast<std::uint32_t>(alike.idle_gpus);
  }
  /// The lowest id of a member with `idle` idle GPUs. Precondition of this and the next two: there is one.
  [[nodiscard]] std::uint32_t first_with(const NodeClass& alike, std::uint32_t idle) const {
    return has_index(alike) ? alike.members[alike.by_idle[idle].first()] : alike.members.front();
  }
  /// How many members have `idle` idle GPUs. O(members / 64).
  [[nodiscard]] std::uint32_t count_with(const NodeClass& alike, std::uint32_t idle) const {
    return has_index(alike) ? alike.by_idle[idle].count() : 1;
  }
  /// Of those, the one at position `rank`, counted from 0. O(members / 64). Precondition: rank < count_with().
  [[nodiscard]] std::uint32_t nth_with(const NodeClass& alike, std::uint32_t idle, std::uint32_t rank) const {
    return has_index(alike) ? alike.members[alike.by_idle[idle].nth(rank)] : alike.members.front();
  }
  /// Calls visit(gpu_type, gpus, idle GPUs, number of nodes) for all nodes that are equal in the first three, those of
  /// different owners in separate calls. O(classes x GPUs per node) calls.
  template <class Visit>
  void for_each_idle_level(Visit visit) const {
    for (const NodeClass& alike : classes_) {
      for (std::uint32_t idle = fewest_idle(alike, 0); idle != no_index;) {
        visit(alike.gpu_type, alike.gpus, idle, count_with(alike, idle));
        idle = has_index(alike) ? alike.occupied_levels.next(idle + 1) : no_index;
      }
    }
  }

  /// Adds to the free thousandths of the node's class.
  void add_free(const NodeState& node, MilliGpu milli) { classes_[node.node_class].free_milli += milli; }
  /// The node, which is number `id`, has `idle` idle GPUs now.
  void set_idle(NodeState& node, std::uint32_t id, std::uint32_t idle) {
    if (idle == node.idle) return;
    NodeClass& alike = classes_[node.node_class];
    alike.idle_gpus += std::int64_t{idle} - std::int64_t{node.idle};
    const bool is_indexed = !alike.by_idle.empty();
    if (is_indexed && !is_deferred_) {
      relist(node, node.idle, idle);
    } else if (is_indexed && !node.is_stale) {
      node.is_stale = true;
      stale_.push_back({id, node.idle});
    }
    node.idle = idle;
  }

  /// Stops keeping the lists by idle GPUs until refresh().
  void defer() { is_deferred_ = true; }
  /// Brings them up to date and ends defer().
  void refresh(std::vector<NodeState>& nodes) {
    if (!is_deferred_) return;
    is_deferred_ = false;
    for (const Stale& stale : stale_) {
      NodeState& node = nodes[stale.node];
      node.is_stale = false;
      if (node.idle != stale.listed_idle) relist(node, stale.listed_idle, node.idle);
    }
    stale_.clear();
  }

  /// True when no member of any class holds anything.
  [[nodiscard]] bool all_free() const {
    return std::all_of(classes_.begin(), classes_.end(), [this](const NodeClass& alike) {
      const auto members = static_cast<std::int64_t>(alike.members.size());
      return alike.idle_gpus == members * alike.whole_gpus && alike.free_milli == members * alike.gpus * whole_gpu &&
             (!has_index(alike) || alike.by_idle[alike.whole_gpus].count() == alike.members.size());
    });
  }

 private:
  // A node that the index may list under another number of idle GPUs than it has.
  struct Stale {
    std::uint32_t node = 0;
    std::uint32_t listed_idle = 0;
  };

  NodeClass& class_like(const NodeState& node) {
    const auto is_alike = [&node](const NodeClass& other) {
      return other.vc == node.vc && other.vc_group == node.vc_group && other.gpu_type == node.gpu_type &&
             other.gpus == node.gpus && other.mig == node.mig;
    };
    const auto place = std::find_if(classes_.begin(), classes_.end(), is_alike);
    if (place != classes_.end()) return *place;
    NodeClass& fresh = classes_.emplace_back();
    fresh.vc = node.vc;
    fresh.vc_group = node.vc_group;
    fresh.gpu_type = node.gpu_type;
    fresh.gpus = node.gpus;
    fresh.mig = node.mig;
    fresh.whole_gpus = node.whole_gpus;
    return fresh;
  }

  void relist(const NodeState& node, std::uint32_t from, std::uint32_t to) {
    NodeClass& alike = classes_[node.node_class];
    alike.by_idle[from].erase(node.rank);
    if (alike.by_idle[from].empty()) alike.occupied_levels.erase(from);
    alike.by_idle[to].insert(node.rank);
    alike.occupied_levels.insert(to);
  }

  std::vector<NodeClass> classes_;
  std::vector<Stale> stale_;
  bool is_deferred_ = false;
};

}  // namespace gpusched::detail
