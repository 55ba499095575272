// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness (Ghodsi et al., "Dominant Resource Fairness", NSDI'11, Algorithm 1).
#include <cstdint>

#include "src/policies/fair/owner_order.hpp"
#include "src/policies/queues/dominant_shares.hpp"

namespace gpusched {
namespace {

// The owner with the lowest weighted dominant share goes next.
struct Drf {
  OwnerColumn column;
  DominantShares shares;

  [[nodiscard]] std::uint32_t owner(const View& view, JobId job) const { return owner_of(column, view, job); }
  [[nodiscard]] std::int64_t score(const View&, std::uint32_t owner) const { return shares.share(owner); }
  void started(const View& view, JobId job, std::uint32_t owner) { shares.add(owner, view.shape(job), +1); }
  void left(const View& view, JobId job, std::uint32_t owner) { shares.add(owner, view.shape(job), -1); }
};

}  // namespace

PolicyInfo drf_info() {
  return owner_order_info(
      {.name = "drf",
       .summary = "dominant resource fairness over GPUs, CPU and memory: the lowest weighted dominant share goes next",
       .source = "Ghodsi et al., NSDI'11, Algorithm 1; ties go to the earliest job",
       .parameters = {owner_parameter("user"), weights_parameter()}},
      [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<Drf> {
        const auto column = owner_column("drf", parameters, context);
        if (!column) return Unexpected{column.error()};
        return Drf{*column, DominantShares(*context.cluster, OwnerWeights(parameters.list("weights")))};
      });
}

}  // namespace gpusched
