// SPDX-License-Identifier: Apache-2.0
// WFP3: the wait relative to the run time, weighted by size. Score -(w/r)^3 n with w the wait, r the estimated run time
// and n the number of GPUs. At any instant its order is that of cbrt(n)/r x w, which grows linearly with the wait, so
// that the order is kept without sorting.
#include <cmath>

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {
namespace {

double wfp3_score(const JobFacts& job, double wait_s) {
  const double ratio = wait_s / job.requested_s;
  return -(ratio * ratio * ratio) * job.processors;
}

}  // namespace

PolicyInfo wfp3_info() {
  return list_policy_info(
      {.name = "wfp3",
       .summary = "-(w/r)^3 n, smallest first: long waits relative to the run time, and large jobs",
       .source = "Tang et al., Fault-aware, utility-based job scheduling on Blue Gene/P systems, Cluster'09"},
      {.score = [](const PolicyParameters&) { return [](const JobFacts& job) { return wfp3_score(job, job.wait_s); }; },
       .growth =
           [](const PolicyParameters&) {
             return [](const JobFacts& job) { return std::cbrt(job.processors) / job.requested_s; };
           }});
}

// RLScheduler's code computes the wait from scheduled_time, which is -1 while a job waits: w = -1 - s. The priority is
// therefore inverted (long jobs first) and does not change over time.
PolicyInfo wfp3_sc20_info() {
  return list_policy_info(
      {.name = "wfp3@sc20",
       .summary = "WFP3 as RLScheduler computes it: long jobs first",
       .source = "RLScheduler (SC'20) artifact; quirk: w = -1 - submit, because scheduled_time is -1 while waiting",
       .asymmetries = {{Symmetry::time_shift, "the wait is the instant of submission, less a second"},
                       {Symmetry::time_scale, "of the wait a second is taken off"}}},
      {.score = [](const PolicyParameters&) {
        return [](const JobFacts& job) { return wfp3_score(job, -1 - job.submit_s); };
      }});
}

}  // namespace gpusched
