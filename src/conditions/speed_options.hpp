// SPDX-License-Identifier: Apache-2.0
/// SpeedOptions: which device profiles or measured throughputs set how fast jobs run, what being apart costs gangs, and
/// what the GPUs draw. Its rows are in the table of conditions (condition_options.hpp).
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/placement.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"

namespace gpusched {

/// As the user gave it.
struct SpeedOptions {
  std::string profiles = {};  ///< device profiles, [TYPE=]FILE_OR_NAME[,...]; empty: every GPU at the speed of the
                              ///< trace
  std::string reference_profile = {};  ///< of the device that the trace's durations are of; empty: the first profile
  std::string throughputs = {};        ///< a file of measured throughputs, in place of profiles; empty: none
  std::string reference_type = {};     ///< its GPU type that the trace's durations are of; empty: its first
  std::string throughput_fallback = "none";  ///< where it has none (throughput_fallback_names)
  double slowdown = 1;                       ///< factor on every modelled duration: what the model leaves out
  std::string span_speed = {};     ///< of gangs that are apart, as parse_span_speeds() takes it, or "throughputs": as
                                   ///< those measured; empty: no slower
  std::string communication = {};  ///< a file of how families communicate, in place of span_speed; empty: none
  std::string reference_span = "node";   ///< where the trace's durations were measured (span_reference_names)
  std::string interference = "profile";  ///< how much jobs that share a GPU slow each other: as the "profile" says, as
                                         ///< the "throughputs" measured, or "none"
};

/// The run times and power of these jobs on this cluster: uniform and unknown without any of them. Errors: a file that
/// cannot be read or does not have what the jobs need, values that need another one; their field is a path in the table
/// of conditions.
Result<CalibratedRuntime> runtime_of(const SpeedOptions& options, const JobTable& jobs, const Cluster& cluster,
                                     const JobChanges& changes = {});

/// Error: a placement by what only a file of --communication tells.
Result<void> check_placement(Placement placement, const SpeedOptions& options);

/// True when something makes run times other than the trace's.
bool changes_run_times(const SpeedOptions& options);

/// What may be files among its words.
std::vector<std::string> files_of(const SpeedOptions& options);

}  // namespace gpusched
