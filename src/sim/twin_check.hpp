// SPDX-License-Identifier: Apache-2.0
/// Whether a synthetic trace waits like the trace that it was fitted to: mean waits under three policies at equal load.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// Mean waits under one policy, in seconds.
struct TwinWait {
  std::string policy;
  double real_s = 0;
  double twin_s = 0;

  /// True when neither is more than 1.5 times the other. Means below a second are no queue, and alike.
  [[nodiscard]] bool alike() const;
};

/// The comparison on one cluster.
struct TwinCheck {
  std::string cluster;
  double load = 0;  ///< offered load of both
  std::uint32_t real_jobs = 0, twin_jobs = 0;
  std::vector<TwinWait> waits;

  /// True when every policy's waits are alike.
  [[nodiscard]] bool alike() const;
};

/// Runs both under fifo, srtf and tiresias on `cluster`; the twin's submissions are stretched so that its offered load
/// is the real one's. Preconditions: both have jobs at different instants, and every job fits. Errors: a policy leaves
/// jobs waiting for ever.
Result<TwinCheck> check_twin(const JobTable& real, const JobTable& twin, const Cluster& cluster);

/// The table that `trace generate --like` prints.
std::string twin_check_text(const TwinCheck& check);

}  // namespace gpusched
