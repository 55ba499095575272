// SPDX-License-Identifier: Apache-2.0
// Metrics of runs worked out by hand.
#include "gpusched/watch/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpusched/watch/interval_log.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

// FIFO on two GPUs: runs [0,10), [10,14), [10,40), [20,25). Completion 10, 12, 36, 5; wait 0, 8, 6, 0.
const std::vector<Row> four_jobs{{0, 10, 2}, {2, 4, 1}, {4, 30, 1}, {20, 5, 1}};

struct WatchedRun {
  JobTable jobs;
  Engine engine;
  RunLog log;
  IntervalLog intervals;

  template <Policy P>
  WatchedRun(const std::vector<Row>& rows, const Cluster& cluster, P policy, MeasureWindow window = {},
             const EngineOptions& options = {})
      : jobs(table_of(rows)), engine(jobs, cluster, options, {.measured = window}), log(window) {
    EXPECT_TRUE(simulate(engine, policy, log, intervals));
  }
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;
};

TEST(Metrics, OfAHandComputedRun) {
  const WatchedRun run(four_jobs, Cluster::pool(2), Fifo{});
  const Metrics m = compute_metrics(run.engine, run.log);
  EXPECT_EQ(m.jobs, 4u);
  EXPECT_DOUBLE_EQ(*m.avg_jct_s, 63.0 / 4);
  EXPECT_DOUBLE_EQ(*m.median_jct_s, 11);           // of 5, 10, 12, 36
  EXPECT_DOUBLE_EQ(*m.p95_jct_s, 12 + 24 * 0.85);  // position 2.85
  EXPECT_DOUBLE_EQ(*m.p99_jct_s, 12 + 24 * 0.97);  // position 2.97
  EXPECT_DOUBLE_EQ(*m.avg_wait_s, 14.0 / 4);
  EXPECT_DOUBLE_EQ(*m.p99_wait_s, 6 + 2 * 0.97);  // of 0, 0, 6, 8
  EXPECT_DOUBLE_EQ(*m.avg_bounded_slowdown, (1 + 1.2 + 1.2 + 1) / 4);
  EXPECT_DOUBLE_EQ(*m.worst_decile_slowdown, 1.2);  // of one job
  EXPECT_DOUBLE_EQ(m.makespan_s, 40);
  EXPECT_DOUBLE_EQ(m.last_end_s, 40);
  EXPECT_DOUBLE_EQ(m.gpu_utilization, 59.0 / 80);
  EXPECT_DOUBLE_EQ(m.gpu_allocation, 59.0 / 80);
  EXPECT_EQ(m.preemptions, 0u);
  EXPECT_FALSE(m.energy_kwh.has_value());
  EXPECT_EQ(m.events, 8u);
  EXPECT_EQ(run.log.max_waiting_jobs(), 2);
}

// Jobs of 10 s one after another on one GPU: job i of 0, 1, ... has a slowdown of i + 1.
TEST(Metrics, TheWorstDecileIsTheMeanOfTheLargestTenthOfTheSlowdowns) {
  const auto worst_of = [](std::uint32_t jobs, MeasureWindow window = {}) {
    const WatchedRun run(std::vector<Row>(jobs, {0, 10, 1}), Cluster::pool(1), Fifo{}, window);
    return *compute_metrics(run.engine, run.log, window).worst_decile_slowdown;
  };
  EXPECT_DOUBLE_EQ(worst_of(1), 1);
  EXPECT_DOUBLE_EQ(worst_of(10), 10);
  EXPECT_DOUBLE_EQ(worst_of(11), (10 + 11) / 2.0);
  EXPECT_DOUBLE_EQ(worst_of(20), (19 + 20) / 2.0);
  EXPECT_DOUBLE_EQ(worst_of(30), 29);
  EXPECT_DOUBLE_EQ(worst_of(30, {.first = 0, .count = 20}), (19 + 20) / 2.0);  // of the measured jobs alone
}

