// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/drf.hpp"

namespace gpusched {

PolicyInfo drf_info() {
  return {
      .name = "drf",
      .summary = "dominant resource fairness over GPUs, CPU and memory: the lowest weighted dominant share goes next",
      .source = "Ghodsi et al., NSDI'11, Algorithm 1; ties go to the earliest job",
      .complexity = "O(owners x shapes + log n)",
      .parameters = {owner_parameter("user"), weights_parameter()},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        const auto column = owner_column("drf", parameters, context);
        if (!column) return Unexpected{column.error()};
        return AnyPolicy(
            Drf(*context.cluster, {.column = *column, .weights = OwnerWeights(parameters.list("weights"))}));
      },
      .work_conserving = true};
}

PolicyInfo hdrf_info() {
  return {.name = "hdrf",
          .summary = "hierarchical DRF: the virtual cluster with the lowest dominant share, then its poorest user",
          .source =
              "Bhattacharya et al., \"Hierarchical Scheduling for Diverse Datacenter Workloads\", SoCC'13, in the "
              "naive form (a parent's share is the dominant share of its sum)",
          .complexity = "O(owners x shapes + log n)",
          .parameters = {weights_parameter()},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            if (!context.jobs->has_users() || !context.jobs->has_vcs()) {
              return unexpected("policy hdrf shares between virtual clusters and their users, and the trace lacks " +
                                std::string(context.jobs->has_vcs() ? "users" : "virtual clusters"));
            }
            return AnyPolicy(
                Drf(*context.cluster, {.hierarchical = true, .weights = OwnerWeights(parameters.list("weights"))}));
          },
          .work_conserving = true};
}

}  // namespace gpusched
