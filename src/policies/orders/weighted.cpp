// SPDX-License-Identifier: Apache-2.0
// A priority with coefficients: run_time ln(r) + gpus ln(n) - wait w, smallest first, where r is the estimated run time
// in seconds, n the number of GPUs and w the hours waited. All jobs' priorities grow at the same rate while they wait,
// so that the order of two jobs never changes and is that of run_time ln(r) + gpus ln(n) + wait s, with s the hour of
// submission. The fixed orders are corners of it: fifo (0, 0, 1), sjf (1, 0, 0), saf (1, 1, 0), ljf (-1, 0, 0).
#include <cmath>

#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {
namespace {

ParameterInfo coefficient(const char* name, double fallback, const char* meaning) {
  return {.name = name, .fallback = fallback, .meaning = meaning, .least = -1e6, .most = 1e6};
}

}  // namespace

PolicyInfo weighted_info() {
  return list_policy_info(
      {.name = "weighted",
       .summary = "run_time ln(r) + gpus ln(n) - wait x hours waited, smallest first: coefficients to be tuned",
       .source = "the linear priority of batch systems (Slurm's multifactor plugin: age, size) with logarithms of run "
                 "time and size, as the products of run time and size in F1 to F4 (Carastan-Santos and Camargo, SC'17)",
       .parameters = {coefficient("run_time", 1, "weight of ln(estimated run time / s); above 0: short jobs first"),
                      coefficient("gpus", 1, "weight of ln(GPUs); above 0: small jobs first"),
                      coefficient("wait", 0.1, "weight of each hour waited; above 0: no job starves")},
       .asymmetries = {{Symmetry::time_scale, "hours waited weigh beside logarithms"}}},
      {.score = [](const PolicyParameters& parameters) {
        const double run_time = parameters.number("run_time"), gpus = parameters.number("gpus");
        const double per_second = parameters.number("wait") / 3600;
        return [=](const JobFacts& job) {
          return run_time * std::log(job.requested_s) + gpus * std::log(job.processors) + per_second * job.submit_s;
        };
      }});
}

}  // namespace gpusched
