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
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Of all owners that have a job that fits, the one with the lowest weighted dominant share gets its earliest such job,
/// again and again (Ghodsi et al., "Dominant Resource Fairness", NSDI'11, Algorithm 1). In the hierarchical
/// form the virtual cluster with the lowest weighted share comes first, then its user with the lowest share (of what it
/// holds in that virtual cluster); users weigh the same. Ties go to the earliest job.
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

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) hold(view, event.job, -1);
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        waiting_.push(view, event.job, owner(view, event.job));
      }
    }
    const auto score = [this](const ClassQueues::Class& jobs) {
      const std::uint32_t parent = hierarchical_ ? users_[jobs.owner].vc : jobs.owner;
      return std::pair(owners_.share(parent), hierarchical_ ? members_.share(jobs.owner) : 0);
    };
    const auto may_fit = [&](std::uint32_t queue, std::uint32_t shape) {
      return view.cluster().may_fit(view.shape_of_id(shape), queue);
    };
    waiting_.start_best(true, may_fit, score, [&](const ClassQueues::Class& jobs) {
      if (decision.start(jobs.first()) != Verdict::ok) return Attempt::no_room;
      hold(view, jobs.first(), +1);
      return Attempt::started;
    });
  }

 private:
  struct UserOfVc {
    std::uint32_t vc = 0;
    std::uint32_t user = 0;
  };

  std::uint32_t owner(const View& view, JobId job) {
    if (!hierarchical_) return owner_of(column_, view, job);
    const auto [place, added] =
        numbers_.try_emplace(std::pair(view.vc(job), view.user(job)), static_cast<std::uint32_t>(users_.size()));
    if (added) users_.push_back({view.vc(job), view.user(job)});
    return place->second;
  }

  void hold(const View& view, JobId job, std::int64_t sign) {
    const std::uint32_t who = owner(view, job);
    owners_.add(hierarchical_ ? users_[who].vc : who, view.shape(job), sign);
    if (hierarchical_) members_.add(who, view.shape(job), sign);
  }

  bool hierarchical_;
  OwnerColumn column_;
  ClassQueues waiting_;
  DominantShares owners_;   // of each owner, or of each virtual cluster in the hierarchical form
  DominantShares members_;  // of each (virtual cluster, user), hierarchical form only; they weigh the same
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::vector<UserOfVc> users_;
};

PolicyInfo drf_info();
PolicyInfo hdrf_info();

}  // namespace gpusched
