// SPDX-License-Identifier: Apache-2.0
/// ClusterState: what is free now, who holds what, and the search for nodes. Capacity only ever leaves it through
/// take(), which cannot go below zero: overcommit is impossible by construction.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "gpusched/core/id_set.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/placement.hpp"

namespace gpusched {

/// Tasks of one gang on one node. The grants of a job form a list in ClusterState's pool.
struct Grant {
  std::uint64_t devices = 0;      ///< bit d: GPU d of the node; 0 on a node that only counts, and for CPU-only tasks
  NodeId node = no_node;          ///< where the tasks run
  std::uint32_t tasks = 0;        ///< how many of the gang's tasks
  std::uint32_t next = no_index;  ///< next grant of the list; no_index = the last
};

/// Nodes of a policy's own choosing, for Decision::start_on.
struct NodeTasks {
  NodeId node = no_node;            ///< where the tasks go
  std::uint32_t tasks = 0;          ///< how many of the gang's tasks
  std::uint32_t device = no_index;  ///< for a GPU share: the GPU to use; no_index = the fullest that fits
};

/// Free capacity of every node, indexed for O(log n) search when GPUs are the only limit; clusters with bounded CPU
/// or memory, and jobs that share GPUs, are searched by scanning the nodes.
class ClusterState {
 public:
  /// GPUs of a larger node are counted, not told apart.
  static constexpr std::uint32_t max_devices_per_node = 64;

  ClusterState() = default;

  /// Everything free. `specs` are the GPU demands of the jobs (JobTable::gpu_specs): names joined by '|'.
  ClusterState(const Cluster& cluster, const NameTable& specs, Rng rng) : rng_(rng) {
    vc_free_.reserve(cluster.vcs.size());
    for (const VirtualCluster& vc : cluster.vcs) vc_free_.push_back(vc.quota);
    vc_quota_ = vc_free_;
    for (const Node& node : cluster.nodes) {
      GPUSCHED_ASSERT(node.gpu_type < cluster.gpu_types.size(), "node of an unknown GPU type");
      add_node(node);
    }
    index_nodes();
    list_groups(cluster, specs);
  }

  /// Nodes of the cluster; ids run from 0.
  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// GPUs of all nodes, free or not.
  [[nodiscard]] std::int64_t total_gpus() const { return total_gpus_; }
  /// GPU thousandths that no job holds.
  [[nodiscard]] MilliGpu free_gpu_milli() const { return free_gpu_milli_; }
  /// GPUs of which no part is held, cluster-wide; counting nodes contribute whole GPUs.
  [[nodiscard]] std::int64_t idle_gpus() const {
    std::int64_t sum = 0;
    for (const Group& group : groups_) sum += group.idle_gpus;
    return sum;
  }
  /// GPUs of the node, free or not.
  [[nodiscard]] std::uint32_t node_gpus(NodeId node) const { return nodes_[index(node)].gpus; }
  /// Index into Cluster::gpu_types.
  [[nodiscard]] std::uint32_t node_gpu_type(NodeId node) const { return nodes_[index(node)].gpu_type; }
  /// GPUs of the node of which no part is held.
  [[nodiscard]] std::uint32_t node_idle_gpus(NodeId node) const { return nodes_[index(node)].idle; }
  /// Free thousandths of a core.
  [[nodiscard]] std::int64_t node_free_cpu_milli(NodeId node) const { return nodes_[index(node)].cpu_milli; }
  /// Free MiB.
  [[nodiscard]] std::int64_t node_free_memory_mib(NodeId node) const { return nodes_[index(node)].memory_mib; }
  /// Free thousandths of the whole node.
  [[nodiscard]] MilliGpu node_free_gpu_milli(NodeId node) const { return nodes_[index(node)].free_milli; }
  /// True when the node tells its GPUs apart (node_device_left is meaningful).
  [[nodiscard]] bool node_has_devices(NodeId node) const { return nodes_[index(node)].has_devices; }
  /// Free thousandths of GPU `device`. Precondition: node_has_devices(node), device < node_gpus(node).
  [[nodiscard]] MilliGpu node_device_left(NodeId node, std::uint32_t device) const {
    return device_left_[nodes_[index(node)].first_device + device];
  }
  /// GPUs that are told apart, and the number of one of them among these. Precondition as above.
  [[nodiscard]] std::uint32_t card_count() const { return static_cast<std::uint32_t>(device_left_.size()); }
  /// Number of GPU `device` of the node among all cards, below card_count().
  [[nodiscard]] std::uint32_t card(NodeId node, std::uint32_t device) const {
    return nodes_[index(node)].first_device + device;
  }

  /// Calls visit(gpu_type, gpus, idle GPUs, nodes) for nodes alike in all of these; O(kinds of nodes x GPUs a node)
  /// calls. Nodes of different owners come apart.
  template <class Visit>
  void for_each_idle_level(Visit visit) const {
    for (const Group& group : groups_) {
      if (!has_index(group)) {
        visit(group.gpu_type, group.gpus, nodes_[group.members.front()].idle, 1u);
        continue;
      }
      for (std::uint32_t idle = 0; idle <= group.gpus; ++idle) {
        if (const std::uint32_t nodes = group.by_idle[idle].count(); nodes > 0) {
          visit(group.gpu_type, group.gpus, idle, nodes);
        }
      }
    }
  }

