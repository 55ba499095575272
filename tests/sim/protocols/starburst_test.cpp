// SPDX-License-Identifier: Apache-2.0
// Starburst's waiting policies through a federation of a cluster and a cloud.
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/core/rng.hpp"
#include "tests/sim/protocols/slow_starburst.hpp"

namespace gpusched::test {
namespace {

// Times on a grid of eighths of an hour, which both kinds of numbers hold exactly, so that much happens at one instant.
std::vector<StarburstJob> some_jobs(Rng& rng) {
  std::vector<StarburstJob> jobs;
  double submit = 0;
  const std::uint64_t count = 1 + rng.below(60);
  for (std::uint64_t i = 0; i < count; ++i) {
    jobs.push_back({submit, 0.125 * static_cast<double>(1 + rng.below(16)), static_cast<std::int64_t>(rng.below(14))});
    if (rng.below(20) == 0) jobs.back().gpus = 40;  // larger than any cluster here
    submit += 0.125 * static_cast<double>(rng.below(3));
  }
  return jobs;
}

TEST(Starburst, EqualsItsSimulatorOnRandomJobs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng = Rng(seed).split("starburst");
    const std::vector<StarburstJob> jobs = some_jobs(rng);
    const StarburstOptions options{.nodes = static_cast<std::int64_t>(1 + rng.below(4)),
                                   .gpus_per_node = static_cast<std::int64_t>(1 + rng.below(8))};
    StarburstPolicy policy{.name = "drawn",
                           .waiting = {static_cast<BurstWait>(rng.below(5)), 0.125 * static_cast<double>(rng.below(4))},
                           .loop = rng.below(2) == 0,
                           .shortest_first = rng.below(3) == 0};
    const StarburstResult slow = SlowStarburst(jobs, policy, options).run();
    const StarburstResult fast = run_starburst(jobs, policy, options);
    ASSERT_EQ(fast.cloud_jobs, slow.cloud_jobs) << "seed " << seed;
    ASSERT_NEAR(fast.mean_wait_h, slow.mean_wait_h, 1e-9) << "seed " << seed;
    ASSERT_NEAR(fast.cost_usd, slow.cost_usd, 1e-6) << "seed " << seed;
  }
}

TEST(Starburst, GoesToTheCloudAfterItsWaitAndPaysForItsRunTimeAlone) {
  // The second job finds the cluster taken for two hours, waits half an hour and runs for one in the cloud.
  const std::vector<StarburstJob> jobs{{0, 2, 8}, {1, 1, 4}};
  const StarburstPolicy policy{.name = "", .waiting = {BurstWait::constant, 0.5}};
  const StarburstResult result = run_starburst(jobs, policy, {.nodes = 1, .gpus_per_node = 8, .usd_per_gpu_h = 3});
  EXPECT_EQ(result.cloud_jobs, 1u);
  EXPECT_DOUBLE_EQ(result.cost_usd, 12);
  EXPECT_DOUBLE_EQ(result.mean_wait_h, 0.25);
}

}  // namespace
}  // namespace gpusched::test
