// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/qssf.hpp"

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo qssf_info() {
  return list_policy_info(
      {.name = "qssf",
       .summary = "smallest predicted GPU time first, in each virtual cluster",
       .source = "Hu et al., Characterization and prediction of deep learning workloads, SC'21 (Helios), QSSF service",
       .complexity = {},
       .parameters = {},
       .make = {}},
      {.score =
           [](const PolicyParameters&) { return [](const JobFacts& job) { return job.requested_s * job.processors; }; },
       .estimate = "history"});
}

}  // namespace gpusched
