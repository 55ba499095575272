// SPDX-License-Identifier: Apache-2.0
/// Capacity: the account of what is free on every node and who holds the rest. One function changes what is held, and
/// cannot go below zero, so no node is ever overcommitted; another hides what is free on nodes out of service.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpusched/core/id_set.hpp"
#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// What tasks of one gang hold on one node. The grants of a job form a list, linked through `next`.
struct Grant {
  std::uint64_t devices = 0;      ///< bit d: GPU d of the node; 0 on a node that only counts, and for CPU-only tasks
  NodeId node = no_node;          ///< where the tasks run
  std::uint32_t tasks = 0;        ///< how many of the gang's tasks
  std::uint32_t next = no_index;  ///< the job's next grant (Capacity::grant); no_index = the last
  std::uint8_t slice = 0;         ///< a MIG instance, as Capacity::instance() reads it; 0: none
};

namespace detail {

/// The account of one node.
struct NodeState {
  std::int64_t cpu_milli = 0;   ///< free
  std::int64_t memory_mib = 0;  ///< free
  std::int64_t cpu_capacity = 0;
  std::int64_t memory_capacity = 0;
  MilliGpu free_milli = 0;
  std::uint64_t idle_devices = 0;   ///< bit d: GPU d is idle (has_devices only), and a job can hold it whole
  std::uint64_t whole_devices = 0;  ///< bit d: a job can hold GPU d whole (has_devices only)
  std::uint32_t idle = 0;           ///< whole GPUs of which no part is held
  std::uint32_t gpus = 0;
  std::uint32_t whole_gpus = 0;  ///< GPUs that a job can hold whole: all that are not cut for good
  std::uint32_t gpu_type = 0;
  std::uint32_t vc = no_index;
  std::uint32_t vc_group = no_index;
  std::uint32_t mig = no_index;
  std::uint32_t rack_number = 0;
  std::uint32_t node_class = 0;    ///< number of its NodeClass
  std::uint32_t rank = 0;          ///< position in its class
  std::uint32_t first_device = 0;  ///< number of its first GPU among all that are told apart (has_devices only)
  std::uint8_t island_gpus = 0;    ///< GPUs of an island; 0: the node is one, or does not tell its GPUs apart
  bool has_devices = false;        ///< its GPUs are told apart
  SharingMode sharing = SharingMode::mps;
  bool is_stale = false;  ///< the index may list it under another number of idle GPUs
  bool is_down = false;   ///< out of service: nothing starts there, and what is free does not count as free
};

/// What is free on a node that is out of service.
struct WithheldState {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  MilliGpu milli = 0;
};

/// A GPU as MIG sees it.
struct MigCard {
  static constexpr std::uint8_t uncut = 0xff;  ///< in `layout`: not in MIG mode

  MigSlices held = 0;  ///< memory slices of instances that tasks hold; all of them while a job holds the GPU whole
  std::uint8_t kind = 0xff;  ///< number of its MigKind; 0xff: it is never cut
  /// By memory slice: the profile of the instance that begins there, plus 1; 0: none begins there. At slice 0 `uncut`.
  std::array<std::uint8_t, most_mig_slices> layout{};
};

/// Cards that are cut in the same way.
struct MigKind {
  const MigModel* model = nullptr;  ///< static
  MigLayout layout = MigLayout::fixed;
  Time reconfigure{};
  std::uint32_t mig = no_index;  ///< Node::mig
  std::uint32_t gpu_type = 0;
  std::int64_t memory_mib = 0;  ///< of a card
};

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

}  // namespace detail

