// SPDX-License-Identifier: Apache-2.0
// Random worlds of studies and jobs against the slow reference of slow_studies.hpp.
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/study_figures.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/slow_studies.hpp"
#include "tests/engine/study_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

TrialSearch::Rule rule_of(const SlowStudy& slow, const TrialRungs& rungs) {
  switch (slow.kind) {
    case SlowKind::promotion: return AshaByPromotion(rungs, slow.trials);
    case SlowKind::stopping: return AshaByStopping(rungs, slow.trials);
    case SlowKind::hyperband: return HyperbandSearch(rungs, false);
    case SlowKind::halving: return HyperbandSearch(rungs, true);
    default: return RandomTrials(rungs, slow.trials);
  }
}

SlowStudy drawn_study(Rng& rng) {
  SlowStudy slow;
  slow.kind = static_cast<SlowKind>(rng.below(7) < 3 ? 0 : rng.below(5));
  slow.trials = 1 + static_cast<std::uint32_t>(rng.below(20));
  slow.workers = 1 + static_cast<std::uint32_t>(rng.below(8));
  slow.eta = 2 + static_cast<std::uint32_t>(rng.below(2));
  slow.rungs = 1 + static_cast<std::uint32_t>(rng.below(3));
  slow.gpus = 1 + static_cast<std::uint32_t>(rng.below(2));
  slow.least = 1 + static_cast<std::int64_t>(rng.below(3));
  slow.begin = rng.below(2) == 0 ? 0 : static_cast<std::int64_t>(rng.below(20));
  slow.late = rng.below(4) != 0;
  return slow;
}

// The losses fall, and few differ, so that there are ties.
StudySpec draw_losses(Rng& rng, SlowStudy& slow) {
  const TrialRungs rungs{.least = slow.least, .most = slow.units(slow.rungs - 1), .eta = slow.eta};
  StudySpec study = study_of(rule_of(slow, rungs), rungs, slow.workers, [](std::uint32_t, TrialUnits) { return 0.0; });
  study.begin = whole_seconds(slow.begin);
  study.asks_late = slow.late;
  study.losses.clear();
  for (std::size_t trial = 0; trial < study.units.size(); ++trial) {
    slow.unit.push_back(1 + static_cast<std::int64_t>(rng.below(3)));
    study.units[trial] = whole_seconds(slow.unit.back());
    slow.loss.emplace_back();
    double loss = 10 + static_cast<double>(rng.below(12));
    for (std::uint32_t rung = 0; rung < slow.rungs; ++rung) {
      loss -= static_cast<double>(rng.below(4));
      slow.loss.back().push_back(loss);
      study.losses.push_back(loss);
    }
  }
  if (rng.below(2) == 0) {
    slow.target = study.target = 6 + static_cast<double>(rng.below(8));
    slow.stops = study.stops_at_target = rng.below(2) == 0;
  }
  return study;
}

TEST(StudiesReference, ResultsTasksAndJobsAreThoseOfTheSlowSimulation) {
  std::uint64_t revised = 0, stopped = 0, results = 0, waited = 0;
  std::vector<std::uint64_t> kinds(5);
  for (std::uint64_t seed = 1; seed <= random_runs(300); ++seed) {
    Rng rng(seed);
    SlowStudies slow;
    slow.gpus = 2 + static_cast<std::uint32_t>(rng.below(5));
    StudyModel model;
    std::vector<std::uint32_t> gpus;
    for (std::uint64_t i = 0, studies = 1 + rng.below(2); i < studies; ++i) {
      slow.studies.push_back(drawn_study(rng));
      model.studies.push_back(draw_losses(rng, slow.studies.back()));
      gpus.push_back(slow.studies.back().gpus);
      ++kinds[static_cast<std::size_t>(slow.studies.back().kind)];
    }
    std::vector<Row> rows;
    std::int64_t submit = 0;
    for (std::uint64_t i = 0, jobs = rng.below(14); i < jobs; ++i) {
      const auto tasks = 1 + static_cast<std::uint32_t>(rng.below(2));
      const auto work = 1 + static_cast<std::int64_t>(rng.below(25));
      rows.push_back({.submit = submit, .work = work, .gpus = tasks});
      slow.jobs.push_back({submit, work, tasks});
      submit += static_cast<std::int64_t>(rng.below(12));
    }
    slow.run();
    const JobTable jobs = with_studies(model, rows, gpus);
    Engine engine(jobs, Cluster::pool(slow.gpus), {}, {.studies = &model});
    FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy)) << seed;
    ASSERT_TRUE(engine.consistent()) << seed;
    for (std::uint32_t j = 0; j < rows.size(); ++j) {
      ASSERT_EQ(engine.end(JobId{jobs.in_front() + j}), whole_seconds(slow.job_ends[j])) << seed << " job " << j;
    }
    std::uint64_t left = 0;
    for (std::uint32_t i = 0; i < model.studies.size(); ++i) {
      const StudySpec& study = model.studies[i];
      const std::vector<StudyResult>& own = engine.studies().results(i);
      ASSERT_EQ(own.size(), slow.results[i].size()) << seed << " study " << i;
      for (std::size_t k = 0; k < own.size(); ++k) {
        const SlowResult& other = slow.results[i][k];
        ASSERT_EQ(own[k].time, whole_seconds(other.time)) << seed << " study " << i << " result " << k;
        ASSERT_EQ(own[k].trial, other.trial) << seed << " study " << i << " result " << k;
        ASSERT_EQ(own[k].rung, other.rung) << seed << " study " << i << " result " << k;
        ASSERT_EQ(own[k].loss, other.loss) << seed;
        ASSERT_EQ(own[k].gpu, detail::WideInt{other.gpu_seconds} * 1'000'000 * whole_gpu) << seed << " result " << k;
      }
      ASSERT_EQ(engine.studies().closed(i), whole_seconds(slow.closed[i])) << seed << " study " << i;
      std::uint32_t ran = 0;
      for (std::uint32_t k = 0; k < study.tasks.size(); ++k) {
        ran += engine.first_start(JobId{study.first_row + k}) == Time::max() ? 0 : 1;
      }
      ASSERT_EQ(ran, slow.tasks[i].size()) << seed << " study " << i;
      for (const SlowTask& task : slow.tasks[i]) {
        const JobId job{study.first_row + study.number_of({.trial = task.trial, .rung = task.rung})};
        ASSERT_EQ(engine.first_start(job), whole_seconds(task.start)) << seed << " trial " << task.trial;
        ASSERT_EQ(engine.end(job), whole_seconds(task.end)) << seed << " trial " << task.trial;
        waited += engine.first_start(job) > engine.submit(job) ? 1 : 0;
      }
      left += engine.studies().revised(i);
      stopped += slow.studies[i].stops ? 1 : 0;
      results += own.size();
    }
    ASSERT_EQ(left, slow.revised) << seed;
    revised += left;
  }
  for (const std::uint64_t some : {revised, stopped, results, waited}) EXPECT_GT(some, 0u);
  for (const std::uint64_t some : kinds) EXPECT_GT(some, 0u);
}

}  // namespace
}  // namespace gpusched::test
