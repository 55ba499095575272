// SPDX-License-Identifier: Apache-2.0
/// The kinds of gangs that a table of jobs holds, for models of run times that have a row for each.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A family and what its jobs ask for.
struct GangKind {
  std::uint32_t family = 0;
  Shape shape;
};

/// Those that ask for GPUs, each once: of the jobs, in order, then what users change them to.
inline std::vector<GangKind> kinds_of_gangs(const JobTable& jobs, const JobChanges& changes) {
  std::vector<GangKind> kinds;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // (family, shape)
  const auto add = [&](JobId job, std::uint32_t shape) {
    if (jobs.shapes()[shape].gpu_milli() == 0 || !seen.emplace(jobs.family(job), shape).second) return;
    kinds.push_back({jobs.family(job), jobs.shapes()[shape]});
  };
  for (std::uint32_t i = 0; i < jobs.size(); ++i) add(JobId{i}, jobs.shape_id(JobId{i}));
  for (const JobChange& change : changes.all()) {
    if (change.kind == JobChange::Kind::size) add(change.job, change.shape);
  }
  return kinds;
}

/// Whole GPUs of the gang; 1 for a share of one.
inline std::uint32_t gpus_of_gang(const Shape& shape) {
  return shape.is_share() ? 1 : static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu);
}

}  // namespace gpusched
