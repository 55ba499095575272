// SPDX-License-Identifier: Apache-2.0
// Longest job first and largest job first, without preemption.
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo ljf_info() {
  return list_policy_info(
      {.name = "ljf", .summary = "longest estimated run time first", .source = "textbook"},
      {.score = [](const PolicyParameters&) { return [](const JobFacts& job) { return -job.requested_s; }; }});
}

PolicyInfo lpjf_info() {
  return list_policy_info(
      {.name = "lpjf", .summary = "most processors first: the job with the most GPUs", .source = "textbook"},
      {.score = [](const PolicyParameters&) { return [](const JobFacts& job) { return -job.processors; }; }});
}

}  // namespace gpusched
