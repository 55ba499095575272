// SPDX-License-Identifier: Apache-2.0
// Quasi-shortest-service-first of Helios: the job of the smallest predicted GPU time (estimate x GPUs, fixed when the
// job begins to wait) goes first within its virtual cluster. Helios blends a rolling mean over the user's similar jobs
// with a learned model; here the parameter `estimate` chooses the predictor. The default, history, needs no column.
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo qssf_info() {
  return list_policy_info(
      {.name = "qssf",
       .summary =
           "simplified: smallest predicted GPU time first in each virtual cluster, without the learned predictor",
       .source = "Hu et al., Characterization and prediction of deep learning workloads, SC'21 (Helios), QSSF service"},
      {.score =
           [](const PolicyParameters&) { return [](const JobFacts& job) { return job.requested_s * job.processors; }; },
       .estimate = "history"});
}

}  // namespace gpusched
