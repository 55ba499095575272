// SPDX-License-Identifier: Apache-2.0
/// What a trace's own log says of its jobs: a yardstick that no simulation has touched.
#pragma once

#include <cstdint>
#include <optional>

#include "gpusched/data/job_table.hpp"
#include "gpusched/watch/metrics.hpp"

namespace gpusched {

/// The figures of the measured jobs by their recorded starts, on the cluster that wrote the log.
struct RecordedWaits {
  std::uint32_t jobs = 0;  ///< measured jobs of which the log tells when they could start and did: the figures' jobs
  std::uint32_t measured = 0;  ///< all measured jobs
  /// As in Metrics, where a job ends once it has worked without a break since its start: logs do not tell the breaks
  /// between the attempts of a job.
  /// \{
  double avg_jct_s = 0;
  double median_jct_s = 0;
  double p95_jct_s = 0;
  double p99_jct_s = 0;
  double avg_wait_s = 0;
  double p99_wait_s = 0;
  double avg_bounded_slowdown = 0;
  /// \}
};

/// Nothing where there is no such job. O(measured jobs).
std::optional<RecordedWaits> recorded_waits(const JobTable& jobs, MeasureWindow window);

}  // namespace gpusched
