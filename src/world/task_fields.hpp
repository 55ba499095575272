// SPDX-License-Identifier: Apache-2.0
/// What a row in front of a trace's jobs asks for (JobTable::in_front), and whose it is, from JSON.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <string>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// Of each row of a service or a study.
struct TaskFields {
  std::string user, vc, family;  ///< as columns of a trace
  std::string gpu_type;          ///< as GpuDemand takes it
  std::int32_t priority = 0;     ///< larger is more urgent
  Shape shape{};                 ///< without gpu_spec
};

/// "tasks", "gpus", "cpus", "memory_gib" and "gpu_type" of an object.
void read_task_shape(JsonFields& fields, TaskFields& task);

/// "user", "vc", "family" and "priority".
void read_task_owner(JsonFields& fields, TaskFields& task);

/// Whether a row finds room on the empty cluster. `what` is for the error's message, `field` its path.
Result<void> check_task_room(JobId job, const std::string& vc, const JobTable& jobs, const Cluster& cluster,
                             const std::string& what, const std::string& file, const std::string& field);

}  // namespace gpusched