TEST(Metrics, FinishTimeRatiosCompareWithAnEqualShare) {
  // GPUs asked for: 2 until 2, 3 until 4, 4 until 10, then at most the 2 there are.
  const WatchedRun run(four_jobs, Cluster::pool(2), Fifo{});
  const double expected[] = {10.0 / (10 * 1.7), 12 / (4 * (19.0 / 12)), 36 / (30 * (42.0 / 36)), 1};
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(finish_time_ratio(run.engine, run.log, JobId{i}).value(), expected[i]);
    sum += expected[i];
    squares += expected[i] * expected[i];
  }
  const Metrics m = compute_metrics(run.engine, run.log);
  EXPECT_DOUBLE_EQ(*m.max_finish_time_ratio, expected[1]);
  EXPECT_DOUBLE_EQ(*m.jain_fairness, sum * sum / (4 * squares));
}

// Who is held back by a limit asks for GPUs as one that waits for them does.
TEST(Metrics, FinishTimeRatiosDoNotDependOnWhatLetsJobsWait) {
  Cluster limited = Cluster::pool(1);
  limited.limits = {{.per = LimitOwner::all, .most = {.jobs = 1}}};
  for (const std::vector<Row>& rows :
       {std::vector<Row>(6, Row{0, 100, 1}), std::vector<Row>{{0, 100, 1}, {10, 20, 1}, {30, 5, 1}, {200, 5, 1}},
        std::vector<Row>{{0, 10, 1},
                         {0, 100, 1},
                         {.submit = 5, .work = 20, .after = {"0"}},
                         {.submit = 8, .work = 20, .after = {"0"}, .delay = 25},
                         {10, 30, 1},
                         {.submit = 50, .work = 20, .after = {"0"}},
                         {.submit = 60, .work = 10, .after = {"1", "2", "4"}}}}) {
    const WatchedRun free(rows, Cluster::pool(1), Fifo{}), held(rows, limited, Fifo{});
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      EXPECT_DOUBLE_EQ(*finish_time_ratio(held.engine, held.log, JobId{i}),
                       *finish_time_ratio(free.engine, free.log, JobId{i}))
          << i;
    }
  }
  const WatchedRun six(std::vector<Row>(6, Row{0, 100, 1}), limited, Fifo{});
  EXPECT_DOUBLE_EQ(*compute_metrics(six.engine, six.log).max_finish_time_ratio, 6 / 3.5);
}

TEST(Metrics, AJobWithoutWorkHasNoFinishTimeRatio) {
  const WatchedRun run({{0, 0, 1}, {0, 5, 1}}, Cluster::pool(2), Fifo{});
  EXPECT_FALSE(finish_time_ratio(run.engine, run.log, JobId{0}).has_value());
  EXPECT_DOUBLE_EQ(*compute_metrics(run.engine, run.log).jain_fairness, 1);
}

TEST(Metrics, PreemptionCostsAreHeldButNotUseful) {
  // Runs [0,2) and, with 2 s + 5 s of cost before the 8 s left, [5,20) around the other job's [2,5).
  EngineOptions options;
  options.preemption = {.checkpoint = whole_seconds(2), .restart = whole_seconds(5)};
  const std::vector<Row> rows{{0, 10, 1}, {2, 3, 1}};
  const WatchedRun run(rows, Cluster::pool(1), ShortestRemaining(false), {}, options);
  const Metrics m = compute_metrics(run.engine, run.log);
  EXPECT_DOUBLE_EQ(*m.avg_wait_s, 3.0 / 2);
  EXPECT_DOUBLE_EQ(m.gpu_allocation, 1);
  EXPECT_DOUBLE_EQ(m.gpu_utilization, 13.0 / 20);
  EXPECT_EQ(m.preemptions, 1u);
  // While the first job lives, of which all is measured that the GPU does.
  const MeasureWindow first{.count = 1};
  const WatchedRun part(rows, Cluster::pool(1), ShortestRemaining(false), first, options);
  const Metrics of_first = compute_metrics(part.engine, part.log, first);
  EXPECT_DOUBLE_EQ(of_first.gpu_allocation, 1);
  EXPECT_DOUBLE_EQ(of_first.gpu_utilization, 13.0 / 20);
}

