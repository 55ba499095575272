// SPDX-License-Identifier: Apache-2.0
#include "src/policies/backfill/backfill.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/policies/backfill/conservative_backfill.hpp"
#include "src/policies/backfill/easy_backfill.hpp"
#include "src/policies/queues/overrun_rule.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::Row;
using test::Span;
using Spans = std::vector<Span>;

PriorityOrder fifo_order() {
  return {.name = "fifo",
          .score = [](const JobFacts& job) { return job.submit_s; },
          .growth = {},
          .estimator = AnyDurationEstimator(NoDuration{})};
}

Result<AnyPolicy> make(const std::string& policy, const std::string& backfill, const JobTable& jobs,
                       const Cluster& cluster) {
  const auto specs = parse_policy_list(policy);
  const auto way = parse_backfill(backfill);
  if (!way) return Unexpected{way.error()};
  return make_backfilled(PolicyRegistry::standard(), specs->front(), *way, {.jobs = &jobs, .cluster = &cluster});
}

Spans run(const std::string& policy, const std::string& backfill, const JobTable& jobs, const Cluster& cluster) {
  auto made = make(policy, backfill, jobs, cluster);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().to_string());
  return test::run(jobs, cluster, *std::move(made));
}

// 10 GPUs. Job 1 cannot start before 100 s. Beside it, 2 GPUs stay free.
const std::vector<Row> example{{.submit = 0, .work = 100, .gpus = 6}, {.submit = 1, .work = 50, .gpus = 8},
                               {.submit = 2, .work = 200, .gpus = 4},  // too long, and too wide to run beside job 1
                               {.submit = 3, .work = 97, .gpus = 1},   // ends at 100 s
                               {.submit = 4, .work = 500, .gpus = 2},  // fits beside job 1
                               {.submit = 5, .work = 20, .gpus = 1}};

TEST(EasyBackfill, StartsWhatDelaysNobody) {
  const JobTable jobs = test::table_of(example);
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, Cluster::pool(10)),
            (Spans{{0, 100}, {100, 150}, {150, 350}, {3, 100}, {4, 504}, {5, 25}}));
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, Cluster::homogeneous(5, 2)),
            (Spans{{0, 100}, {100, 150}, {150, 350}, {3, 100}, {4, 504}, {5, 25}}));
}

TEST(EasyBackfill, KeepsThePriorityOrder) {
  // Both waiting one-GPU jobs end in time; there is room for one. SJF takes the shorter, FIFO the earlier.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 3},
                                        {.submit = 1, .work = 200, .gpus = 4},
                                        {.submit = 2, .work = 60, .gpus = 1},
                                        {.submit = 2, .work = 50, .gpus = 1}});
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, Cluster::pool(4)),
            (Spans{{0, 100}, {100, 300}, {2, 62}, {300, 350}}));
  const JobTable two = test::table_of({{.submit = 0, .work = 100, .gpus = 3},
                                       {.submit = 1, .work = 10, .gpus = 4},
                                       {.submit = 2, .work = 60, .gpus = 1},
                                       {.submit = 2, .work = 50, .gpus = 1}});
  EXPECT_EQ(run("sjf", "easy{estimate=exact}", two, Cluster::pool(4)),
            (Spans{{0, 100}, {100, 110}, {110, 170}, {2, 52}}));
}

TEST(EasyBackfill, ReservesByNode) {
  // Two nodes of 4. Job 1 needs a whole node: node 0, at 50 s. Job 2 would fit into it until long after, and must not;
  // on node 1 nothing is free.
  const JobTable jobs =
      test::table_of({{.submit = 0, .work = 50, .gpus = 2},
                      {.submit = 0, .work = 500, .shape = {.tasks = 1, .gpu_milli_per_task = 4 * whole_gpu}},
                      {.submit = 1, .work = 30, .shape = {.tasks = 1, .gpu_milli_per_task = 4 * whole_gpu}},
                      {.submit = 2, .work = 100, .gpus = 2},
                      {.submit = 3, .work = 40, .gpus = 1}});
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, Cluster::homogeneous(2, 4)),
            (Spans{{0, 50}, {0, 500}, {50, 80}, {80, 180}, {3, 43}}));
}