  /// Thousandths that the jobs of virtual cluster `vc` may still take.
  [[nodiscard]] MilliGpu vc_free(std::uint32_t vc) const { return vc < vc_free_.size() ? vc_free_[vc] : unlimited; }

  /// How many tasks of `shape` the node could take now, whatever owns it.
  [[nodiscard]] std::uint32_t tasks_that_fit(NodeId id, const Shape& shape) const {
    const NodeState& node = nodes_[index(id)];
    std::int64_t tasks = shape.tasks;
    if (shape.cpu_milli_per_task > 0) tasks = std::min(tasks, node.cpu_milli / shape.cpu_milli_per_task);
    if (shape.memory_mib_per_task > 0) tasks = std::min(tasks, node.memory_mib / shape.memory_mib_per_task);
    if (shape.gpu_milli_per_task > 0) tasks = std::min(tasks, gpu_tasks_that_fit(node, shape));
    return static_cast<std::uint32_t>(tasks);
  }

  /// True when a job of `shape` in virtual cluster `vc` may run on the node (owner and GPU type), busy or not.
  [[nodiscard]] bool node_allowed(NodeId node, const Shape& shape, std::uint32_t vc) const {
    const std::vector<std::uint32_t>& allowed = allowed_groups(shape, vc);
    return std::find(allowed.begin(), allowed.end(), nodes_[index(node)].group) != allowed.end();
  }

  /// GPU thousandths that a job of `shape` in virtual cluster `vc` could draw on now: within its quota, on nodes it may
  /// use, idle GPUs only unless it asks for shares.
  [[nodiscard]] MilliGpu available_gpu_milli(const Shape& shape, std::uint32_t vc) const {
    MilliGpu free = 0;
    for (const std::uint32_t group : allowed_groups(shape, vc)) {
      free += shape.is_share() ? groups_[group].free_milli : groups_[group].idle_gpus * whole_gpu;
    }
    return std::min(free, vc_free(vc));
  }

  /// A cheap necessary condition for place(). Exact when GPUs are the only limit and every task wants at most one.
  [[nodiscard]] bool may_fit(const Shape& shape, std::uint32_t vc) const {
    return shape.gpu_milli() <= available_gpu_milli(shape, vc);
  }

  /// Could a job of `shape` run on the empty cluster? O(nodes).
  [[nodiscard]] static bool fits_when_empty(const Cluster& cluster, const NameTable& specs, const Shape& shape,
                                            std::uint32_t vc) {
    ClusterState state(cluster, specs, Rng{});
    return state.place(shape, vc, Placement::consolidate) != no_index;
  }

  /// Chooses nodes for the whole gang by `rule` and takes them. Returns the head of the grant list, or no_index when
  /// the gang does not fit (then nothing changed).
  std::uint32_t place(const Shape& shape, std::uint32_t vc, Placement rule) {
    if (!may_fit(shape, vc)) return no_index;
    refresh_index();
    const std::vector<std::uint32_t>& allowed = allowed_groups(shape, vc);
    std::uint32_t head = no_index;
    std::uint32_t rack = no_index;  // of the last node, while it has room for more
    for (std::uint32_t left = shape.tasks; left > 0;) {
      const NodeId node =
          rule == Placement::rack ? pick_in_rack(shape, allowed, left, rack) : pick_node(shape, allowed, rule, left);
      if (node == no_node) {
        release(head, shape, vc);
        free_grants(head);
        return no_index;
      }
      const std::uint32_t tasks = rule == Placement::worst_fit ? 1 : std::min(left, tasks_that_fit(node, shape));
      head = take(node, tasks, shape, vc, no_index, head);
      left -= tasks;
    }
    return head;
  }

  /// Takes nodes of the caller's choosing; returns no_index and changes nothing when they do not add up to the gang, do
  /// not fit, or are not allowed.
  std::uint32_t place_on(const Shape& shape, std::uint32_t vc, const NodeTasks* choice, std::size_t count) {
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < count; ++i) total += choice[i].tasks;
    if (total != shape.tasks || shape.gpu_milli() > vc_free(vc)) return no_index;
    std::uint32_t head = no_index;
    for (std::size_t i = 0; i < count; ++i) {
      const NodeTasks& part = choice[i];
      const bool known = index(part.node) < node_count() && part.tasks > 0;
      if (!known || !node_allowed(part.node, shape, vc) || tasks_that_fit(part.node, shape) < part.tasks ||
          !device_fits(part, shape)) {
        release(head, shape, vc);
        free_grants(head);
        return no_index;
      }
      head = take(part.node, part.tasks, shape, vc, part.device, head);
    }
    return head;
  }