// Work is stated in time on the reference device; dividing that by GPUs gave more than 100 % of slower ones.
TEST(Metrics, UtilizationIsOfGpuTimeWhateverTheSpeedOfTheGpu) {
  // At half speed: 2 s of work in [0,4), then 3 s of the other job's in [4,10), then 4 s of preemption costs and the 8
  // s of work left in [10,30).
  const JobTable jobs = table_of({{0, 10, 1}, {4, 3, 1}});
  RuntimeModel runtime(1, 1);
  runtime.set(0, 0, reference_rate / 2);
  EngineOptions options;
  options.preemption = {.checkpoint = whole_seconds(2), .restart = whole_seconds(2)};
  Engine engine(jobs, Cluster::pool(1), options, {.runtime = &runtime});
  RunLog log;
  ShortestRemaining policy(false);
  ASSERT_TRUE(simulate(engine, policy, log));
  ASSERT_EQ(spans_of(engine), (std::vector<Span>{{0, 30}, {4, 10}}));
  EXPECT_EQ(engine.useful_time(JobId{1}), whole_seconds(6));
  EXPECT_NEAR(to_seconds(engine.useful_time(JobId{0})), 24 * 10.0 / 12, 1e-6);
  const Metrics m = compute_metrics(engine, log);
  EXPECT_DOUBLE_EQ(m.gpu_allocation, 1);
  EXPECT_NEAR(m.gpu_utilization, 26.0 / 30, 1e-6);
  EXPECT_NEAR(find_saturation(engine, log).offered_load, 26.0 / 4, 1e-6);
}

TEST(Metrics, OfAMeasureWindow) {
  const MeasureWindow window{.first = 1, .count = 2};
  const WatchedRun run(four_jobs, Cluster::pool(2), Fifo{}, window);
  const Metrics m = compute_metrics(run.engine, run.log, window);
  EXPECT_EQ(m.jobs, 2u);
  EXPECT_DOUBLE_EQ(*m.avg_jct_s, 24);
  EXPECT_DOUBLE_EQ(m.makespan_s, 38);  // from 2 to 40
  // Held from 2 on: 2 GPUs until 14, 1 until 20, 2 until 25, 1 until 40; nothing held is lost.
  EXPECT_DOUBLE_EQ(m.gpu_allocation, (2 * 12 + 6 + 10 + 15) / 76.0);
  EXPECT_DOUBLE_EQ(m.gpu_utilization, m.gpu_allocation);
}

TEST(Metrics, AJobThatWaitsForItsNextAttemptIsInTheQueue) {
  const WatchedRun run({{.submit = 0, .work = 10, .gpus = 1, .attempts = {5, 5}}, {1, 3, 1}}, Cluster::pool(1), Fifo{});
  EXPECT_EQ(run.log.max_waiting_jobs(), 2);
}

TEST(Metrics, WhatIsHeldAfterTheMeasuredJobsDoesNotCount) {
  const MeasureWindow window{.first = 0, .count = 1};
  const WatchedRun run({{0, 10, 1}, {1, 100, 1}}, Cluster::pool(2), Fifo{}, window);
  EXPECT_DOUBLE_EQ(RunLog::gpu_seconds(run.log.held()), 10 + 9);
}

TEST(Metrics, AWindowBeyondTheTraceEndsWithIt) {
  EXPECT_EQ((MeasureWindow{.first = 3, .count = 100}.end(5)), 5u);
  EXPECT_EQ((MeasureWindow{.first = 9}.end(5)), 5u);
  EXPECT_TRUE((MeasureWindow{.count = 5}.whole(5)));
  EXPECT_FALSE((MeasureWindow{.first = 1}.whole(5)));
}