TEST(EasyBackfill, ReservesCpuAndMemory) {
  // 4 GPUs and 8 cores. The head wants 8 cores; a CPU-hungry job may not run past 10 s, a frugal one cannot either.
  Cluster cluster = Cluster::homogeneous(1, 4);
  cluster.nodes[0].cpu_milli = 8000;
  const auto shape = [](std::int64_t cores) {
    return Shape{.tasks = 1, .gpu_milli_per_task = whole_gpu, .cpu_milli_per_task = std::int64_t{cores} * 1000};
  };
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10, .shape = shape(4)},
                                        {.submit = 1, .work = 10, .shape = shape(8)},
                                        {.submit = 2, .work = 9, .shape = shape(4)},
                                        {.submit = 2, .work = 8, .shape = shape(3)}});
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, cluster), (Spans{{0, 10}, {10, 20}, {20, 29}, {2, 10}}));
  EXPECT_EQ(run("fifo", "conservative{estimate=exact}", jobs, cluster), (Spans{{0, 10}, {10, 20}, {20, 29}, {2, 10}}));
}

TEST(EasyBackfill, SchedulesEachVirtualClusterByItself) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 3, .vc = "a"},
                                        {.submit = 1, .work = 10, .gpus = 4, .vc = "a"},
                                        {.submit = 2, .work = 20, .gpus = 1, .vc = "a"},
                                        {.submit = 3, .work = 500, .gpus = 4, .vc = "b"}});
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.vcs = {{"a", 4 * whole_gpu}, {"b", 4 * whole_gpu}};
  cluster.nodes[0].vc = 0;
  cluster.nodes[1].vc = 1;
  for (const char* way : {"easy{estimate=exact}", "conservative{estimate=exact}", "sc20{estimate=exact}"}) {
    EXPECT_EQ(run("fifo", way, jobs, cluster), (Spans{{0, 100}, {100, 110}, {2, 22}, {3, 503}})) << way;
  }
}

// Job 0 asks for 1000 s and takes one more. Doubled, it is believed at 1000 s to end at 2000 s, and job 2 keeps job 1
// waiting; under the other rules it is believed to end soon.
TEST(Overrun, OfASecondDelaysNobodyUnlessItIsDoubled) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 1001, .gpus = 3, .estimate = 1000},
                                        {.submit = 10, .work = 100, .gpus = 4, .estimate = 100},
                                        {.submit = 1000, .work = 990, .gpus = 1, .estimate = 1000},
                                        {.submit = 1020, .work = 100, .gpus = 1, .estimate = 1000}});
  const Spans soon{{0, 1001}, {1001, 1101}, {1101, 2091}, {1101, 1201}};
  const Spans doubled{{0, 1001}, {1990, 2090}, {1000, 1990}, {2090, 2190}};
  for (const std::string way : {"easy", "conservative"}) {
    for (const std::string rule : {"kill", "now", "increments", "auto"}) {
      EXPECT_EQ(run("fifo", way + "{overrun=" + rule + "}", jobs, Cluster::pool(4)), soon) << way << ' ' << rule;
    }
    EXPECT_EQ(run("fifo", way + "{overrun=double}", jobs, Cluster::pool(4)), doubled) << way;
    EXPECT_EQ(run("fifo", way, jobs, Cluster::pool(4)), soon) << way;
  }
}

// Half an hour over its minute. Job 0 is believed at 61 s to end at 120 s, at 200 s (5 min later) at 420 s, at 500 s
// (15 min later) at 1320 s.
TEST(Overrun, IncrementsGrow) {
  const JobTable jobs =
      test::table_of({{.submit = 0, .work = 1860, .gpus = 3, .estimate = 60},
                      {.submit = 1, .work = 10, .gpus = 4, .estimate = 10},
                      {.submit = 61, .work = 5, .gpus = 1, .estimate = 60},      // to 121 s: too long
                      {.submit = 70, .work = 5, .gpus = 1, .estimate = 50},      // to 120 s
                      {.submit = 200, .work = 5, .gpus = 1, .estimate = 216},    // from 205 s to 421 s
                      {.submit = 500, .work = 5, .gpus = 1, .estimate = 815}});  // from 505 s to 1320 s
  const Spans spans = run("fifo", "easy{overrun=increments}", jobs, Cluster::pool(4));
  EXPECT_EQ(spans[3], (Span{70, 75}));
  EXPECT_EQ(spans[2], (Span{200, 205}));
  EXPECT_EQ(spans[4], (Span{500, 505}));
  EXPECT_EQ(spans[5], (Span{505, 510}));
  EXPECT_EQ(spans[1], (Span{1860, 1870}));
}

