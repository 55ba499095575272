// SPDX-License-Identifier: Apache-2.0
/// A summary of a trace: `gpusched trace info`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "src/base/text_style.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// A distribution in a few numbers; percentiles as in metrics.hpp.
struct Spread {
  double mean = 0, min = 0, p25 = 0, median = 0, p75 = 0, p90 = 0, p99 = 0, max = 0;
};

/// Jobs of one size or one length.
struct TraceBucket {
  std::string name;
  std::uint64_t jobs = 0;
  double gpu_hours = 0;  ///< asked for: GPUs times run time
};

struct TraceSummary {
  TraceReport report;
  std::uint64_t jobs = 0;
  Time first_submit{}, last_submit{};
  std::uint64_t users = 0, groups = 0, vcs = 0, gpu_types = 0;  ///< distinct names; 0 where the trace has none
  std::uint64_t shares = 0;                                     ///< jobs that ask for a part of a GPU
  std::uint64_t without_gpu = 0;
  std::uint64_t with_estimate = 0;
  std::uint64_t retried = 0;  ///< jobs of several attempts
  std::map<std::string, std::uint64_t> statuses;
  double gpu_hours = 0;
  std::int64_t cluster_gpus = 0;       ///< of the cluster asked about, else as the trace states it; 0 = unknown
  std::optional<double> offered_load;  ///< gpu_hours over the cluster's GPU-hours between first and last submission
  Spread run_s, gap_s, gpus;           ///< run time; time between submissions; GPUs asked for
  std::vector<TraceBucket> by_gpus;    ///< by GPU count: "0", "<1", "1", "2", "3-4", ...
  std::vector<TraceBucket> by_run;     ///< by run time: "< 1 min", ...
  std::vector<TraceBucket> by_hour;    ///< 24 hours of the trace's clock, by submission
};

/// Looks at every job once. `cluster` may be null. Precondition: the trace has a job.
TraceSummary summarize(const Trace& trace, const Cluster* cluster);

/// For people: the numbers, then a bar for each bucket; at most 80 columns unless the path is longer.
std::string summary_text(const TraceSummary& summary, const TextStyle& style = {});

/// The same as one JSON object; keys end in their unit.
std::string summary_json(const TraceSummary& summary);

}  // namespace gpusched
