// SPDX-License-Identifier: Apache-2.0
// Quasi-shortest-service-first of Helios: the job of the smallest predicted GPU time (estimate x GPUs, fixed when the
// job begins to wait) goes first within its virtual cluster. The artifact's service predicts 0.1 x a mean over the
// user's jobs of a similar name + 0.9 x LightGBM's prediction (framework/QSSF Service/estimators/estimator.py); here
// the parameter `estimate` chooses one predictor. The default, history, needs no column.
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo qssf_info() {
  return list_policy_info(
      {.name = "qssf",
       .summary =
           "simplified: smallest predicted GPU time first in each virtual cluster, without the learned predictor",
       .source =
           "Hu et al., Characterization and prediction of deep learning workloads, SC'21 (Helios), QSSF service; one "
           "predictor in place of gradient-boosted trees and name similarity",
       .asymmetries = {{Symmetry::time_scale, "of a job of which nothing is known an hour is assumed"}}},
      {.score =
           [](const PolicyParameters&) { return [](const JobFacts& job) { return job.requested_s * job.processors; }; },
       .estimate = "history"});
}

}  // namespace gpusched
