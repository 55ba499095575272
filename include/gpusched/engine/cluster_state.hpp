// SPDX-License-Identifier: Apache-2.0
/// ClusterState: the account of the nodes (capacity.hpp) together with the choice of nodes by a placement rule
/// (node_search.hpp): whole gangs are placed, or nothing is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/placement.hpp"
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

  /// Could a job of `shape` run on the empty cluster? O(nodes).
  [[nodiscard]] static bool fits_when_empty(const Cluster& cluster, const NameTable& specs, const Shape& shape,
                                            std::uint32_t vc) {
    ClusterState state(cluster, specs, Rng{});
    return state.place(shape, vc, Placement::consolidate) != no_index;
  }

  /// Chooses nodes for the whole gang by `rule` and takes them. Returns the head of the grant list, or no_index when
  /// the gang does not fit (then nothing changed). Ends defer_index().
  std::uint32_t place(const Shape& shape, std::uint32_t vc, Placement rule) {
    if (!may_fit(shape, vc)) return no_index;
    refresh_index();
    detail::NodeSearch search(*this, shape, vc, rule, rng_);
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

 private:
  [[nodiscard]] bool device_fits(const NodeTasks& part, const Shape& shape) const {
    if (part.device == no_index || !shape.is_share() || !node_has_devices(part.node)) return true;
    return part.tasks == 1 && part.device < node_gpus(part.node) &&
           node_device_left(part.node, part.device) >= shape.gpu_milli_per_task;
  }

  Rng rng_;
};

}  // namespace gpusched
