// SPDX-License-Identifier: Apache-2.0
// Worlds beside a base: which they are, that their figures are those of replay, and that intervals and verdicts are
// those of evaluate.
#include "src/sim/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/base/number_text.hpp"
#include "src/sim/compare_report.hpp"
#include "src/sim/evaluate.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

// Jobs of one to four GPUs that now and then wait on two nodes of 8.
std::string light_trace(const test::TempFolder& folder, std::uint32_t jobs) {
  Rng rng = Rng(5).split("light");
  std::string text = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  double now = 0;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    now += rng.exponential(50);
    const int tasks = rng.uniform() < 0.3 ? 4 : 1;
    text += "j" + std::to_string(i) + "," + exact_seconds(from_seconds(now)) + "," +
            exact_seconds(from_seconds(1 + rng.exponential(300))) + "," + std::to_string(tasks) + ",1000\n";
  }
  return folder.write("light.csv", text);
}

Scenario base_scenario(const std::string& trace) {
  Scenario scenario;
  scenario.trace = trace;
  scenario.cluster = "2x8";
  scenario.policies = {"fifo"};
  return scenario;
}

CompareOutcome compared(const Scenario& base, const std::vector<std::string>& variations, CompareOptions options,
                        std::string* table = nullptr) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = load_comparison(*worlds_of(base, variations), options, registry);
  EXPECT_TRUE(plan) << plan.error().to_string();
  EvaluationProgress progress;
  auto outcome = run_comparison(*plan, registry, progress);
  EXPECT_TRUE(outcome) << outcome.error().to_string();
  if (table != nullptr) *table = compare_table(*plan, *outcome);
  return *std::move(outcome);
}

TEST(Compare, AVariationSetsAnyKeyByPathOrOption) {
  const Scenario base = base_scenario("t.csv");
  const World both = *vary(base, " cluster+=4x8:H100 ; policy=sjf");
  EXPECT_EQ(both.name, "cluster+=4x8:H100 ; policy=sjf");
  EXPECT_EQ(both.scenario.cluster, "2x8+4x8:H100");
  EXPECT_EQ(both.scenario.policies, std::vector<std::string>{"sjf"});
  EXPECT_EQ(vary(base, "seed+=7")->scenario.seed, 7u);
  EXPECT_EQ(to_seconds(vary(base, "restart-cost+=60")->scenario.conditions.preemption.restart), 60);
  EXPECT_EQ(to_seconds(vary(base, "preemption.restart_s=1.5")->scenario.conditions.preemption.restart), 1.5);
  const auto refused = [&](const std::string& text, const std::string& reason) {
    const auto worlds = worlds_of(base, {text});
    ASSERT_FALSE(worlds) << text;
    EXPECT_THAT(worlds.error().to_string(), HasSubstr(reason)) << text;
  };
  refused("polcy=sjf", "unknown key 'polcy' (did you mean 'policy'?)");
  refused("policy", "expected KEY=VALUE or KEY+=VALUE, not 'policy'");
  refused("", "not ''");
  refused("cluster=4x8;", "not ''");
  refused("policy=fifo,sjf", "expected one policy, not 2");
  refused("policy+=sjf", "+= is for cluster and for numbers");
  refused("seed+=x", "expected a number behind +=, not 'x'");
  refused("seed=-1", "seed");
  refused("threads=2", "changes no result");
  refused("split=user", "changes no result");
  refused("measure.warmup_jobs=3", "compared by the same jobs");
  EXPECT_THAT(worlds_of(base, {"seed=1", "seed=1"}).error().to_string(), HasSubstr("given twice"));
  Scenario two = base;
  two.policies = {"fifo", "sjf"};
  EXPECT_EQ(worlds_of(two, {"seed=1"}).error().field, "policies");
  two = base;
  two.warmup_jobs = 1;
  EXPECT_EQ(worlds_of(two, {"seed=1"}).error().field, "measure.warmup_jobs");
}

// Whoever runs a world alone finds the same figures.
TEST(Compare, FiguresOfEachWorldAreThoseOfItsReplay) {
  const test::TempFolder folder;
  const Scenario base = base_scenario(light_trace(folder, 300));
  const std::vector<std::string> variations{"cluster+=1x8", "policy=srtf;restart-cost=30", "placement=first-fit"};
  const std::vector<World> worlds = *worlds_of(base, variations);
  const CompareOutcome outcome = compared(base, variations, {.threads = 2});
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    const auto input = load_replay(worlds[w].scenario, registry);
    ReplayProgress progress;
    const auto runs = run_replay(*input, registry, 1, {}, progress);
    for (const MetricInfo& metric : metric_table()) {
      EXPECT_EQ(metric.value(*outcome.metrics[w]), metric.value(runs->front().metrics)) << metric.name << " of " << w;
    }
  }
  for (const auto& rows : outcome.figures) {
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[1].value, rows[1].metric->value(*outcome.metrics[2]));
  }
}

