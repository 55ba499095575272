// SPDX-License-Identifier: Apache-2.0
// Policies paired over a grid: what a pair is, what counts once, and over which family p is corrected.
#include "src/sim/grid_comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace gpusched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> keys{"policy", "load", "seed"};

GridRun run_of(std::vector<std::string> values, double jct, bool saturated = false) {
  return {.values = std::move(values), .figures = {jct, 2 * jct, std::nullopt}, .jobs = 100, .saturated = saturated};
}

// sjf is 1 to 6 below fifo's 20, srtf 1 to 6 above, in one load.
std::vector<GridRun> six_seeds() {
  std::vector<GridRun> runs;
  for (int seed = 1; seed <= 6; ++seed) {
    runs.push_back(run_of({"fifo", "0.8", std::to_string(seed)}, 20));
    runs.push_back(run_of({"sjf", "0.8", std::to_string(seed)}, 20 - seed, seed == 2));
    runs.push_back(run_of({"srtf", "0.8", std::to_string(seed)}, 20 + seed));
    runs.back().clairvoyant = true;
  }
  return runs;
}

TEST(GridComparison, PairsSeedsOfOneSetting) {
  const auto found = compare_grid(keys, six_seeds());
  ASSERT_EQ(found.size(), 4u);  // two policies, two figures; the third has no value
  const GridComparison& sjf = found[0];
  EXPECT_EQ(sjf.setting, "load 0.8");
  EXPECT_EQ(sjf.contestant, "sjf");
  EXPECT_EQ(sjf.against, "fifo");
  EXPECT_EQ(sjf.figure, "avg_jct_s");
  EXPECT_EQ(sjf.unit, "seed");
  EXPECT_EQ(sjf.pairs, 6u);
  EXPECT_EQ(sjf.saturated, 1u);
  EXPECT_DOUBLE_EQ(*sjf.relative_difference(), 16.5 / 20 - 1);
  // Of six pairs all must lie on one side of a ratio that is rejected: the least is 14 / 20, the greatest 19 / 20.
  EXPECT_NEAR(sjf.relative->low, -0.3, 1e-9);
  EXPECT_NEAR(sjf.relative->high, -0.05, 1e-9);
  EXPECT_DOUBLE_EQ(sjf.test->p, 2.0 / 64);
  EXPECT_EQ(sjf.test->rank_biserial, -1);
  EXPECT_DOUBLE_EQ(sjf.p_holm, 2 * 2.0 / 64);  // two tests of this figure, not four
  EXPECT_EQ(sjf.verdict, too_few_seeds);       // six that agree cannot bring p_holm to 0.05
  EXPECT_THAT(grid_comparison_csv(found),
              AllOf(HasSubstr("load 0.8,sjf,false,fifo,false,avg_jct_s,seed,6,1,16.5,20,-0.17500000000000004,"),
                    HasSubstr("load 0.8,srtf,true,fifo,false,avg_jct_s,")));
}

TEST(GridComparison, TheNumberOfTestsCountsInTheVerdict) {
  std::vector<GridRun> runs = six_seeds();
  std::erase_if(runs, [](const GridRun& run) { return run.values[0] == "srtf"; });
  const auto found = compare_grid(keys, runs);
  EXPECT_DOUBLE_EQ(found[0].p_holm, 2.0 / 64);
  EXPECT_EQ(found[0].verdict, "better");
}

// The policies of a list, each with a backfilling of its own.
TEST(GridComparison, BackfillingIsPartOfThePolicyWhereNoTwoShareOne) {
  const std::vector<std::string> with{"policy", "backfill", "seed"};
  const auto found = compare_grid(with, {run_of({"fifo", "none", "1"}, 20), run_of({"sjf", "easy", "1"}, 10)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].contestant, "sjf+easy");
  EXPECT_EQ(found[0].against, "fifo+none");
  EXPECT_EQ(found[0].setting, "");
  const auto shared = compare_grid(with, {run_of({"fifo", "easy", "1"}, 20), run_of({"sjf", "easy", "1"}, 10)});
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(shared[0].setting, "backfill easy");
}

// One seed makes the mean: no evidence, however large the difference is. (Student's t of the ratio's logarithm called
// it better: where one seed holds both sums, their ratio seems to vary little.)
TEST(GridComparison, OneSeedIsNoVerdict) {
  std::vector<GridRun> runs;
  const double fifo[] = {271, 19718, 1, 2, 3, 4, 5, 6}, sjf[] = {365, 10964, 2, 1, 4, 3, 6, 5};
  for (std::size_t i = 0; i < std::size(fifo); ++i) {
    runs.push_back(run_of({"fifo", "1", std::to_string(i)}, fifo[i]));
    runs.push_back(run_of({"sjf", "1", std::to_string(i)}, sjf[i]));
  }
  const auto found = compare_grid(keys, runs);
  EXPECT_EQ(found[0].verdict, "no difference detected");
  EXPECT_LT(found[0].relative->low, -0.4);
  EXPECT_GE(found[0].relative->high, 0);
}

