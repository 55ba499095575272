// SPDX-License-Identifier: Apache-2.0
/// Shortest job first, without preemption.
#pragma once

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

/// Shortest true run time first: the textbook's clairvoyant baseline, for callers that need no registry.
class Sjf : public ListScheduler {
 public:
  /// `skip`: pass over jobs that do not fit instead of waiting for them.
  explicit Sjf(bool skip = false)
      : ListScheduler({.name = "sjf",
                       .score = [](const JobFacts& job) { return job.requested_s; },
                       .growth = {},
                       .estimator = AnyDurationEstimator(ExactDuration{})},
                      skip) {}
};

}  // namespace gpusched
