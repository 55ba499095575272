// SPDX-License-Identifier: Apache-2.0
// Earliest deadline first, without preemption.
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo edf_info() {
  return list_policy_info(
      {.name = "edf",
       .summary = "earliest deadline first; jobs without one come last, in order of submission",
       .source = "Liu and Layland, Scheduling algorithms for multiprogramming, JACM 1973"},
      {.score = [](const PolicyParameters&) { return [](const JobFacts& job) { return job.deadline_s; }; },
       .needs = [](const JobTable& jobs) -> Result<void> {
         if (jobs.has_deadlines()) return {};
         return unexpected("policy edf: the trace has no deadlines (column deadline)");
       }});
}

}  // namespace gpusched
