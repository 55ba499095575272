// SPDX-License-Identifier: Apache-2.0
/// Capacity: the account of what is free on every node and who holds the rest. One function changes what is held, and
/// cannot go below zero, so no node is ever overcommitted; another hides what is free on nodes out of service.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/capacity/allowed_classes.hpp"
#include "gpusched/engine/capacity/card_memory.hpp"
#include "gpusched/engine/capacity/changed_nodes.hpp"
#include "gpusched/engine/capacity/islands.hpp"
#include "gpusched/engine/capacity/mig_cards.hpp"
#include "gpusched/engine/capacity/node_index.hpp"
#include "gpusched/engine/capacity/node_state.hpp"
#include "gpusched/engine/capacity/rack_index.hpp"
#include "gpusched/engine/capacity/share_index.hpp"
#include "gpusched/engine/capacity/withheld_capacity.hpp"

namespace gpusched {

/// What tasks of one gang hold on one node. The grants of a job form a list, linked through `next`.
struct Grant {
  std::uint64_t devices = 0;      ///< bit d: GPU d of the node; 0 on a node that only counts, and for CPU-only tasks
  NodeId node = no_node;          ///< where the tasks run
  std::uint32_t tasks = 0;        ///< how many of the gang's tasks
  std::uint32_t next = no_index;  ///< the job's next grant (Capacity::grant); no_index = the last
  std::uint8_t slice = 0;         ///< a MIG instance, as mig_instance() reads it; 0: none
};

/// A value. It chooses no nodes: node_search.hpp does. Parts, each with a file under engine/capacity/: the accounts of
/// nodes, their indices by idle GPUs, shares and racks, where jobs may run, device memory, MIG, and what is withheld.
class Capacity {
 public:
  /// GPUs of a larger node are counted, not told apart.
  static constexpr std::uint32_t max_devices_per_node = 64;

  /// No nodes.
  Capacity() = default;

  /// Everything free. `specs` are the GPU demands of the jobs (JobTable::gpu_specs), each a GpuDemand's text.
  Capacity(const Cluster& cluster, const NameTable& specs) {
    vc_free_.reserve(cluster.vcs.size());
    for (const VirtualCluster& vc : cluster.vcs) vc_free_.push_back(vc.quota);
    vc_quota_ = vc_free_;
    rack_sites_ = cluster.rack_sites;
    for (const Node& node : cluster.nodes) {
      GPUSCHED_ASSERT(node.gpu_type < cluster.gpu_types.size(), "node of an unknown GPU type");
      add_node(node);
    }
    mig_ = detail::MigCards(cluster, specs, nodes_, device_left_.size());
    index_ = detail::NodeIndex(nodes_);
    allowed_ = detail::AllowedClasses(cluster, specs, index_.classes());
    memory_ = detail::CardMemory(cluster, specs, nodes_, device_left_.size());
    changes_ = detail::ChangedNodes(nodes_.size());
  }

  /// Takes a node out of service: what is free there now, and what jobs that still run there give back. Precondition:
  /// it is in service.
  void withhold(NodeId id) {
    NodeState& node = nodes_[GPUSCHED_NODE(id)];
    make_room_to_withhold();
    node.is_down = true;
    hide_free(node);
    withheld_.gpus += node.gpus;
    ++withheld_.node_count;
  }
  /// Puts it back. Precondition: it is out of service.
  void reinstate(NodeId id) {
    NodeState& node = nodes_[GPUSCHED_NODE(id)];
    show_free(node);
    node.is_down = false;
    withheld_.gpus -= node.gpus;
    --withheld_.node_count;
  }
  /// True while the node is in service. Jobs may run on one that is not, but none can start there.
  [[nodiscard]] bool is_up(NodeId id) const { return !nodes_[GPUSCHED_NODE(id)].is_down; }
  /// GPUs of the nodes in service, held or not.
  [[nodiscard]] std::int64_t up_gpus() const { return total_gpus_ - withheld_.gpus; }
  /// GPU thousandths of nodes out of service that no job holds.
  [[nodiscard]] MilliGpu withheld_gpu_milli() const { return withheld_.milli; }

