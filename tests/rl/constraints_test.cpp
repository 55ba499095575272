// SPDX-License-Identifier: Apache-2.0
// What a search may not make others pay: figures as of a window's end, a reference's, and how far they exceed a limit.
#include "src/rl/constraints.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

// Four GPUs; each job wants all of them. The second waits for the first.
JobTable two_jobs() {
  JobTableBuilder builder;
  const Shape shape{.tasks = 4, .gpu_milli_per_task = whole_gpu};
  builder.add({.submit = whole_seconds(0), .work = whole_seconds(100), .shape = shape});
  builder.add({.submit = whole_seconds(10), .work = whole_seconds(20), .shape = shape});
  return *std::move(builder).build();
}

TrainConfig config_against(const std::string& reference) {
  TrainConfig config;
  config.constraints.reference = reference;
  config.constraints.most[bounded_avg_jct] = 1;
  config.constraints.most[bounded_p99_wait] = 1.5;
  return config;
}

const Cluster four_gpus = Cluster::homogeneous(1, 4);

TEST(Constraints, JobsThatAreStillThereCountAsOfTheWindowsEnd) {
  const Window window{.jobs = two_jobs(), .end = whole_seconds(60), .history = {}};
  const auto figures = reference_figures(config_against("fifo"), four_gpus, window);
  ASSERT_TRUE(figures) << figures.error().to_string();
  EXPECT_EQ((*figures)[bounded_avg_jct], 55);  // 60 so far, and 50
  EXPECT_EQ((*figures)[bounded_avg_wait], 25);
  EXPECT_EQ((*figures)[bounded_max_wait], 50);
  EXPECT_EQ((*figures)[bounded_slowdown], 1.75);  // 1, and 50 / 20
  const Window later{.jobs = two_jobs(), .end = whole_seconds(90), .history = {}};
  EXPECT_EQ((*reference_figures(config_against("fifo"), four_gpus, later))[bounded_max_wait], 80);
  const Window early{.jobs = two_jobs(), .end = whole_seconds(5), .history = {}};  // before the second is submitted
  EXPECT_EQ((*reference_figures(config_against("fifo"), four_gpus, early))[bounded_avg_jct], 5);
}

TEST(Constraints, FiguresOfAWholeRunAreItsMetrics) {
  const Window window{.jobs = test::some_jobs(4, 300), .first_scored = 60, .history = {}};
  const auto figures = reference_figures(config_against("agenda{knowledge=oracle}"), four_gpus, window);
  ASSERT_TRUE(figures) << figures.error().to_string();
  Engine engine(window.jobs, four_gpus);
  AgendaPolicy policy({.knowledge = RuntimeKnowledge::oracle, .max_jobs = no_index}, window.jobs.works());
  RunLog log({.first = 60});
  ASSERT_TRUE(simulate(engine, policy, log));
  const Metrics metrics = compute_metrics(engine, log, {.first = 60});
  EXPECT_NEAR((*figures)[bounded_avg_jct], *metrics.avg_jct_s, 1e-9 * *metrics.avg_jct_s);
  EXPECT_NEAR((*figures)[bounded_avg_wait], *metrics.avg_wait_s, 1e-9 * *metrics.avg_wait_s);
  EXPECT_NEAR((*figures)[bounded_p99_wait], *metrics.p99_wait_s, 1e-9 * *metrics.p99_wait_s);
  EXPECT_NEAR((*figures)[bounded_slowdown], *metrics.avg_bounded_slowdown, 1e-9 * *metrics.avg_bounded_slowdown);
}

TEST(Constraints, ExcessIsZeroAtTheLimitAndAboveItBeyond) {
  TrainConfig config = config_against("fifo");
  const std::vector<Window> windows{{.jobs = two_jobs(), .history = {}},
                                    {.jobs = test::some_jobs(4, 50), .history = {}}};
  for (const SearchObjective objective : {SearchObjective::geometric, SearchObjective::mean}) {
    config.search.objective = objective;
    const auto constraints = Constraints::of(config, four_gpus, windows);
    ASSERT_TRUE(constraints) << constraints.error().to_string();
    ASSERT_EQ(constraints->size(), 2u);
    EXPECT_EQ((*constraints)[1].figure, bounded_p99_wait);
    double ratio = 0, doubled = 0;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      BoundedFigures figures = *reference_figures(config, four_gpus, windows[w]);
      const auto excess = constraints->excess(figures, w);
      if (objective == SearchObjective::geometric) {
        EXPECT_NEAR(excess[0], 0, 1e-12);
        EXPECT_NEAR(excess[1], -std::log(1.5), 1e-12);
      }
      ratio += excess[0] / 2;
      figures[bounded_avg_jct] *= 2;
      doubled += constraints->excess(figures, w)[0] / 2;
    }
    EXPECT_NEAR(constraints->ratio(0, ratio), 1, 1e-12);
    EXPECT_NEAR(constraints->ratio(0, doubled), 2, 1e-12);
    EXPECT_GT(doubled, 0.5);
  }
}

// What is lost in windows that begin empty is not made up for in those that do not.
TEST(Constraints, EachKindOfWindowsIsBoundForItself) {
  TrainConfig config = config_against("fifo");
  config.constraints.most[bounded_p99_wait] = 0;
  const Window empty{.jobs = two_jobs(), .history = {}};
  const Window warm{.jobs = two_jobs(), .first_scored = 1, .history = {}};
  const std::vector<Window> windows{empty, warm, warm, warm};
  for (const SearchObjective objective : {SearchObjective::geometric, SearchObjective::mean}) {
    config.search.objective = objective;
    const auto constraints = Constraints::of(config, four_gpus, windows);
    ASSERT_TRUE(constraints) << constraints.error().to_string();
    ASSERT_EQ(constraints->size(), 2u);
    EXPECT_EQ(name_of((*constraints)[0]), "avg_jct_s_empty");
    EXPECT_EQ(name_of((*constraints)[1]), "avg_jct_s_warm");
    std::vector<double> mean(2);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      BoundedFigures figures = *reference_figures(config, four_gpus, windows[w]);
      figures[bounded_avg_jct] *= w == 0 ? 3 : 0.5;
      const auto excess = constraints->excess(figures, w);
      EXPECT_EQ(excess[w == 0 ? 1 : 0], 0);
      for (std::size_t k = 0; k < 2; ++k) mean[k] += excess[k] / 4;
    }
    EXPECT_NEAR(constraints->ratio(0, mean[0]), 3, 1e-12);
    EXPECT_NEAR(constraints->ratio(1, mean[1]), 0.5, 1e-12);
  }
}

TEST(Constraints, ABadReferenceIsOneLine) {
  const std::vector<Window> windows{{.jobs = two_jobs(), .history = {}}};
  const auto refusal = [&](const std::string& reference) {
    const auto made = Constraints::of(config_against(reference), four_gpus, windows);
    return made ? "" : made.error().to_string();
  };
  EXPECT_EQ(refusal("fifo"), "");
  EXPECT_EQ(refusal("fifo,sjf"), "/constraints/reference: expected one policy, not fifo,sjf");
  EXPECT_EQ(refusal("fofo"),
            "/constraints/reference: unknown policy 'fofo' (did you mean 'fifo'?); `gpusched policies` lists all");
  EXPECT_TRUE(Constraints::of({}, four_gpus, windows)->size() == 0);
}

}  // namespace
}  // namespace gpusched
