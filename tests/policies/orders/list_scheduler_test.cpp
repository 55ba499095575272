// SPDX-License-Identifier: Apache-2.0
// Every policy that is an order of starting, on runs worked out by hand.
#include "src/policies/orders/list_scheduler.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/policies/policy_support.hpp"

namespace gpusched {
namespace {

using test::make;
using test::Row;
using test::run_policy;
using test::Span;

std::vector<Row> asking_for_what_they_run(std::vector<Row> rows) {
  for (Row& row : rows) row.estimate = row.work;
  return rows;
}

// Ids in order of first start.
std::vector<int> start_order(const std::string& policy, const JobTable& jobs, const Cluster& cluster) {
  const std::vector<Span> spans = run_policy(policy, jobs, cluster);
  std::vector<int> order(spans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return spans[static_cast<std::size_t>(a)].start < spans[static_cast<std::size_t>(b)].start;
  });
  return order;
}

// Job 0 holds all 8 GPUs until 100 s; the others wait for it and, wanting more than half, then run one after the other.
const std::vector<Row> contended{{.submit = 0, .work = 100, .gpus = 8},
                                 {.submit = 10, .work = 50, .gpus = 5},
                                 {.submit = 11, .work = 20, .gpus = 8},
                                 {.submit = 12, .work = 30, .gpus = 6},
                                 {.submit = 90, .work = 40, .gpus = 7}};

TEST(ListScheduler, OrdersByEachScore) {
  const JobTable jobs = test::table_of(asking_for_what_they_run(contended));
  const Cluster cluster = Cluster::homogeneous(1, 8);
  using Order = std::vector<int>;
  EXPECT_EQ(start_order("fifo", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(start_order("sjf", jobs, cluster), (Order{0, 2, 3, 4, 1}));
  EXPECT_EQ(start_order("ljf", jobs, cluster), (Order{0, 1, 4, 3, 2}));
  EXPECT_EQ(start_order("lpjf", jobs, cluster), (Order{0, 2, 4, 3, 1}));
  EXPECT_EQ(start_order("saf", jobs, cluster), (Order{0, 2, 3, 1, 4}));  // areas 250, 160, 180, 280
  // ln(50 x 5), ln(20 x 8), ln(30 x 6), ln(40 x 7) + 0.1 x submission / h: areas decide.
  EXPECT_EQ(start_order("weighted", jobs, cluster), (Order{0, 2, 3, 1, 4}));
  EXPECT_EQ(start_order("weighted{run_time=0,gpus=0,wait=1}", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(start_order("weighted{run_time=1,gpus=0,wait=0}", jobs, cluster), (Order{0, 2, 3, 4, 1}));
  EXPECT_EQ(start_order("weighted{run_time=-1,gpus=0,wait=0}", jobs, cluster), (Order{0, 1, 4, 3, 2}));
  // ln(r) + 100 h: job 4 comes 78 s after job 3, 2.17, and is longer; jobs 1 to 3 are 1 s or 0.03 apart.
  EXPECT_EQ(start_order("weighted{gpus=0,wait=100}", jobs, cluster), (Order{0, 2, 3, 1, 4}));
  // 870 log10(s) parts the jobs: 870, 906, 939, 1700; the first term is below 14.
  EXPECT_EQ(start_order("f1", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(start_order("f2", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(start_order("f3", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(start_order("f4", jobs, cluster), (Order{0, 1, 2, 3, 4}));
  // At 100 s (w/r)^3 n is 29, 705, 151, 0.11. From 120 s: 53, 162, 2.95; from 150 s: 110, 23.6.
  EXPECT_EQ(start_order("wfp3", jobs, cluster), (Order{0, 2, 3, 1, 4}));
  // w / (log2(n) r) at 100 s is .78, 1.48, 1.13, .09.
  EXPECT_EQ(start_order("unicep", jobs, cluster), (Order{0, 2, 3, 1, 4}));
  // ((1 + s)/r)^3 n, smallest first: .053, 1.73, .49, 82.
  EXPECT_EQ(start_order("wfp3@sc20", jobs, cluster), (Order{0, 1, 3, 2, 4}));
  // (1 + s) / (log2(n) r), smallest first: .095, .2, .168, .81.
  EXPECT_EQ(start_order("unicep@sc20", jobs, cluster), (Order{0, 1, 3, 2, 4}));
}

// By run time on the reference device job 1 is the shorter; on the fastest GPUs that each may use, job 2 is.
TEST(ListScheduler, MayCountRunTimesAtTheBestSpeedOfTheJob) {
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.gpu_types = {"fast", "slow"};
  cluster.nodes[1].gpu_type = 1;
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 2, .family = "resnet"},
                                        {.submit = 1, .work = 30, .gpus = 2, .gpu_spec = "", .family = "bert"},
                                        {.submit = 2, .work = 40, .gpus = 2, .family = "resnet"},
                                        {.submit = 3, .work = 50, .gpus = 1, .gpu_spec = "slow", .family = "resnet"}});
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  runtime.set(jobs.families().find("resnet"), 0, 2 * reference_rate);
  const auto starts = [&](const std::string& policy) {
    std::vector<double> seconds;
    for (const Span& span : test::run(jobs, cluster, *make(policy, jobs, cluster), {}, &runtime)) {
      seconds.push_back(span.start);
    }
    return seconds;
  };
  // Gangs of 2 span both types and run at the reference rate.
  EXPECT_EQ(starts("sjf"), (std::vector<double>{0, 100, 130, 170}));
  EXPECT_EQ(starts("sjf{best_speed=true}"), (std::vector<double>{0, 140, 100, 170}));  // 30, 20 and 50
}

TEST(ListScheduler, RegressionScoresWeighSizeAgainstSubmission) {
  // Submissions one second apart at about 10^6 s: the logarithm moves by 4.3e-7, so that the size decides F1 and F2;
  // F3 weighs it with 6,860,000 (2.98) and F4 with 530,000 (0.23), against sizes of r n and r sqrt(n).
  const JobTable jobs = test::table_of(asking_for_what_they_run({{.submit = 1'000'000, .work = 100, .gpus = 4},
                                                                 {.submit = 1'000'001, .work = 10, .gpus = 4},
                                                                 {.submit = 1'000'002, .work = 9, .gpus = 4},
                                                                 {.submit = 1'000'003, .work = 1, .gpus = 1}}));
  const Cluster cluster = Cluster::homogeneous(1, 4);
  for (const char* policy : {"f1", "f2", "f3", "f4"}) {
    EXPECT_EQ(start_order(policy, jobs, cluster), (std::vector<int>{0, 3, 2, 1})) << policy;
  }
  // r n = 2 against 4 and 1 x 2.98 of submission: the earlier, longer job leads under F3, the shorter under F4.
  const JobTable close = test::table_of(asking_for_what_they_run({{.submit = 1'000'000, .work = 100, .gpus = 1},
                                                                  {.submit = 1'000'001, .work = 4, .gpus = 1},
                                                                  {.submit = 1'000'002, .work = 2, .gpus = 1}}));
  EXPECT_EQ(start_order("f3", close, Cluster::pool(1)), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(start_order("f4", close, Cluster::pool(1)), (std::vector<int>{0, 2, 1}));
}

TEST(ListScheduler, BlocksOrSkips) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 6},
                                        {.submit = 1, .work = 10, .gpus = 4},
                                        {.submit = 2, .work = 20, .gpus = 2}});
  const Cluster cluster = Cluster::homogeneous(1, 8);
  EXPECT_EQ(run_policy("sjf", jobs, cluster), (std::vector<Span>{{0, 100}, {100, 110}, {100, 120}}));
  EXPECT_EQ(run_policy("sjf{skip=true}", jobs, cluster), (std::vector<Span>{{0, 100}, {100, 110}, {2, 22}}));
}

TEST(ListScheduler, SchedulesEachVirtualClusterByItself) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a"},
                                        {.submit = 1, .work = 10, .gpus = 4, .vc = "a"},
                                        {.submit = 2, .work = 20, .gpus = 4, .vc = "b"}});
  Cluster cluster = Cluster::homogeneous(2, 4);
  cluster.vcs = {{"a", 4 * whole_gpu}, {"b", 4 * whole_gpu}};
  EXPECT_EQ(run_policy("saf", jobs, cluster), (std::vector<Span>{{0, 100}, {100, 110}, {2, 22}}));
}

TEST(ListScheduler, QssfUsesHistoryOfUserAndSize) {
  // By 110 s ann's one-GPU jobs are known to take 100 s and bob's 10 s. Job 3 (ann) truly is the shorter one.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 1, .user = "ann"},
                                        {.submit = 100, .work = 10, .gpus = 1, .user = "bob"},
                                        {.submit = 110, .work = 50, .gpus = 1, .user = "cat"},
                                        {.submit = 120, .work = 1, .gpus = 1, .user = "ann"},
                                        {.submit = 121, .work = 30, .gpus = 1, .user = "bob"}});
  const std::vector<Span> learned{{0, 100}, {100, 110}, {110, 160}, {190, 191}, {160, 190}};
  EXPECT_EQ(run_policy("qssf", jobs, Cluster::pool(1)), learned);
  EXPECT_EQ(run_policy("qssf{estimate=user-gpu-mean}", jobs, Cluster::pool(1)), learned);
  EXPECT_EQ(run_policy("qssf{estimate=exact}", jobs, Cluster::pool(1)),
            (std::vector<Span>{{0, 100}, {100, 110}, {110, 160}, {160, 161}, {161, 191}}));
}

