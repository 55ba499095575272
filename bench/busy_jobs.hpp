// SPDX-License-Identifier: Apache-2.0
/// The workload of the benchmarks of learning.
#pragma once

#include <cstdint>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A cluster of 256 GPUs at about 80 % load: queues of 20 to 60 jobs under a sensible policy, as on Lublin-1.
inline JobTable busy_jobs() {
  Rng rng = Rng(1).split("jobs");
  JobTableBuilder builder;
  double submit = 0;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    submit += rng.exponential(600);
    const auto gpus = std::uint32_t{1} << rng.below(8);
    builder.add({.id = {},
                 .submit = from_seconds(submit),
                 .work = from_seconds(rng.lognormal(6.5, 1.6)),
                 .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

}  // namespace gpusched
