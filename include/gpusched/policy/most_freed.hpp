// SPDX-License-Identifier: Apache-2.0
/// What a preemption can free: the bound by which policies refuse an attempt that would be in vain.
#pragma once

#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// What a job can free at most for tasks of the shape `wanted`: with a share that leaves, a whole GPU may fall idle.
inline MilliGpu most_freed(const Shape& leaving, const Shape& wanted) {
  if (wanted.is_share()) return leaving.gpu_milli();
  return leaving.tasks * ((leaving.gpu_milli_per_task + whole_gpu - 1) / whole_gpu * whole_gpu);
}

}  // namespace gpusched