// A prediction that expired is doubled where nothing else is said, a request is not.
TEST(Overrun, OfAPredictionIsAnotherThing) {
  const JobTable jobs = test::table_of({{.work = 10, .gpus = 1, .estimate = 5}});
  const auto rule = [&](const char* text) {
    const auto parsed = parse_backfill(text);
    const auto row = find_backfill(parsed->name);
    return overrun_rule(*complete_parameters("backfill", (*row)->parameters, *parsed), jobs);
  };
  EXPECT_EQ(rule("easy"), OverrunRule::increments);
  EXPECT_EQ(rule("conservative{estimate=user}"), OverrunRule::increments);
  EXPECT_EQ(rule("easy{estimate=history}"), OverrunRule::doubling);
  EXPECT_EQ(rule("easy{estimate=history,overrun=now}"), OverrunRule::now);
  EXPECT_EQ(rule("sc20"), OverrunRule::kill);
}

TEST(EasyBackfill, CorrectsEstimatesThatJobsOutlive) {
  // Job 0 said 10 s and takes 100. At 20 s it is believed to end at 40 s, so that job 2 (30 s) may not start, job 3
  // may.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 3, .estimate = 10},
                                        {.submit = 20, .work = 10, .gpus = 4, .estimate = 10},
                                        {.submit = 20, .work = 30, .gpus = 1, .estimate = 30},
                                        {.submit = 20, .work = 20, .gpus = 1, .estimate = 20}});
  const Spans spans = run("fifo", "easy{estimate=user,overrun=double}", jobs, Cluster::pool(4));
  EXPECT_EQ(spans[3], (Span{20, 40}));
  EXPECT_EQ(spans[1], (Span{100, 110}));
  // At 40 s job 3 ends and job 0 is believed to end at 80 s: room for job 2.
  EXPECT_EQ(spans[2], (Span{40, 70}));
}

// Its prediction is another one at the new size, and it waits among so many that they are kept by length.
TEST(EasyBackfill, AJobOfManyThatGetsAnotherSizeIsFoundAgain) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < 80; ++i) rows.push_back({.submit = i, .work = 1000 + i * 37 % 900});
  JobTable jobs = test::table_of(rows);
  const std::uint32_t two = jobs.number_of_shape({.tasks = 2, .gpu_milli_per_task = whole_gpu});
  const JobChanges changes(
      {{.time = whole_seconds(1100), .job = JobId{79}, .kind = JobChange::Kind::size, .shape = two}}, 80);
  for (const std::string policy : {"fifo", "saf", "saf{estimate=history}", "f1"}) {
    auto made = make(policy, "easy", jobs, Cluster::homogeneous(1, 8));
    ASSERT_TRUE(made);
    Engine engine(jobs, Cluster::homogeneous(1, 8), {}, {.changes = &changes});
    EXPECT_TRUE(simulate(engine, *made)) << policy;
  }
}

TEST(ConservativeBackfill, DelaysNoReservation) {
  // 4 GPUs. Reservations: job 1 at 10 s, job 2 at 20 s. Job 3 (15 s) would not delay job 1 but job 2 if started at 3 s.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10, .gpus = 3},
                                        {.submit = 1, .work = 10, .gpus = 3},
                                        {.submit = 2, .work = 10, .gpus = 4},
                                        {.submit = 3, .work = 18, .gpus = 1},
                                        {.submit = 4, .work = 16, .gpus = 1}});
  EXPECT_EQ(run("fifo", "conservative{estimate=exact}", jobs, Cluster::pool(4)),
            (Spans{{0, 10}, {10, 20}, {20, 30}, {30, 48}, {4, 20}}));
  EXPECT_EQ(run("fifo", "easy{estimate=exact}", jobs, Cluster::pool(4)),
            (Spans{{0, 10}, {10, 20}, {21, 31}, {3, 21}, {31, 47}}));
}

