// SPDX-License-Identifier: Apache-2.0
/// Jobs that no GPU type alone can hold, and jobs without GPUs: they start where there is room, and run until they end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/throughput/empty_cluster.hpp"

namespace gpusched {

/// How fast the job is on each GPU type that could hold it, relative to its reference device, and 0 on others; none for
/// a job without a type.
inline std::vector<double> speeds_where_it_fits(EmptyCluster& empty, const View& view, JobId job,
                                                std::uint32_t gpu_types) {
  if (view.shape(job).gpu_milli() == 0) return {};
  std::vector<double> speeds(gpu_types, 0.0);
  bool any = false;
  for (std::uint32_t type = 0; type < gpu_types; ++type) {
    if (!empty.can_hold(view, job, type)) continue;
    speeds[type] = static_cast<double>(view.speed(job, type)) / static_cast<double>(reference_rate);
    any = true;
  }
  return any ? speeds : std::vector<double>{};
}

/// What running jobs without a type leave of `gpus`, by GPU type. `has_type(job)` tells who has one.
template <class HasType>
std::vector<double> gpus_left(const View& view, std::vector<double> gpus, HasType has_type) {
  for (const JobId job : view.running()) {
    if (has_type(job)) continue;
    const double each = static_cast<double>(view.shape(job).gpu_milli_per_task) / static_cast<double>(whole_gpu);
    view.for_each_grant(
        job, [&](const Grant& grant) { gpus[view.cluster().node_gpu_type(grant.node)] -= grant.tasks * each; });
  }
  return gpus;
}

/// Starts those of `jobs` that wait, as far as they fit.
template <class HasType>
void start_without_type(const View& view, Decision& decision, std::span<const JobId> jobs, HasType has_type) {
  for (const JobId job : jobs) {
    if (!has_type(job) && view.phase(job) == JobPhase::pending) decision.start(job);
  }
}

}  // namespace gpusched
