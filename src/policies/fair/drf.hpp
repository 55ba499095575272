// SPDX-License-Identifier: Apache-2.0
/// Dominant resource fairness.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/dominant_shares.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// While a waiting job fits, the owner with the lowest weighted dominant share among those with such a job starts its
/// earliest one (Ghodsi et al., "Dominant Resource Fairness", NSDI'11, Algorithm 1). The hierarchical form chooses the
/// virtual cluster with the lowest weighted share first, then the user in it with the lowest share of what that user
/// holds in this virtual cluster; users have equal weights. Ties go to the earliest job.
class Drf {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    bool hierarchical = false;  ///< virtual clusters, and users within them
    OwnerWeights weights = {};
  };

  Drf(const Cluster& cluster, Options options)
      : hierarchical_(options.hierarchical),
        column_(options.column),
        owners_(cluster, std::move(options.weights)),
        members_(cluster) {}

  [[nodiscard]] std::string_view name() const { return hierarchical_ ? "hdrf" : "drf"; }

  void decide(const View& view, Decision& decision);

 private:
  struct UserOfVc {
    std::uint32_t vc = 0;
    std::uint32_t user = 0;
  };

  std::uint32_t owner(const View& view, JobId job);
  void hold(const View& view, JobId job, std::int64_t sign);

  bool hierarchical_;
  OwnerColumn column_;
  ClassQueues waiting_;
  DominantShares owners_;   // of each owner, or of each virtual cluster in the hierarchical form
  DominantShares members_;  // of each (virtual cluster, user), hierarchical form only; they weigh the same
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::vector<UserOfVc> users_;
};

}  // namespace gpusched