TEST(ListScheduler, QssfNeedsNoUsers) {
  // Nobody is named. By 110 s two GPUs are known to take 100 s and one 10 s; job 3 truly is the shorter one.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 2},
                                        {.submit = 100, .work = 10, .gpus = 1},
                                        {.submit = 105, .work = 100, .gpus = 2},
                                        {.submit = 120, .work = 1, .gpus = 2},
                                        {.submit = 121, .work = 30, .gpus = 1}});
  EXPECT_EQ(run_policy("qssf", jobs, Cluster::pool(2)),
            (std::vector<Span>{{0, 100}, {100, 110}, {110, 210}, {240, 241}, {210, 240}}));
}

TEST(ListScheduler, EarliestDeadlineFirst) {
  JobTableBuilder builder;
  const auto add = [&](int submit, Time deadline) {
    builder.add({.submit = whole_seconds(submit),
                 .work = whole_seconds(10),
                 .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu},
                 .deadline = deadline});
  };
  add(0, Time::max());
  add(1, Time::max());
  add(2, whole_seconds(90));
  add(3, whole_seconds(50));
  const JobTable jobs = *std::move(builder).build();
  EXPECT_EQ(run_policy("edf", jobs, Cluster::pool(1)), (std::vector<Span>{{0, 10}, {30, 40}, {20, 30}, {10, 20}}));
}