// Of jobs of 10 s for the one GPU, submitted in these seconds.
bool saturated(const std::vector<std::int64_t>& submits) {
  std::vector<Row> rows;
  for (const std::int64_t submit : submits) rows.push_back({submit, 10, 1});
  const WatchedRun run(rows, Cluster::pool(1), Fifo{});
  return find_saturation(run.engine, run.log).saturated;
}

TEST(Metrics, SaturationNeedsTenJobsInTheBacklog) {
  std::vector<std::int64_t> submits{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_FALSE(saturated(submits));  // nine that had not started at 9 s
  submits.push_back(10);             // the second starts at 10 s, and ten had not
  submits.push_back(11);
  EXPECT_TRUE(saturated(submits));
}

TEST(Metrics, SaturationNeedsATwentiethOfTheJobsInTheBacklog) {
  const auto calm_then_burst = [](std::int64_t calm) {
    std::vector<std::int64_t> submits;
    for (std::int64_t i = 0; i < calm; ++i) submits.push_back(i * 20);
    for (std::int64_t i = 0; i < 11; ++i) submits.push_back(calm * 20);
    return saturated(submits);  // ten wait
  };
  EXPECT_TRUE(calm_then_burst(200 - 11));
  EXPECT_FALSE(calm_then_burst(240 - 11));
}

TEST(Metrics, AQueueThatOnlyStaysLongIsNotSaturation) {
  std::vector<std::int64_t> submits(12, 0);
  for (std::int64_t i = 1; i <= 28; ++i) submits.push_back(10 * i);  // as fast as they are served
  EXPECT_FALSE(saturated(submits));
}

TEST(Metrics, SaturationIsAQueueThatGrowsWithTheTrace) {
  const auto every = [](std::int64_t gap) {
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < 100; ++i) rows.push_back({i * gap, 10, 1});
    return rows;
  };
  const WatchedRun full(every(5), Cluster::pool(1), Fifo{});
  const Saturation bad = find_saturation(full.engine, full.log);
  EXPECT_TRUE(bad.saturated);
  EXPECT_DOUBLE_EQ(bad.offered_load, 1000.0 / 495);
  EXPECT_EQ(bad.backlog_jobs, 50u);  // at 495 s the fiftieth has just run for 5 s
  const WatchedRun calm(every(20), Cluster::pool(1), Fifo{});
  const Saturation good = find_saturation(calm.engine, calm.log);
  EXPECT_FALSE(good.saturated);
  EXPECT_EQ(good.backlog_jobs, 0u);
}

TEST(Metrics, SplitsByGpuCountAndVirtualCluster) {
  const WatchedRun run({{0, 10, 2, "", "a"}, {2, 4, 1, "", "b"}, {4, 30, 1, "", "a"}, {20, 5, 1, "", ""}},
                       Cluster::pool(2), Fifo{});
  const std::vector<SplitRow> gpus = split_metrics(run.engine, SplitBy::gpus);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].key, "1");
  EXPECT_EQ(gpus[0].jobs, 3u);
  EXPECT_DOUBLE_EQ(gpus[0].avg_jct_s, 53.0 / 3);
  EXPECT_DOUBLE_EQ(gpus[0].median_jct_s, 12);
  EXPECT_DOUBLE_EQ(gpus[0].gpu_hours, 39.0 / 3600);
  EXPECT_EQ(gpus[1].key, "2");
  EXPECT_DOUBLE_EQ(gpus[1].gpu_hours, 20.0 / 3600);
  const std::vector<SplitRow> vcs = split_metrics(run.engine, SplitBy::vc);
  ASSERT_EQ(vcs.size(), 3u);
  EXPECT_EQ(vcs[0].key, "");
  EXPECT_EQ(vcs[1].key, "a");
  EXPECT_DOUBLE_EQ(vcs[1].avg_wait_s, 3);
}

