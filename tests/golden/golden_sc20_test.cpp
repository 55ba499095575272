// SPDX-License-Identifier: Apache-2.0
// RLScheduler (SC'20), Table of mean bounded slowdown and utilisation on Lublin-1: published and re-run figures, with
// further decimals from an independent program. Input: swf/lublin_256.swf.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include "gpusched/core/rng.hpp"
#include "gpusched/learn/env.hpp"
#include "src/sim/protocols/sc20_protocol.hpp"
#include "tests/golden/golden_support.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {
namespace {

constexpr const char* input = "swf/lublin_256.swf";

Sc20Chooser chooser(const std::string& policy) {
  const auto specs = parse_policy_list(policy);
  auto made = make_sc20_chooser(PolicyRegistry::standard(), specs->front());
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return *made;
}

struct Cell {
  const char* policy;
  bool backfill;
  double avg_bounded_slowdown;
  double utilization;  // negative: none known
  friend std::ostream& operator<<(std::ostream& out, const Cell& cell) {
    return out << cell.policy << (cell.backfill ? " with backfilling" : "");
  }
};

class GoldenSc20 : public testing::TestWithParam<Cell> {};

TEST_P(GoldenSc20, TenWindows) {
  const std::string path = test::real_trace(input);
  if (path.empty()) GTEST_SKIP() << input << " is not here; set GPUSCHED_TRACES";
  const auto log = read_sc20_log(path);
  ASSERT_TRUE(log.has_value()) << log.error().to_string();
  const Cell& cell = GetParam();
  const auto result = run_sc20_protocol(*log, cell.backfill, chooser(cell.policy));
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_NEAR(result->avg_bounded_slowdown, cell.avg_bounded_slowdown, 1e-6 * cell.avg_bounded_slowdown);
  if (cell.utilization >= 0) {
    EXPECT_NEAR(result->utilization, cell.utilization, 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lublin1, GoldenSc20,
    testing::Values(Cell{"fcfs", false, 7273.771360, .657}, Cell{"wfp3@sc20", false, 19753.527528, .747},
                    Cell{"unicep@sc20", false, 22274.744676, .691}, Cell{"sjf", false, 277.348341, .762},
                    Cell{"f1", false, 258.366372, .816}, Cell{"fcfs", true, 235.817305, .868},
                    Cell{"wfp3@sc20", true, 133.873761, .864}, Cell{"unicep@sc20", true, 307.232858, .883},
                    Cell{"sjf", true, 73.306497, .778}, Cell{"f1", true, 75.068151, .840},
                    Cell{"wfp3", false, 337.341120, -1}, Cell{"wfp3", true, 126.504677, -1},
                    Cell{"unicep", false, 381.706626, -1}, Cell{"unicep", true, 103.100729, -1},
                    Cell{"saf", false, 292.876511, -1}, Cell{"saf", true, 54.001615, -1}),
    [](const testing::TestParamInfo<Cell>& cell) {
      std::string name = std::string(cell.param.policy) + (cell.param.backfill ? "_backfill" : "");
      std::replace(name.begin(), name.end(), '@', '_');
      return name;
    });

struct AgentCell {
  const char* heuristic;
  bool backfill;
  double avg_bounded_slowdown;
  friend std::ostream& operator<<(std::ostream& out, const AgentCell& cell) {
    return out << cell.heuristic << (cell.backfill ? " with backfilling" : "");
  }
};

// What a learned scheduler chooses among, under a fixed order: the same cells, through the engine and through the
// training environment.
class GoldenSc20Agent : public testing::TestWithParam<AgentCell> {
 protected:
  void SetUp() override {
    const std::string path = test::real_trace(input);
    if (path.empty()) GTEST_SKIP() << input << " is not here; set GPUSCHED_TRACES";
    auto trace = read_trace(path);
    ASSERT_TRUE(trace.has_value()) << trace.error().to_string();
    jobs_ = std::move(trace->jobs);
  }

  JobTable jobs_;
  Cluster cluster_ = Cluster::pool(256);
};

TEST_P(GoldenSc20Agent, TenWindowsOnTheEngine) {
  const AgentCell& cell = GetParam();
  const auto specs = parse_policy_list(std::string("agenda{mode=select_blocking,knowledge=oracle,heuristic=") +
                                       cell.heuristic + ",sc20_backfill=" + (cell.backfill ? "true}" : "false}"));
  const auto result = run_sc20_agent(specs->front(), PolicyRegistry::standard(), jobs_, cluster_);
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_NEAR(result->avg_bounded_slowdown, cell.avg_bounded_slowdown, 1e-6 * cell.avg_bounded_slowdown);
}

TEST_P(GoldenSc20Agent, TenWindowsInTheEnvironment) {
  const AgentCell& cell = GetParam();
  EnvOptions options;
  options.agenda.mode = ActionMode::select_blocking;
  options.agenda.knowledge = RuntimeKnowledge::oracle;
  options.agenda.heuristic = *value_from_name(heuristic_names, cell.heuristic);
  options.agenda.max_jobs = sc20_window_jobs;
  options.agenda.sc20_backfill = cell.backfill;
  options.engine.one_event_a_step = true;
  Env env(cluster_, options);
  double slowdowns = 0;
  for (const std::uint32_t start : sc20_window_starts) {
    const Window window{.jobs = jobs_.slice(start, sc20_window_jobs), .history = {}};
    StepResult result = env.reset(window);
    while (!result.done()) result = env.step(env.agenda().heuristic_action(options.agenda.heuristic));
    slowdowns += 1 - env.totals()[reward_bounded_slowdown] / sc20_window_jobs;
  }
  EXPECT_NEAR(slowdowns / sc20_window_starts.size(), cell.avg_bounded_slowdown, 1e-6 * cell.avg_bounded_slowdown);
}

TEST(Sc20Agent, IsRefusedWhereItPreempts) {
  JobTableBuilder builder;
  for (std::int64_t i = 0; i < 10'000; ++i) {  // every short job comes while a long one runs
    builder.add({.submit = whole_seconds(10 * i),
                 .work = whole_seconds(i % 2 == 0 ? 15 : 1),
                 .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu}});
  }
  const JobTable jobs = *std::move(builder).build();
  const auto specs = parse_policy_list("agenda{mode=preempt,knowledge=oracle,heuristic=srtf}");
  const auto result = run_sc20_agent(specs->front(), PolicyRegistry::standard(), jobs, Cluster::pool(1));
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("knows no preemption"), std::string::npos) << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(Lublin1, GoldenSc20Agent,
                         testing::Values(AgentCell{"fcfs", false, 7273.771360}, AgentCell{"sjf", false, 277.348341},
                                         AgentCell{"f1", false, 258.366372}, AgentCell{"saf", false, 292.876511},
                                         AgentCell{"fcfs", true, 235.817305}, AgentCell{"sjf", true, 73.306497},
                                         AgentCell{"f1", true, 75.068151}, AgentCell{"saf", true, 54.001615}),
                         [](const testing::TestParamInfo<AgentCell>& cell) {
                           return std::string(cell.param.heuristic) + (cell.param.backfill ? "_backfill" : "");
                         });

// The 398 windows that start at 1024, 1044, ..., 8964.
double mean_over_many_windows(const Sc20Log& log, const Sc20Chooser& choose) {
  double sum = 0;
  int windows = 0;
  for (std::size_t first = 1024; first <= 8964; first += 20, ++windows) {
    sum +=
        run_sc20_window(log, std::span(log.jobs).subspan(first, sc20_window_jobs), false, choose).avg_bounded_slowdown;
  }
  EXPECT_EQ(windows, 398);
  return sum / windows;
}

TEST(GoldenSc20ManyWindows, Means) {
  const std::string path = test::real_trace(input);
  if (path.empty()) GTEST_SKIP() << input << " is not here; set GPUSCHED_TRACES";
  const auto log = read_sc20_log(path);
  ASSERT_TRUE(log.has_value()) << log.error().to_string();
  EXPECT_NEAR(mean_over_many_windows(*log, chooser("sjf")), 264.1227, 5e-5);
  EXPECT_NEAR(mean_over_many_windows(*log, chooser("f1")), 242.2119, 5e-5);
  EXPECT_NEAR(mean_over_many_windows(*log, chooser("saf")), 294.2255, 5e-5);
}

// A uniformly random choice: 7620 on the ten windows, one run having a standard deviation of 330.
TEST(GoldenSc20ManyWindows, RandomChoice) {
  const std::string path = test::real_trace(input);
  if (path.empty()) GTEST_SKIP() << input << " is not here; set GPUSCHED_TRACES";
  const auto log = read_sc20_log(path);
  ASSERT_TRUE(log.has_value()) << log.error().to_string();
  constexpr int runs = 16;
  double sum = 0;
  for (int run = 0; run < runs; ++run) {
    const Sc20Chooser random = [rng = Rng(1).split(static_cast<std::uint64_t>(run))](std::vector<Sc20Job>& waiting,
                                                                                     const Sc20Moment&) mutable {
      std::swap(waiting.front(), waiting[rng.below(waiting.size())]);
    };
    sum += run_sc20_protocol(*log, false, random)->avg_bounded_slowdown;
  }
  EXPECT_NEAR(sum / runs, 7620, 4 * 330 / std::sqrt(runs));
}

}  // namespace
}  // namespace gpusched