  /// Gives the capacity of a grant list back; the list stays, so that retake() can undo this.
  void release(std::uint32_t head, const Shape& shape, std::uint32_t vc) {
    for (std::uint32_t at = head; at != no_index; at = grants_[at].next) give_back(grants_[at], shape, vc);
  }

  /// From now to refresh_index() the index of nodes by idle GPUs is left as it is: where much is released and taken
  /// again on nodes of the caller's choosing, most nodes end as idle as they were. Until then what searches the nodes
  /// (for_each_idle_level(), all_free()) must not be asked.
  void defer_index() { index_deferred_ = true; }

  /// Ends defer_index(). place() does so itself.
  void refresh_index() {
    if (!index_deferred_) return;
    index_deferred_ = false;
    for (const Stale& stale : stale_) {
      NodeState& node = nodes_[stale.node];
      node.is_stale = false;
      if (node.idle != stale.listed_idle) relist(node, stale.listed_idle, node.idle);
    }
    stale_.clear();
  }

  /// Takes exactly the capacity of a released grant list again; false (and no change) when some of it is gone.
  bool retake(std::uint32_t head, const Shape& shape, std::uint32_t vc) {
    if (shape.gpu_milli() > vc_free(vc)) return false;
    for (std::uint32_t at = head; at != no_index; at = grants_[at].next) {
      if (is_free(grants_[at], shape)) {
        occupy(grants_[at], shape, vc);
        continue;
      }
      for (std::uint32_t undo = head; undo != at; undo = grants_[undo].next) give_back(grants_[undo], shape, vc);
      return false;
    }
    return true;
  }

  /// Returns the records of a list to the pool.
  void free_grants(std::uint32_t head) {
    while (head != no_index) {
      const std::uint32_t next = grants_[head].next;
      grants_[head].next = free_grant_;
      free_grant_ = head;
      head = next;
    }
  }

  /// The grant at a place of a list (View::grants(), Grant::next).
  [[nodiscard]] const Grant& grant(std::uint32_t at) const { return grants_[at]; }

  /// True when nothing is held: what must hold after every running job gave its grants back. O(GPUs).
  [[nodiscard]] bool all_free() const {
    const auto node_free = [](const NodeState& node) {
      const std::uint64_t all = node.has_devices ? ~std::uint64_t{0} >> (64 - node.gpus) : 0;
      return node.cpu_milli == node.cpu_capacity && node.memory_mib == node.memory_capacity &&
             node.free_milli == node.gpus * whole_gpu && node.idle == node.gpus && node.idle_devices == all;
    };
    const auto group_free = [this](const Group& group) {
      const auto gpus = static_cast<std::int64_t>(group.members.size()) * group.gpus;
      return group.idle_gpus == gpus && group.free_milli == gpus * whole_gpu &&
             (!has_index(group) || group.by_idle[group.gpus].count() == group.members.size());
    };
    return free_gpu_milli_ == total_gpus_ * whole_gpu && vc_free_ == vc_quota_ &&
           std::all_of(nodes_.begin(), nodes_.end(), node_free) &&
           std::all_of(groups_.begin(), groups_.end(), group_free) &&
           std::all_of(device_left_.begin(), device_left_.end(), [](std::int16_t left) { return left == whole_gpu; });
  }

 private:
  struct NodeState {
    std::int64_t cpu_milli = 0;   // free
    std::int64_t memory_mib = 0;  // free
    std::int64_t cpu_capacity = 0;
    std::int64_t memory_capacity = 0;
    MilliGpu free_milli = 0;
    std::uint64_t idle_devices = 0;  // bit d: GPU d is idle (has_devices only)
    std::uint32_t idle = 0;          // idle whole GPUs
    std::uint32_t gpus = 0;
    std::uint32_t gpu_type = 0;
    std::uint32_t vc = no_index;
    std::uint32_t rack_number = 0;
    std::uint32_t group = 0;
    std::uint32_t rank = 0;          // position in its group
    std::uint32_t first_device = 0;  // into device_left_ (has_devices only)
    bool has_devices = false;
    bool is_stale = false;  // in stale_
  };

  // A node that its group's index lists under another number of idle GPUs than it has, or so it may be.
  struct Stale {
    std::uint32_t node = 0;
    std::uint32_t listed_idle = 0;
  };

  // Nodes alike in owner, GPU type and GPU count; the unit of search. A group of one node (a pool) needs no index.
  struct Group {
    std::uint32_t vc = no_index;
    std::uint32_t gpu_type = 0;
    std::uint32_t gpus = 0;
    std::int64_t idle_gpus = 0;
    MilliGpu free_milli = 0;
    std::vector<std::uint32_t> members;  // node ids, ascending
    std::vector<IdSet> by_idle;          // by_idle[k]: ranks of members with exactly k idle GPUs
    IdSet occupied_levels;               // the k for which by_idle[k] is not empty
  };

