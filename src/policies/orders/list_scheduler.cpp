// SPDX-License-Identifier: Apache-2.0
#include "src/policies/orders/list_scheduler.hpp"

namespace gpusched {

PolicyInfo list_policy_info(PolicyInfo row, const ListPolicy& policy) {
  row.parameters.push_back({.name = "skip", .fallback = false, .meaning = "pass over jobs that do not fit"});
  row.parameters.push_back({.name = "best_speed",
                            .fallback = false,
                            .meaning = "run times count as on the fastest GPU type that the job may use"});
  for (ParameterInfo& parameter : estimate_parameters(policy.estimate)) row.parameters.push_back(std::move(parameter));
  row.complexity = policy.growth ? "O(shapes + log^2 n) amortised" : "O(shapes + log n)";
  row.order = [policy, name = row.name](const PolicyParameters& parameters,
                                        const PolicyContext& context) -> Result<PriorityOrder> {
    if (policy.needs) {
      if (auto met = policy.needs(*context.jobs); !met) return Unexpected{met.error()};
    }
    auto estimator = make_duration_estimator(parameters, context);
    if (!estimator) return unexpected("policy " + name + ", " + estimator.error().to_string());
    if (parameters.flag("best_speed")) estimator = AnyDurationEstimator(AtBestSpeed(std::move(*estimator)));
    return PriorityOrder{.name = name,
                         .score = policy.score(parameters),
                         .growth = policy.growth ? policy.growth(parameters) : ListPolicy::Formula{},
                         .estimator = std::move(*estimator)};
  };
  row.make = [order = row.order](const PolicyParameters& parameters,
                                 const PolicyContext& context) -> Result<AnyPolicy> {
    auto made = order(parameters, context);
    if (!made) return Unexpected{made.error()};
    return AnyPolicy(ListScheduler(std::move(*made), parameters.flag("skip")));
  };
  return row;
}

}  // namespace gpusched
