// SPDX-License-Identifier: Apache-2.0
// Studies in the engine, by hand and against searches on workers of their own.
#include "gpusched/engine/effects/trials.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/study_figures.hpp"
#include "src/trials/trial_run.hpp"
#include "src/world/trial_losses.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/study_support.hpp"

namespace gpusched::test {
namespace {

double lasting(std::uint32_t trial, TrialUnits) { return lasting_loss(trial); }

StudyFigures figures_alone(StudySpec study, std::uint32_t gpus) {
  StudyModel model{.studies = {std::move(study)}};
  const JobTable jobs = with_studies(model, {});
  Engine engine(jobs, Cluster::pool(gpus), {}, {.studies = &model});
  FirstFit policy;
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.consistent());
  return study_figures(engine).front();
}

struct AshaRow {
  std::uint32_t trials, workers;
  std::vector<std::uint32_t> by_rung;
  double work, first_full, end;
};

// Worked out by another program, from Algorithm 2: eta 3, r 1, R 27.
TEST(Trials, GiveTheRowsOfAshaByPromotionOnAnIdleCluster) {
  for (const AshaRow& row :
       {AshaRow{27, 3, {27, 14, 7, 2}, 133, 35, 56}, AshaRow{81, 9, {81, 32, 14, 5}, 319, 28, 52},
        AshaRow{81, 27, {81, 32, 14, 5}, 319, 27, 32}, AshaRow{243, 16, {243, 86, 32, 11}, 805, 27, 68}}) {
    const TrialRungs rungs;
    const StudyFigures found =
        figures_alone(study_of(AshaByPromotion(rungs, row.trials), rungs, row.workers, lasting), row.workers);
    EXPECT_EQ(found.by_rung, row.by_rung) << row.trials << " on " << row.workers;
    EXPECT_NEAR(found.gpu_hours * 3600, row.work, 1e-6);
    EXPECT_EQ(found.first_full_s, row.first_full);
    EXPECT_EQ(found.span_s, row.end);
    EXPECT_EQ(found.trials, row.trials);
    EXPECT_EQ(found.mean_wait_s, 0);
  }
}

// Where nobody else wants the GPUs, a study is what its search does on workers of its own.
TEST(Trials, AreThoseOfASearchOnItsOwnWorkers) {
  const TrialRungs rungs{.least = 2, .most = 32, .eta = 2};
  for (const std::uint32_t workers : {1u, 3u, 8u, 50u}) {
    for (const TrialSearch::Rule& rule :
         {TrialSearch::Rule(AshaByPromotion(rungs, 60)), TrialSearch::Rule(AshaByStopping(rungs, 60)),
          TrialSearch::Rule(HyperbandSearch(rungs, false)), TrialSearch::Rule(HyperbandSearch(rungs, true)),
          TrialSearch::Rule(RandomTrials(rungs, 20))}) {
      TrialSearch search(rule);
      const TrialRun alone = run_trials(search, rungs, workers, falling_loss);
      const StudyFigures found = figures_alone(study_of(rule, rungs, workers, falling_loss), workers);
      EXPECT_EQ(found.by_rung, alone.by_rung) << rule.index() << " on " << workers;
      EXPECT_EQ(found.span_s, static_cast<double>(alone.end));
      EXPECT_NEAR(found.gpu_hours * 3600, static_cast<double>(alone.work), 1e-6);
      ASSERT_TRUE(found.best && found.first_full_s);
      EXPECT_EQ(found.first_full_s, static_cast<double>(*alone.first_full));
      EXPECT_EQ(found.best->loss, alone.records.back().loss);
      EXPECT_EQ(found.best->at_s, static_cast<double>(alone.records.back().time));
      EXPECT_EQ(found.revised, 0u);
    }
  }
}

// One GPU, eta 2, rungs of 1 and 2 s, losses 3, 1, 2 and two workers. At 2 s two results are known, and the worker of
// trial 1 promotes it; trial 2, which waits since 1 s, is asked for again and keeps its place before it.
TEST(Trials, KeepThePlaceOfWhatIsAskedForAgain) {
  const TrialRungs rungs{.least = 1, .most = 2, .eta = 2};
  const std::vector<double> losses{3, 1, 2};
  for (const bool late : {true, false}) {
    StudySpec study =
        study_of(AshaByPromotion(rungs, 3), rungs, 2, [&](std::uint32_t trial, TrialUnits) { return losses[trial]; });
    study.asks_late = late;
    StudyModel model{.studies = {study}};
    const JobTable jobs = with_studies(model, {});
    Engine engine(jobs, Cluster::pool(1), {}, {.studies = &model});
    FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy));
    const std::vector<StudyResult>& results = engine.studies().results(0);
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(results[2].trial, 2u);
    EXPECT_EQ(results[3].trial, 1u);
    EXPECT_EQ(results[3].rung, 1u);
    EXPECT_EQ(engine.studies().closed(0), whole_seconds(4));
  }
}

