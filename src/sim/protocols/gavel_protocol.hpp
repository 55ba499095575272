// SPDX-License-Identifier: Apache-2.0
/// The static workload of Gavel's evaluation (Narayanan et al., OSDI'20), as utils.py and scheduler.py of its artifact
/// draw it: jobs that are all there at time 0, each a model and batch size on 1, 2, 4 or 8 GPUs, with run times
/// measured on K80, P100 and V100.
#pragma once

#include <array>
#include <cstdint>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/calibration/profile/throughput_table.hpp"

namespace gpusched {

/// GPU types in the order in which the artifact lets them choose jobs. Work is time on the first.
inline constexpr std::array<const char*, 3> gavel_gpu_types{"v100", "p100", "k80"};

/// `count` jobs drawn with that seed of the artifact's sweeps, several GPUs included. Families are models; a job may
/// use the GPU types on which it has a throughput. Errors: throughputs that lack a drawn job.
Result<JobTable> gavel_static_jobs(const ThroughputTable& throughputs, std::uint32_t count, std::uint64_t seed);

/// So many GPUs of each type, each on a machine of its own, as the sweeps take them.
Cluster gavel_cluster(std::uint32_t gpus_of_each_type);

}  // namespace gpusched
