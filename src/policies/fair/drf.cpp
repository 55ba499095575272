// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/drf.hpp"

namespace gpusched {

void Drf::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) {
    if (leaves_cluster(event.kind)) hold(view, event.job, -1);
    if (enters_queue(event.kind)) {
      waiting_.push(view, event.job, owner(view, event.job));
    }
  }
  const auto score = [this](const ClassQueues::Class& jobs) {
    const std::uint32_t parent = hierarchical_ ? users_[jobs.owner].vc : jobs.owner;
    return std::pair(owners_.share(parent), hierarchical_ ? members_.share(jobs.owner) : 0);
  };
  waiting_.start_while_any_fits(view, decision, score, [&](JobId job) { hold(view, job, +1); });
}

std::uint32_t Drf::owner(const View& view, JobId job) {
  if (!hierarchical_) return owner_of(column_, view, job);
  const auto [place, added] =
      numbers_.try_emplace(std::pair(view.vc(job), view.user(job)), static_cast<std::uint32_t>(users_.size()));
  if (added) users_.push_back({view.vc(job), view.user(job)});
  return place->second;
}

void Drf::hold(const View& view, JobId job, std::int64_t sign) {
  const std::uint32_t who = owner(view, job);
  owners_.add(hierarchical_ ? users_[who].vc : who, view.shape(job), sign);
  if (hierarchical_) members_.add(who, view.shape(job), sign);
}

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
          .summary =
              "simplified hierarchical DRF (naive form): the virtual cluster with the lowest dominant share, then its "
              "poorest user",
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
