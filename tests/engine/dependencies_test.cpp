// SPDX-License-Identifier: Apache-2.0
// Jobs that wait for the end of others, worked out by hand.
#include "gpusched/data/dependencies.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

Result<JobTable> linked(const std::vector<std::pair<std::string, std::vector<std::string>>>& jobs,
                        bool ignores_missing = false) {
  JobTableBuilder builder;
  if (ignores_missing) builder.ignore_missing_predecessors();
  for (const auto& [id, after] : jobs) builder.add({.id = id, .work = whole_seconds(1), .after = after});
  return std::move(builder).build();
}

std::vector<std::uint32_t> ids(std::span<const JobId> jobs) {
  std::vector<std::uint32_t> numbers;
  for (const JobId job : jobs) numbers.push_back(index(job));
  return numbers;
}

// Under first come, first served.
template <class... Observers>
bool runs(Engine& engine, Observers&... observers) {
  Fifo policy;
  return simulate(engine, policy, observers...);
}

using Numbers = std::vector<std::uint32_t>;

TEST(Dependencies, AreFoundByIdWhateverTheOrderOfRows) {
  JobTableBuilder builder;
  const std::vector<std::string> after_both{"early", "first"}, after_early{"early"};
  builder.add({.id = "last", .submit = whole_seconds(9), .after = after_both});
  builder.add({.id = "first", .submit = whole_seconds(1), .after = after_early});
  builder.add({.id = "early", .submit = whole_seconds(5)});
  const JobTable jobs = *std::move(builder).build();  // first, early, last
  EXPECT_EQ(ids(jobs.dependencies().of(JobId{0})), (Numbers{1}));
  EXPECT_EQ(ids(jobs.dependencies().of(JobId{1})), (Numbers{}));
  EXPECT_EQ(ids(jobs.dependencies().of(JobId{2})), (Numbers{0, 1}));
  EXPECT_EQ(ids(jobs.successors().of(JobId{1})), (Numbers{0, 2}));
}

TEST(Dependencies, OfASliceAreThoseWithinIt) {
  const JobTable jobs = *linked({{"a", {}}, {"b", {"a"}}, {"c", {"a", "b"}}, {"d", {"c"}}});
  const JobTable part = jobs.slice(1, 2);
  EXPECT_EQ(ids(part.dependencies().of(JobId{0})), (Numbers{}));
  EXPECT_EQ(ids(part.dependencies().of(JobId{1})), (Numbers{0}));
  EXPECT_EQ(ids(part.successors().of(JobId{0})), (Numbers{1}));
  EXPECT_TRUE(jobs.slice(3, 1).dependencies().is_empty());
}

TEST(Dependencies, DelaysFollowTheirJobs) {
  JobTableBuilder builder;
  const std::vector<std::string> after_a{"a"}, after_z{"z"};
  builder.ignore_missing_predecessors();
  builder.add({.id = "c", .submit = whole_seconds(3), .after = after_a, .after_delay = whole_seconds(30)});
  builder.add({.id = "b", .submit = whole_seconds(2), .after = after_z, .after_delay = whole_seconds(20)});
  builder.add({.id = "a", .submit = whole_seconds(1)});
  const JobTable jobs = *std::move(builder).build();       // a, b, c
  EXPECT_EQ(jobs.dependencies().delay(JobId{1}), Time{});  // of a job that waits for nobody
  EXPECT_EQ(jobs.dependencies().delay(JobId{2}), whole_seconds(30));
  EXPECT_FALSE(jobs.slice(1, 2).dependencies().has_delays());
  EXPECT_EQ(jobs.slice(0, 3).dependencies().delay(JobId{2}), whole_seconds(30));
}

TEST(Dependencies, OfAJobTwiceOnTheSameOtherAreOne) {
  EXPECT_EQ(ids(linked({{"a", {}}, {"b", {"a", "a"}}})->dependencies().of(JobId{1})), (Numbers{0}));
}

TEST(Dependencies, ThatCannotBeAreRefused) {
  EXPECT_EQ(linked({{"a", {}}, {"b", {"z"}}}).error().to_string(),
            "after: job 'b' waits for job 'z', which is not in the table");
  EXPECT_TRUE(linked({{"a", {}}, {"b", {"z"}}}, true)->dependencies().is_empty());
  EXPECT_EQ(linked({{"a", {"a"}}}).error().to_string(), "after: jobs wait for each other: job 'a' for job 'a'");
  EXPECT_EQ(linked({{"x", {"c"}}, {"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}}).error().to_string(),
            "after: jobs wait for each other: job 'a' for job 'b' for job 'c' for job 'a'");
  std::vector<std::pair<std::string, std::vector<std::string>>> ring;
  for (int i = 0; i < 8; ++i) ring.push_back({std::to_string(i), {std::to_string((i + 1) % 8)}});
  EXPECT_EQ(linked(ring).error().to_string(),
            "after: jobs wait for each other: job '0' for job '1' for job '2' for job '3' for job '4' for 3 more, the "
            "last of them for job '0'");
}

// Four GPUs and a diamond: 1 and 2 follow 0, 3 follows both.
const std::vector<Row> diamond{{.submit = 0, .work = 10, .gpus = 2},
                               {.submit = 0, .work = 20, .gpus = 2, .after = {"0"}},
                               {.submit = 0, .work = 5, .gpus = 2, .after = {"0"}},
                               {.submit = 0, .work = 7, .gpus = 4, .after = {"1", "2"}}};

TEST(EngineWithDependencies, RunsADiamond) {
  const JobTable jobs = table_of(diamond);
  Engine engine(jobs, Cluster::pool(4));
  RunLog log;
  ASSERT_TRUE(runs(engine, log));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 10}, {10, 30}, {10, 15}, {30, 37}}));
  EXPECT_EQ(engine.submit(JobId{3}), whole_seconds(30));
  // Waiting counts from the instant at which a job might run.
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_DOUBLE_EQ(*metrics.avg_wait_s, 0);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, (10 + 20 + 5 + 7) / 4.0);
  EXPECT_DOUBLE_EQ(*metrics.max_finish_time_ratio, 1);
  EXPECT_DOUBLE_EQ(metrics.makespan_s, 37);
  EXPECT_EQ(metrics.events, 8u);
}