TEST(ListScheduler, NamesWhatIsMissing) {
  const JobTable jobs = test::table_of(contended);
  const Cluster cluster = Cluster::pool(8);
  EXPECT_EQ(make("edf", jobs, cluster).error().to_string(), "policy edf: the trace has no deadlines (column deadline)");
  EXPECT_EQ(make("qssf{estimate=user-gpu-mean}", jobs, cluster).error().to_string(),
            "policy qssf, estimator user-gpu-mean: the trace has no column user");
  EXPECT_EQ(make("sjf{estimate=user}", jobs, cluster).error().to_string(),
            "policy sjf, estimator user: the trace has no column estimate");
  EXPECT_FALSE(make("sjf{estimate=guess}", jobs, cluster).has_value());
  EXPECT_FALSE(make("sjf{estimate=noisy,noise_sigma=-1}", jobs, cluster).has_value());
  EXPECT_FALSE(make("saf{speed=2}", jobs, cluster).has_value());
}

TEST(ListScheduler, SaysWhetherItKnowsTheFuture) {
  std::vector<Row> rows = contended;
  for (Row& row : rows) row.estimate = 60;
  const JobTable jobs = test::table_of(rows);
  const Cluster cluster = Cluster::pool(8);
  EXPECT_TRUE(make("sjf", jobs, cluster)->clairvoyant());
  EXPECT_FALSE(make("sjf{estimate=user}", jobs, cluster)->clairvoyant());
  EXPECT_FALSE(make("saf", jobs, cluster)->clairvoyant());
  EXPECT_FALSE(make("fifo", jobs, cluster)->clairvoyant());
}

// The order by growth is the order by score, at any instant, for the policies whose scores change.
RC_GTEST_PROP(ListScheduler, GrowthOrdersAsTheScoreDoes, ()) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const JobTable none;
  const JobFacts a{.submit_s = 0,
                   .requested_s = static_cast<double>(*rc::gen::inRange(1, 1000)),
                   .processors = static_cast<double>(*rc::gen::inRange(1, 300)),
                   .wait_s = static_cast<double>(*rc::gen::inRange(0, 100000))};
  const JobFacts b{.submit_s = 0,
                   .requested_s = static_cast<double>(*rc::gen::inRange(1, 1000)),
                   .processors = static_cast<double>(*rc::gen::inRange(1, 300)),
                   .wait_s = static_cast<double>(*rc::gen::inRange(0, 100000))};
  for (const char* policy : {"wfp3", "unicep"}) {
    const auto order = registry.make_order(parse_policy_list(policy)->front(), {.jobs = &none});
    const double score_a = order->score(a);
    const double score_b = order->score(b);
    if (std::abs(score_a - score_b) <= 1e-9 * std::abs(score_a)) continue;  // within rounding
    RC_ASSERT((score_a < score_b) == (order->growth(a) * a.wait_s > order->growth(b) * b.wait_s));
  }
}

}  // namespace
}  // namespace gpusched
