// SPDX-License-Identifier: Apache-2.0
/// What gangs waste by their size: `gpusched trace waste`. A gang of k GPUs with the measured throughput T(k) uses
/// T(k) / k of each GPU, against the best that any measured size of its family gets from one; the rest of the GPU time
/// that it holds is waste. Throughputs may fall with the size, and rise by more than the GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/text_style.hpp"
#include "src/calibration/profile/throughput_table.hpp"

namespace gpusched {

/// All gangs of one family and size.
struct GangWaste {
  std::string family;
  std::uint32_t gpus = 0;
  std::uint64_t jobs = 0;
  double gpu_hours = 0;   ///< held: run times of the trace x GPUs
  double efficiency = 1;  ///< used share of them, above 0 and at most 1
  std::uint32_t advised_gpus = 0;
  double advised_gpu_hours = 0;  ///< for the same work
  double advised_time = 1;       ///< run time with the advised GPUs / run time

  /// Held and not used.
  [[nodiscard]] double wasted_gpu_hours() const { return gpu_hours * (1 - efficiency); }
};

/// The gangs of a trace.
struct TraceWaste {
  std::string gpu_type;          ///< of the throughputs
  double least_efficiency = 0;   ///< that advice aims at
  std::vector<GangWaste> gangs;  ///< what wastes most first
  std::uint64_t unmeasured_jobs = 0;
  double unmeasured_gpu_hours = 0;  ///< of jobs whose family has fewer than two sizes in the table, or not theirs

  /// Sums over `gangs`.
  /// \{
  [[nodiscard]] double gpu_hours() const;
  [[nodiscard]] double wasted_gpu_hours() const;
  [[nodiscard]] double advised_gpu_hours() const;
  /// \}
};

/// The waste of every gang whose size was measured on `gpu_type` (empty: the table's first), and, where its efficiency
/// is below `least_efficiency`, the largest smaller size that reaches it, else the most efficient size. Errors: a type
/// that the table does not have; a table or a trace without a family that was measured at two sizes.
Result<TraceWaste> trace_waste(const JobTable& jobs, const ThroughputTable& table, const std::string& gpu_type,
                               double least_efficiency);

/// For people: the first `most` gangs, the sums, and what was not measured.
std::string waste_text(const TraceWaste& waste, const TextStyle& style = {}, std::size_t most = 20);

/// {"gpu_type", "least_efficiency", "gpu_hours", "wasted_gpu_hours", "advised_gpu_hours", "unmeasured_jobs",
/// "unmeasured_gpu_hours", "gangs": [{"family", "gpus", "jobs", "gpu_hours", "efficiency", "wasted_gpu_hours",
/// "advised_gpus", "advised_gpu_hours", "advised_time"}]}
std::string waste_json(const TraceWaste& waste);

}  // namespace gpusched