// Job 1 waits in the queue behind job 2, which came while it was held back.
TEST(EngineWithDependencies, QueuesAJobWhenItMightRun) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1},
                                  {.submit = 1, .work = 3, .gpus = 1, .after = {"0"}},
                                  {.submit = 2, .work = 4, .gpus = 1},
                                  {.submit = 10, .work = 5, .gpus = 1}});
  Engine engine(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 10}, {14, 17}, {10, 14}, {17, 22}}));
}

TEST(EngineWithDependencies, WaitsNotForJobsThatEndedBefore) {
  const JobTable jobs =
      table_of({{.submit = 0, .work = 3, .gpus = 1}, {.submit = 8, .work = 4, .gpus = 1, .after = {"0"}}});
  Engine engine(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 3}, {8, 12}}));
  EXPECT_EQ(engine.submit(JobId{1}), whole_seconds(8));
}

// Job 1 waits for two jobs, the last of which ends at 10, and 5 s longer; job 2 is submitted when its delay is over,
// and job 3 while it runs.
TEST(EngineWithDependencies, WaitForADelayBehindTheLastEnd) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1},
                                  {.submit = 0, .work = 4, .gpus = 1},
                                  {.submit = 1, .work = 3, .gpus = 1, .after = {"0", "1"}, .delay = 5},
                                  {.submit = 6, .work = 3, .gpus = 1, .after = {"1"}, .delay = 2},
                                  {.submit = 9, .work = 3, .gpus = 1, .after = {"1"}, .delay = 7}});
  Engine engine(jobs, Cluster::pool(2));
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 10}, {0, 4}, {15, 18}, {6, 9}, {11, 14}}));
  EXPECT_EQ(engine.submit(JobId{2}), whole_seconds(15));
  EXPECT_EQ(engine.submit(JobId{4}), whole_seconds(11));
}

// Nothing else happens while the delay passes, and jobs of one instant join by id.
TEST(EngineWithDependencies, DelaysKeepARunGoing) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 1},
                                  {.submit = 0, .work = 2, .gpus = 1, .after = {"0"}, .delay = 100},
                                  {.submit = 0, .work = 2, .gpus = 1, .after = {"0"}, .delay = 100},
                                  {.submit = 101, .work = 2, .gpus = 1}});
  Engine engine(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 1}, {101, 103}, {103, 105}, {105, 107}}));
}

// The last attempt counts.
TEST(EngineWithDependencies, WaitsForAllAttempts) {
  const JobTable jobs =
      table_of({{.submit = 0, .gpus = 1, .attempts = {3, 4}}, {.submit = 0, .work = 1, .gpus = 1, .after = {"0"}}});
  Engine engine(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 7}, {7, 8}}));
}

// A chain of jobs without work passes in one instant.
TEST(EngineWithDependencies, PassesJobsWithoutWorkAtOnce) {
  std::vector<Row> rows{{.submit = 5, .work = 0, .gpus = 1}};
  for (int i = 1; i < 50; ++i) rows.push_back({.submit = 0, .work = 0, .gpus = 1, .after = {std::to_string(i - 1)}});
  JobTableBuilder builder;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    builder.add(
        {.submit = whole_seconds(rows[i].submit), .shape = {.gpu_milli_per_task = whole_gpu}, .after = rows[i].after});
  }
  const JobTable jobs = *std::move(builder).build();  // the first row is the last of the table
  Engine engine(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(engine));
  for (const Span& span : spans_of(engine)) EXPECT_EQ(span, (Span{5, 5}));
}

TEST(EngineWithDependencies, StepsByOneEventTheSame) {
  const JobTable jobs = table_of(diamond);
  EngineOptions options;
  options.one_event_a_step = true;
  Engine engine(jobs, Cluster::pool(4), options);
  ASSERT_TRUE(runs(engine));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 10}, {10, 30}, {10, 15}, {30, 37}}));
}

TEST(Deadlines, AreMissedByWhoEndsAfterThem) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10, .gpus = 1, .deadline = 10},
                                  {.submit = 0, .work = 5, .gpus = 1, .deadline = 12},
                                  {.submit = 0, .work = 5, .gpus = 1},
                                  {.submit = 0, .work = 5, .gpus = 1, .deadline = 24}});
  Engine engine(jobs, Cluster::pool(1));
  RunLog log;
  ASSERT_TRUE(runs(engine, log));  // ends 10, 15, 20, 25
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_DOUBLE_EQ(metrics.deadline_miss_rate.value(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.avg_tardiness_s.value(), 4.0 / 3);
  const MeasureWindow third{.first = 2, .count = 1};
  RunLog log_of_third(third);
  Engine again(jobs, Cluster::pool(1));
  ASSERT_TRUE(runs(again, log_of_third));
  EXPECT_FALSE(compute_metrics(again, log_of_third, third).deadline_miss_rate.has_value());
}

}  // namespace
}  // namespace gpusched::test
