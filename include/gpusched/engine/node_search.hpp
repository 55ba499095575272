// SPDX-License-Identifier: Apache-2.0
/// NodeSearch: the placement rules. It looks at what is free (capacity.hpp) and chooses nodes; it takes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/placement.hpp"
#include "gpusched/engine/capacity.hpp"

namespace gpusched::detail {

/// The search for the nodes of one gang, one node after another. Lives as long as that search and borrows all it is
/// given. Where GPUs are the only limit an answer costs O(classes of nodes x log n) by the index of idle GPUs, for a
/// share of a GPU on the fullest node that has room by the index of shares, and within racks O(racks + nodes of a
/// rack). Otherwise all nodes that the job may use are looked at.
class NodeSearch {
 public:
  /// For a gang of `shape` among the nodes of these classes.
  NodeSearch(const Capacity& capacity, const Shape& shape, const std::vector<std::uint32_t>& classes, Placement rule,
             Rng& rng)
      : capacity_(capacity),
        index_(capacity.node_classes()),
        shape_(shape),
        allowed_(classes),
        rule_(rule),
        rng_(rng) {}

  /// True when gangs by that rule go where their tasks are in one rack.
  [[nodiscard]] static bool minds_racks(const Capacity& capacity, Placement rule) {
    return rule == Placement::rack || (rule == Placement::consolidate && capacity.keeps_gangs_near());
  }

  /// The node for the next tasks of the gang, of which `left` have none yet; no_node when no allowed node has room.
  [[nodiscard]] NodeId next(std::uint32_t left) {
    if (goes_to_fullest() && capacity_.shares_are_indexed()) {
      return capacity_.shares().fullest_with(shape_.gpu_milli_per_task, allowed_);
    }
    if (minds_racks(capacity_, rule_)) return pick_in_rack(left);
    if (!uses_remnants(rule_)) return pick_whole(left);
    return is_indexed() ? pick_by_index(static_cast<std::uint32_t>(shape_.gpu_milli_per_task / whole_gpu), left)
                        : pick_by_scan(left);
  }

  /// How many of `left` tasks go to the node that next() gave: as many as fit, or one at a time.
  [[nodiscard]] std::uint32_t tasks_on(NodeId node, std::uint32_t left) const {
    return rule_ == Placement::worst_fit ? 1 : std::min(left, capacity_.tasks_that_fit(node, shape_));
  }

 private:
  // A gang that one node holds goes to the fullest such node.
  [[nodiscard]] bool goes_to_fullest() const {
    return rule_ == Placement::rack || rule_ == Placement::consolidate || rule_ == Placement::best_fit ||
           rule_ == Placement::fastest;
  }

  // The index knows whole GPUs and nothing else.
  [[nodiscard]] bool is_indexed() const { return capacity_.is_told_by_idle_gpus(shape_); }

  // The node of lowest id among those with the fewest idle GPUs, at least `need`.
  [[nodiscard]] NodeId fullest_with(std::uint64_t need) const {
    NodeId best = no_node;
    std::uint32_t best_level = no_index;
    for (const std::uint32_t g : allowed_) {
      const NodeClass& alike = index_[g];
      if (need > alike.gpus) continue;
      const std::uint32_t level = index_.fewest_idle(alike, static_cast<std::uint32_t>(need));
      if (level == no_index || level > best_level) continue;
      const NodeId node{index_.first_with(alike, level)};
      if (level < best_level || index(node) < index(best)) best = node;
      best_level = level;
    }
    return best;
  }

  // The node of lowest id among those with the most idle GPUs, if that is at least `need`.
  [[nodiscard]] NodeId emptiest_with(std::uint32_t need) const {
    NodeId best = no_node;
    std::uint32_t best_level = 0;
    for (const std::uint32_t g : allowed_) {
      const NodeClass& alike = index_[g];
      const std::uint32_t level = index_.most_idle(alike);
      if (level < need || level < best_level) continue;
      const NodeId node{index_.first_with(alike, level)};
      if (best == no_node || level > best_level || index(node) < index(best)) best = node;
      best_level = level;
    }
    return best;
  }