/// A value. Nodes are kept in classes, each with an index of its members by the number of their idle GPUs, which
/// answers "the fullest node that still has 4 idle" in O(log n). It chooses no nodes: node_search.hpp does.
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
    cut_cards(cluster, specs);
    index_nodes();
    list_allowed_classes(cluster, specs);
    count_card_memory(cluster, specs);
  }

  /// Takes a node out of service: what is free there now, and what jobs that still run there give back. Precondition:
  /// it is in service.
  void withhold(NodeId id) {
    NodeState& node = nodes_[GPUSCHED_NODE(id)];
    if (withheld_.empty()) {
      withheld_.resize(nodes_.size());
      withheld_left_.resize(device_left_.size());
      withheld_memory_.resize(card_memory_.size());
      withheld_slices_.resize(mig_cards_.size());
    }
    node.is_down = true;
    hide_free(node);
    withheld_gpus_ += node.gpus;
    ++withheld_nodes_;
  }
  /// Puts it back. Precondition: it is out of service.
  void reinstate(NodeId id) {
    NodeState& node = nodes_[GPUSCHED_NODE(id)];
    show_free(node);
    node.is_down = false;
    withheld_gpus_ -= node.gpus;
    --withheld_nodes_;
  }
  /// True while the node is in service. Jobs may run on one that is not, but none can start there.
  [[nodiscard]] bool is_up(NodeId id) const { return !nodes_[GPUSCHED_NODE(id)].is_down; }
  /// GPUs of the nodes in service, held or not.
  [[nodiscard]] std::int64_t up_gpus() const { return total_gpus_ - withheld_gpus_; }
  /// GPU thousandths of nodes out of service that no job holds.
  [[nodiscard]] MilliGpu withheld_gpu_milli() const { return withheld_milli_; }

  /// Nodes of the cluster.
  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// GPUs of the cluster, held or not.
  [[nodiscard]] std::int64_t total_gpus() const { return total_gpus_; }
  /// GPU thousandths that no job holds.
  [[nodiscard]] MilliGpu free_gpu_milli() const { return free_gpu_milli_; }
  /// GPUs of which no part is held, cluster-wide; counting nodes contribute whole GPUs.
  [[nodiscard]] std::int64_t idle_gpus() const {
    std::int64_t sum = 0;
    for (const NodeClass& alike : classes_) sum += alike.idle_gpus;
    return sum;
  }
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
  // ---- MIG: cards that are cut into instances (gpusched/data/mig.hpp) ---------------------------------------------

  /// True when some card is cut, or can be.
  [[nodiscard]] bool has_mig() const { return !mig_cards_.empty(); }
  /// True when the layout of some card changes as jobs come.
  [[nodiscard]] bool cuts_cards() const { return cuts_cards_; }
  /// What the card can be cut into; null: it is never cut. O(1), as all of this part.
  [[nodiscard]] const MigModel* mig_model(std::uint32_t card) const {
    return has_mig() && mig_cards_[card].kind != 0xff ? mig_kinds_[mig_cards_[card].kind].model : nullptr;
  }
  /// Memory slices of the card that tasks hold. Precondition: mig_model(card).
  [[nodiscard]] MigSlices held_slices(std::uint32_t card) const { return mig_cards_[card].held; }
  /// The instances of the card, held or not, by start; none while it is not in MIG mode. Precondition: mig_model(card).
  [[nodiscard]] std::vector<MigInstance> instances(std::uint32_t card) const {
    std::vector<MigInstance> list;
    const detail::MigCard& mig = mig_cards_[card];
    for (std::uint8_t start = 0; start < most_mig_slices && mig.layout[0] != detail::MigCard::uncut; ++start) {
      if (mig.layout[start] == 0) continue;
      list.push_back({.profile = static_cast<std::uint8_t>(mig.layout[start] - 1), .start = start});
    }
    return list;
  }
  /// The MIG instance that a grant holds. Precondition: grant.slice > 0.
  [[nodiscard]] static MigInstance instance(const Grant& grant) { return instance(grant.slice); }
  /// The instance of that number (Grant::slice). Precondition: slice > 0.
  [[nodiscard]] static MigInstance instance(std::uint8_t slice) {
    return {.profile = static_cast<std::uint8_t>((slice - 1) / most_mig_slices),
            .start = static_cast<std::uint8_t>((slice - 1) % most_mig_slices)};
  }

  /// What making the cards of a grant as it needs them took.
  struct Reconfiguration {
    Time time{};              ///< until the tasks can work
    MilliGpu milli = 0;       ///< GPU thousandths that wait for it
    std::uint32_t cards = 0;  ///< whose layout changed
  };
  /// Makes the layouts of dynamic cards such as the grant, which holds its slices already, needs them: instances that
  /// nobody holds and that are in its way go. Called by the engine when a run begins; until then a grant changes no
  /// layout, so that a start can be tried and taken back.
  Reconfiguration configure(const Grant& grant) {
    Reconfiguration result;
    if (!cuts_cards_) return result;
    const NodeState& node = nodes_[index(grant.node)];
    for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
      detail::MigCard& card = mig_cards_[node.first_device + static_cast<std::uint32_t>(std::countr_zero(bits))];
      if (card.kind == 0xff) continue;
      const detail::MigKind& kind = mig_kinds_[card.kind];
      if (kind.layout == MigLayout::fixed || is_ready(card, grant.slice)) continue;
      cut(card, kind, grant.slice);
      ++result.cards;
      result.time = std::max(result.time, kind.reconfigure);
      result.milli += grant.slice == 0 ? whole_gpu : kind.model->milli(kind.model->profiles()[instance(grant).profile]);
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
    for (const NodeClass& alike : classes_) {
      for (std::uint32_t idle = fewest_idle(alike, 0); idle != no_index;) {
        visit(alike.gpu_type, alike.gpus, idle, count_with(alike, idle));
        idle = has_index(alike) ? alike.occupied_levels.next(idle + 1) : no_index;
      }
    }
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
  [[nodiscard]] bool devices_differ() const { return devices_differ_; }

  /// GPU thousandths that a job of `shape` in virtual cluster `vc` could draw on now: within its quota, on nodes it may
  /// use, idle GPUs only unless it asks for shares.
  [[nodiscard]] GPUSCHED_HOT MilliGpu available_gpu_milli(const Shape& shape, std::uint32_t vc) const {
    MilliGpu free = 0;
    for (const std::uint32_t number : allowed_classes(shape, vc)) {
      free += shape.is_share() ? classes_[number].free_milli : classes_[number].idle_gpus * whole_gpu;
    }
    return std::min(free, vc_free(vc));
  }

  /// False when a gang of `shape` certainly does not fit now. Exact when GPUs are the only limit and every task wants
  /// at most one.
  [[nodiscard]] bool may_fit(const Shape& shape, std::uint32_t vc) const {
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
        const std::uint8_t slice = has_mig() ? choose_slice(nodes_[index(id)].first_device + chosen, shape) : 0;
        head =
            grants_.add({.devices = std::uint64_t{1} << chosen, .node = id, .tasks = 1, .next = head, .slice = slice});
        occupy(grants_[head], shape, vc);
      }
      return head;
    }
    if (head != no_index && grants_[head].node == id) {  // the last tasks went there too: one grant per node
      Grant& grant = grants_[head];
      const Grant more{.devices = pick_devices(nodes_[index(id)], tasks, shape), .node = id, .tasks = tasks};
      occupy(more, shape, vc);
      grant.devices |= more.devices;
      grant.tasks += tasks;
      return head;
    }
    head = grants_.add(
        {.devices = pick_devices(nodes_[index(id)], tasks, shape), .node = id, .tasks = tasks, .next = head});
    occupy(grants_[head], shape, vc);
    return head;
  }

  /// Gives the capacity of a grant list back; the list stays, so that retake() can undo this.
  void release(std::uint32_t head, const Shape& shape, std::uint32_t vc) {
    for (std::uint32_t at = head; at != no_index; at = grants_[at].next) give_back(grants_[at], shape, vc);
  }

  /// Stops keeping the index of nodes by idle GPUs until refresh_index(): cheaper where much is released and taken
  /// again on nodes of the caller's choice, because most nodes end as idle as they were. Until then everything that
  /// reads the index (for_each_idle_level(), all_free(), a search) must not be called.
  void defer_index() { index_deferred_ = true; }

  /// Brings the index up to date and ends defer_index().
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
    return widest == Span::node ? span_within(nodes_[index(first)], devices) : widest;
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
    const auto class_free = [this](const NodeClass& alike) {
      const auto members = static_cast<std::int64_t>(alike.members.size());
      return alike.idle_gpus == members * alike.whole_gpus && alike.free_milli == members * alike.gpus * whole_gpu &&
             (!has_index(alike) || alike.by_idle[alike.whole_gpus].count() == alike.members.size());
    };
    return free_gpu_milli_ == total_gpus_ * whole_gpu && vc_free_ == vc_quota_ &&
           std::all_of(nodes_.begin(), nodes_.end(), node_free) &&
           std::all_of(classes_.begin(), classes_.end(), class_free) &&
           std::all_of(device_left_.begin(), device_left_.end(), [](std::int16_t left) { return left == whole_gpu; }) &&
           card_memory_left_ == card_memory_ &&
           std::all_of(mig_cards_.begin(), mig_cards_.end(),
                       [](const detail::MigCard& card) { return card.held == 0; });
  }

  // ---- for the search of nodes -----------------------------------------------------------------------------------

  /// Numbers of the classes where a job of `shape` in virtual cluster `vc` may run (owner and GPU type).
  [[nodiscard]] const std::vector<std::uint32_t>& allowed_classes(const Shape& shape, std::uint32_t vc) const {
    const bool anywhere = devices_differ_ && shape.gpu_spec == 0 && shape.gpu_milli_per_task == 0;
    return allowed_[(anywhere ? specs_ : std::size_t{shape.gpu_spec}) * owners_ + std::min(vc, owners_ - 1)];
  }
  /// The class of that number.
  [[nodiscard]] const detail::NodeClass& node_class(std::uint32_t number) const { return classes_[number]; }
  /// The account of a node.
  [[nodiscard]] const detail::NodeState& node(NodeId id) const { return nodes_[GPUSCHED_NODE(id)]; }
  /// True when CPU or memory bounds some node, so that idle GPUs alone do not tell what fits.
  [[nodiscard]] bool is_bounded() const { return bounded_; }
  /// True when the numbers of idle GPUs tell where a task of the shape fits.
  [[nodiscard]] bool is_told_by_idle_gpus(const Shape& shape) const {
    if (bounded_ || shape.is_share()) return false;
    return withheld_nodes_ == 0 || shape.gpu_milli_per_task > 0;
  }
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
    std::int64_t shares = whole_gpu / shape.gpu_milli_per_task;
    const std::int64_t memory = memory_of(shape);
    if (memory > 0) shares = std::min(shares, card_memory_[node.first_device] / memory);
    if (node.mig == no_index) return node.gpus * shares;
    std::int64_t sum = 0;
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      sum += std::min(shares, instances_that_fit(node.first_device + d, shape, 0));
    }
    return sum;
  }

  /// The least number of idle GPUs, at least `need`, that some member of the class has; or no_index.
  [[nodiscard]] std::uint32_t fewest_idle(const detail::NodeClass& alike, std::uint32_t need) const {
    if (has_index(alike)) return alike.occupied_levels.next(need);
    const std::uint32_t idle = nodes_[alike.members.front()].idle;
    return idle >= need ? idle : no_index;
  }
  /// The greatest number of idle GPUs that a member has.
  [[nodiscard]] std::uint32_t most_idle(const detail::NodeClass& alike) const {
    return has_index(alike) ? alike.occupied_levels.last() : nodes_[alike.members.front()].idle;
  }
  /// The lowest id of a member with `idle` idle GPUs. Precondition of this and the next two: there is one.
  [[nodiscard]] std::uint32_t first_with(const detail::NodeClass& alike, std::uint32_t idle) const {
    return has_index(alike) ? alike.members[alike.by_idle[idle].first()] : alike.members.front();
  }
  /// How many members have `idle` idle GPUs. O(members / 64).
  [[nodiscard]] std::uint32_t count_with(const detail::NodeClass& alike, std::uint32_t idle) const {
    return has_index(alike) ? alike.by_idle[idle].count() : 1;
  }
  /// Of those, the one at position `rank`, counted from 0. O(members / 64). Precondition: rank < count_with().
  [[nodiscard]] std::uint32_t nth_with(const detail::NodeClass& alike, std::uint32_t idle, std::uint32_t rank) const {
    return has_index(alike) ? alike.members[alike.by_idle[idle].nth(rank)] : alike.members.front();
  }

 private:
  using NodeState = detail::NodeState;
  using NodeClass = detail::NodeClass;

  // A node that the index may list under another number of idle GPUs than it has.
  struct Stale {
    std::uint32_t node = 0;
    std::uint32_t listed_idle = 0;
  };

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

  void index_nodes() {
    for (std::uint32_t id = 0; id < node_count(); ++id) {
      NodeState& node = nodes_[id];
      const auto is_alike = [&](const NodeClass& other) {
        return other.vc == node.vc && other.vc_group == node.vc_group && other.gpu_type == node.gpu_type &&
               other.gpus == node.gpus && other.mig == node.mig;
      };
      const auto place = std::find_if(classes_.begin(), classes_.end(), is_alike);
      node.node_class = static_cast<std::uint32_t>(place - classes_.begin());
      if (place == classes_.end()) {
        classes_.push_back({.vc = node.vc,
                            .vc_group = node.vc_group,
                            .gpu_type = node.gpu_type,
                            .gpus = node.gpus,
                            .mig = node.mig,
                            .whole_gpus = node.whole_gpus,
                            .members = {},
                            .by_idle = {},
                            .occupied_levels = {}});
      }
      NodeClass& alike = classes_[node.node_class];
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

  // For every (GPU demand, virtual cluster): the classes where such a job may run. Behind them, by virtual cluster,
  // those of jobs that ask for no device and name none.
  void list_allowed_classes(const Cluster& cluster, const NameTable& specs) {
    const std::size_t vcs = cluster.vcs.size() + 1;  // the last one: jobs of no virtual cluster, which may run anywhere
    owners_ = static_cast<std::uint32_t>(vcs);
    specs_ = specs.size();
    devices_differ_ = !cluster.devices.empty();
    allowed_.assign((specs_ + 1) * vcs, {});
    for (std::size_t spec = 0; spec <= specs_; ++spec) {
      const GpuDemand demand(spec < specs_ ? std::string_view(specs[static_cast<std::uint32_t>(spec)]) : "");
      for (std::uint32_t vc = 0; vc < vcs; ++vc) {
        for (std::uint32_t number = 0; number < classes_.size(); ++number) {
          const NodeClass& alike = classes_[number];
          const bool is_open = vc + 1 == vcs || cluster.owners_serve(alike.vc, alike.vc_group, vc);
          const std::uint32_t type = alike.gpu_type;
          if (is_open && (spec == specs_ || demand.accepts(cluster.gpu_types[type], cluster.device(type)))) {
            allowed_[spec * vcs + vc].push_back(number);
          }
        }
      }
    }
  }

  [[nodiscard]] std::int64_t gpu_tasks_that_fit(const NodeState& node, const Shape& shape) const {
    if (!shape.is_share()) return node.idle / (shape.gpu_milli_per_task / whole_gpu);
    if (!node.has_devices) return node.free_milli / shape.gpu_milli_per_task;
    std::int64_t tasks = 0;
    for (std::uint32_t d = 0; d < node.gpus; ++d) tasks += tasks_on_card(node.first_device + d, shape);
    return tasks;
  }

  // Device memory counts where cards have a known amount and jobs with shares of GPUs say what they need.
  void count_card_memory(const Cluster& cluster, const NameTable& specs) {
    const auto is_known = [](const DeviceType& device) { return device.memory_mib < unlimited; };
    if (std::none_of(cluster.devices.begin(), cluster.devices.end(), is_known)) return;
    memory_of_spec_.resize(specs.size());
    for (std::uint32_t spec = 0; spec < specs.size(); ++spec)
      memory_of_spec_[spec] = GpuDemand(specs[spec]).memory_mib();
    if (std::all_of(memory_of_spec_.begin(), memory_of_spec_.end(), [](std::int64_t mib) { return mib == 0; })) {
      memory_of_spec_.clear();
      return;
    }
    card_memory_.resize(device_left_.size());
    for (const NodeState& node : nodes_) {
      if (!node.has_devices) continue;
      std::fill_n(card_memory_.begin() + node.first_device, node.gpus, cluster.device(node.gpu_type).memory_mib);
    }
    card_memory_left_ = card_memory_;
  }

  // MiB of device memory that a task of the shape takes on its card; 0 where that does not count.
  [[nodiscard]] std::int64_t memory_of(const Shape& shape) const {
    return memory_of_spec_.empty() ? 0 : memory_of_spec_[shape.gpu_spec];
  }

  // Tasks of a share of a GPU that fit on the card.
  [[nodiscard]] std::int64_t tasks_on_card(std::uint32_t card, const Shape& shape) const {
    const std::int64_t tasks = device_left_[card] / shape.gpu_milli_per_task;
    const std::int64_t memory = memory_of(shape);
    const std::int64_t fit = memory == 0 ? tasks : std::min(tasks, card_memory_left_[card] / memory);
    return !has_mig() || fit == 0 ? fit : std::min(fit, instances_that_fit(card, shape, mig_cards_[card].held));
  }

  // ---- MIG -------------------------------------------------------------------------------------------------------

  // Finds the cards that are cut, and which profiles each GPU demand may have there.
  void cut_cards(const Cluster& cluster, const NameTable& specs) {
    const auto is_cut = [](const NodeState& node) { return node.mig != no_index && node.has_devices; };
    if (std::none_of(nodes_.begin(), nodes_.end(), is_cut)) return;
    mig_cards_.resize(device_left_.size());
    for (NodeState& node : nodes_) {
      if (is_cut(node)) cut_node(cluster, node);
    }
    mig_profiles_.resize(specs.size() * mig_kinds_.size());
    for (std::uint32_t spec = 0; spec < specs.size(); ++spec) {
      const GpuDemand demand(specs[spec]);
      for (std::size_t k = 0; k < mig_kinds_.size(); ++k) {
        const detail::MigKind& kind = mig_kinds_[k];
        mig_profiles_[spec * mig_kinds_.size() + k] = profiles_for(demand, cluster.gpu_types[kind.gpu_type], kind);
      }
    }
  }

  void cut_node(const Cluster& cluster, NodeState& node) {
    const MigNode& mig = cluster.migs[node.mig];
    const auto place = std::find_if(mig_kinds_.begin(), mig_kinds_.end(), [&](const detail::MigKind& kind) {
      return kind.mig == node.mig && kind.gpu_type == node.gpu_type;
    });
    const auto number = static_cast<std::uint8_t>(place - mig_kinds_.begin());
    GPUSCHED_ASSERT(number < 0xff, "too many ways in which cards are cut");
    const MigModel& model = mig_models[mig.model];
    if (place == mig_kinds_.end()) {
      mig_kinds_.push_back({.model = &model,
                            .layout = mig.layout,
                            .reconfigure = mig.reconfigure,
                            .mig = node.mig,
                            .gpu_type = node.gpu_type,
                            .memory_mib = std::min(cluster.device(node.gpu_type).memory_mib, model.memory_mib)});
    }
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      detail::MigCard& card = mig_cards_[node.first_device + d];
      const bool dynamic = mig.layout != MigLayout::fixed;
      cuts_cards_ = cuts_cards_ || dynamic;
      if (!dynamic && (d >= mig.cards.size() || mig.cards[d].empty())) continue;  // not in MIG mode
      card.kind = number;
      if (dynamic) {
        card.layout[0] = detail::MigCard::uncut;
        continue;
      }
      for (const MigInstance& one : mig.cards[d]) card.layout[one.start] = static_cast<std::uint8_t>(one.profile + 1);
      // One instance of the whole card is as good as the card.
      const MigInstance& first = mig.cards[d].front();
      if (model.profiles()[first.profile].compute != model.compute_slices) {
        node.whole_devices &= ~(std::uint64_t{1} << d);
      }
    }
    node.idle_devices = node.whole_devices;
    node.idle = node.whole_gpus = static_cast<std::uint32_t>(std::popcount(node.whole_devices));
  }

  // A bit for each profile that such a job may have: the one that it names, or all with enough memory.
  static std::uint8_t profiles_for(const GpuDemand& demand, std::string_view type, const detail::MigKind& kind) {
    const std::string_view named = demand.mig_profile(type);
    std::uint8_t allowed = 0;
    for (std::uint32_t p = 0; p < kind.model->profile_count; ++p) {
      const MigProfile& profile = kind.model->profiles()[p];
      const bool enough = kind.memory_mib * profile.memory / kind.model->memory_slices >= demand.memory_mib();
      if (named.empty() ? enough : named == profile.name) allowed = static_cast<std::uint8_t>(allowed | 1u << p);
    }
    return allowed;
  }

  // True when an instance of profile `p` is what a task of the shape may have, and as large as its share.
  [[nodiscard]] bool holds(const detail::MigCard& card, std::uint32_t p, const Shape& shape) const {
    const detail::MigKind& kind = mig_kinds_[card.kind];
    return (mig_profiles_[shape.gpu_spec * mig_kinds_.size() + card.kind] >> p & 1) != 0 &&
           kind.model->milli(kind.model->profiles()[p]) >= shape.gpu_milli_per_task;
  }

  // The least profile that holds a task of the shape; no_index: none does.
  [[nodiscard]] std::uint32_t least_profile(const detail::MigCard& card, const Shape& shape) const {
    for (std::uint32_t p = 0; p < mig_kinds_[card.kind].model->profile_count; ++p) {
      if (holds(card, p, shape)) return p;
    }
    return no_index;
  }

  // Calls visit(profile, start) for every instance that a task of the shape could have on the card while those slices
  // are held: on a card of fixed layout the instances that are there, else all of the least profile.
  template <class Visit>
  void for_each_choice(const detail::MigCard& card, const Shape& shape, MigSlices held, Visit visit) const {
    const detail::MigKind& kind = mig_kinds_[card.kind];
    const bool is_fixed = kind.layout == MigLayout::fixed;
    const std::uint32_t least = is_fixed ? 0 : least_profile(card, shape);
    if (least == no_index) return;
    for (std::uint32_t start = 0; start < kind.model->memory_slices; ++start) {
      if (is_fixed && card.layout[start] == 0) continue;
      const std::uint32_t p = is_fixed ? card.layout[start] - 1u : least;
      const MigProfile& profile = kind.model->profiles()[p];
      if ((profile.starts >> start & 1) == 0 || (profile.slices(start) & held) != 0) continue;
      if (!is_fixed || holds(card, p, shape)) visit(p, start);
    }
  }

  // Tasks of the shape that find an instance each on the card while those slices are held. Instances of one profile at
  // two starts never overlap. As many as shares where the card is never cut.
  [[nodiscard]] std::int64_t instances_that_fit(std::uint32_t card, const Shape& shape, MigSlices held) const {
    if (mig_cards_[card].kind == 0xff) return whole_gpu;
    std::int64_t count = 0;
    for_each_choice(mig_cards_[card], shape, held, [&](std::uint32_t, std::uint32_t) { ++count; });
    return count;
  }

  // How many instances, of any profile and start, could stand on the card now and could not beside these slices.
  static std::uint32_t places_lost(const MigModel& model, MigSlices held, MigSlices slices) {
    std::uint32_t lost = 0;
    for (const MigProfile& profile : model.profiles()) {
      for (std::uint32_t start = 0; start < model.memory_slices; ++start) {
        const MigSlices there = profile.slices(start);
        const bool is_possible = (profile.starts >> start & 1) != 0 && (there & held) == 0;
        lost += is_possible && (there & slices) != 0 ? 1 : 0;
      }
    }
    return lost;
  }

  // Of the instances that a task of the shape could have: one that is there already, of the least profile, after which
  // the fewest other instances lose their place; at the first start on ties. 0: the card is never cut. Precondition:
  // the task fits.
  [[nodiscard]] std::uint8_t choose_slice(std::uint32_t number, const Shape& shape) const {
    const detail::MigCard& card = mig_cards_[number];
    if (card.kind == 0xff) return 0;
    const detail::MigKind& kind = mig_kinds_[card.kind];
    std::uint8_t best = 0;
    std::tuple<bool, std::uint32_t, std::uint32_t> least{};
    for_each_choice(card, shape, card.held, [&](std::uint32_t p, std::uint32_t start) {
      const auto slice = static_cast<std::uint8_t>(1 + p * most_mig_slices + start);
      const bool counts = kind.layout == MigLayout::dynamic;
      const std::uint32_t lost =
          counts ? places_lost(*kind.model, card.held, kind.model->profiles()[p].slices(start)) : 0;
      const std::tuple rank{!is_ready(card, slice), p, lost};
      if (best != 0 && rank >= least) return;
      best = slice;
      least = rank;
    });
    return best;
  }

  // True when the card has that instance (0: is not in MIG mode), so that nothing is to be changed.
  static bool is_ready(const detail::MigCard& card, std::uint8_t slice) {
    if (slice == 0) return card.layout[0] == detail::MigCard::uncut;
    const std::uint32_t profile = (slice - 1u) / most_mig_slices;
    return card.layout[(slice - 1u) % most_mig_slices] == profile + 1;
  }

  // Precondition: nobody but the one who will have the instance holds a part of its slices.
  static void cut(detail::MigCard& card, const detail::MigKind& kind, std::uint8_t slice) {
    if (slice == 0 || card.layout[0] == detail::MigCard::uncut) card.layout = {};
    if (slice == 0) {
      card.layout[0] = detail::MigCard::uncut;
      return;
    }
    const std::uint32_t profile = (slice - 1u) / most_mig_slices, begin = (slice - 1u) % most_mig_slices;
    const MigSlices slices = kind.model->profiles()[profile].slices(begin);
    for (std::uint32_t start = 0; start < most_mig_slices; ++start) {
      const std::uint32_t there = card.layout[start];
      if (there != 0 && (kind.model->profiles()[there - 1].slices(start) & slices) != 0) card.layout[start] = 0;
    }
    card.layout[begin] = static_cast<std::uint8_t>(profile + 1);
  }

  // The memory slices that the grant takes on a card.
  static MigSlices slices_of(const detail::MigKind& kind, std::uint8_t slice) {
    if (slice == 0) return kind.model->whole();
    return kind.model->profiles()[(slice - 1u) / most_mig_slices].slices((slice - 1u) % most_mig_slices);
  }

  void hold_slices(std::uint32_t number, std::uint8_t slice, [[maybe_unused]] bool take) {
    detail::MigCard& card = mig_cards_[number];
    if (card.kind == 0xff) return;
    const MigSlices slices = slices_of(mig_kinds_[card.kind], slice);
    GPUSCHED_ASSERT((card.held & slices) == (take ? 0 : slices), "MIG instances overlap");
    card.held = static_cast<MigSlices>(card.held ^ slices);
  }

  // Every look into the index asks this first.
  [[nodiscard]] bool has_index(const NodeClass& alike) const {
    GPUSCHED_ASSERT(!index_deferred_, "the index was asked before refresh_index()");
    return !alike.by_idle.empty();
  }

  // ---- taking and giving back ------------------------------------------------------------------------------------

  // ---- spans -----------------------------------------------------------------------------------------------------

  // Precondition: two nodes.
  [[nodiscard]] Span span_between(const NodeState& a, const NodeState& b) const {
    if (a.rack_number == b.rack_number) return Span::nodes;
    return site_of(a.rack_number) == site_of(b.rack_number) ? Span::racks : Span::sites;
  }

  [[nodiscard]] static Span span_within(const NodeState& node, std::uint64_t devices) {
    if (node.island_gpus == 0 || devices == 0) return Span::node;
    const auto lowest = static_cast<std::uint32_t>(std::countr_zero(devices));
    const auto highest = static_cast<std::uint32_t>(std::bit_width(devices) - 1);
    return lowest / node.island_gpus == highest / node.island_gpus ? Span::node : Span::islands;
  }

  // The lowest-numbered `gpus` of a set of GPUs that has as many.
  static std::uint64_t lowest_of(std::uint64_t devices, std::int64_t gpus) {
    std::uint64_t rest = devices;
    for (; gpus > 0; --gpus) rest &= rest - 1;
    return devices & ~rest;
  }

  // The lowest-numbered idle GPUs of the node; where it has islands, of the fullest island that holds all, else of the
  // emptiest one after another.
  static std::uint64_t pick_devices(const NodeState& node, std::uint32_t tasks, const Shape& shape) {
    if (!node.has_devices) return 0;
    std::int64_t gpus = tasks * (shape.gpu_milli_per_task / whole_gpu);
    if (node.island_gpus == 0) return lowest_of(node.idle_devices, gpus);
    std::uint64_t picked = 0;
    while (gpus > 0) {
      const std::uint64_t idle = best_island(node, node.idle_devices & ~picked, gpus);
      const std::int64_t here = std::min<std::int64_t>(gpus, std::popcount(idle));
      picked |= lowest_of(idle, here);
      gpus -= here;
    }
    return picked;
  }

  // The idle GPUs of the island that has the fewest of at least `gpus`, or else the most.
  static std::uint64_t best_island(const NodeState& node, std::uint64_t idle, std::int64_t gpus) {
    const std::uint64_t island = ~std::uint64_t{0} >> (64 - node.island_gpus);
    std::uint64_t best = 0;
    for (std::uint32_t first = 0; first < node.gpus; first += node.island_gpus) {
      const std::uint64_t here = idle & island << first;
      const std::int64_t count = std::popcount(here), most = std::popcount(best);
      const bool better = count >= gpus ? most < gpus || count < most : most < gpus && count > most;
      if (better) best = here;
    }
    return best;
  }

  // Where GPUs are cut: one that has the instance already, then the one of the least profile (a share of a GPU that is
  // not cut comes last), then the GPU with the least left; the lowest-numbered on ties.
  [[nodiscard]] std::uint32_t device_of_least_instance(const NodeState& node, const Shape& shape) const {
    std::uint32_t best = no_index;
    std::tuple<bool, std::uint32_t, std::int16_t> least{};
    for (std::uint32_t d = 0; d < node.gpus; ++d) {
      const std::uint32_t number = node.first_device + d;
      if (tasks_on_card(number, shape) == 0) continue;
      const std::uint8_t slice = choose_slice(number, shape);
      const std::uint32_t profile = slice == 0 ? most_mig_slices : (slice - 1u) / most_mig_slices;
      const std::tuple rank{slice != 0 && !is_ready(mig_cards_[number], slice), profile, device_left_[number]};
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
    if (grant.slice == 0) return tasks_on_card(card, shape) > 0;
    const detail::MigCard& mig = mig_cards_[card];
    return (mig.held & slices_of(mig_kinds_[mig.kind], grant.slice)) == 0;
  }

  void occupy(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, -1); }
  void give_back(const Grant& grant, const Shape& shape, std::uint32_t vc) { change(grant, shape, vc, +1); }

  // What is free on a node that is out of service moves between the account of the cluster (show) and that of what is
  // withheld (hide). O(GPUs of the node).
  GPUSCHED_RARE void hide_free(NodeState& node) { move_free(node, -1); }
  GPUSCHED_RARE void show_free(NodeState& node) { move_free(node, +1); }

  void move_free(NodeState& node, std::int64_t sign) {
    detail::WithheldState& withheld = withheld_[static_cast<std::size_t>(&node - nodes_.data())];
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
    classes_[node.node_class].free_milli += milli;
    free_gpu_milli_ += milli;
    withheld_milli_ -= milli;
    if (node.has_devices) {
      node.idle_devices = 0;
      for (std::uint32_t d = 0; d < node.gpus; ++d) {
        const std::uint32_t card = node.first_device + d;
        move(device_left_[card], withheld_left_[card]);
        if (!card_memory_.empty()) move(card_memory_left_[card], withheld_memory_[card]);
        if (has_mig()) move_slices(card, sign);
        if (device_left_[card] == whole_gpu) node.idle_devices |= (std::uint64_t{1} << d) & node.whole_devices;
      }
    }
    set_idle(node, node.has_devices ? static_cast<std::uint32_t>(std::popcount(node.idle_devices))
                                    : static_cast<std::uint32_t>(node.free_milli / whole_gpu));
  }

  // Free slices of a card that is out of service count as held.
  void move_slices(std::uint32_t number, std::int64_t sign) {
    detail::MigCard& card = mig_cards_[number];
    if (card.kind == 0xff) return;
    const auto whole = mig_kinds_[card.kind].model->whole();
    if (sign < 0) withheld_slices_[number] = static_cast<MigSlices>(whole & ~card.held);
    card.held = static_cast<MigSlices>(card.held ^ withheld_slices_[number]);
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
    if (milli == 0) return;
    node.free_milli += milli;
    classes_[node.node_class].free_milli += milli;
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
        if (has_mig()) hold_slices(card, 0, milli < 0);
      }
      node.idle_devices ^= grant.devices;
      return static_cast<std::uint32_t>(node.idle + milli / whole_gpu);
    }
    const std::uint32_t card = node.first_device + static_cast<std::uint32_t>(std::countr_zero(grant.devices));
    if (const std::int64_t memory = memory_of(shape); memory > 0) {
      card_memory_left_[card] += milli < 0 ? -memory : memory;
      GPUSCHED_ASSERT(card_memory_left_[card] >= 0 && card_memory_left_[card] <= card_memory_[card],
                      "device memory out of range");
    }
    if (has_mig()) hold_slices(card, grant.slice, milli < 0);
    std::int16_t& left = device_left_[card];
    left = static_cast<std::int16_t>(left + milli);
    GPUSCHED_ASSERT(left >= 0 && left <= whole_gpu, "GPU share out of range");
    node.idle_devices = left == whole_gpu ? node.idle_devices | (grant.devices & node.whole_devices)
                                          : node.idle_devices & ~grant.devices;
    return static_cast<std::uint32_t>(std::popcount(node.idle_devices));
  }

  void set_idle(NodeState& node, std::uint32_t idle) {
    if (idle == node.idle) return;
    NodeClass& alike = classes_[node.node_class];
    alike.idle_gpus += std::int64_t{idle} - std::int64_t{node.idle};
    const bool is_indexed = !alike.by_idle.empty();
    if (is_indexed && !index_deferred_) {
      relist(node, node.idle, idle);
    } else if (is_indexed && !node.is_stale) {
      node.is_stale = true;
      stale_.push_back({static_cast<std::uint32_t>(&node - nodes_.data()), node.idle});
    }
    node.idle = idle;
  }

  void relist(const NodeState& node, std::uint32_t from, std::uint32_t to) {
    NodeClass& alike = classes_[node.node_class];
    alike.by_idle[from].erase(node.rank);
    if (alike.by_idle[from].empty()) alike.occupied_levels.erase(from);
    alike.by_idle[to].insert(node.rank);
    alike.occupied_levels.insert(to);
  }

  std::vector<NodeState> nodes_;
  std::vector<NodeClass> classes_;
  std::vector<std::int16_t> device_left_;                     // by card
  std::vector<std::int64_t> card_memory_, card_memory_left_;  // by card, MiB; empty where memory does not count
  std::vector<std::int64_t> memory_of_spec_;                  // by GPU demand, MiB; likewise
  std::vector<detail::MigCard> mig_cards_;                    // by card; empty where none is ever cut
  std::vector<detail::MigKind> mig_kinds_;
  std::vector<std::uint8_t> mig_profiles_;  // [spec * kinds + kind]: bit p: such a job may have profile p
  RecordPool<Grant, &Grant::next> grants_;
  std::vector<Stale> stale_;
  bool index_deferred_ = false;
  std::vector<MilliGpu> vc_free_, vc_quota_;
  std::vector<std::vector<std::uint32_t>> allowed_;  // [spec * owners_ + vc]
  std::size_t specs_ = 0;
  bool devices_differ_ = false;
  std::uint32_t owners_ = 1;
  std::vector<std::uint32_t> rack_sites_;
  // Empty until a node goes out of service: what is free on such nodes, by node and by card.
  std::vector<detail::WithheldState> withheld_;
  std::vector<std::int16_t> withheld_left_;
  std::vector<std::int64_t> withheld_memory_;
  std::vector<MigSlices> withheld_slices_;
  MilliGpu withheld_milli_ = 0;
  std::int64_t total_gpus_ = 0, withheld_gpus_ = 0;
  std::uint32_t withheld_nodes_ = 0;
  MilliGpu free_gpu_milli_ = 0;
  bool bounded_ = false;
  bool cuts_cards_ = false;
  bool gangs_near_ = false;
};

}  // namespace gpusched
