// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness (Ghodsi et al., "Dominant Resource Fairness", NSDI'11, Algorithm 1) and its hierarchical
// form.
#include <map>
#include <utility>
#include <vector>

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

// The virtual cluster with the lowest weighted share goes next, and in it the user with the lowest share of what that
// user holds in this virtual cluster; users have equal weights. An owner is a (virtual cluster, user).
class HierarchicalDrf {
 public:
  HierarchicalDrf(const Cluster& cluster, OwnerWeights weights) : vcs_(cluster, std::move(weights)), users_(cluster) {}

  std::uint32_t owner(const View& view, JobId job) {
    const auto [place, added] =
        numbers_.try_emplace(std::pair(view.vc(job), view.user(job)), static_cast<std::uint32_t>(vc_of_.size()));
    if (added) vc_of_.push_back(view.vc(job));
    return place->second;
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> score(const View&, std::uint32_t owner) const {
    return {vcs_.share(vc_of_[owner]), users_.share(owner)};
  }
  void started(const View& view, JobId job, std::uint32_t owner) { hold(view.shape(job), owner, +1); }
  void left(const View& view, JobId job, std::uint32_t owner) { hold(view.shape(job), owner, -1); }

 private:
  void hold(const Shape& shape, std::uint32_t owner, std::int64_t sign) {
    vcs_.add(vc_of_[owner], shape, sign);
    users_.add(owner, shape, sign);
  }

  DominantShares vcs_;
  DominantShares users_;                                                      // by owner number
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;  // of (virtual cluster, user)
  std::vector<std::uint32_t> vc_of_;                                          // [owner]
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

PolicyInfo hdrf_info() {
  return owner_order_info(
      {.name = "hdrf",
       .summary = "simplified hierarchical DRF (naive form): the virtual cluster with the lowest dominant share, then "
                  "its poorest user",
       .source = "Bhattacharya et al., \"Hierarchical Scheduling for Diverse Datacenter Workloads\", SoCC'13, in the "
                 "naive form (a parent's share is the dominant share of its sum)",
       .parameters = {weights_parameter()}},
      [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<HierarchicalDrf> {
        if (!context.jobs->has_users() || !context.jobs->has_vcs()) {
          return unexpected("policy hdrf shares between virtual clusters and their users, and the trace lacks " +
                            std::string(context.jobs->has_vcs() ? "users" : "virtual clusters"));
        }
        return HierarchicalDrf(*context.cluster, OwnerWeights(parameters.list("weights")));
      });
}

}  // namespace gpusched