TEST(ConservativeBackfill, MovesUpWhenJobsEndEarly) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10, .gpus = 4, .estimate = 100},
                                        {.submit = 1, .work = 5, .gpus = 4, .estimate = 5},
                                        {.submit = 2, .work = 5, .gpus = 4, .estimate = 5}});
  EXPECT_EQ(run("fifo", "conservative{estimate=user}", jobs, Cluster::pool(4)), (Spans{{0, 10}, {10, 15}, {15, 20}}));
}

// 150 jobs wait for both GPUs from 1000 s on when a short one comes that fits beside the running job. By definition
// every waiting job has a reservation. With the first 100 alone, the short one gets none before 2500 s.
TEST(ConservativeBackfill, ReservesForAllByDefault) {
  std::vector<Row> rows(152, {.submit = 1, .work = 10, .gpus = 2});
  rows.front() = {.submit = 0, .work = 1000};
  rows.back() = {.submit = 2, .work = 5};
  const JobTable jobs = test::table_of(rows);
  EXPECT_EQ(run("fifo", "conservative{estimate=exact}", jobs, Cluster::pool(2)).back(), (Span{2, 7}));
  EXPECT_EQ(run("fifo", "conservative{estimate=exact,depth=100}", jobs, Cluster::pool(2)).back(), (Span{2500, 2505}));
}

TEST(ConservativeBackfill, SurvivesEstimatesThatJobsOutlive) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 4, .estimate = 10},
                                        {.submit = 1, .work = 5, .gpus = 4, .estimate = 5},
                                        {.submit = 2, .work = 5, .gpus = 2, .estimate = 1}});
  EXPECT_EQ(run("fifo", "conservative{estimate=user}", jobs, Cluster::pool(4)),
            (Spans{{0, 100}, {100, 105}, {105, 110}}));
}

// Two cards hold two of them, though they have room for three in sum.
TEST(ConservativeBackfill, StartsSharesAboveHalfAGpu) {
  const JobTable jobs = test::table_of({{.work = 10, .shape = {.tasks = 3, .gpu_milli_per_task = 600}}});
  EXPECT_EQ(run("fifo", "conservative", jobs, Cluster::homogeneous(2, 2)), (Spans{{0, 10}}));
}

// Half of each card of the first node is taken, where the profile sees room for a whole one.
TEST(ConservativeBackfill, StartsWhereACardHasRoom) {
  const JobTable jobs = test::table_of({{.work = 100, .shape = {.gpu_milli_per_task = 501}},
                                        {.work = 100, .shape = {.gpu_milli_per_task = 501}},
                                        {.work = 100, .gpus = 1},
                                        {.submit = 1, .work = 10, .shape = {.gpu_milli_per_task = 900}}});
  EXPECT_EQ(run("fifo", "conservative", jobs, Cluster::homogeneous(2, 2))[3], (Span{1, 11}));
}

// The third job finds no card until the others end; it must not be tried again every microsecond until then.
TEST(ConservativeBackfill, AJobWithoutACardWaitsForAnEnd) {
  const JobTable jobs = test::table_of({{.work = 1000, .shape = {.gpu_milli_per_task = 501}},
                                        {.work = 900, .shape = {.gpu_milli_per_task = 501}},
                                        {.work = 10, .shape = {.gpu_milli_per_task = 700}, .estimate = 0},
                                        {.submit = 5, .work = 10, .shape = {.gpu_milli_per_task = 700}, .estimate = 0},
                                        {.submit = 6, .work = 10, .gpus = 2, .estimate = 0}});
  const Cluster cluster = Cluster::homogeneous(1, 2);
  auto policy = make("fifo", "conservative", jobs, cluster);
  ASSERT_TRUE(policy);
  Engine engine(jobs, cluster);
  ASSERT_TRUE(simulate(engine, *policy));
  EXPECT_EQ(engine.first_start(JobId{2}), whole_seconds(900));
  EXPECT_LT(engine.events_seen(), 100u);
}

