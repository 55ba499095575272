// SPDX-License-Identifier: Apache-2.0
/// ClusterState: the account of the nodes (capacity.hpp) together with the choice of nodes by a placement rule
/// (node_search.hpp): whole gangs are placed, or nothing is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/placement.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/capacity.hpp"
#include "gpusched/engine/node_search.hpp"

namespace gpusched {

/// Nodes of a policy's own choosing, for Decision::start_on.
struct NodeTasks {
  NodeId node = no_node;            ///< where the tasks go
  std::uint32_t tasks = 0;          ///< how many of the gang's tasks
  std::uint32_t device = no_index;  ///< for a GPU share: the GPU to use; no_index = the fullest that has room
};

/// A value; a copy is where a policy may play the future.
class ClusterState : public Capacity {
 public:
  /// No nodes.
  ClusterState() = default;

  /// Everything free. `specs`: as Capacity. `rng` draws for Placement::random.
  ClusterState(const Cluster& cluster, const NameTable& specs, Rng rng) : Capacity(cluster, specs), rng_(rng) {}

  /// As Capacity's, the next draw included.
  void copy_changes(const ClusterState& other, const detail::ChangedNodes::Mark& of_other,
                    const detail::ChangedNodes::Mark& own) {
    Capacity::copy_changes(other, of_other, own);
    rng_ = other.rng_;
  }

  /// Could a job of `shape` run on the empty cluster? O(nodes).
  [[nodiscard]] static bool fits_when_empty(const Cluster& cluster, const NameTable& specs, const Shape& shape,
                                            std::uint32_t vc) {
    ClusterState state(cluster, specs, Rng{});
    return state.place(shape, vc, Placement::consolidate) != no_index;
  }

  /// Chooses nodes for the whole gang by `rule` and takes them. Returns the head of the grant list, or no_index when
  /// the gang does not fit (then nothing changed). `speeds`: the gang's, by GPU type, for Placement::fastest; none: all
  /// types are equally fast. Ends defer_index().
  GPUSCHED_HOT std::uint32_t place(const Shape& shape, std::uint32_t vc, Placement rule,
                                   std::span<const RatePpm> speeds = {}) {
    if (!may_fit(shape, vc)) return no_index;
    refresh_index();
    if (is_plain_pool() && takes_whole_gpus(shape) && rule != Placement::random) {  // which draws
      return take(NodeId{0}, shape.tasks, shape, vc, no_index, no_index);
    }
    if (rule == Placement::fastest && !speeds.empty()) return place_fastest(shape, vc, speeds);
    return place_among(allowed_classes(shape, vc), shape, vc, rule);
  }

  /// Would place() find nodes? Changes nothing lasting; where idle GPUs alone tell, without a search.
  [[nodiscard]] bool fits(const Shape& shape, std::uint32_t vc, Placement rule, std::span<const RatePpm> speeds = {}) {
    if (!may_fit(shape, vc)) return false;
    refresh_index();
    if (takes_whole_gpus(shape) && is_told_by_idle_gpus(shape) && uses_remnants(rule)) {
      return idle_gpus_hold(shape, allowed_classes(shape, vc));
    }
    const std::uint32_t grants = place(shape, vc, rule, speeds);
    release(grants, shape, vc);
    free_grants(grants);
    return grants != no_index;
  }