  [[nodiscard]] NodeId first_with(std::uint32_t need) const {
    std::uint32_t best = no_index;
    for (const std::uint32_t g : allowed_) {
      const NodeClass& alike = index_[g];
      for (std::uint32_t level = index_.fewest_idle(alike, need); level != no_index;
           level = index_.fewest_idle(alike, level + 1)) {
        best = std::min(best, index_.first_with(alike, level));
      }
    }
    return NodeId{best};
  }

  [[nodiscard]] NodeId random_with(std::uint32_t need) {
    std::uint32_t candidates = 0;
    for_each_level(need, [&candidates](const NodeClass&, std::uint32_t, std::uint32_t members) {
      candidates += members;
      return true;
    });
    if (candidates == 0) return no_node;
    auto rank = static_cast<std::uint32_t>(rng_.below(candidates));
    NodeId chosen = no_node;
    for_each_level(need, [this, &rank, &chosen](const NodeClass& alike, std::uint32_t level, std::uint32_t members) {
      if (rank >= members) {
        rank -= members;
        return true;
      }
      chosen = NodeId{index_.nth_with(alike, level, rank)};
      return false;
    });
    return chosen;
  }

  // Calls visit(alike, level, members of that level) until it returns false.
  template <class Visit>
  void for_each_level(std::uint32_t need, Visit visit) const {
    for (const std::uint32_t g : allowed_) {
      const NodeClass& alike = index_[g];
      for (std::uint32_t level = index_.fewest_idle(alike, need); level != no_index;
           level = index_.fewest_idle(alike, level + 1)) {
        const std::uint32_t members = index_.count_with(alike, level);
        if (!visit(alike, level, members)) return;
      }
    }
  }

  [[nodiscard]] NodeId pick_by_index(std::uint32_t gpus_per_task, std::uint32_t left) {
    switch (rule_) {
      case Placement::first_fit: return first_with(gpus_per_task);
      case Placement::worst_fit: return emptiest_with(gpus_per_task);
      case Placement::random: return random_with(gpus_per_task);
      default: break;
    }
    const NodeId whole = fullest_with(std::uint64_t{gpus_per_task} * left);
    if (whole != no_node) return whole;
    return rule_ == Placement::best_fit ? fullest_with(gpus_per_task) : emptiest_with(gpus_per_task);
  }

  [[nodiscard]] NodeId pick_by_scan(std::uint32_t left) {
    NodeId best = no_node;
    bool best_holds_all = false;
    MilliGpu best_free = 0;
    std::uint64_t seen = 0;
    for (const std::uint32_t g : allowed_) {
      for (const std::uint32_t id : index_[g].members) {
        const NodeId node{id};
        const std::uint32_t fit = capacity_.tasks_that_fit(node, shape_);
        if (fit == 0) continue;
        ++seen;
        const bool holds_all = fit >= left;
        const MilliGpu free = room_on(node);
        bool better = best == no_node;
        switch (rule_) {
          case Placement::first_fit: better = better || id < index(best); break;
          case Placement::worst_fit:
            better = better || free > best_free || (free == best_free && id < index(best));
            break;
          case Placement::random: better = rng_.below(seen) == 0; break;  // reservoir of one: uniform
          default:                                                        // best_fit, consolidate, fastest
            if (better) break;
            if (holds_all != best_holds_all) {
              better = holds_all;
            } else if (free != best_free) {
              const bool want_emptier = rule_ != Placement::best_fit && !holds_all;
              better = want_emptier ? free > best_free : free < best_free;
            } else {
              better = id < index(best);
            }
            break;
        }
        if (!better) continue;
        best = node;
        best_holds_all = holds_all;
        best_free = free;
      }
    }
    return best;
  }

  // ---- whole nodes: yarn, helios ---------------------------------------------------------------------------------

  [[nodiscard]] NodeId pick_whole(std::uint32_t left) const {
    const bool small = shape_.tasks <= most_tasks_on_one();
    const NodeId idle = small ? no_node : first_idle(left);
    if (idle != no_node) return idle;
    if (is_indexed()) {
      const std::int64_t need = shape_.gpu_milli_per_task / whole_gpu * left;
      if (need > std::int64_t{no_index} - 1) return no_node;
      const auto gpus = static_cast<std::uint32_t>(need);
      if (rule_ == Placement::yarn) return first_with(gpus);
      return small ? fullest_with(gpus) : emptiest_with(gpus);
    }
    const std::int64_t sign = rule_ == Placement::yarn ? 0 : small ? +1 : -1;  // any, the fullest, the emptiest
    return least_by_scan([this, &left, &sign](NodeId node) {
      return capacity_.tasks_that_fit(node, shape_) >= left ? sign * room_on(node) : unlimited;
    });
  }