  /// Nodes of the cluster.
  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// GPUs of the cluster, held or not.
  [[nodiscard]] std::int64_t total_gpus() const { return total_gpus_; }
  /// GPU thousandths that no job holds.
  [[nodiscard]] MilliGpu free_gpu_milli() const { return free_gpu_milli_; }
  /// GPUs of which no part is held, cluster-wide; counting nodes contribute whole GPUs.
  [[nodiscard]] std::int64_t idle_gpus() const { return index_.idle_gpus(); }
  /// GPUs of the node, held or not.
  [[nodiscard]] std::uint32_t node_gpus(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].gpus; }
  /// Position of the node's GPU type in Cluster::gpu_types.
  [[nodiscard]] std::uint32_t node_gpu_type(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].gpu_type; }
  /// GPUs of the node of which no part is held.
  [[nodiscard]] std::uint32_t node_idle_gpus(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].idle; }
  /// Free thousandths of a CPU core; about `unlimited` on a node that does not bound them.
  [[nodiscard]] std::int64_t node_free_cpu_milli(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].cpu_milli; }
  /// Free memory, likewise.
  [[nodiscard]] std::int64_t node_free_memory_mib(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].memory_mib; }
  /// Free thousandths of all GPUs of the node together.
  [[nodiscard]] MilliGpu node_free_gpu_milli(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].free_milli; }
  /// True when the node tells its GPUs apart (node_device_left is meaningful).
  [[nodiscard]] bool node_has_devices(NodeId node) const { return nodes_[GPUSCHED_NODE(node)].has_devices; }
  /// Free thousandths of GPU `device`. Precondition: node_has_devices(node), device < node_gpus(node).
  [[nodiscard]] MilliGpu node_device_left(NodeId node, std::uint32_t device) const {
    return device_left_[nodes_[GPUSCHED_NODE(node)].first_device + device];
  }
  /// True when one task of `shape`, a share of a GPU, fits on GPU `device`: its part of the GPU and its device memory.
  /// Precondition: as node_device_left().
  [[nodiscard]] bool device_takes(NodeId node, std::uint32_t device, const Shape& shape) const {
    return tasks_on_card(nodes_[GPUSCHED_NODE(node)].first_device + device, shape) > 0;
  }

  // ---- MIG: cards that are cut into instances ---------------------------------------------------------------------

  /// True when some card is cut, or can be.
  [[nodiscard]] bool has_mig() const { return !mig_.empty(); }
  /// The cards as MIG sees them.
  [[nodiscard]] const detail::MigCards& mig() const { return mig_; }
  /// What making the cards of a grant as it needs them took.
  using Reconfiguration = detail::MigCards::Reconfiguration;
  /// Makes the layouts of dynamic cards such as the grant, which holds its slices already, needs them. Called by the
  /// engine when a run begins; until then a grant changes no layout, so that a start can be tried and taken back.
  Reconfiguration configure(const Grant& grant) {
    Reconfiguration result;
    if (!mig_.are_dynamic()) return result;
    const NodeState& node = nodes_[index(grant.node)];
    changes_.note(index(grant.node), node);
    for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
      mig_.configure(node.first_device + static_cast<std::uint32_t>(std::countr_zero(bits)), grant.slice, result);
    }
    return result;
  }

  /// GPUs of the cluster that are told apart ("cards").
  [[nodiscard]] std::uint32_t card_count() const { return static_cast<std::uint32_t>(device_left_.size()); }
  /// The number of GPU `device` of the node among them. Precondition: as node_device_left().
  [[nodiscard]] std::uint32_t card(NodeId node, std::uint32_t device) const {
    return nodes_[GPUSCHED_NODE(node)].first_device + device;
  }

  /// Calls visit(gpu_type, gpus, idle GPUs, number of nodes) for all nodes that are equal in the first three, those of
  /// different owners in separate calls. O(classes of nodes x GPUs per node) calls.
  template <class Visit>
  void for_each_idle_level(Visit visit) const {
    index_.for_each_idle_level(visit);
  }

  /// GPU thousandths that the jobs of virtual cluster `vc` may still take of its quota; `unlimited` without one.
  [[nodiscard]] MilliGpu vc_free(std::uint32_t vc) const { return vc < vc_free_.size() ? vc_free_[vc] : unlimited; }

  /// How many tasks of `shape` the node could take now, whatever owns it.
  [[nodiscard]] std::uint32_t tasks_that_fit(NodeId id, const Shape& shape) const {
    const NodeState& node = nodes_[GPUSCHED_NODE(id)];
    if (node.is_down) return 0;
    std::int64_t tasks = shape.tasks;
    if (bounded_) tasks = std::min(tasks, bounded_tasks_that_fit(node.cpu_milli, node.memory_mib, shape));
    if (shape.gpu_milli_per_task > 0) tasks = std::min(tasks, gpu_tasks_that_fit(node, shape));
    return static_cast<std::uint32_t>(tasks);
  }

  /// True when a job of `shape` in virtual cluster `vc` may run on the node (owner and GPU type), busy or not.
  [[nodiscard]] bool node_allowed(NodeId node, const Shape& shape, std::uint32_t vc) const {
    const std::vector<std::uint32_t>& allowed = allowed_classes(shape, vc);
    return std::find(allowed.begin(), allowed.end(), nodes_[GPUSCHED_NODE(node)].node_class) != allowed.end();
  }

  /// True when the cluster describes its devices, so that a job which names none may not run on all of them.
  [[nodiscard]] bool devices_differ() const { return allowed_.devices_differ(); }

  /// GPU thousandths that a job of `shape` in virtual cluster `vc` could draw on now: within its quota, on nodes it may
  /// use, idle GPUs only unless it asks for shares.
  [[nodiscard]] GPUSCHED_HOT MilliGpu available_gpu_milli(const Shape& shape, std::uint32_t vc) const {
    MilliGpu free = 0;
    for (const std::uint32_t number : allowed_classes(shape, vc)) {
      free += shape.is_share() ? index_[number].free_milli : index_[number].idle_gpus * whole_gpu;
    }
    return std::min(free, vc_free(vc));
  }

  /// False when a gang of `shape` certainly does not fit now. Exact when GPUs are the only limit and every task wants
  /// at most one.
  [[nodiscard]] GPUSCHED_HOT bool may_fit(const Shape& shape, std::uint32_t vc) const {
    return shape.gpu_milli() <= available_gpu_milli(shape, vc);
  }

  /// Takes what `tasks` of the shape need on the node and adds it to the front of the grant list `head` (no_index: a
  /// new list), whose new head it returns. `device`: the GPU to use for a share; no_index = the fullest that has room.
  /// Precondition: the tasks fit there.
  std::uint32_t take(NodeId id, std::uint32_t tasks, const Shape& shape, std::uint32_t vc, std::uint32_t device,
                     std::uint32_t head) {
    if (shape.is_share() && nodes_[index(id)].has_devices) {
      for (; tasks > 0; --tasks) {
        const std::uint32_t chosen = device != no_index ? device : fullest_device(nodes_[index(id)], shape);
        const std::uint8_t slice = has_mig() ? mig_.choose_slice(nodes_[index(id)].first_device + chosen, shape) : 0;
        head =
            grants_.add({.devices = std::uint64_t{1} << chosen, .node = id, .tasks = 1, .next = head, .slice = slice});
        occupy(grants_[head], shape, vc);
      }
      return head;
    }
    if (head != no_index && grants_[head].node == id) {  // the last tasks went there too: one grant per node
      Grant& grant = grants_[head];
      const Grant more{.devices = detail::pick_gpus(nodes_[index(id)], tasks * (shape.gpu_milli_per_task / whole_gpu)),
                       .node = id,
                       .tasks = tasks};
      occupy(more, shape, vc);
      grant.devices |= more.devices;
      grant.tasks += tasks;
      return head;
    }
    head = grants_.add({.devices = detail::pick_gpus(nodes_[index(id)], tasks * (shape.gpu_milli_per_task / whole_gpu)),
                        .node = id,
                        .tasks = tasks,
                        .next = head});
    occupy(grants_[head], shape, vc);
    return head;
  }

  /// Takes what the grant names and nothing else, and adds it to the front of the grant list `head`, whose new head it
  /// returns; no_index (and no change) when somebody has some of it. Precondition: it is for such tasks.
  std::uint32_t take_exactly(Grant wanted, const Shape& shape, std::uint32_t vc, std::uint32_t head) {
    if (nodes_[index(wanted.node)].is_down || !is_free(wanted, shape)) return no_index;
    wanted.next = head;
    occupy(wanted, shape, vc);
    return grants_.add(wanted);
  }

  /// Gives the capacity of a grant list back; the list stays, so that retake() can undo this.
  void release(std::uint32_t head, const Shape& shape, std::uint32_t vc) {
    for (std::uint32_t at = head; at != no_index; at = grants_[at].next) give_back(grants_[at], shape, vc);
  }

  /// Stops keeping the index of nodes by idle GPUs until refresh_index(): cheaper where much is released and taken
  /// again on nodes of the caller's choice, because most nodes end as idle as they were. Until then everything that
  /// reads the index (for_each_idle_level(), all_free(), a search) must not be called.
  void defer_index() { index_.defer(); }

  /// Brings the index up to date and ends defer_index().
  void refresh_index() { index_.refresh(nodes_); }

  /// Takes exactly the capacity of a released grant list again; false (and no change) when somebody has some of it.
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

  /// Takes what a grant list of another state of this cluster holds: the same GPUs and MIG instances. Returns a grant
  /// list of this state, or no_index (and no change) when somebody here has some of it.
  std::uint32_t take_same(const Capacity& other, std::uint32_t others_head, const Shape& shape, std::uint32_t vc) {
    std::uint32_t head = no_index;
    for (std::uint32_t at = others_head; at != no_index; at = other.grants_[at].next) {
      Grant same = other.grants_[at];
      same.next = head;
      head = grants_.add(same);
    }
    if (retake(head, shape, vc)) return head;
    free_grants(head);
    return no_index;
  }

  /// Gives back what a grant list of another state of this cluster holds, and somebody here does too.
  void release_same(const Capacity& other, std::uint32_t others_head, const Shape& shape, std::uint32_t vc) {
    for (std::uint32_t at = others_head; at != no_index; at = other.grants_[at].next) {
      give_back(other.grants_[at], shape, vc);
    }
  }

  /// Forgets a released grant list; its numbers are used again.
  void free_grants(std::uint32_t head) { grants_.remove_list(head); }

  /// The grant of that number.
  [[nodiscard]] const Grant& grant(std::uint32_t at) const { return grants_[at]; }

  /// How far apart the tasks of a grant list are; Span::node for none. O(grants).
  [[nodiscard]] Span span_of(std::uint32_t head) const {
    if (head == no_index) return Span::node;
    const NodeId first = grants_[head].node;
    std::uint64_t devices = 0;
    Span widest = Span::node;
    for (std::uint32_t at = head; at != no_index && widest != Span::sites; at = grants_[at].next) {
      if (grants_[at].node == first) {
        devices |= grants_[at].devices;
      } else {
        widest = std::max(widest, span_between(nodes_[index(first)], nodes_[index(grants_[at].node)]));
      }
    }
    return widest == Span::node ? detail::span_within(nodes_[index(first)], devices) : widest;
  }

  /// Whether gangs are slower when they are apart, so that rules which choose few nodes should choose them near each
  /// other. Kept here, because policies place gangs on copies.
  /// \{
  void keep_gangs_near() { gangs_near_ = true; }
  [[nodiscard]] bool keeps_gangs_near() const { return gangs_near_; }
  /// \}
  /// The site that a rack stands in.
  [[nodiscard]] std::uint32_t site_of(std::uint32_t rack) const {
    return rack < rack_sites_.size() ? rack_sites_[rack] : 0;
  }

  /// True when nothing is held: what must hold after every running job gave its grants back. O(GPUs).
  [[nodiscard]] bool all_free() const {
    const auto node_free = [](const NodeState& node) {
      return node.cpu_milli == node.cpu_capacity && node.memory_mib == node.memory_capacity &&
             node.free_milli == node.gpus * whole_gpu && node.idle == node.whole_gpus &&
             node.idle_devices == node.whole_devices;
    };
    return free_gpu_milli_ == total_gpus_ * whole_gpu && vc_free_ == vc_quota_ &&
           std::all_of(nodes_.begin(), nodes_.end(), node_free) && index_.all_free() &&
           std::all_of(device_left_.begin(), device_left_.end(), [](std::int16_t left) { return left == whole_gpu; }) &&
           memory_.all_free() && mig_.all_free();
  }

  // ---- for copies that follow -------------------------------------------------------------------------------------

  /// The nodes that changed last.
  [[nodiscard]] const detail::ChangedNodes& changes() const { return changes_; }
  /// Makes everything that is free, here and of `other`, another state of this cluster, alike, grant lists apart:
  /// nothing else changed since the marks, when the two were alike. O(changes). Precondition: both remember them.
  void copy_changes(const Capacity& other, const detail::ChangedNodes::Mark& of_other,
                    const detail::ChangedNodes::Mark& own) {
    if (!other.withheld_.nodes.empty()) make_room_to_withhold();
    changes_.for_each_since(own, [this, &other](std::uint32_t id) { copy_node(other, id); });
    other.changes_.for_each_since(of_other, [this, &other](std::uint32_t id) { copy_node(other, id); });
    vc_free_ = other.vc_free_;
    free_gpu_milli_ = other.free_gpu_milli_;
    withheld_.copy_sums(other.withheld_);
  }

  // ---- for the search of nodes -----------------------------------------------------------------------------------

  /// Numbers of the classes where a job of `shape` in virtual cluster `vc` may run (owner and GPU type).
  [[nodiscard]] GPUSCHED_HOT const std::vector<std::uint32_t>& allowed_classes(const Shape& shape,
                                                                               std::uint32_t vc) const {
    return allowed_.of(shape, vc);
  }
  /// The class of that number.
  [[nodiscard]] const detail::NodeClass& node_class(std::uint32_t number) const { return index_[number]; }
  /// All classes, each with an index of its members by idle GPUs.
  [[nodiscard]] const detail::NodeIndex& node_classes() const { return index_; }
  /// The account of a node.
  [[nodiscard]] const detail::NodeState& node(NodeId id) const { return nodes_[GPUSCHED_NODE(id)]; }
  /// True when CPU or memory bounds some node, so that idle GPUs alone do not tell what fits.
  [[nodiscard]] bool is_bounded() const { return bounded_; }
  /// True when the numbers of idle GPUs tell where a task of the shape fits.
  [[nodiscard]] bool is_told_by_idle_gpus(const Shape& shape) const {
    if (bounded_ || shape.is_share()) return false;
    return withheld_.node_count == 0 || shape.gpu_milli_per_task > 0;
  }
  /// True when the nodes of classes of those numbers hold the gang, whose tasks have whole GPUs. O(classes x GPUs per
  /// node) counts, each O(nodes / 64). Precondition: is_told_by_idle_gpus(), refresh_index().
  [[nodiscard]] bool idle_gpus_hold(const Shape& shape, const std::vector<std::uint32_t>& classes) const {
    const auto gpus = static_cast<std::uint32_t>(shape.gpu_milli_per_task / whole_gpu);
    std::int64_t tasks = 0;
    for (const std::uint32_t number : classes) {
      const detail::NodeClass& alike = index_[number];
      for (std::uint32_t idle = index_.fewest_idle(alike, gpus); idle != no_index && tasks < shape.tasks;
           idle = index_.fewest_idle(alike, idle + 1)) {
        tasks += std::int64_t{index_.count_with(alike, idle)} * (idle / gpus);
      }
    }
    return tasks >= shape.tasks;
  }
  /// Makes ready what a search for the nodes of such a gang may ask; `near`: it minds racks. Precondition:
  /// refresh_index().
  void prepare_search(const Shape& shape, bool near) {
    if (near && !racks_.is_made()) racks_.make(nodes_, class_count());
    // What else bounds a share than the thousandths of a card is not in the index.
    shares_are_indexed_ =
        shape.is_share() && shape.tasks == 1 && !bounded_ && !has_mig() && !memory_.counts() &&
        shares_.prepare(nodes_, class_count(), [this](const NodeState& node) { return most_left(node); });
  }
  /// True when shares() can be asked for the nodes of the gang that prepare_search() was told of.
  [[nodiscard]] bool shares_are_indexed() const { return shares_are_indexed_; }
  /// Nodes by what a share of a GPU finds there.
  [[nodiscard]] const detail::ShareIndex& shares() const { return shares_; }
  /// The nodes of each rack. Precondition: prepare_search() for a gang that minds racks.
  [[nodiscard]] const detail::RackIndex& racks() const { return racks_; }

  /// Tasks for which so much CPU and memory is enough; as much as `unlimited` is enough for any number.
  [[nodiscard]] static std::int64_t bounded_tasks_that_fit(std::int64_t cpu_milli, std::int64_t memory_mib,
                                                           const Shape& shape) {
    std::int64_t tasks = unlimited;
    if (shape.cpu_milli_per_task > 0 && cpu_milli < unlimited) tasks = cpu_milli / shape.cpu_milli_per_task;
    if (shape.memory_mib_per_task > 0 && memory_mib < unlimited) {
      tasks = std::min(tasks, memory_mib / shape.memory_mib_per_task);
    }
    return tasks;
  }

  /// Tasks of `shape`, shares of a GPU, that the GPUs of the node take when they are idle. Precondition: it tells them
  /// apart.
  [[nodiscard]] std::int64_t shares_when_idle(const detail::NodeState& node, const Shape& shape) const {
    const std::int64_t shares = memory_.tasks_when_idle(node.first_device, shape, whole_gpu / shape.gpu_milli_per_task);
    if (node.mig == no_index) return node.gpus * shares;
    std::int64_t sum = 0;
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      sum += std::min(shares, mig_.tasks_when_idle(node.first_device + d, shape));
    }
    return sum;
  }

 private:
  using NodeState = detail::NodeState;

  void add_node(const Node& node) {
    NodeState state;
    state.cpu_milli = state.cpu_capacity = node.cpu_milli;
    state.memory_mib = state.memory_capacity = node.memory_mib;
    state.gpus = state.idle = state.whole_gpus = node.gpus;
    state.free_milli = node.gpus * whole_gpu;
    state.gpu_type = node.gpu_type;
    state.vc = node.vc;
    state.vc_group = node.vc_group;
    state.mig = node.mig;
    state.sharing = node.sharing;
    state.rack_number = node.rack;
    state.has_devices = node.gpus > 0 && node.gpus <= max_devices_per_node && !node.counts_only;
    if (state.has_devices) {
      state.idle_devices = state.whole_devices = ~std::uint64_t{0} >> (64 - node.gpus);
      state.first_device = static_cast<std::uint32_t>(device_left_.size());
      device_left_.resize(device_left_.size() + node.gpus, static_cast<std::int16_t>(whole_gpu));
      if (node.island_gpus < node.gpus) state.island_gpus = static_cast<std::uint8_t>(node.island_gpus);
    }
    bounded_ = bounded_ || node.cpu_milli < unlimited || node.memory_mib < unlimited;
    total_gpus_ += node.gpus;
    free_gpu_milli_ += state.free_milli;
    nodes_.push_back(state);
  }

  void make_room_to_withhold() { withheld_.make_room(nodes_.size(), device_left_.size(), memory_.counts(), has_mig()); }

  void copy_node(const Capacity& other, std::uint32_t id) {
    NodeState& node = nodes_[id];
    const NodeState& same = other.nodes_[id];
    const std::uint32_t cards = node.has_devices ? node.gpus : 0;
    for (std::uint32_t card = node.first_device; card < node.first_device + cards; ++card) {
      device_left_[card] = other.device_left_[card];
      if (memory_.counts()) memory_.left(card) = other.memory_.left(card);
      if (has_mig()) mig_.copy_card(other.mig_, card);
    }
    if (!withheld_.nodes.empty()) withheld_.copy_node(other.withheld_, id, node.first_device, cards);
    index_.add_free(node, same.free_milli - node.free_milli);
    node.cpu_milli = same.cpu_milli;
    node.memory_mib = same.memory_mib;
    node.free_milli = same.free_milli;
    node.idle_devices = same.idle_devices;
    node.is_down = same.is_down;
    set_idle(node, same.idle);
  }

  [[nodiscard]] std::int64_t gpu_tasks_that_fit(const NodeState& node, const Shape& shape) const {
    if (!shape.is_share()) return node.idle / (shape.gpu_milli_per_task / whole_gpu);
    if (!node.has_devices) return node.free_milli / shape.gpu_milli_per_task;
    std::int64_t tasks = 0;
    for (std::uint32_t d = 0; d < node.gpus; ++d) tasks += tasks_on_card(node.first_device + d, shape);
    return tasks;
  }

  [[nodiscard]] std::uint32_t class_count() const { return static_cast<std::uint32_t>(index_.classes().size()); }

  // Of the card of the node that has the most left; of all together where they are not told apart.
  [[nodiscard]] MilliGpu most_left(const NodeState& node) const {
    if (!node.has_devices) return node.free_milli;
    const auto first = device_left_.begin() + node.first_device;
    return *std::max_element(first, first + node.gpus);
  }

  // Tasks of a share of a GPU that fit on the card.
  [[nodiscard]] std::int64_t tasks_on_card(std::uint32_t card, const Shape& shape) const {
    const std::int64_t tasks = memory_.tasks_that_fit(card, shape, device_left_[card] / shape.gpu_milli_per_task);
    return !has_mig() || tasks == 0 ? tasks : std::min(tasks, mig_.tasks_that_fit(card, shape));
  }

  // ---- spans -----------------------------------------------------------------------------------------------------

  // Precondition: two nodes.
  [[nodiscard]] Span span_between(const NodeState& a, const NodeState& b) const {
    if (a.rack_number == b.rack_number) return Span::nodes;
    return site_of(a.rack_number) == site_of(b.rack_number) ? Span::racks : Span::sites;
  }

  // Where GPUs are cut: one that has the instance already, then the one of the least profile (a share of a GPU that is
  // not cut comes last), then the GPU with the least left; the lowest-numbered on ties.
  [[nodiscard]] std::uint32_t device_of_least_instance(const NodeState& node, const Shape& shape) const {
    std::uint32_t best = no_index;
    std::tuple<bool, std::uint32_t, std::int16_t> least{};
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      const std::uint32_t number = node.first_device + d;
      if (tasks_on_card(number, shape) == 0) continue;
      const std::uint8_t slice = mig_.choose_slice(number, shape);
      const std::uint32_t profile = slice == 0 ? most_mig_slices : mig_instance(slice).profile;
      const std::tuple rank{slice != 0 && !mig_.is_ready(number, slice), profile, device_left_[number]};
      if (best != no_index && rank >= least) continue;
      best = d;
      least = rank;
    }
    return best;
  }

  // The GPU with the least left that still holds one task; the lowest-numbered on ties.
  [[nodiscard]] std::uint32_t fullest_device(const NodeState& node, const Shape& shape) const {
    if (node.mig != no_index) return device_of_least_instance(node, shape);
    std::uint32_t best = no_index;
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      const std::int16_t left = device_left_[node.first_device + d];
      if (tasks_on_card(node.first_device + d, shape) == 0) continue;
      if (best == no_index || left < device_left_[node.first_device + best]) best = d;
    }
    return best;
  }

  // A grant may be taken again on a node that is out of service: nobody else can have taken it since.
  [[nodiscard]] bool is_free(const Grant& grant, const Shape& shape) const {
    const NodeState& node = nodes_[index(grant.node)];
    if (node.is_down) return true;
    if (bounded_ && bounded_tasks_that_fit(node.cpu_milli, node.memory_mib, shape) < grant.tasks) return false;
    if (!node.has_devices) return node.free_milli >= grant.tasks * shape.gpu_milli_per_task;
    if (!shape.is_share()) return (node.idle_devices & grant.devices) == grant.devices;
    const std::uint32_t card = node.first_device + static_cast<std::uint32_t>(std::countr_zero(grant.devices));
    return grant.slice == 0 ? tasks_on_card(card, shape) > 0 : mig_.is_free(card, grant.slice);
  }

  void occupy(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, -1); }
  void give_back(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, +1); }

  // What is free on a node that is out of service moves between the account of the cluster (show) and that of what is
  // withheld (hide). O(GPUs of the node).
  GPUSCHED_RARE void hide_free(NodeState& node) { move_free(node, -1); }
  GPUSCHED_RARE void show_free(NodeState& node) { move_free(node, +1); }

  void move_free(NodeState& node, std::int64_t sign) {
    detail::WithheldCapacity::OfNode& withheld = withheld_.nodes[number_of(node)];
    const auto move = [sign](auto& shown, auto& hidden) {
      auto& from = sign < 0 ? shown : hidden;
      auto& to = sign < 0 ? hidden : shown;
      using Amount = std::remove_reference_t<decltype(to)>;
      to = static_cast<Amount>(to + std::exchange(from, Amount{}));
    };
    if (node.cpu_capacity < unlimited) move(node.cpu_milli, withheld.cpu_milli);
    if (node.memory_capacity < unlimited) move(node.memory_mib, withheld.memory_mib);
    const MilliGpu before = node.free_milli;
    move(node.free_milli, withheld.milli);
    const MilliGpu milli = node.free_milli - before;
    index_.add_free(node, milli);
    free_gpu_milli_ += milli;
    withheld_.milli -= milli;
    if (node.has_devices) {
      node.idle_devices = 0;
      for (std::uint32_t d = 0; d < node.gpus; ++d) {
        const std::uint32_t card = node.first_device + d;
        move(device_left_[card], withheld_.devices[card]);
        if (memory_.counts()) move(memory_.left(card), withheld_.memory[card]);
        if (has_mig() && sign < 0) mig_.withhold(card, withheld_.slices[card]);
        if (has_mig() && sign > 0) mig_.reinstate(card, withheld_.slices[card]);
        if (device_left_[card] == whole_gpu) node.idle_devices |= (std::uint64_t{1} << d) & node.whole_devices;
      }
    }
    set_idle(node, node.has_devices ? static_cast<std::uint32_t>(std::popcount(node.idle_devices))
                                    : static_cast<std::uint32_t>(node.free_milli / whole_gpu));
  }

  // The one place where what jobs hold changes: sign -1 takes the grant, +1 returns it. On a node that is out of
  // service a job may only take again what it held.
  void change(const Grant& grant, const Shape& shape, std::uint32_t vc, std::int64_t sign) {
    NodeState& node = nodes_[index(grant.node)];
    if (node.is_down) show_free(node);
    change_held(node, grant, shape, vc, sign);
    if (node.is_down) hide_free(node);
  }

  GPUSCHED_HOT void change_held(NodeState& node, const Grant& grant, const Shape& shape, std::uint32_t vc,
                                std::int64_t sign) {
    const MilliGpu milli = sign * grant.tasks * shape.gpu_milli_per_task;
    if (node.cpu_capacity < unlimited) node.cpu_milli += sign * grant.tasks * shape.cpu_milli_per_task;
    if (node.memory_capacity < unlimited) node.memory_mib += sign * grant.tasks * shape.memory_mib_per_task;
    if (milli == 0) {
      changes_.note(number_of(node), node);
      return;
    }
    node.free_milli += milli;
    index_.add_free(node, milli);
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
        const std::uint32_t card = node.first_device + static_cast<std::uint32_t>(std::countr_zero(bits));
        device_left_[card] = left;
        if (has_mig()) mig_.hold(card, 0, milli < 0);
      }
      node.idle_devices ^= grant.devices;
      return static_cast<std::uint32_t>(node.idle + milli / whole_gpu);
    }
    const std::uint32_t card = node.first_device + static_cast<std::uint32_t>(std::countr_zero(grant.devices));
    memory_.change(card, shape, milli < 0 ? -1 : +1);
    if (has_mig()) mig_.hold(card, grant.slice, milli < 0);
    std::int16_t& left = device_left_[card];
    left = static_cast<std::int16_t>(left + milli);
    GPUSCHED_ASSERT(left >= 0 && left <= whole_gpu, "GPU share out of range");
    node.idle_devices = left == whole_gpu ? node.idle_devices | (grant.devices & node.whole_devices)
                                          : node.idle_devices & ~grant.devices;
    return static_cast<std::uint32_t>(std::popcount(node.idle_devices));
  }

  [[nodiscard]] std::uint32_t number_of(const NodeState& node) const {
    return static_cast<std::uint32_t>(&node - nodes_.data());
  }
  // Called whenever what is free on a node has changed.
  void set_idle(NodeState& node, std::uint32_t idle) {
    const std::uint32_t number = number_of(node);
    shares_.note(number);
    if (racks_.is_made() && idle != node.idle) racks_.moved(number, node.idle, idle);
    index_.set_idle(node, number, idle);
    changes_.note(number, node);
  }

  std::vector<NodeState> nodes_;
  std::vector<std::int16_t> device_left_;  // by card
  detail::NodeIndex index_;
  detail::RackIndex racks_;
  detail::ShareIndex shares_;
  detail::AllowedClasses allowed_;
  detail::CardMemory memory_;
  detail::MigCards mig_;
  detail::WithheldCapacity withheld_;
  detail::ChangedNodes changes_;
  RecordPool<Grant, &Grant::next> grants_;
  std::vector<MilliGpu> vc_free_, vc_quota_;
  std::vector<std::uint32_t> rack_sites_;
  std::int64_t total_gpus_ = 0;
  MilliGpu free_gpu_milli_ = 0;
  bool bounded_ = false;
  bool gangs_near_ = false;
  bool shares_are_indexed_ = false;
};

}  // namespace gpusched