  /// As place(), on nodes of one GPU type alone.
  std::uint32_t place_on_type(const Shape& shape, std::uint32_t vc, Placement rule, std::uint32_t gpu_type) {
    if (!may_fit(shape, vc)) return no_index;
    refresh_index();
    const auto is_of_type = [&gpu_type](const detail::NodeClass& alike) { return alike.gpu_type == gpu_type; };
    return place_among(classes_that(shape, vc, is_of_type), shape, vc, rule);
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

  /// The same with GPUs and MIG instances of the caller's choosing; where a choice names no GPUs, the node's are
  /// chosen. Grant::next means nothing.
  std::uint32_t place_exactly(const Shape& shape, std::uint32_t vc, std::span<const Grant> choice) {
    std::uint32_t total = 0;
    for (const Grant& part : choice) total += part.tasks;
    if (total != shape.tasks || shape.gpu_milli() > vc_free(vc)) return no_index;
    std::uint32_t head = no_index;
    for (const Grant& part : choice) {
      const bool known = index(part.node) < node_count() && part.tasks > 0;
      const bool fits = known && node_allowed(part.node, shape, vc) && tasks_that_fit(part.node, shape) >= part.tasks;
      std::uint32_t longer = no_index;
      if (fits && part.devices == 0) longer = take(part.node, part.tasks, shape, vc, no_index, head);
      if (fits && part.devices != 0 && is_for(part, shape)) longer = take_exactly(part, shape, vc, head);
      if (longer == no_index) {
        release(head, shape, vc);
        free_grants(head);
        return no_index;
      }
      head = longer;
    }
    return head;
  }

 private:
  // The GPUs, or the instance, of the choice are such as its tasks may have.
  [[nodiscard]] bool is_for(const Grant& choice, const Shape& shape) const {
    const detail::NodeState& node = this->node(choice.node);
    const bool shares = shape.is_share();
    const std::int64_t gpus = shares ? 1 : choice.tasks * (shape.gpu_milli_per_task / whole_gpu);
    const bool known = node.has_devices && static_cast<std::uint32_t>(std::bit_width(choice.devices)) <= node.gpus &&
                       std::popcount(choice.devices) == gpus && (!shares || choice.tasks == 1);
    if (!known || !shares || !has_mig()) return known && choice.slice == 0;
    return mig().takes(card(choice.node, static_cast<std::uint32_t>(std::countr_zero(choice.devices))), shape,
                       choice.slice);
  }

  // One node, and nothing but GPUs bounds it: whole GPUs that may fit do, and there is no choice to make. Most logs of
  // HPC machines are replayed on such a cluster, and a search costs half of a job there.
  [[nodiscard]] bool is_plain_pool() const { return node_count() == 1 && !is_bounded(); }
  [[nodiscard]] static bool takes_whole_gpus(const Shape& shape) {
    return shape.gpu_milli_per_task > 0 && !shape.is_share();
  }

  template <class Accept>
  [[nodiscard]] std::vector<std::uint32_t> classes_that(const Shape& shape, std::uint32_t vc, Accept accept) const {
    std::vector<std::uint32_t> accepted;
    for (const std::uint32_t number : allowed_classes(shape, vc)) {
      if (accept(node_class(number))) accepted.push_back(number);
    }
    return accepted;
  }

  std::uint32_t place_among(const std::vector<std::uint32_t>& classes, const Shape& shape, std::uint32_t vc,
                            Placement rule) {
    const bool near = detail::NodeSearch::minds_racks(*this, rule);
    // A search over racks that finds no room looks at all of them.
    const bool is_told = takes_whole_gpus(shape) && is_told_by_idle_gpus(shape);
    if (near && is_told && !idle_gpus_hold(shape, classes)) return no_index;
    prepare_search(shape, near);
    detail::NodeSearch search(*this, shape, classes, rule, rng_);
    std::uint32_t head = no_index;
    for (std::uint32_t left = shape.tasks; left > 0;) {
      const NodeId node = search.next(left);
      if (node == no_node) {
        release(head, shape, vc);
        free_grants(head);
        return no_index;
      }
      const std::uint32_t tasks = search.tasks_on(node, left);
      head = take(node, tasks, shape, vc, no_index, head);
      left -= tasks;
    }
    return head;
  }

  // Tries the fastest types alone, then with the next, and so on.
  GPUSCHED_RARE std::uint32_t place_fastest(const Shape& shape, std::uint32_t vc, std::span<const RatePpm> speeds) {
    const auto speed_on = [&speeds](const detail::NodeClass& alike) {
      return alike.gpu_type < speeds.size() ? speeds[alike.gpu_type] : reference_rate;
    };
    std::vector<RatePpm> steps;
    for (const std::uint32_t number : allowed_classes(shape, vc)) steps.push_back(speed_on(node_class(number)));
    std::sort(steps.begin(), steps.end(), std::greater<>());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const RatePpm slowest : steps) {
      const auto is_fast = [&speed_on, &slowest](const detail::NodeClass& alike) { return speed_on(alike) >= slowest; };
      const std::uint32_t head = place_among(classes_that(shape, vc, is_fast), shape, vc, Placement::consolidate);
      if (head != no_index) return head;
    }
    return no_index;
  }

  [[nodiscard]] bool device_fits(const NodeTasks& part, const Shape& shape) const {
    if (part.device == no_index || !shape.is_share() || !node_has_devices(part.node)) return true;
    return part.tasks == 1 && part.device < node_gpus(part.node) && device_takes(part.node, part.device, shape);
  }

  Rng rng_;
};

}  // namespace gpusched
