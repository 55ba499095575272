// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/gavel_parameters.hpp"

#include "src/policies/throughput/linear_program.hpp"

namespace gpusched {
namespace {

GavelObjective objective_of(const std::string& word) {
  if (word == "makespan") return GavelObjective::makespan;
  if (word == "water-filling") return GavelObjective::water_filling;
  if (word == "finish-time-fairness") return GavelObjective::finish_time_fairness;
  return word == "fifo" ? GavelObjective::fifo : GavelObjective::max_min;
}

}  // namespace

std::vector<ParameterInfo> round_parameters() {
  return {{.name = "round_s", .fallback = 360.0, .meaning = "length of a round", .least = 1, .most = 1e9},
          {.name = "reset_s",
           .fallback = 1920.0,
           .meaning = "least time between two allocations; the rounds between follow the last one",
           .least = 0,
           .most = 1e9}};
}

std::vector<ParameterInfo> gavel_parameters() {
  auto parameters = round_parameters();
  parameters.push_back({.name = "objective",
                        .fallback = std::string("max-min"),
                        .meaning = "max-min: LAS by throughput; water-filling: the same between owners and their jobs; "
                                   "makespan: from true run times; finish-time-fairness: the least greatest ratio to "
                                   "the time on an equal share, from true run times; fifo: the fastest GPU type with "
                                   "room",
                        .words = {"max-min", "water-filling", "makespan", "finish-time-fairness", "fifo"}});
  parameters.push_back(
      {.name = "aware", .fallback = true, .meaning = "false: as if every job were equally fast on all GPU types"});
  parameters.push_back(owner_parameter("user"));
  return parameters;
}

Result<GavelAllocator> gavel_allocator(const std::string& policy, const PolicyParameters& parameters,
                                       const PolicyContext& context) {
  const GavelObjective objective = objective_of(parameters.word("objective"));
  OwnerColumn owners = OwnerColumn::user;
  if (objective == GavelObjective::water_filling) {
    const auto column = owner_column(policy, parameters, context);
    if (!column) return Unexpected{column.error()};
    owners = *column;
  }
  if (objective != GavelObjective::fifo && !has_lp_solver()) {
    return unexpected("policy " + policy +
                      " solves linear programmes by CLP, which was not found: " + how_to_get_lp_solver());
  }
  return GavelAllocator(objective, parameters.flag("aware"), owners, GpuTypes(*context.cluster));
}

}  // namespace gpusched