// Seeds of different runs may agree in one figure, as where nobody waited.
TEST(GridComparison, SeedsThatAgreeInOneFigureAreSeveral) {
  std::vector<GridRun> runs;
  for (int seed = 1; seed <= 8; ++seed) {
    runs.push_back(run_of({"fifo", "1", std::to_string(seed)}, 20 + seed));
    runs.push_back(run_of({"sjf", "1", std::to_string(seed)}, 10 + seed));
    for (std::size_t side = 1; side <= 2; ++side) runs[runs.size() - side].figures[1] = seed == 1 && side == 1 ? 5 : 0;
  }
  const auto found = compare_grid(keys, runs);
  EXPECT_EQ(found[1].pairs, 8u);
  EXPECT_DOUBLE_EQ(found[1].mean, 5. / 8);
  EXPECT_EQ(found[1].verdict, too_few_seeds_differ);
  EXPECT_FALSE(found[1].relative);
  EXPECT_EQ(found[0].verdict, "better");
}

// A trace that does not depend on the seed gives the same pair again: no evidence.
TEST(GridComparison, ASeedThatChangesNothingCountsOnce) {
  std::vector<GridRun> runs;
  for (int seed = 1; seed <= 30; ++seed) {
    runs.push_back(run_of({"fifo", "1", std::to_string(seed)}, 20));
    runs.push_back(run_of({"sjf", "1", std::to_string(seed)}, 10));
  }
  const auto found = compare_grid(keys, runs);
  EXPECT_EQ(found[0].pairs, 1u);
  EXPECT_FALSE(found[0].test);
  EXPECT_FALSE(found[0].relative);
  EXPECT_EQ(found[0].verdict, too_few_seeds);
}

TEST(GridComparison, ComparesRunsOfOneSettingAndSeedAlone) {
  std::vector<GridRun> runs = six_seeds();
  runs.push_back(run_of({"sjf", "0.8", "7"}, 1e9));  // fifo's failed
  runs.push_back(run_of({"sjf", "1.2", "1"}, 1e9));  // fifo did not run there
  runs.push_back(run_of({"fifo", "1.5", "1"}, 30));
  runs.push_back(run_of({"sjf", "1.5", "1"}, 15));
  const auto found = compare_grid(keys, runs);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0].pairs, 6u);
  EXPECT_EQ(found[4].setting, "load 1.5");
  EXPECT_EQ(*found[4].relative_difference(), -0.5);
  EXPECT_TRUE(compare_grid({"load"}, {run_of({"1"}, 1)}).empty());
}

TEST(GridComparison, ParametersBelongToThePolicy) {
  const std::vector<std::string> with{"policy", "parameters.quantum_gpu_s"};
  const auto found =
      compare_grid(with, {run_of({"fifo", ""}, 20), run_of({"las", "60"}, 10), run_of({"las", "600"}, 15)});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].contestant, "las{quantum_gpu_s=60}");
  EXPECT_EQ(found[2].contestant, "las{quantum_gpu_s=600}");
}

// Windows of 100 jobs every 50: neighbours share jobs, so that blocks have two windows at least.
TEST(GridComparison, WindowsAreNoIndependentPairs) {
  const std::vector<std::string> windows{"policy", "window.first_job", "seed"};
  std::vector<GridRun> runs;
  Rng rng(3);
  for (int w = 59; w >= 0; --w) {
    for (int seed = 1; seed <= 2; ++seed) {
      const std::string first = std::to_string(50 * w), number = std::to_string(seed);
      const double level = 20 + rng.uniform();
      runs.push_back(run_of({"fifo", first, number}, level));
      runs.push_back(run_of({"sjf", first, number}, level - 1 - rng.uniform()));
    }
  }
  const auto found = compare_grid(windows, runs);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].unit, "window");
  EXPECT_EQ(found[0].pairs, 60u);
  EXPECT_EQ(found[0].verdict, "better");
  ASSERT_TRUE(found[0].test);
  EXPECT_LE(found[0].test->differences, 30u);
  runs.resize(80);
  EXPECT_EQ(compare_grid(windows, runs)[0].verdict, too_few_windows);
}

}  // namespace
}  // namespace gpusched
