// SPDX-License-Identifier: Apache-2.0
/// How much a preemption can free at most, so that policies do not try preemptions that cannot make room.
#pragma once

#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// GPU thousandths that preempting a job of shape `leaving` can at most free for tasks of the shape `wanted`. A GPU
/// share may free its whole GPU, when it was the last on it.
inline MilliGpu most_freed(const Shape& leaving, const Shape& wanted) {
  if (wanted.is_share()) return leaving.gpu_milli();
  return leaving.tasks * ((leaving.gpu_milli_per_task + whole_gpu - 1) / whole_gpu * whole_gpu);
}

}  // namespace gpusched