  void add_node(const Node& node) {
    NodeState state;
    state.cpu_milli = state.cpu_capacity = node.cpu_milli;
    state.memory_mib = state.memory_capacity = node.memory_mib;
    state.gpus = state.idle = node.gpus;
    state.free_milli = node.gpus * whole_gpu;
    state.gpu_type = node.gpu_type;
    state.vc = node.vc;
    state.rack_number = node.rack;
    state.has_devices = node.gpus > 0 && node.gpus <= max_devices_per_node && !node.counts_only;
    if (state.has_devices) {
      state.idle_devices = ~std::uint64_t{0} >> (64 - node.gpus);
      state.first_device = static_cast<std::uint32_t>(device_left_.size());
      device_left_.resize(device_left_.size() + node.gpus, static_cast<std::int16_t>(whole_gpu));
    }
    bounded_ = bounded_ || node.cpu_milli < unlimited || node.memory_mib < unlimited;
    total_gpus_ += node.gpus;
    free_gpu_milli_ += state.free_milli;
    nodes_.push_back(state);
  }

  void index_nodes() {
    for (std::uint32_t id = 0; id < node_count(); ++id) {
      NodeState& node = nodes_[id];
      const auto alike = [&](const Group& group) {
        return group.vc == node.vc && group.gpu_type == node.gpu_type && group.gpus == node.gpus;
      };
      const auto place = std::find_if(groups_.begin(), groups_.end(), alike);
      node.group = static_cast<std::uint32_t>(place - groups_.begin());
      if (place == groups_.end()) {
        groups_.push_back({.vc = node.vc,
                           .gpu_type = node.gpu_type,
                           .gpus = node.gpus,
                           .members = {},
                           .by_idle = {},
                           .occupied_levels = {}});
      }
      Group& group = groups_[node.group];
      node.rank = static_cast<std::uint32_t>(group.members.size());
      group.members.push_back(id);
      group.idle_gpus += node.idle;
      group.free_milli += node.free_milli;
    }
    for (Group& group : groups_) {
      if (group.members.size() == 1) continue;
      group.by_idle.assign(group.gpus + 1, IdSet(static_cast<std::uint32_t>(group.members.size())));
      group.occupied_levels = IdSet(group.gpus + 1);
      group.occupied_levels.insert(group.gpus);
      for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) group.by_idle[group.gpus].insert(rank);
    }
  }

  // For every (GPU demand, virtual cluster): the groups where such a job may run.
  void list_groups(const Cluster& cluster, const NameTable& specs) {
    const std::size_t vcs = cluster.vcs.size() + 1;  // the last one: jobs of no virtual cluster, which may run anywhere
    owners_ = static_cast<std::uint32_t>(vcs);
    allowed_.assign(specs.size() * vcs, {});
    for (std::uint32_t spec = 0; spec < specs.size(); ++spec) {
      for (std::uint32_t vc = 0; vc < vcs; ++vc) {
        for (std::uint32_t g = 0; g < groups_.size(); ++g) {
          const bool owner_fits = vc + 1 == vcs || groups_[g].vc == no_index || groups_[g].vc == vc;
          if (owner_fits && spec_allows(specs[spec], cluster.gpu_types[groups_[g].gpu_type])) {
            allowed_[spec * vcs + vc].push_back(g);
          }
        }
      }
    }
  }

  static bool spec_allows(std::string_view spec, std::string_view type) {
    if (spec.empty() || type == any_gpu_type) return true;
    while (!spec.empty()) {
      const std::size_t bar = std::min(spec.find('|'), spec.size());
      if (spec.substr(0, bar) == type) return true;
      spec.remove_prefix(std::min(bar + 1, spec.size()));
    }
    return false;
  }

  [[nodiscard]] const std::vector<std::uint32_t>& allowed_groups(const Shape& shape, std::uint32_t vc) const {
    return allowed_[std::size_t{shape.gpu_spec} * owners_ + std::min(vc, owners_ - 1)];
  }

  [[nodiscard]] std::int64_t gpu_tasks_that_fit(const NodeState& node, const Shape& shape) const {
    if (!shape.is_share()) return node.idle / (shape.gpu_milli_per_task / whole_gpu);
    if (!node.has_devices) return node.free_milli / shape.gpu_milli_per_task;
    std::int64_t tasks = 0;
    for (std::uint32_t d = 0; d < node.gpus; ++d)
      tasks += device_left_[node.first_device + d] / shape.gpu_milli_per_task;
    return tasks;
  }

  [[nodiscard]] bool device_fits(const NodeTasks& part, const Shape& shape) const {
    const NodeState& node = nodes_[index(part.node)];
    if (part.device == no_index || !shape.is_share() || !node.has_devices) return true;
    return part.tasks == 1 && part.device < node.gpus &&
           device_left_[node.first_device + part.device] >= shape.gpu_milli_per_task;
  }

  // ---- choosing a node -------------------------------------------------------------------------------------------

  // The index knows whole GPUs and nothing else.
  [[nodiscard]] bool is_indexed(const Shape& shape) const { return !bounded_ && !shape.is_share(); }

  [[nodiscard]] NodeId pick_node(const Shape& shape, const std::vector<std::uint32_t>& allowed, Placement rule,
                                 std::uint32_t left) {
    if (!uses_remnants(rule)) return pick_whole(shape, allowed, rule, left);
    return is_indexed(shape)
               ? pick_by_index(static_cast<std::uint32_t>(shape.gpu_milli_per_task / whole_gpu), allowed, rule, left)
               : pick_by_scan(shape, allowed, rule, left);
  }

  // Every look into the index asks this first.
  [[nodiscard]] bool has_index(const Group& group) const {
    GPUSCHED_ASSERT(!index_deferred_, "the index was asked before refresh_index()");
    return !group.by_idle.empty();
  }

  // The least number of idle GPUs, at least `need`, that some member of the group has; or no_index.
  [[nodiscard]] std::uint32_t level_from(const Group& group, std::uint32_t need) const {
    if (has_index(group)) return group.occupied_levels.next(need);
    const std::uint32_t idle = nodes_[group.members.front()].idle;
    return idle >= need ? idle : no_index;
  }

  [[nodiscard]] std::uint32_t top_level(const Group& group) const {
    return has_index(group) ? group.occupied_levels.last() : nodes_[group.members.front()].idle;
  }

  // Precondition: some member has `level` idle GPUs.
  [[nodiscard]] std::uint32_t first_member(const Group& group, std::uint32_t level) const {
    return has_index(group) ? group.members[group.by_idle[level].first()] : group.members.front();
  }

  // The node of lowest id among those with the fewest idle GPUs, at least `need`.
  [[nodiscard]] NodeId fullest_with(std::uint64_t need, const std::vector<std::uint32_t>& allowed) const {
    NodeId best = no_node;
    std::uint32_t best_level = no_index;
    for (const std::uint32_t g : allowed) {
      const Group& group = groups_[g];
      if (need > group.gpus) continue;
      const std::uint32_t level = level_from(group, static_cast<std::uint32_t>(need));
      if (level == no_index || level > best_level) continue;
      const NodeId node{first_member(group, level)};
      if (level < best_level || index(node) < index(best)) best = node;
      best_level = level;
    }
    return best;
  }

  // The node of lowest id among those with the most idle GPUs, if that is at least `need`.
  [[nodiscard]] NodeId emptiest_with(std::uint32_t need, const std::vector<std::uint32_t>& allowed) const {
    NodeId best = no_node;
    std::uint32_t best_level = 0;
    for (const std::uint32_t g : allowed) {
      const Group& group = groups_[g];
      const std::uint32_t level = top_level(group);
      if (level < need || level < best_level) continue;
      const NodeId node{first_member(group, level)};
      if (best == no_node || level > best_level || index(node) < index(best)) best = node;
      best_level = level;
    }
    return best;
  }

  [[nodiscard]] NodeId first_with(std::uint32_t need, const std::vector<std::uint32_t>& allowed) const {
    std::uint32_t best = no_index;
    for (const std::uint32_t g : allowed) {
      const Group& group = groups_[g];
      for (std::uint32_t level = level_from(group, need); level != no_index; level = level_from(group, level + 1)) {
        best = std::min(best, first_member(group, level));
      }
    }
    return NodeId{best};
  }

  [[nodiscard]] NodeId random_with(std::uint32_t need, const std::vector<std::uint32_t>& allowed) {
    std::uint32_t candidates = 0;
    for_each_level(need, allowed, [&](const Group&, std::uint32_t, std::uint32_t members) {
      candidates += members;
      return true;
    });
    if (candidates == 0) return no_node;
    auto rank = static_cast<std::uint32_t>(rng_.below(candidates));
    NodeId chosen = no_node;
    for_each_level(need, allowed, [&](const Group& group, std::uint32_t level, std::uint32_t members) {
      if (rank >= members) {
        rank -= members;
        return true;
      }
      chosen = NodeId{has_index(group) ? group.members[group.by_idle[level].nth(rank)] : group.members.front()};
      return false;
    });
    return chosen;
  }

  // Calls visit(group, level, members of that level) until it returns false.
  template <class Visit>
  void for_each_level(std::uint32_t need, const std::vector<std::uint32_t>& allowed, Visit visit) const {
    for (const std::uint32_t g : allowed) {
      const Group& group = groups_[g];
      for (std::uint32_t level = level_from(group, need); level != no_index; level = level_from(group, level + 1)) {
        const std::uint32_t members = has_index(group) ? group.by_idle[level].count() : 1;
        if (!visit(group, level, members)) return;
      }
    }
  }

  [[nodiscard]] NodeId pick_by_index(std::uint32_t gpus_per_task, const std::vector<std::uint32_t>& allowed,
                                     Placement rule, std::uint32_t left) {
    switch (rule) {
      case Placement::first_fit: return first_with(gpus_per_task, allowed);
      case Placement::worst_fit: return emptiest_with(gpus_per_task, allowed);
      case Placement::random: return random_with(gpus_per_task, allowed);
      default: break;
    }
    const NodeId whole = fullest_with(std::uint64_t{gpus_per_task} * left, allowed);
    if (whole != no_node) return whole;
    return rule == Placement::best_fit ? fullest_with(gpus_per_task, allowed) : emptiest_with(gpus_per_task, allowed);
  }

  [[nodiscard]] NodeId pick_by_scan(const Shape& shape, const std::vector<std::uint32_t>& allowed, Placement rule,
                                    std::uint32_t left) {
    NodeId best = no_node;
    bool best_holds_all = false;
    MilliGpu best_free = 0;
    std::uint64_t seen = 0;
    for (const std::uint32_t g : allowed) {
      for (const std::uint32_t id : groups_[g].members) {
        const NodeId node{id};
        const std::uint32_t fit = tasks_that_fit(node, shape);
        if (fit == 0) continue;
        ++seen;
        const bool holds_all = fit >= left;
        const MilliGpu free = shape.is_share() ? nodes_[id].free_milli : nodes_[id].idle * whole_gpu;
        bool better = best == no_node;
        switch (rule) {
          case Placement::first_fit: better = better || id < index(best); break;
          case Placement::worst_fit:
            better = better || free > best_free || (free == best_free && id < index(best));
            break;
          case Placement::random: better = rng_.below(seen) == 0; break;  // reservoir of one: uniform
          default:                                                        // best_fit, consolidate
            if (better) break;
            if (holds_all != best_holds_all) {
              better = holds_all;
            } else if (free != best_free) {
              const bool want_emptier = rule == Placement::consolidate && !holds_all;
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

  [[nodiscard]] NodeId pick_whole(const Shape& shape, const std::vector<std::uint32_t>& allowed, Placement rule,
                                  std::uint32_t left) const {
    const bool small = shape.tasks <= most_tasks_on_one(shape, allowed);
    const NodeId idle = small ? no_node : first_idle(shape, allowed, left);
    if (idle != no_node) return idle;
    if (is_indexed(shape)) {
      const std::int64_t need = shape.gpu_milli_per_task / whole_gpu * left;
      if (need > std::int64_t{no_index} - 1) return no_node;
      const auto gpus = static_cast<std::uint32_t>(need);
      if (rule == Placement::yarn) return first_with(gpus, allowed);
      return small ? fullest_with(gpus, allowed) : emptiest_with(gpus, allowed);
    }
    const std::int64_t sign = rule == Placement::yarn ? 0 : small ? +1 : -1;  // any, the fullest, the emptiest
    return least_by_scan(allowed, [&](NodeId node) {
      return tasks_that_fit(node, shape) >= left ? sign * room_on(node, shape) : unlimited;
    });
  }

  // What is free on the node as tasks of the shape see it: whole GPUs, or any part of one.
  [[nodiscard]] MilliGpu room_on(NodeId id, const Shape& shape) const {
    const NodeState& node = nodes_[index(id)];
    return shape.is_share() ? node.free_milli : node.idle * whole_gpu;
  }

  // Tasks of a gang of any length that the node would hold if nobody used it.
  [[nodiscard]] static std::int64_t tasks_when_empty(const NodeState& node, const Shape& shape) {
    std::int64_t tasks = unlimited;
    if (shape.cpu_milli_per_task > 0) tasks = std::min(tasks, node.cpu_capacity / shape.cpu_milli_per_task);
    if (shape.memory_mib_per_task > 0) tasks = std::min(tasks, node.memory_capacity / shape.memory_mib_per_task);
    if (shape.gpu_milli_per_task == 0) return tasks;
    const std::int64_t per_gpu = whole_gpu / shape.gpu_milli_per_task;  // of a share on a node with devices
    const std::int64_t on_gpus =
        shape.is_share() && node.has_devices ? node.gpus * per_gpu : node.gpus * whole_gpu / shape.gpu_milli_per_task;
    return std::min(tasks, on_gpus);
  }

  [[nodiscard]] std::int64_t most_tasks_on_one(const Shape& shape, const std::vector<std::uint32_t>& allowed) const {
    std::int64_t most = 0;
    for (const std::uint32_t g : allowed) {
      const std::size_t distinct = bounded_ ? groups_[g].members.size() : 1;  // members differ in CPU and memory alone
      for (std::size_t rank = 0; rank < distinct; ++rank) {
        most = std::max(most, tasks_when_empty(nodes_[groups_[g].members[rank]], shape));
      }
    }
    return most;
  }

  // The lowest-numbered node that nobody uses and that `left` tasks fill.
  [[nodiscard]] NodeId first_idle(const Shape& shape, const std::vector<std::uint32_t>& allowed,
                                  std::uint32_t left) const {
    const auto filled = [&](const NodeState& node) {
      const std::int64_t tasks = tasks_when_empty(node, shape);
      return tasks > 0 && tasks <= left;
    };
    if (!is_indexed(shape)) {
      return least_by_scan(allowed, [&](NodeId id) {
        const NodeState& node = nodes_[index(id)];
        const bool unused =
            node.idle == node.gpus && node.cpu_milli == node.cpu_capacity && node.memory_mib == node.memory_capacity;
        return unused && filled(node) ? MilliGpu{0} : unlimited;
      });
    }
    std::uint32_t best = no_index;
    for (const std::uint32_t g : allowed) {
      const Group& group = groups_[g];
      if (level_from(group, group.gpus) == no_index || !filled(nodes_[group.members.front()])) continue;
      best = std::min(best, first_member(group, group.gpus));
    }
    return NodeId{best};
  }

  // The node of the least score below unlimited, the lowest-numbered on ties.
  template <class Score>
  [[nodiscard]] NodeId least_by_scan(const std::vector<std::uint32_t>& allowed, Score score) const {
    NodeId best = no_node;
    MilliGpu least = unlimited;
    for (const std::uint32_t g : allowed) {
      for (const std::uint32_t id : groups_[g].members) {
        const MilliGpu here = score(NodeId{id});
        if (here > least || here == unlimited || (here == least && id > index(best))) continue;
        best = NodeId{id};
        least = here;
      }
    }
    return best;
  }

  // ---- racks -----------------------------------------------------------------------------------------------------

  // One node that holds all: the fullest. Else within `rack` as consolidate does; when that is full or not yet chosen,
  // the rack with the least room that holds all, or else with the most. O(nodes).
  [[nodiscard]] NodeId pick_in_rack(const Shape& shape, const std::vector<std::uint32_t>& allowed, std::uint32_t left,
                                    std::uint32_t& rack) const {
    const auto holding = [&](std::uint32_t tasks, std::uint32_t in_rack, std::int64_t sign) {
      return least_by_scan(allowed, [&](NodeId id) {
        const bool there = in_rack == no_index || nodes_[index(id)].rack_number == in_rack;
        return there && tasks_that_fit(id, shape) >= tasks ? sign * room_on(id, shape) : unlimited;
      });
    };
    if (left == shape.tasks) {
      const NodeId one = holding(left, no_index, +1);
      if (one != no_node) return one;
    }
    if (rack == no_index || holding(1, rack, +1) == no_node) rack = choose_rack(shape, allowed, left);
    if (rack == no_index) return no_node;
    const NodeId last = holding(left, rack, +1);
    return last != no_node ? last : holding(1, rack, -1);
  }

  [[nodiscard]] std::uint32_t choose_rack(const Shape& shape, const std::vector<std::uint32_t>& allowed,
                                          std::uint32_t left) const {
    std::map<std::uint32_t, std::uint64_t> room;  // tasks
    for (const std::uint32_t g : allowed) {
      for (const std::uint32_t id : groups_[g].members) {
        room[nodes_[id].rack_number] += tasks_that_fit(NodeId{id}, shape);
      }
    }
    std::uint32_t best = no_index;
    std::uint64_t best_room = 0;
    for (const auto& [rack, tasks] : room) {
      const bool holds = tasks >= left, best_holds = best_room >= left;
      const bool better = holds != best_holds ? holds : holds ? tasks < best_room : tasks > best_room;
      if (tasks == 0 || !better) continue;
      best = rack;
      best_room = tasks;
    }
    return best;
  }

  // ---- taking and giving back ------------------------------------------------------------------------------------

  // Precondition: the tasks fit on the node. Returns the new head of the list.
  std::uint32_t take(NodeId id, std::uint32_t tasks, const Shape& shape, std::uint32_t vc, std::uint32_t device,
                     std::uint32_t head) {
    if (shape.is_share() && nodes_[index(id)].has_devices) {
      for (; tasks > 0; --tasks) {
        const std::uint32_t chosen = device != no_index ? device : fullest_device(nodes_[index(id)], shape);
        head = new_grant({.devices = std::uint64_t{1} << chosen, .node = id, .tasks = 1, .next = head});
        occupy(grants_[head], shape, vc);
      }
      return head;
    }
    if (head != no_index && grants_[head].node == id) {  // worst_fit came back to the node: one grant a node
      Grant& grant = grants_[head];
      const Grant more{.devices = pick_devices(nodes_[index(id)], tasks, shape), .node = id, .tasks = tasks};
      occupy(more, shape, vc);
      grant.devices |= more.devices;
      grant.tasks += tasks;
      return head;
    }
    head =
        new_grant({.devices = pick_devices(nodes_[index(id)], tasks, shape), .node = id, .tasks = tasks, .next = head});
    occupy(grants_[head], shape, vc);
    return head;
  }

  // The lowest-numbered idle GPUs of the node.
  static std::uint64_t pick_devices(const NodeState& node, std::uint32_t tasks, const Shape& shape) {
    if (!node.has_devices) return 0;
    std::uint64_t rest = node.idle_devices;
    for (std::int64_t gpus = tasks * (shape.gpu_milli_per_task / whole_gpu); gpus > 0; --gpus) rest &= rest - 1;
    return node.idle_devices & ~rest;
  }

  // The GPU with the least left that still holds one task; the lowest-numbered on ties.
  [[nodiscard]] std::uint32_t fullest_device(const NodeState& node, const Shape& shape) const {
    std::uint32_t best = no_index;
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      const std::int16_t left = device_left_[node.first_device + d];
      if (left < shape.gpu_milli_per_task) continue;
      if (best == no_index || left < device_left_[node.first_device + best]) best = d;
    }
    return best;
  }

  std::uint32_t new_grant(const Grant& grant) {
    if (free_grant_ == no_index) {
      grants_.push_back(grant);
      return static_cast<std::uint32_t>(grants_.size() - 1);
    }
    const std::uint32_t at = free_grant_;
    free_grant_ = grants_[at].next;
    grants_[at] = grant;
    return at;
  }

  [[nodiscard]] bool is_free(const Grant& grant, const Shape& shape) const {
    const NodeState& node = nodes_[index(grant.node)];
    if (node.cpu_milli < grant.tasks * shape.cpu_milli_per_task) return false;
    if (node.memory_mib < grant.tasks * shape.memory_mib_per_task) return false;
    if (!node.has_devices) return node.free_milli >= grant.tasks * shape.gpu_milli_per_task;
    if (!shape.is_share()) return (node.idle_devices & grant.devices) == grant.devices;
    return device_left_[node.first_device + static_cast<std::uint32_t>(std::countr_zero(grant.devices))] >=
           shape.gpu_milli_per_task;
  }

  void occupy(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, -1); }
  void give_back(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, +1); }

  // The one place where capacity changes: sign -1 takes the grant, +1 returns it.
  void change(const Grant& grant, const Shape& shape, std::uint32_t vc, std::int64_t sign) {
    NodeState& node = nodes_[index(grant.node)];
    const MilliGpu milli = sign * grant.tasks * shape.gpu_milli_per_task;
    node.cpu_milli += sign * grant.tasks * shape.cpu_milli_per_task;
    node.memory_mib += sign * grant.tasks * shape.memory_mib_per_task;
    if (milli == 0) return;
    node.free_milli += milli;
    groups_[node.group].free_milli += milli;
    free_gpu_milli_ += milli;
    if (vc < vc_free_.size()) vc_free_[vc] += milli;
    GPUSCHED_ASSERT(node.free_milli >= 0 && node.free_milli <= node.gpus * whole_gpu, "capacity out of range");
    set_idle(node, idle_after(node, grant, shape, milli));
  }

  std::uint32_t idle_after(NodeState& node, const Grant& grant, const Shape& shape, MilliGpu milli) {
    if (!node.has_devices) return static_cast<std::uint32_t>(node.free_milli / whole_gpu);
    if (!shape.is_share()) {
      const std::int16_t left = milli < 0 ? std::int16_t{0} : static_cast<std::int16_t>(whole_gpu);
      for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
        device_left_[node.first_device + static_cast<std::uint32_t>(std::countr_zero(bits))] = left;
      }
      node.idle_devices ^= grant.devices;
      return static_cast<std::uint32_t>(node.idle + milli / whole_gpu);
    }
    std::int16_t& left = device_left_[node.first_device + static_cast<std::uint32_t>(std::countr_zero(grant.devices))];
    left = static_cast<std::int16_t>(left + milli);
    GPUSCHED_ASSERT(left >= 0 && left <= whole_gpu, "GPU share out of range");
    node.idle_devices = left == whole_gpu ? node.idle_devices | grant.devices : node.idle_devices & ~grant.devices;
    return static_cast<std::uint32_t>(std::popcount(node.idle_devices));
  }

  void set_idle(NodeState& node, std::uint32_t idle) {
    if (idle == node.idle) return;
    groups_[node.group].idle_gpus += std::int64_t{idle} - std::int64_t{node.idle};
    if (!index_deferred_) {
      relist(node, node.idle, idle);
    } else if (!node.is_stale) {
      node.is_stale = true;
      stale_.push_back({static_cast<std::uint32_t>(&node - nodes_.data()), node.idle});
    }
    node.idle = idle;
  }

  void relist(const NodeState& node, std::uint32_t from, std::uint32_t to) {
    Group& group = groups_[node.group];
    if (group.by_idle.empty()) return;
    group.by_idle[from].erase(node.rank);
    if (group.by_idle[from].empty()) group.occupied_levels.erase(from);
    group.by_idle[to].insert(node.rank);
    group.occupied_levels.insert(to);
  }

  std::vector<NodeState> nodes_;
  std::vector<Group> groups_;
  std::vector<std::int16_t> device_left_;
  std::vector<Grant> grants_;
  std::uint32_t free_grant_ = no_index;
  std::vector<Stale> stale_;
  bool index_deferred_ = false;
  std::vector<MilliGpu> vc_free_, vc_quota_;
  std::vector<std::vector<std::uint32_t>> allowed_;  // [spec * owners_ + vc]
  std::uint32_t owners_ = 1;
  std::int64_t total_gpus_ = 0;
  MilliGpu free_gpu_milli_ = 0;
  bool bounded_ = false;
  Rng rng_;
};

}  // namespace gpusched