// The same where the order changes with each arrival, in a virtual cluster with a quota.
TEST(ConservativeBackfill, AJobWithoutACardWaitsForAnEndUnderDeadlines) {
  const Shape half{.gpu_milli_per_task = 501}, more{.gpu_milli_per_task = 700};
  const JobTable jobs =
      test::table_of({{.work = 1000, .vc = "a", .shape = half, .deadline = 3000},
                      {.work = 900, .vc = "a", .shape = half, .deadline = 4000},
                      {.work = 10, .vc = "a", .shape = more, .estimate = 0, .deadline = 5000},
                      {.submit = 5, .work = 10, .vc = "a", .shape = more, .estimate = 0, .deadline = 2000},
                      {.submit = 6, .work = 10, .gpus = 2, .vc = "a", .estimate = 0, .deadline = 1000}});
  Cluster cluster = Cluster::homogeneous(1, 2);
  cluster.vcs = {{.name = "a", .quota = 2 * whole_gpu}};
  auto policy = make("edf", "conservative", jobs, cluster);
  ASSERT_TRUE(policy);
  Engine engine(jobs, cluster);
  ASSERT_TRUE(simulate(engine, *policy));
  for (const std::uint32_t late : {2u, 3u, 4u}) EXPECT_GE(engine.first_start(JobId{late}), whole_seconds(900)) << late;
  EXPECT_LT(engine.events_seen(), 100u);
}

TEST(Sc20Backfill, CommitsToTheChosenJob) {
  // SJF chooses job 1 at 1 s; job 2 is shorter but comes later and, not ending strictly before 100 s, has to wait.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 3},
                                        {.submit = 1, .work = 99, .gpus = 4},
                                        {.submit = 2, .work = 98, .gpus = 1},
                                        {.submit = 3, .work = 96, .gpus = 1}});
  EXPECT_EQ(run("sjf", "sc20{estimate=exact}", jobs, Cluster::pool(4)),
            (Spans{{0, 100}, {100, 199}, {199, 297}, {3, 99}}));
  // EASY lets job 2 end at the reserved instant, and job 3, the shorter, be chosen then.
  EXPECT_EQ(run("sjf", "easy{estimate=exact}", jobs, Cluster::pool(4)),
            (Spans{{0, 100}, {196, 295}, {2, 100}, {100, 196}}));
}

TEST(Backfill, RefusesWhatItCannotWrap) {
  const JobTable jobs = test::table_of(example);
  const Cluster cluster = Cluster::pool(10);
  EXPECT_NE(
      make("srtf", "easy", jobs, cluster).error().to_string().find("policy srtf is not an order of starting alone"),
      std::string::npos);
  EXPECT_EQ(make("fifo", "easy{estimate=user}", jobs, cluster).error().to_string(),
            "backfill easy, estimator user: the trace has no column estimate");
  EXPECT_EQ(make("fifo", "conservative{dept=3}", jobs, cluster).error().message,
            "backfill conservative has no parameter 'dept' (did you mean 'depth'?)");
  EXPECT_FALSE(make("fifo", "easy{depth=3}", jobs, cluster).has_value());
  EXPECT_FALSE(make("fifo", "conservative{depth=-1}", jobs, cluster).has_value());
  EXPECT_NE(parse_backfill("eazy").error().message.find("easy"), std::string::npos);
  EXPECT_FALSE(parse_backfill("easy,sc20").has_value());
}

