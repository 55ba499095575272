// SPDX-License-Identifier: Apache-2.0
// Random worlds with every effect in them, under every policy, against SlowWorld: each event's instant and kind, what
// is free on every node and what is left of every job at every instant, each job's outcome, and the five sums of the
// ledger. Each world is run straight; then from copies in mid-run, and in small steps of time, which must be the same
// run.
//
// What is not drawn: runs through `serve`; power caps (tests/engine/power_test.cpp) and what power costs; MIG cards
// whose layout changes (tests/engine/mig_test.cpp); adjusted work where runs cost something;
// EngineOptions::one_event_a_step; windows of measured jobs (tests/engine/account_test.cpp); changes of the size of
// elastic jobs and of shares, which files cannot ask for.
#include <gtest/gtest.h>

#include "tests/support/random_runs.hpp"
#include "tests/world_reference/chaos.hpp"
#include "tests/world_reference/checked_run.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t worlds_of_chaos = 400;  // 20,000 in scripts/deep_test.sh

TEST(WorldReference, ChaosIsTheSlowWorld) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= random_runs(worlds_of_chaos); ++seed) {
    const auto world = drawn_world(seed, seed % 8 == 0 ? WorldKind::one_gpu_tasks : WorldKind::any, seed % 4 == 1);
    if (!world) continue;
    const Chaos policy{.rng = Rng(seed).split("chaos"), .adjusts = !world->counts_costs()};
    check("chaos", *world, AnyPolicy(policy), seed, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.ended * 10, tally.worlds * 9);
}

}  // namespace
}  // namespace gpusched::test
