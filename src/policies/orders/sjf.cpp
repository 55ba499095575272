// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/sjf.hpp"

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo sjf_info() {
  return list_policy_info(
      {.name = "sjf",
       .summary = "shortest run time first, no preemption; the first that does not fit blocks its queue",
       .source = "textbook; blocking as in RLScheduler (SC'20), skip=true as in the PAI simulator (NSDI'22 artifact)"},
      {.score = [](const PolicyParameters&) { return [](const JobFacts& job) { return job.requested_s; }; },
       .estimate = "exact"});
}

}  // namespace gpusched