TEST(Compare, LimitsAreAnAxis) {
  const test::TempFolder folder;
  Scenario base = base_scenario(light_trace(folder, 300));
  const CompareOutcome outcome = compared(base, {"limits=all{gpus=4},job{gpus=4}"}, {});
  EXPECT_GT(outcome.metrics[1]->avg_wait_s, outcome.metrics[0]->avg_wait_s);
  base.cluster = folder.write(
      "cluster.json", R"({"limits": [{"gpus": 4}, {"per": "job", "gpus": 4}], "nodes": [{"count": 2, "gpus": 8}]})");
  const CompareOutcome same = compared(base, {"seed=1"}, {});
  EXPECT_EQ(outcome.metrics[1]->avg_wait_s, same.metrics[0]->avg_wait_s);
  EXPECT_THAT(worlds_of(base, {"limits=user{gpus=4,job=2}"}).error().to_string(),
              HasSubstr("limits: 'user{gpus=4,job=2}': /job: unknown key (did you mean 'jobs'?)"));
}

// One method of comparison: that of evaluate.
TEST(Compare, IntervalsAndVerdictsAreThoseOfEvaluate) {
  const test::TempFolder folder;
  const Scenario base = base_scenario(light_trace(folder, 2500));
  EvaluateScenario evaluate;
  evaluate.traces = {base.trace};
  evaluate.clusters = {base.cluster};
  evaluate.policies = {"fifo", "sjf", "fifo+easy"};
  evaluate.figure = "avg_wait_s";
  evaluate.mode = "log";
  evaluate.starts = {"none"};
  const PolicyRegistry registry = PolicyRegistry::standard();
  EvaluationProgress progress;
  const auto plan = load_evaluation(evaluate, registry);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const auto expected = run_evaluation(*plan, registry, 1, progress);
  const std::vector<std::string> variations{"policy=sjf", "policy=fifo+easy"};
  const CompareOutcome log = compared(base, variations, {.metrics = {"avg_wait_s", "makespan_s"}});
  EXPECT_EQ(log.mode, "log");
  for (std::size_t row = 0; row < 2; ++row) {
    const LogComparison& pair = *expected->logs.front().findings.comparisons[row + 1];
    const WorldFigure& figure = log.figures[0][row];
    ASSERT_TRUE(figure.interval);
    EXPECT_EQ(figure.interval->low, pair.effects.front().interval->low);
    EXPECT_EQ(figure.interval->high, pair.effects.front().interval->high);
    EXPECT_EQ(figure.p_holm, pair.p_holm.front());
    EXPECT_EQ(figure.verdict, pair.verdict);
    EXPECT_NEAR(*figure.relative_difference(), pair.effects.front().difference(), 1e-9);
    EXPECT_FALSE(log.figures[1][row].interval) << "of one run";
  }
  EXPECT_EQ(log.figures[0][0].verdict, "better");

  evaluate.mode = "windows";
  evaluate.starts = EvaluateScenario().starts;
  evaluate.window_jobs = 50;
  evaluate.figure = "gpu_utilization";
  const auto window_plan = load_evaluation(evaluate, registry);
  const auto by_windows = run_evaluation(*window_plan, registry, 1, progress);
  const auto found = compare_windows(by_windows->windows, window_plan->report);
  const CompareOutcome windows =
      compared(base, variations, {.metrics = {"gpu_utilization"}, .mode = "windows", .window_jobs = 50});
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(windows.figures[0][row].window_mean, found[0][row + 1].pair.mean);
    EXPECT_EQ(windows.figures[0][row].p_holm, found[0][row + 1].p_holm);
    EXPECT_THAT(windows.figures[0][row].verdict, testing::StartsWith(found[0][row + 1].verdict));
  }
}

TEST(Compare, SaysWhyAWorldHasNoInterval) {
  const test::TempFolder folder;
  Scenario base = base_scenario(light_trace(folder, 300));
  std::string table;
  const CompareOutcome outcome = compared(base, {"trace.where=gpus=1", "cluster=1x8", "policy=fifo"}, {}, &table);
  EXPECT_EQ(outcome.figures[0][0].verdict, "other jobs");
  EXPECT_FALSE(outcome.figures[0][0].interval);
  EXPECT_EQ(outcome.figures[0][2].value, outcome.figures[0][2].base) << "a world like the base";
  std::size_t longest = 0;
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = table.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  EXPECT_LE(longest, 80u) << table;
}

}  // namespace
}  // namespace gpusched