// Three workers on one GPU, losses 1, 2, 0, 3, 4, 5. At 2 s trial 0 is the best of two and promoted, behind 2 and 3. At
// 3 s trial 2 is the best of three, of whom one may go on: it is promoted, and the promotion of trial 0 gives way to
// trial 4. At 4 s two of four may go on, so trial 0 is promoted again. Trial 1 follows at 8 s, as three of six may.
TEST(Trials, GiveWayToAPromotion) {
  const TrialRungs rungs{.least = 1, .most = 2, .eta = 2};
  const std::vector<double> losses{1, 2, 0, 3, 4, 5};
  StudySpec study =
      study_of(AshaByPromotion(rungs, 6), rungs, 3, [&](std::uint32_t trial, TrialUnits) { return losses[trial]; });
  StudyModel model{.studies = {study}};
  const JobTable jobs = with_studies(model, {});
  Engine engine(jobs, Cluster::pool(1), {}, {.studies = &model});
  FirstFit policy;
  ASSERT_TRUE(simulate(engine, policy));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const StudyResult& result : engine.studies().results(0)) order.emplace_back(result.trial, result.rung);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {2, 1},
                                                                      {4, 0}, {0, 1}, {5, 0}, {1, 1}};
  EXPECT_EQ(order, expected);
  EXPECT_EQ(engine.studies().revised(0), 1u);
  EXPECT_EQ(engine.studies().closed(0), whole_seconds(9));
}

TEST(Trials, EndAtTheTarget) {
  const TrialRungs rungs;
  StudySpec study = study_of(RandomTrials(rungs, 9), rungs, 2, lasting);  // losses 0, .919, .838, ...
  study.target = 0.85;
  study.stops_at_target = true;
  study.losses.assign(study.losses.size(), 1);
  study.losses[2 * rungs.count() + 3] = 0.8;
  study.report_gpu_hours = {27.5 / 3600, 60.0 / 3600};
  const StudyFigures found = figures_alone(study, 2);
  EXPECT_EQ(found.met, true);
  ASSERT_TRUE(found.target);
  EXPECT_EQ(found.target->at_s, 54);  // trials 0 and 1 end at 27 s, 2 and 3 at 54 s, of which 2 is told first
  EXPECT_EQ(found.span_s, 54);
  EXPECT_NEAR(found.gpu_hours * 3600, 108, 1e-9);
  EXPECT_EQ(found.after_gpu_hours, (std::vector<std::optional<double>>{std::nullopt, 1.0}));
  EXPECT_EQ(found.trials, 4u);
}

// A node that fails takes a trial with it, which was told of at its first rung: it is not told of again.
TEST(Trials, AreToldOfOnceHoweverOftenTheyRun) {
  const TrialRungs rungs{.least = 2, .most = 4, .eta = 2};
  StudyModel model{.studies = {study_of(AshaByStopping(rungs, 1), rungs, 1, lasting)}};
  const JobTable jobs = with_studies(model, {});
  NodeFailures failures;
  std::vector<NodeChange> changes{{whole_seconds(3), NodeId{0}, false}, {whole_seconds(5), NodeId{0}, true}};
  failures.add_changes(changes);
  Cluster cluster = Cluster::pool(1);
  cluster.nodes.assign(1, Node{.gpus = 1});
  Engine engine(jobs, cluster, {}, {.failures = &failures, .studies = &model});
  FirstFit policy;
  ASSERT_TRUE(simulate(engine, policy));
  const std::vector<StudyResult>& results = engine.studies().results(0);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].time, whole_seconds(2));
  EXPECT_EQ(results[1].time, whole_seconds(9));
  EXPECT_EQ(engine.studies().closed(0), whole_seconds(9));
}

// A copy of an engine goes its own way.
TEST(Trials, AreCopiedWithTheEngine) {
  const TrialRungs rungs;
  StudyModel model{.studies = {study_of(AshaByPromotion(rungs, 27), rungs, 3, lasting)}};
  const JobTable jobs = with_studies(model, {});
  Engine engine(jobs, Cluster::pool(3), {}, {.studies = &model});
  FirstFit policy;
  for (int i = 0; i < 20 && engine.advance(); ++i) {
    Decision decision = engine.decision();
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  Engine copy = engine;
  ASSERT_TRUE(simulate(copy, policy));
  EXPECT_LT(engine.studies().results(0).size(), copy.studies().results(0).size());
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(study_figures(engine).front().by_rung, study_figures(copy).front().by_rung);
  EXPECT_EQ(study_figures(engine).front().by_rung, (std::vector<std::uint32_t>{27, 14, 7, 2}));
}

}  // namespace
}  // namespace gpusched::test