  // What is free on the node as tasks of the shape see it: whole GPUs, or any part of one.
  [[nodiscard]] MilliGpu room_on(NodeId id) const {
    const NodeState& node = capacity_.node(id);
    return shape_.is_share() ? node.free_milli : node.idle * whole_gpu;
  }

  // Tasks of a gang of any length that the node would hold if nobody used it.
  [[nodiscard]] std::int64_t tasks_when_empty(const NodeState& node) const {
    const std::int64_t tasks = Capacity::bounded_tasks_that_fit(node.cpu_capacity, node.memory_capacity, shape_);
    if (shape_.gpu_milli_per_task == 0) return tasks;
    const std::int64_t on_gpus = shape_.is_share() && node.has_devices
                                     ? capacity_.shares_when_idle(node, shape_)
                                     : node.whole_gpus * whole_gpu / shape_.gpu_milli_per_task;
    return std::min(tasks, on_gpus);
  }

  [[nodiscard]] std::int64_t most_tasks_on_one() const {
    std::int64_t most = 0;
    for (const std::uint32_t g : allowed_) {
      const std::size_t distinct =
          capacity_.is_bounded() ? index_[g].members.size() : 1;  // members differ in CPU and memory alone
      for (std::size_t rank = 0; rank < distinct; ++rank) {
        most = std::max(most, tasks_when_empty(capacity_.node(NodeId{index_[g].members[rank]})));
      }
    }
    return most;
  }

  // The lowest-numbered node that nobody uses and that `left` tasks fill.
  [[nodiscard]] NodeId first_idle(std::uint32_t left) const {
    const auto filled = [this, &left](const NodeState& node) {
      const std::int64_t tasks = tasks_when_empty(node);
      return tasks > 0 && tasks <= left;
    };
    if (!is_indexed()) {
      return least_by_scan([this, &filled](NodeId id) {
        const NodeState& node = capacity_.node(id);
        const bool unused = node.free_milli == node.gpus * whole_gpu && node.cpu_milli == node.cpu_capacity &&
                            node.memory_mib == node.memory_capacity;
        return unused && filled(node) ? MilliGpu{0} : unlimited;
      });
    }
    std::uint32_t best = no_index;
    for (const std::uint32_t g : allowed_) {
      const NodeClass& alike = index_[g];
      if (index_.fewest_idle(alike, alike.gpus) == no_index || !filled(capacity_.node(NodeId{alike.members.front()})))
        continue;
      best = std::min(best, index_.first_with(alike, alike.gpus));
    }
    return NodeId{best};
  }

  // The node of the least score below unlimited, the lowest-numbered on ties.
  template <class Score>
  [[nodiscard]] NodeId least_by_scan(Score score) const {
    NodeId best = no_node;
    MilliGpu least = unlimited;
    for (const std::uint32_t g : allowed_) {
      for (const std::uint32_t id : index_[g].members) {
        const MilliGpu here = score(NodeId{id});
        if (here > least || here == unlimited || (here == least && id > index(best))) continue;
        best = NodeId{id};
        least = here;
      }
    }
    return best;
  }

  // ---- racks -----------------------------------------------------------------------------------------------------

  // One node that holds all: the fullest. Else within `rack_` as consolidate does; when that is full or not yet chosen,
  // another rack. O(nodes) where something else than GPUs is a limit, or shares are several; else as the head says.
  [[nodiscard]] NodeId pick_in_rack(std::uint32_t left) {
    if (left == shape_.tasks) {
      const NodeId one = is_indexed()
                             ? fullest_with(static_cast<std::uint64_t>(shape_.gpu_milli_per_task / whole_gpu) * left)
                             : least_by_scan([this, &left](NodeId id) {
                                 return capacity_.tasks_that_fit(id, shape_) >= left ? room_on(id) : unlimited;
                               });
      if (one != no_node) return one;
    }
    if (rack_ != no_index) {
      if (const NodeId node = pick_on_rack(left); node != no_node) return node;
    }
    rack_ = choose_rack(left);
    return rack_ == no_index ? no_node : pick_on_rack(left);
  }

