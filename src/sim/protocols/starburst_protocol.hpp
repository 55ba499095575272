// SPDX-License-Identifier: Apache-2.0
/// The simulator of Starburst (Luo et al., USENIX ATC 2024, Table 4; github.com/michaelzhiluo/starburst, skyburst):
/// jobs that wait for nodes of GPUs, and go to a cloud that always has room when they have waited for long enough.
///
/// It is a Federation of a cluster (StarburstQueue) and a cloud, with BurstRouter between them; times are rounded to
/// microseconds. Rules, quirks included:
///  - the order of an instant: ends, jobs that go to the cloud, arrivals, then one pass over the queue;
///  - the queue is in order of arrival (fifo) or of run time (sjf), equals as they joined it; a job that does not fit
///    ends the pass, or is passed over ("loop");
///  - a job takes the node with fewest idle GPUs that holds it, of equals the one with the smallest number; one larger
///    than a node takes whole nodes and what is left over on another, in that order;
///  - a job larger than the cluster waits, too, and holds up those behind it;
///  - the cloud is paid for the run time alone.
/// In the artifact a job goes to the cloud at the next end or arrival, backdated; here at its own time, as in the
/// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/burst/waiting.hpp"

namespace gpusched {

struct StarburstJob {
  double submit_h = 0;
  double runtime_h = 0;
  std::int64_t gpus = 1;
};

/// Columns submit_h, runtime_h, gpus; by submission, of equals as in the file. Errors carry file, line and column.
Result<std::vector<StarburstJob>> read_starburst_jobs(const std::string& path);

/// Of the table, unless the user says otherwise.
struct StarburstOptions {
  std::int64_t nodes = 4;
  std::int64_t gpus_per_node = 8;
  double usd_per_gpu_h = 2.5;
};

/// A row of the table.
struct StarburstPolicy {
  std::string name;
  BurstPolicy waiting;
  bool loop = false;
  bool shortest_first = false;
};

/// The table's rows; the constant is a quarter of the mean run time.
std::vector<StarburstPolicy> starburst_policies(const std::vector<StarburstJob>& jobs);

struct StarburstResult {
  double cost_usd = 0;
  double mean_wait_h = 0;  ///< of all jobs, also of those that went to the cloud
  std::size_t cloud_jobs = 0;
};

/// Runs the jobs to the end.
StarburstResult run_starburst(const std::vector<StarburstJob>& jobs, const StarburstPolicy& policy,
                              const StarburstOptions& options);

}  // namespace gpusched
