// SPDX-License-Identifier: Apache-2.0
// F1 to F4: scores found by regression on simulated schedules, smallest first. F1 had the best fit. r is the estimated
// run time in seconds, n the number of GPUs, s the submission in seconds from the trace's origin.
#include <cmath>
#include <string>

#include "gpusched/policy/f1_score.hpp"
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {
namespace {

PolicyInfo regression_info(const char* name, const char* formula, double (*score)(const JobFacts&)) {
  return list_policy_info(
      {.name = name,
       .summary = std::string("regressed score, smallest first: ") + formula,
       .source = "Carastan-Santos and Camargo, Obtaining dynamic scheduling policies with "
                 "simulation and machine learning, SC'17",
       .asymmetries = {{Symmetry::time_shift, "the logarithm of the instant of submission counts"},
                       {Symmetry::time_scale, "run times in seconds weigh beside GPUs and logarithms"}}},
      {.score = [score](const PolicyParameters&) { return score; }});
}

}  // namespace

PolicyInfo f1_info() {
  return regression_info("f1", "log10(r) n + 870 log10(s)",
                         [](const JobFacts& job) { return f1_score(job.requested_s, job.processors, job.submit_s); });
}

PolicyInfo f2_info() {
  return regression_info("f2", "sqrt(r) n + 25600 log10(s)", [](const JobFacts& job) {
    return std::sqrt(job.requested_s) * job.processors + 25600 * log10_from_tenth(job.submit_s);
  });
}

PolicyInfo f3_info() {
  return regression_info("f3", "r n + 6860000 log10(s)", [](const JobFacts& job) {
    return job.requested_s * job.processors + 6860000 * log10_from_tenth(job.submit_s);
  });
}

PolicyInfo f4_info() {
  return regression_info("f4", "r sqrt(n) + 530000 log10(s)", [](const JobFacts& job) {
    return job.requested_s * std::sqrt(job.processors) + 530000 * log10_from_tenth(job.submit_s);
  });
}

}  // namespace gpusched