  // Of the nodes of `rack_` with room for a task the one with the least room that holds `left` tasks, or else the one
  // with the most room; the lowest-numbered on ties.
  [[nodiscard]] NodeId pick_on_rack(std::uint32_t left) const {
    NodeId snug = no_node, roomy = no_node;
    MilliGpu least = 0, most = 0;
    for (const std::uint32_t id : capacity_.racks().nodes_of(rack_)) {
      const NodeId node{id};
      if (std::find(allowed_.begin(), allowed_.end(), capacity_.node(node).node_class) == allowed_.end()) continue;
      const std::uint32_t tasks = capacity_.tasks_that_fit(node, shape_);
      if (tasks == 0) continue;
      const MilliGpu room = room_on(node);
      if (tasks >= left && (snug == no_node || room < least)) {
        snug = node;
        least = room;
      }
      if (roomy == no_node || room > most) {
        roomy = node;
        most = room;
      }
    }
    return snug != no_node ? snug : roomy;
  }

  // Calls visit(rack, tasks) for racks with nodes that the job may use; several times for one. No node there holds the
  // whole gang.
  template <class Visit>
  void for_each_room(Visit visit) const {
    if (is_indexed() && shape_.gpu_milli_per_task > 0) {
      const auto gpus = static_cast<std::uint32_t>(shape_.gpu_milli_per_task / whole_gpu);
      capacity_.racks().for_each_room(allowed_, gpus, visit);
      return;
    }
    for (const std::uint32_t g : allowed_) {
      for (const std::uint32_t id : index_[g].members) {
        visit(capacity_.node(NodeId{id}).rack_number, std::int64_t{capacity_.tasks_that_fit(NodeId{id}, shape_)});
      }
    }
  }

  // The rack of the site at hand, if any, then the one with the least room that holds `left` tasks; where none does, in
  // the site with the least room that does, or else the most, the rack with the most room.
  [[nodiscard]] std::uint32_t choose_rack(std::uint32_t left) const {
    std::vector<std::int64_t> racks(capacity_.racks().rack_count()), sites(1);  // room in tasks
    for_each_room([&racks](std::uint32_t rack, std::int64_t tasks) { racks[rack] += tasks; });
    for (std::uint32_t rack = 0; rack < racks.size(); ++rack) {
      const std::uint32_t site = capacity_.site_of(rack);
      if (site >= sites.size()) sites.resize(site + 1);
      sites[site] += racks[rack];
    }
    const auto shortage = [&left](std::int64_t room) {  // what fits snugly is least; of what does not, the largest
      return room >= left ? std::pair(std::int64_t{0}, room) : std::pair(std::int64_t{1}, -room);
    };
    using Rank = std::tuple<bool, std::int64_t, std::pair<std::int64_t, std::int64_t>, std::int64_t>;
    std::uint32_t best = no_index;
    Rank least{};
    for (std::uint32_t rack = 0; rack < racks.size(); ++rack) {
      const std::int64_t room = racks[rack];
      if (room == 0) continue;
      const std::uint32_t site = capacity_.site_of(rack);
      const bool elsewhere = rack_ != no_index && site != capacity_.site_of(rack_);
      const auto [lacks, size] = shortage(room);
      const Rank rank{elsewhere, lacks,
                      lacks == 0 ? std::pair(std::int64_t{0}, std::int64_t{0}) : shortage(sites[site]), size};
      if (best != no_index && rank >= least) continue;
      best = rack;
      least = rank;
    }
    return best;
  }

  const Capacity& capacity_;
  const NodeIndex& index_;
  const Shape& shape_;
  const std::vector<std::uint32_t>& allowed_;  // classes of nodes
  Placement rule_;
  Rng& rng_;
  std::uint32_t rack_ = no_index;  // of the last node, while it has room for more
};

}  // namespace gpusched::detail
