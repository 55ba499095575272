// SPDX-License-Identifier: Apache-2.0
// UNICEP: the wait relative to the run time, favouring small jobs. Score -w / (log2(n) r) with w the wait, r the
// estimated run time and n the number of GPUs. The score is linear in the wait, so that the order is kept without
// sorting. As in RLScheduler, e = 1e-15 is added to w and n; log2(1 + e) is then not 0, and one-GPU jobs come before
// all others.
#include <algorithm>
#include <cmath>

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {
namespace {

constexpr double tiny = 1e-15;

double divisor(const JobFacts& job) { return std::log2(job.processors + tiny) * job.requested_s; }

double unicep_score(const JobFacts& job, double wait_s) { return -(wait_s + tiny) / divisor(job); }

// A share of a GPU would make the logarithm negative, and the job wait for ever; it counts as one GPU.
JobFacts whole(JobFacts job) {
  job.processors = std::max(job.processors, 1.0);
  return job;
}

}  // namespace

PolicyInfo unicep_info() {
  return list_policy_info(
      {.name = "unicep",
       .summary = "-w/(log2(n) r), smallest first: long waits relative to the run time, and small jobs",
       .source = "Tang et al., Fault-aware, utility-based job scheduling on Blue Gene/P systems, Cluster'09"},
      {.score =
           [](const PolicyParameters&) {
             return [](const JobFacts& job) { return unicep_score(whole(job), job.wait_s); };
           },
       .growth = [](const PolicyParameters&) { return [](const JobFacts& job) { return 1 / divisor(whole(job)); }; }});
}

// RLScheduler's code computes the wait from scheduled_time, which is -1 while a job waits: w = -1 - s. The priority is
// therefore inverted (one-GPU jobs last) and does not change over time.
PolicyInfo unicep_sc20_info() {
  return list_policy_info(
      {.name = "unicep@sc20",
       .summary = "UNICEP as RLScheduler computes it: one-GPU jobs last",
       .source = "RLScheduler (SC'20) artifact; quirk: w = -1 - submit, because scheduled_time is -1 while waiting",
       .asymmetries = {{Symmetry::time_shift, "the wait is the instant of submission, less a second"},
                       {Symmetry::time_scale, "of the wait a second is taken off"}}},
      {.score = [](const PolicyParameters&) {
        return [](const JobFacts& job) { return unicep_score(whole(job), -1 - job.submit_s); };
      }});
}

}  // namespace gpusched
