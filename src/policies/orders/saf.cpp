// SPDX-License-Identifier: Apache-2.0
// Smallest area (estimated run time x GPUs) first, without preemption.
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo saf_info() {
  return list_policy_info(
      {.name = "saf",
       .summary = "smallest area first: estimated run time x GPUs",
       .source = "Carastan-Santos et al., One can only gain by replacing EASY backfilling, CCGrid'19"},
      {.score = [](const PolicyParameters&) {
        return [](const JobFacts& job) { return job.requested_s * job.processors; };
      }});
}

}  // namespace gpusched