TEST(Backfill, SaysWhatEachPolicyKnowsOfRunTimes) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto known = [&](const char* text, const JobTable& jobs, bool clairvoyant = false) {
    return known_run_times(registry, parse_policies(registry, text)->front(), jobs, clairvoyant);
  };
  const JobTable bare = test::table_of({{.work = 1}});
  const JobTable with_requests = test::table_of({{.work = 1, .estimate = 2}});
  EXPECT_EQ(known("fifo", bare), "-");
  EXPECT_EQ(known("srtf", bare, true), "exact");
  EXPECT_EQ(known("sjf", bare), "exact");
  EXPECT_EQ(known("f1", bare), "history");
  EXPECT_EQ(known("f1", with_requests), "requested");
  EXPECT_EQ(known("f1{estimate=exact}", bare), "exact");
  EXPECT_EQ(known("fifo+easy", with_requests), "requested");
  EXPECT_EQ(known("sjf+easy", with_requests), "exact, requested");
  EXPECT_EQ(known("f1+easy", bare), "history");
  EXPECT_EQ(known("sjf+none", with_requests), "exact");
  EXPECT_EQ(known("fifo+none", bare), "-");
  EXPECT_EQ(known("agenda{heuristic=sjf}", bare), "history");
  EXPECT_EQ(known("agenda{heuristic=saf,knowledge=oracle}", bare, true), "exact");
  EXPECT_EQ(known("agenda{heuristic=saf,knowledge=none}", bare), "-");
  EXPECT_EQ(known("agenda{heuristic=saf,knowledge=user}", bare), "history");
  EXPECT_EQ(known("agenda{heuristic=saf,knowledge=user}", with_requests), "requested");
  EXPECT_EQ(known("agenda{mode=preempt,heuristic=las}", bare), "-");
  EXPECT_EQ(known("rl:builtin/philly", bare), "history");
  // What makers refuse is known to nobody.
  EXPECT_EQ(known("agenda{heuristic=3}", bare), "-");
  EXPECT_EQ(known("agenda{knowledge=much}", bare), "-");
}

TEST(Backfill, IsNamedByEachPolicyForItself) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const JobTable jobs = test::table_of(example);
  const Cluster cluster = Cluster::pool(10);
  auto specs = parse_policies(registry, "fifo, fifo+easy, srtf, sjf{estimate=exact}+conservative{depth=1e+1}");
  ASSERT_TRUE(specs.has_value()) << specs.error().to_string();
  EXPECT_EQ((*specs)[1].text, "fifo+easy");
  EXPECT_EQ((*specs)[3].text, "sjf{estimate=exact}+conservative{depth=1e+1}");
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster};
  const auto spans = [&](const PolicySpec& spec) {
    return test::run(jobs, cluster, *make_policy(registry, spec, context));
  };
  const auto alone = spans((*specs)[0]);
  EXPECT_NE(spans((*specs)[1]), alone);
  EXPECT_EQ(spans((*specs)[1]), run("fifo", "easy", jobs, cluster));

  backfill_by_default(registry, *parse_backfill("easy"), *specs);
  std::vector<std::string> texts;
  for (const PolicySpec& spec : *specs) texts.push_back(spec.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"fifo+easy", "fifo+easy", "srtf", (*specs)[3].text}));
  EXPECT_EQ(spans((*specs)[0]), spans((*specs)[1]));

  auto holders = parse_policies(registry, "portfolio{policies=[fifo]},bandit{policies=[fifo+none]}");
  backfill_by_default(registry, *parse_backfill("easy"), *holders);
  EXPECT_EQ(spans((*holders)[0]), spans((*specs)[1]));
  EXPECT_EQ(spans((*holders)[1]), alone);
  EXPECT_TRUE(default_backfill(registry, "easy", std::span(*holders).first(1)));
}

