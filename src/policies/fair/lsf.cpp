// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/lsf.hpp"

namespace gpusched {
namespace {

Result<AnyPolicy> make(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("lsf", parameters, context);
  if (!column) return Unexpected{column.error()};
  return AnyPolicy(Lsf({.column = *column,
                        .shares = OwnerWeights(parameters.list("weights")),
                        .used_factor = parameters.number("used_factor"),
                        .run_time_factor = parameters.number("run_time_factor"),
                        .run_job_factor = parameters.number("run_job_factor"),
                        .history_hours = parameters.number("history_hours")}));
}

ParameterInfo number(std::string name, double fallback, std::string meaning, double least) {
  return {.name = std::move(name), .fallback = fallback, .meaning = std::move(meaning), .least = least, .most = 1e9};
}

}  // namespace

PolicyInfo lsf_info() {
  return {.name = "lsf",
          .summary = "user fair-share by dynamic priority: shares over decayed usage, run time and GPUs held",
          .source =
              "IBM Spectrum LSF documentation, \"Dynamic user priority\"; GPU time stands for CPU time, GPUs for job "
              "slots",
          .complexity = "O(owners x shapes + log n)",
          .parameters = {owner_parameter("user"), weights_parameter(),
                         number("used_factor", 0.7, "CPU_TIME_FACTOR: weight of past GPU hours", 0),
                         number("run_time_factor", 0.7, "RUN_TIME_FACTOR: weight of the hours of running jobs", 0),
                         number("run_job_factor", 3, "RUN_JOB_FACTOR: weight of GPUs held, plus one", 0.001),
                         number("history_hours", 5, "HIST_HOURS: after this long a tenth of past usage counts", 0.001)},
          .make = make,
          .work_conserving = true};
}

}  // namespace gpusched
