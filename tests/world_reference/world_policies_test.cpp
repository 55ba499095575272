// SPDX-License-Identifier: Apache-2.0
// Every policy of the registry, in its forms, in worlds with every effect in them, against SlowWorld
// (world_reference_test.cpp).
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/policies/contestants.hpp"
#include "tests/support/random_runs.hpp"
#include "tests/world_reference/checked_run.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t worlds_of_policies = 400;  // 20,000 in scripts/deep_test.sh

// Some policies take no MIG: src/sim refuses these.
bool takes_mig(const Contestant& contestant) {
  return contestant.backfill.empty() && contestant.policy.find("agenda") == std::string::npos;
}

TEST(WorldReference, EveryPolicyIsTheSlowWorld) {
  const std::vector<Contestant> all = contestants();
  Tally tally;
  for (std::uint64_t seed = 1; seed <= random_runs(worlds_of_policies); ++seed) {
    const Contestant& contestant = all[seed % all.size()];
    const auto world = drawn_world(seed, kind_for(contestant.policy), seed % 4 == 1 && takes_mig(contestant));
    if (!world) continue;
    const auto policy = make(contestant, world->jobs(), world->cluster());
    if (!policy) continue;
    std::ostringstream name;
    name << contestant;
    check(name.str(), *world, *policy, seed, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.ended * 10, tally.worlds * 8);
}

}  // namespace
}  // namespace gpusched::test