TEST(Backfill, RefusesNonsenseBehindThePlus) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto message = [&](const char* text) { return parse_policies(registry, text).error().to_string(); };
  EXPECT_EQ(message("fifo+foo"), "policy fifo+foo: behind '+' expected none|easy|conservative|sc20, not 'foo'");
  EXPECT_EQ(message("fifo+eazy"),
            "policy fifo+eazy: behind '+' expected none|easy|conservative|sc20, not 'eazy' (did you mean 'easy'?)");
  EXPECT_EQ(message("tiresias+easy"),
            "policy tiresias+easy: tiresias cannot be backfilled: only list schedulers (fifo, sjf, ...) can");
  EXPECT_EQ(message("pwr+fg"), "policy pwr+fg: behind '+' expected none|easy|conservative|sc20, not 'fg'");
  EXPECT_EQ(message("pwr+fgd2"), "policy pwr+fgd2: behind '+' expected none|easy|conservative|sc20, not 'fgd2'");
  EXPECT_NE(message("pwr+fgd+easy").find("pwr+fgd cannot be backfilled"), std::string::npos);
  EXPECT_EQ(parse_policy_list("fgd,pwr+fgd{alpha=0.5}")->back().name, "pwr+fgd");
  EXPECT_EQ(message("fifo+"), "policy list 'fifo+', character 6: expected a way of backfilling behind '+'");
  EXPECT_EQ(message("fifo+easy+easy"), "policy list 'fifo+easy+easy', character 10: expected ',' between policies");
  EXPECT_EQ(message("fifoo+easy"), "unknown policy 'fifoo' (did you mean 'fifo'?); `gpusched policies` lists all");
  EXPECT_EQ(parse_backfill("easy+easy").error().message,
            "expected one way of backfilling, such as easy{estimate=user}, not 'easy+easy'");
  // What takes a policy without its backfilling says so instead of leaving it out.
  EXPECT_EQ(registry.make(parse_policy_list("fifo+easy")->front(), {}).error().to_string(),
            "policy fifo+easy: expected a policy without backfilling here");
}

// ---- reservations are never delayed ------------------------------------------------------------------------------

struct Case {
  JobTable jobs;
  Cluster cluster;
};

// Jobs whose estimates are never exceeded, on clusters where nodes, cores and GPU sizes matter, or on a pool.
Case any_case() {
  std::vector<Row> rows;
  const bool by_node = *rc::gen::arbitrary<bool>();
  std::int64_t submit = 0;
  const auto drawn = *rc::gen::container<std::vector<std::tuple<int, int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 8), rc::gen::inRange(1, 40), rc::gen::inRange(1, 9), rc::gen::inRange(0, 30)));
  for (const auto& [pause, work, size, slack] : drawn) {
    submit += pause;
    Row row{.submit = submit, .work = work, .gpus = static_cast<std::uint32_t>(size)};
    row.estimate = work + (slack > 20 ? slack : 0);
    if (by_node && size <= 4) {
      row.shape = {
          .tasks = 1, .gpu_milli_per_task = size * whole_gpu, .cpu_milli_per_task = std::int64_t{slack % 5} * 1000};
    }
    rows.push_back(row);
  }
  Cluster cluster = by_node ? Cluster::homogeneous(3, 4) : Cluster::pool(8);
  if (by_node) {
    for (Node& node : cluster.nodes) node.cpu_milli = 6000;
  }
  return {test::table_of(rows), cluster};
}

// The same on machines of more GPUs than anybody needs: cores and memory decide, by node or in a pool.
Case scarce_case() {
  Cluster cluster = *rc::gen::arbitrary<bool>() ? Cluster::homogeneous(3, 32) : Cluster::pool(64);
  for (Node& node : cluster.nodes) {
    node.cpu_milli = *rc::gen::inRange<std::int64_t>(4, 10) * 1000;
    node.memory_mib = *rc::gen::inRange<std::int64_t>(4, 10) * 128;
  }
  const auto drawn = *rc::gen::container<std::vector<std::tuple<int, int, int, int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 8), rc::gen::inRange(1, 40), rc::gen::inRange(1, 4), rc::gen::inRange(0, 30),
                     rc::gen::inRange(0, 6), rc::gen::inRange(1, 6)));
  std::vector<Row> rows;
  std::int64_t submit = 0;
  for (const auto& [pause, work, tasks, slack, cores, memory] : drawn) {
    submit += pause;
    rows.push_back({.submit = submit,
                    .work = work,
                    .shape = {.tasks = static_cast<std::uint32_t>(tasks),
                              .gpu_milli_per_task = slack % 3 * whole_gpu,
                              .cpu_milli_per_task = std::int64_t{cores} * 1000,
                              .memory_mib_per_task = std::int64_t{memory} * 128},
                    .estimate = work + (slack > 20 ? slack : 0)});
  }
  rows = test::rows_that_fit(rows, cluster);
  return {test::table_of(rows), cluster};
}

