// SPDX-License-Identifier: Apache-2.0
/// Limits drawn for a random world, and changes that no limit turns into a job that can never run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_limits.hpp"
#include "tests/policies/random_world.hpp"

namespace gpusched::test {

/// One to three rules of users, accounts, virtual clusters, jobs or all.
inline std::vector<LimitRule> random_limits(std::uint64_t seed) {
  detail::WorldDraws draw(seed ^ 0x11317), refusals(seed ^ 0x3A11), scope(seed ^ 0x5C09E);
  std::vector<LimitRule> rules(1 + draw.below(3));
  for (LimitRule& rule : rules) {
    rule.per = draw.one_of(std::array<LimitOwner, 6>{LimitOwner::all, LimitOwner::user, LimitOwner::user,
                                                     LimitOwner::account, LimitOwner::vc, LimitOwner::job});
    if (draw.chance(3)) rule.users = {"u0", "u2"};
    if (draw.chance(4)) rule.vcs = {"a", "c"};
    if (draw.chance(4)) rule.accounts = {"u1", "u3"};
    if (draw.chance(4)) rule.except_vcs = {"b"};
    if (scope.chance(4)) rule.or_vcs = {"a"};
    if (scope.chance(4)) rule.unbound_vcs = {"c"};
    if (refusals.chance(8)) rule.allow_accounts = {"u0", "u1", "u2"};
    if (draw.chance(2)) rule.most.gpu_milli = static_cast<MilliGpu>(1 + draw.below(24)) * 500;
    if (draw.chance(4)) rule.most.cpu_milli = static_cast<std::int64_t>(1 + draw.below(40)) * 1000;
    if (draw.chance(4)) rule.most.memory_mib = static_cast<std::int64_t>(100 + draw.below(900));
    if (rule.per != LimitOwner::job && !draw.chance(3)) rule.most.jobs = static_cast<std::int64_t>(1 + draw.below(4));
    if (rule.per != LimitOwner::job && draw.chance(3)) rule.submitted = static_cast<std::int64_t>(1 + draw.below(12));
    if (rule.per == LimitOwner::job && refusals.chance(2)) {
      rule.wall = whole_seconds(50 + static_cast<std::int64_t>(refusals.below(2000)));
    }
  }
  return rules;
}

/// Changes that leave each job one that could run alone.
inline JobChanges possible_changes(RandomWorld& world, std::uint64_t seed, WorldKind kind) {
  const JobChanges all = random_changes(world, seed, kind);
  const JobLimits limits(world.cluster.limits, world.jobs);
  std::vector<JobChange> changes(all.all().begin(), all.all().end());
  std::erase_if(changes, [&](const JobChange& change) {
    return change.kind == JobChange::Kind::size && !limits.allow_alone(change.job, world.jobs.shapes()[change.shape]);
  });
  return {std::move(changes), world.jobs.size()};
}

}  // namespace gpusched::test
