// SPDX-License-Identifier: Apache-2.0
/// The workloads of Gavel's evaluation (Narayanan et al., OSDI'20), as utils.py and scheduler.py of its artifact draw
/// them, with run times measured on K80, P100 and V100, and what its sweeps measure.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/calibration/profile/throughput_table.hpp"

namespace gpusched {

/// GPU types in the order in which the artifact lets them choose jobs. Work is time on the first.
inline constexpr std::array<const char*, 3> gavel_gpu_types{"v100", "p100", "k80"};

/// `count` jobs that are all there at time 0, drawn with that seed of the artifact's sweeps: each a model and batch
/// size on 1, 2, 4 or 8 GPUs. Families are models; a job may use the GPU types on which it has a throughput. Errors:
/// throughputs that lack a drawn job.
Result<JobTable> gavel_static_jobs(const ThroughputTable& throughputs, std::uint32_t count, std::uint64_t seed);

/// `count` jobs of one GPU, the first at time 0 and the others after exponential times of that mean:
/// "continuous-single" of section 7.1. Errors as above.
Result<JobTable> gavel_arriving_jobs(const ThroughputTable& throughputs, std::uint32_t count, double mean_gap_s,
                                     std::uint64_t seed);

/// So many GPUs of each type, each on a machine of its own, as the sweeps take them.
Cluster gavel_cluster(std::uint32_t gpus_of_each_type);

/// One run of run_sweep_continuous.py.
struct GavelSweepRun {
  std::string policy;       ///< as on the command line
  double mean_gap_s = 0;    ///< between arrivals; "lambda" there
  std::uint64_t seed = 0;   ///< of the jobs, and of what the policy draws
  std::uint32_t first = 0;  ///< jobs first to last - 1, by arrival, are measured
  std::uint32_t last = 0;
  std::uint32_t gpus_of_each_type = 36;
};

/// The mean completion time of the measured jobs, seconds, under jobs that arrive for as long as one of them is there.
/// Errors: an unknown policy, throughputs that lack a drawn job, a job that no run of the policy ends.
Result<double> gavel_mean_completion_s(const ThroughputTable& throughputs, const GavelSweepRun& run);

}  // namespace gpusched
