// SPDX-License-Identifier: Apache-2.0
#include "src/sim/wait_cause.hpp"

#include <algorithm>
#include <vector>

namespace gpusched {
namespace {

// What is free on one node as the job sees GPUs: whole ones, or any part of one.
MilliGpu room_on(const ClusterState& state, NodeId node, const Shape& shape) {
  return shape.is_share() ? state.node_free_gpu_milli(node) : state.node_idle_gpus(node) * whole_gpu;
}

// Tasks that its GPUs alone would hold.
std::int64_t tasks_by_gpus(const ClusterState& state, NodeId node, const Shape& shape) {
  const MilliGpu per_task = shape.gpu_milli_per_task;
  if (per_task == 0) return shape.tasks;
  if (!shape.is_share() || !state.node_has_devices(node)) return room_on(state, node, shape) / per_task;
  std::int64_t tasks = 0;
  for (std::uint32_t d = 0; d < state.node_gpus(node); ++d) tasks += state.node_device_left(node, d) / per_task;
  return tasks;
}

// Sums over nodes in service.
struct Room {
  MilliGpu all = 0, owned = 0, usable = 0;
  std::int64_t tasks_by_gpus = 0, tasks = 0;
};

Room room_of(const ClusterState& state, const Cluster& cluster, const Shape& shape, std::uint32_t queue) {
  Room room;
  for (std::uint32_t i = 0; i < state.node_count(); ++i) {
    const NodeId node{i};
    if (!state.is_up(node)) continue;
    const MilliGpu here = room_on(state, node, shape);
    room.all += here;
    if (!cluster.owners_serve(cluster.nodes[i].vc, cluster.nodes[i].vc_group, queue)) continue;
    room.owned += here;
    if (!state.node_allowed(node, shape, queue)) continue;
    room.usable += here;
    room.tasks_by_gpus += tasks_by_gpus(state, node, shape);
    room.tasks += state.tasks_that_fit(node, shape);
  }
  return room;
}

// What PowerCaps asks of the run's state and of Power, with a copy of the cluster on which one more job has its place.
struct TrialState {
  const detail::EngineState& run;
  const ClusterState& cluster;
  const detail::Occupancy& occupancy = run.occupancy;
  const JobTable* jobs = run.jobs;
  std::vector<detail::Resized> resized = {};  // that is settled

  [[nodiscard]] const Shape& held_shape(JobId job) const { return run.held_shape(job); }
  [[nodiscard]] std::uint32_t card_of(JobId job, const Grant& grant) const { return run.card_of(job, grant); }
};
struct TrialPower {
  const detail::Power& run;
  detail::NodeDraws copied = run.draws();  // which keeps what it reckons with

  detail::NodeDraws& draws() { return copied; }
  [[nodiscard]] const detail::NodeDraws& draws() const { return copied; }
  [[nodiscard]] std::uint8_t limit(JobId job) const { return run.limit(job); }
  [[nodiscard]] std::uint8_t level(JobId job) const { return run.level(job); }
  [[nodiscard]] detail::NodePhase phase_with(NodeId node, detail::Occupants occupants) const {
    return run.phase_with(node, occupants);
  }
  template <class Visit>
  void for_each_occupant(NodeId node, Visit visit) const {
    run.for_each_occupant(node, visit);
  }
};

}  // namespace

WaitState wait_state(const View& view, const Cluster& cluster, const Shape& shape, std::uint32_t queue,
                     Placement rule) {
  const ClusterState& state = view.cluster();
  const Room room = room_of(state, cluster, shape, queue);
  const MilliGpu need = shape.gpu_milli();
  if (room.all < need) {
    const bool with_others = room.all + state.withheld_gpu_milli() >= need;
    return {with_others ? WaitCause::nodes_out : WaitCause::no_gpus, room.all};
  }
  if (room.owned < need) return {WaitCause::queue_nodes, room.owned};
  if (room.usable < need) return {WaitCause::gpu_type, room.usable};
  if (state.vc_free(queue) < need) return {WaitCause::quota, state.vc_free(queue)};
  if (room.tasks < shape.tasks) {
    return {room.tasks_by_gpus < shape.tasks ? WaitCause::fragmentation : WaitCause::cpu_memory, room.usable};
  }
  if (!uses_remnants(rule)) {  // the others take any nodes on which all tasks fit
    ClusterState trial = state;
    if (trial.place(shape, queue, rule) == no_index) return {WaitCause::placement, room.usable};
  }
  return {WaitCause::policy, room.usable};
}

bool power_cap_refuses(const View& view, JobId job) {
  if (!view.knows_power() || view.power_model().caps.empty()) return false;
  ClusterState cluster = view.cluster();
  const std::uint32_t grants =
      cluster.place(view.shape(job), view.queue_of(job), view.placement(job), view.speeds(job));
  if (grants == no_index) return false;
  const TrialState state{.run = detail::StateOf::get(view), .cluster = cluster};
  TrialPower power{.run = state.run.power()};
  detail::PowerCaps caps = power.run.caps();
  return !caps.admits(state, job, grants, false, power);
}

}  // namespace gpusched