TEST(Metrics, GpuBucketsArePowersOfTwo) {
  const auto name = [](MilliGpu gpus) { return detail::gpu_bucket_name(detail::gpu_bucket(gpus)); };
  EXPECT_EQ(name(0), "0");
  EXPECT_EQ(name(500), "<1");
  EXPECT_EQ(name(1000), "1");
  EXPECT_EQ(name(2000), "2");
  EXPECT_EQ(name(3000), "3-4");
  EXPECT_EQ(name(4000), "3-4");
  EXPECT_EQ(name(5000), "5-8");
  EXPECT_EQ(name(128'000), "65-128");
}

// Starts what waits, and at 4 s moves job 0 from node 0 to node 1.
struct Mover {
  [[nodiscard]] static std::string name() { return "mover"; }
  static void decide(const View& view, Decision& decision) {
    if (view.now() == whole_seconds(4)) {
      const NodeTasks there{.node = NodeId{1}, .tasks = 1};
      EXPECT_EQ(decision.vacate(JobId{0}), Verdict::ok);
      EXPECT_EQ(decision.move_on(JobId{0}, std::span(&there, 1)), Verdict::ok);
    }
    for (const Event& event : view.events()) {
      if (event.kind != EventKind::submit) continue;
      EXPECT_EQ(decision.start(event.job, Placement::first_fit), Verdict::ok);
    }
  }
};

TEST(IntervalLog, HasARowForEachMove) {
  const WatchedRun run({{0, 10, 1}, {4, 3, 1}}, Cluster::homogeneous(2, 1), Mover{});
  const auto rows = run.intervals.intervals();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].node, NodeId{0});
  EXPECT_EQ(rows[0].end, whole_seconds(4));
  EXPECT_EQ(rows[1].node, NodeId{1});
  EXPECT_EQ(rows[1].start, whole_seconds(4));
  EXPECT_EQ(rows[1].end, whole_seconds(10));
  EXPECT_EQ(rows[2].node, NodeId{0});
}

TEST(IntervalLog, HasARowForEachNodeOfEachRun) {
  // A gang of 3 spans two nodes of 2; its second run follows the preemption.
  const WatchedRun run({{0, 10, 3}, {2, 3, 4}}, Cluster::homogeneous(2, 2), ShortestRemaining(false));
  const auto rows = run.intervals.intervals();
  ASSERT_EQ(rows.size(), 6u);
  const auto expect = [&](std::size_t first, std::uint32_t job, std::int64_t start, std::int64_t end, MilliGpu gpus) {
    MilliGpu held = 0;
    for (std::size_t i = first; i < first + 2; ++i) {
      EXPECT_EQ(rows[i].job, JobId{job});
      EXPECT_EQ(rows[i].start, whole_seconds(start));
      EXPECT_EQ(rows[i].end, whole_seconds(end));
      held += rows[i].gpu_milli;
    }
    EXPECT_NE(rows[first].node, rows[first + 1].node);
    EXPECT_EQ(held, gpus);
  };
  expect(0, 0, 0, 2, 3000);
  expect(2, 1, 2, 5, 4000);
  expect(4, 0, 5, 13, 3000);
}

TEST(IntervalLog, HasOneRowOfANodeWhoseGrantsAlternate) {
  struct Spreader {
    [[nodiscard]] static std::string name() { return "spreader"; }
    static void decide(const View& view, Decision& decision) {
      for (const Event& event : view.events()) {
        if (event.kind != EventKind::submit) continue;
        EXPECT_EQ(decision.start(event.job, Placement::worst_fit), Verdict::ok);
      }
    }
  };
  const WatchedRun run({{0, 10, 5}, {20, 3, 1}}, Cluster::homogeneous(2, 4), Spreader{});
  const auto rows = run.intervals.intervals();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NE(rows[0].node, rows[1].node);
  EXPECT_EQ(rows[0].gpu_milli + rows[1].gpu_milli, 5000);
  EXPECT_EQ(std::max(rows[0].gpu_milli, rows[1].gpu_milli), 3000);
  for (const std::size_t row : {std::size_t{0}, std::size_t{1}}) EXPECT_EQ(rows[row].end, whole_seconds(10));
  EXPECT_EQ(rows[2].end, whole_seconds(23));
}

}  // namespace
}  // namespace gpusched::test
