// SPDX-License-Identifier: Apache-2.0
/// The kinds of gangs that a table of jobs holds, for models of run times that have a row for each.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// Of the jobs that ask for GPUs, the first of each family and shape, in order.
inline std::vector<JobId> first_of_each_gang(const JobTable& jobs) {
  std::vector<JobId> firsts;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // (family, shape)
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    if (jobs.shape(job).gpu_milli() == 0) continue;
    if (seen.emplace(jobs.family(job), jobs.shape_id(job)).second) firsts.push_back(job);
  }
  return firsts;
}

/// Whole GPUs of the gang; 1 for a share of one.
inline std::uint32_t gpus_of_gang(const Shape& shape) {
  return shape.is_share() ? 1 : static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu);
}

}  // namespace gpusched