AnyDurationEstimator asked_for(const JobTable& jobs) {
  return *make_duration_estimator({.name = "requested"}, {.jobs = &jobs});
}

/// What the policy has promised so far.
class Promises {
 public:
  void note(const OracleView& view, JobId job, Time time) {
    const auto [known, fresh] = promised_.try_emplace(job, time);
    RC_ASSERT(time <= known->second);
    known->second = time;
    if (time > view.now() && view.shape(job).gpu_milli() <= view.cluster().free_gpu_milli()) ++with_enough_gpus_;
  }
  void check_kept(const Engine& engine) const {
    RC_ASSERT(engine.all_finished());
    for (const auto& [job, time] : promised_) RC_ASSERT(engine.first_start(job) <= time);
  }
  /// Promises of a later start to jobs for which there were GPUs enough.
  [[nodiscard]] int with_enough_gpus() const { return with_enough_gpus_; }

 private:
  std::map<JobId, Time> promised_;
  int with_enough_gpus_ = 0;
};

Promises run_easy(const Case& c) {
  Engine engine(c.jobs, c.cluster);
  EasyBackfill policy(fifo_order(), asked_for(c.jobs), OverrunRule::now);
  Promises promises;
  Decision decision = engine.decision();
  while (engine.advance()) {
    const OracleView view = engine.view();
    policy.decide(view, decision);
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      if (const auto time = policy.reserved(JobId{i})) promises.note(view, JobId{i}, *time);
    }
    engine.apply();
  }
  promises.check_kept(engine);
  return promises;
}

Promises run_conservative(const Case& c) {
  Engine engine(c.jobs, c.cluster);
  const auto depth = static_cast<std::uint32_t>(*rc::gen::element(2, 1000));
  ConservativeBackfill policy(fifo_order(), asked_for(c.jobs), OverrunRule::now, CapacityProfile(c.cluster, c.jobs),
                              depth);
  Promises promises;
  Decision decision = engine.decision();
  while (engine.advance()) {
    policy.decide(engine.view(), decision);
    for (const auto& [job, time] : policy.reservations()) promises.note(engine.view(), job, time);
    engine.apply();
  }
  promises.check_kept(engine);
  return promises;
}

RC_GTEST_PROP(EasyBackfill, NeverDelaysAReservation, ()) { run_easy(any_case()); }

RC_GTEST_PROP(ConservativeBackfill, NeverDelaysAReservation, ()) { run_conservative(any_case()); }

TEST(EasyBackfill, NeverDelaysAReservationThatWaitsForCoresOrMemory) {
  int bound_otherwise = 0;
  test::check_many(1000, [&] { bound_otherwise += run_easy(scarce_case()).with_enough_gpus(); });
  EXPECT_GT(bound_otherwise, 1000);
}

TEST(ConservativeBackfill, NeverDelaysAReservationThatWaitsForCoresOrMemory) {
  int bound_otherwise = 0;
  test::check_many(1000, [&] { bound_otherwise += run_conservative(scarce_case()).with_enough_gpus(); });
  EXPECT_GT(bound_otherwise, 1000);
}

// Wrong estimates may cost time, but no job is lost, and no capacity is exceeded.
RC_GTEST_PROP(Backfill, FinishesEveryJobWhateverTheEstimates, ()) {
  const Case c = any_case();
  for (const char* way : {"easy{estimate=noisy,noise_sigma=2}", "conservative{estimate=noisy,noise_sigma=2}",
                          "sc20{estimate=noisy,noise_sigma=2}", "easy{estimate=quantile}"}) {
    for (const char* policy : {"fifo", "wfp3", "saf"}) {
      auto made = make(policy, way, c.jobs, c.cluster);
      Engine engine(c.jobs, c.cluster);
      RC_ASSERT(simulate(engine, *made));
      RC_ASSERT(engine.consistent());
    }
  }
}

}  // namespace
}  // namespace gpusched
