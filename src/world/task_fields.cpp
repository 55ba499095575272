// SPDX-License-Identifier: Apache-2.0
#include "src/world/task_fields.hpp"

#include <algorithm>
#include <cmath>

#include "gpusched/engine/cluster_state.hpp"

namespace gpusched {

void read_task_shape(JsonFields& fields, TaskFields& task) {
  double gpus = 1, cpus = 0, memory_gib = 0;
  fields.read("tasks", task.shape.tasks, 1, 1'000'000);
  fields.read("gpus", gpus, 0.001, 1'000);
  fields.read("cpus", cpus, 0, 1e6);
  fields.read("memory_gib", memory_gib, 0, 1e6);
  fields.read("gpu_type", task.gpu_type);
  const double milli = std::round(gpus * whole_gpu);
  if (fields.good() && (std::abs(milli - gpus * whole_gpu) > 1e-6 || (gpus > 1 && gpus != std::floor(gpus)))) {
    fields.refuse("gpus", "whole GPUs, or thousandths of one");
  }
  task.shape.gpu_milli_per_task = static_cast<MilliGpu>(milli);
  task.shape.cpu_milli_per_task = std::llround(cpus * 1000);
  task.shape.memory_mib_per_task = std::llround(memory_gib * 1024);
}

void read_task_owner(JsonFields& fields, TaskFields& task) {
  fields.read("user", task.user);
  fields.read("vc", task.vc);
  fields.read("family", task.family);
  fields.read("priority", task.priority, -2'147'483'648.0, 2'147'483'647.0);
}

Result<void> check_task_room(JobId job, const std::string& vc, const JobTable& jobs, const Cluster& cluster,
                             const std::string& what, const std::string& file, const std::string& field) {
  const auto is_its = [&](const VirtualCluster& own) { return own.name == vc; };
  const auto place = std::find_if(cluster.vcs.begin(), cluster.vcs.end(), is_its) - cluster.vcs.begin();
  const auto queue = cluster.vcs.empty() ? 0u : static_cast<std::uint32_t>(place);
  if (ClusterState::fits_when_empty(cluster, jobs.gpu_specs(), jobs.shape(job), queue)) return {};
  return Unexpected{Error{.message = what + " fits nowhere on the cluster " + cluster.name + ", even when it is empty",
                          .file = file,
                          .field = field}};
}

}  // namespace gpusched
