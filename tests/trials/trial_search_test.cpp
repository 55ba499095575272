// SPDX-License-Identifier: Apache-2.0
#include "gpusched/trials/trial_search.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "src/trials/trial_run.hpp"

namespace gpusched {
namespace {

// What a trial may bring does not change with its training.
double lasting_loss(std::uint32_t trial, TrialUnits) { return static_cast<double>(7919 * trial % 1000) / 1000; }

TrialRun promote(std::uint32_t trials, std::uint32_t workers) {
  const TrialRungs rungs;
  TrialSearch search(AshaByPromotion(rungs, trials));
  return run_trials(search, rungs, workers, lasting_loss);
}

struct Expected {
  std::uint32_t trials, workers;
  std::vector<std::uint32_t> by_rung;
  TrialUnits work, first_full, end;
};

// Worked out by another program, from Algorithm 2.
TEST(AshaByPromotion, GivesTheRowsOfAnIndependentProgram) {
  for (const Expected& row :
       {Expected{27, 3, {27, 14, 7, 2}, 133, 35, 56}, Expected{81, 9, {81, 32, 14, 5}, 319, 28, 52},
        Expected{81, 27, {81, 32, 14, 5}, 319, 27, 32}, Expected{243, 16, {243, 86, 32, 11}, 805, 27, 68}}) {
    const TrialRun run = promote(row.trials, row.workers);
    EXPECT_EQ(run.by_rung, row.by_rung) << row.trials << " on " << row.workers;
    EXPECT_EQ(run.work, row.work);
    EXPECT_EQ(run.first_full, row.first_full);
    EXPECT_EQ(run.end, row.end);
  }
}

TEST(AshaByPromotion, FindsTheBestTrialOfAll) {
  const TrialRun run = promote(81, 9);
  double best = 1;
  for (std::uint32_t trial = 0; trial < 81; ++trial) best = std::min(best, lasting_loss(trial, 1));
  EXPECT_EQ(run.records.back().loss, best);
  for (std::size_t i = 1; i < run.records.size(); ++i) EXPECT_LT(run.records[i].loss, run.records[i - 1].loss);
}

// One worker, eta 3, losses 0.5, 0.4, 0.6, 0.3: the first goes to the end. The second beats it (cutoff 0.5), also at
// the second and third rung. The third is worse than the cutoff 0.4 + 0.1 / 3 and stops after one unit. The fourth goes
// on.
TEST(AshaByStopping, StopsWhoIsWorseThanTheCutoffOfThoseBefore) {
  const TrialRungs rungs{.least = 1, .most = 9, .eta = 3};
  const std::vector<double> losses{0.5, 0.4, 0.6, 0.3};
  TrialSearch search(AshaByStopping(rungs, 4));
  const TrialRun run = run_trials(search, rungs, 1, [&](std::uint32_t trial, TrialUnits) { return losses[trial]; });
  EXPECT_EQ(run.by_rung, (std::vector<std::uint32_t>{4, 3, 3}));
  EXPECT_EQ(run.work, 9 + 9 + 1 + 9);
  EXPECT_EQ(run.first_full, 9);
  EXPECT_EQ(run.end, 28);
}

// Losses that rise from trial to trial: no later trial is better than the cutoff of those before it.
TEST(AshaByStopping, TrainsTheFirstAloneWhereEachIsWorseThanTheOnesBefore) {
  const TrialRungs rungs;
  TrialSearch search(AshaByStopping(rungs, 20));
  const TrialRun run =
      run_trials(search, rungs, 1, [](std::uint32_t trial, TrialUnits) { return static_cast<double>(trial); });
  EXPECT_EQ(run.by_rung, (std::vector<std::uint32_t>{20, 1, 1, 1}));
}

// R = 27, eta = 3: brackets of 27, 12, 6 and 4 trials (Hyperband, JMLR 2018, where n = ceil((s_max + 1) eta^s / (s +
// 1))).
TEST(HyperbandSearch, GoesThroughItsBracketsWithBarriers) {
  const TrialRungs rungs;
  TrialSearch search(HyperbandSearch(rungs, false));
  const TrialRun run = run_trials(search, rungs, 1'000, lasting_loss);
  EXPECT_EQ(run.by_rung, (std::vector<std::uint32_t>{27, 9 + 12, 3 + 4 + 6, 1 + 1 + 2 + 4}));
  // Each trial once for each unit: 27 + 9 x 2 + 3 x 6 + 18, 12 x 3 + 4 x 6 + 18, 6 x 9 + 2 x 18, 4 x 27.
  EXPECT_EQ(run.work, 27 + 18 + 18 + 18 + 36 + 24 + 18 + 54 + 36 + 108);
  EXPECT_EQ(run.end, 4 * 27);  // with workers for all, each bracket takes as long as its longest trial
  EXPECT_EQ(run.first_full, 27);
}

TEST(HyperbandSearch, HalvesTheFirstBracketAlone) {
  const TrialRungs rungs;
  TrialSearch search(HyperbandSearch(rungs, true));
  const TrialRun run = run_trials(search, rungs, 27, lasting_loss);
  EXPECT_EQ(run.by_rung, (std::vector<std::uint32_t>{27, 9, 3, 1}));
  EXPECT_EQ(run.work, 27 + 18 + 18 + 18);
  EXPECT_EQ(run.end, 27);
}

// Whatever the search, a trial begins at rung 0, or where its bracket begins, and goes up one rung at a time.
TEST(TrialSearch, TrainsNoTrialTwiceToTheSameRung) {
  const TrialRungs rungs{.least = 2, .most = 32, .eta = 2};
  for (int which = 0; which < 3; ++which) {
    TrialSearch search(which == 0   ? TrialSearch::Rule(AshaByPromotion(rungs, 60))
                       : which == 1 ? TrialSearch::Rule(AshaByStopping(rungs, 60))
                                    : TrialSearch::Rule(HyperbandSearch(rungs, false)));
    std::set<std::pair<std::uint32_t, TrialUnits>> seen;
    run_trials(search, rungs, 7, [&](std::uint32_t trial, TrialUnits units) {
      EXPECT_TRUE(seen.emplace(trial, units).second) << which;
      return lasting_loss(trial, units);
    });
    for (const auto& [trial, units] : seen) EXPECT_TRUE(trial < 200 && units >= 2 && units <= 32);
  }
}

}  // namespace
}  // namespace gpusched
