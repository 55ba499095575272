// SPDX-License-Identifier: Apache-2.0
// Optimus, Pollux and ElasticFlow: small runs by hand, the best division by trying all, promises kept at random.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/elastic/deadline_plan.hpp"
#include "src/policies/elastic/elasticflow.hpp"
#include "src/policies/elastic/pollux.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
PolicyInfo optimus_info();
PolicyInfo pollux_info();
}  // namespace gpusched

namespace gpusched::test {
namespace {

ElasticCurve curve_of(const std::vector<double>& factors) {
  ElasticCurve curve{.min_tasks = 1, .max_tasks = static_cast<std::uint32_t>(factors.size()), .phases = {{}}};
  for (const double factor : factors) curve.phases[0].rates.push_back(static_cast<RatePpm>(factor * reference_rate));
  return curve;
}

// Jobs of family i have curve i; others are rigid.
ElasticModel model_of(const JobTable& jobs, const std::map<std::string, ElasticCurve>& curves) {
  ElasticModel model(jobs.shapes().size());
  for (const auto& [family, curve] : curves) {
    for (std::uint32_t shape = 0; shape < jobs.shapes().size(); ++shape) {
      if (jobs.shapes()[shape].tasks == 1) model.add(jobs.families().find(family), shape, curve);
    }
  }
  return model;
}

AnyPolicy made(const PolicyInfo& info, std::map<std::string, ParameterValue> values) {
  return *info.make(PolicyParameters(std::move(values)), {});
}

struct Sizes {
  Time at{};
  std::map<std::uint32_t, std::uint32_t> tasks = {};  // by job
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

/// What runs after each decision that changed it.
class SizeLog {
 public:
  void observe(const OracleView& view, std::span<const Event> events) {
    if (std::none_of(events.begin(), events.end(), [](const Event& event) { return event.kind == EventKind::start; }))
      return;
    Sizes now{.at = view.now()};
    for (const JobId job : view.running()) now.tasks[index(job)] = view.held_tasks(job);
    seen.push_back(now);
  }
  std::vector<Sizes> seen;
};

const std::map<std::string, ElasticCurve> good_curve{{"a", curve_of({1, 1.8, 2.4, 2.6})}};

// Of the two GPUs beyond one each, job 0 gains 100 - 55.6 s with the first and 13.9 s with the second; job 1 gains 17.8
// s with its first. After 10 s they have 82 and 22 s left: job 0 gains 36.4 and 11.4 s, job 1 9.8 s.
TEST(Optimus, GivesEachGpuWhereItBringsAnEndNearest) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 100, .gpus = 1, .family = "a"}, {.submit = 0, .work = 40, .gpus = 1, .family = "a"}});
  const ElasticModel model = model_of(jobs, good_curve);
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
  AnyPolicy policy = made(optimus_info(), {{"round_s", 10.0}});
  SizeLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  ASSERT_GE(log.seen.size(), 2u);
  EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 2}, {1, 2}}}));
  EXPECT_EQ(log.seen[1], (Sizes{whole_seconds(10), {{0, 3}, {1, 1}}}));
}

TEST(Optimus, GivesNobodyMoreThanThePeakOfItsCurve) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .family = "a"}});
  const ElasticModel model = model_of(jobs, {{"a", curve_of({1, 1.5, 1.2, 1.6})}});
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
  AnyPolicy policy = made(optimus_info(), {{"round_s", 600.0}});
  SizeLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.seen[0].tasks.at(0), 2u);  // one GPU more makes it slower, and it looks no further
}

// Three jobs for two GPUs: the third waits, though the first could use both.
TEST(Optimus, LetsAsManyJobsRunAsFit) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .family = "a"},
                                  {.submit = 0, .work = 100, .gpus = 1, .family = "a"},
                                  {.submit = 0, .work = 100, .gpus = 1, .family = "a"}});
  const ElasticModel model = model_of(jobs, good_curve);
  Engine engine(jobs, Cluster::homogeneous(1, 2), {}, {.elastic = &model});
  AnyPolicy policy = made(optimus_info(), {{"round_s", 60.0}});
  SizeLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 1}, {1, 1}}}));
}

// Two jobs share four GPUs evenly: the harmonic mean does not pay for the faster curve of job 0 (2, 2 gives 1/2.0 +
// 1/1.9 = 1.026; 3, 1 gives 1/2.9 + 1 = 1.345).
TEST(Pollux, MaximizesTheHarmonicMeanOfSpeedups) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 100, .gpus = 1, .family = "a"}, {.submit = 0, .work = 100, .gpus = 1, .family = "b"}});
  const ElasticModel model = model_of(jobs, {{"a", curve_of({1, 2, 2.9, 3.7})}, {"b", curve_of({1, 1.9, 2, 2.05})}});
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
  AnyPolicy policy = made(pollux_info(), {{"round_s", 60.0}, {"realloc_s", 30.0}});
  SizeLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 2}, {1, 2}}}));
}

// At 60 s a job that runs with three of four GPUs could have all of them, 10 % faster. With 30 s a change its speedup
// counts 60/90 then: it stays. When changes cost nothing it grows.
TEST(Pollux, ChangesASizeOnlyWhereThatPays) {
  const ElasticCurve curve = curve_of({1, 2, 3, 3.3});
  const ElasticModel none;
  for (const auto& [realloc_s, tasks] : std::vector<std::pair<double, std::uint32_t>>{{30, 3}, {0, 4}}) {
    const JobTable jobs = table_of({{.submit = 0, .work = 500, .gpus = 1, .family = "a"},
                                    {.submit = 0, .work = 50, .gpus = 1, .family = "rigid"}});
    const ElasticModel model = model_of(jobs, {{"a", curve}});
    Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
    AnyPolicy policy = made(pollux_info(), {{"round_s", 60.0}, {"realloc_s", realloc_s}});
    SizeLog log;
    ASSERT_TRUE(simulate(engine, policy, log));
    EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 3}, {1, 1}}}));
    EXPECT_EQ(log.seen.size(), tasks == 4 ? 2u : 1u);
  }
}

double total_cost(const std::vector<SizedJob>& jobs, const std::vector<PolluxObjective>& of,
                  const std::vector<std::uint32_t>& sizes) {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) sum += pollux_cost(jobs[i], of[i], sizes[i]);
  return sum;
}

// The least cost over all divisions of `gpus`.
double best_cost(const std::vector<SizedJob>& jobs, const std::vector<PolluxObjective>& of, std::size_t at,
                 std::int64_t gpus) {
  if (at == jobs.size()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t size = jobs[at].least; size <= jobs[at].most && size <= gpus; ++size) {
    best = std::min(best, pollux_cost(jobs[at], of[at], size) + best_cost(jobs, of, at + 1, gpus - size));
  }
  return best;
}

// Speeds that grow ever less: the ascent finds the best division of all.
RC_GTEST_PROP(Pollux, FindsTheBestDivisionUnderConcaveCurves, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<ElasticCurve> curves(count);
  std::vector<SizedJob> jobs(count);
  std::vector<PolluxObjective> of(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<int> gains = *rc::gen::container<std::vector<int>>(5, rc::gen::inRange(0, 1000));
    std::sort(gains.rbegin(), gains.rend());
    std::vector<double> factors{1};
    for (const int gain : gains) factors.push_back(factors.back() + gain / 1000.0);
    curves[i] = curve_of(factors);
    jobs[i] = {.job = JobId{static_cast<std::uint32_t>(i)},
               .curve = &curves[i],
               .milli_per_task = whole_gpu,
               .least = 1,
               .most = 6,
               .size = 1};
    of[i].fair_rate = *rc::gen::inRange(1, 5);
  }
  const auto gpus = static_cast<std::int64_t>(count) + *rc::gen::inRange(0, 12);
  maximize_speedups(jobs, of, (gpus - static_cast<std::int64_t>(count)) * whole_gpu);
  std::vector<std::uint32_t> sizes;
  std::int64_t held = 0;
  for (const SizedJob& job : jobs) {
    sizes.push_back(job.size);
    held += job.size;
  }
  RC_ASSERT(held <= gpus);
  RC_ASSERT(total_cost(jobs, of, sizes) <= best_cost(jobs, of, 0, gpus) * (1 + 1e-9));
}

const ElasticCurve doubling = curve_of({1, 1.8, 2.4, 3, 3, 3, 3, 5});

SizedJob sized(const ElasticCurve& curve) {
  return {.job = JobId{0}, .curve = &curve, .milli_per_task = whole_gpu, .least = 1, .most = curve.max_tasks};
}

TEST(DeadlinePlan, TriesDoublingsUpToThePeak) {
  EXPECT_EQ(planned_sizes(sized(doubling)), (std::vector<std::uint32_t>{1, 2, 4, 8}));
  EXPECT_EQ(planned_sizes(sized(curve_of({1, 2, 2, 1.9}))), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(planned_sizes({.least = 3, .most = 3}), (std::vector<std::uint32_t>{3}));
}

// 100 s of work: alone 100, on two GPUs 55.6, on four 33.3.
TEST(DeadlinePlan, PromisesTheFewestGpusThatAreEnough) {
  const SizedJob job = sized(doubling);
  for (const auto& [deadline_s, tasks] :
       std::vector<std::pair<std::int64_t, std::uint32_t>>{{100, 1}, {99, 2}, {56, 2}, {55, 4}, {34, 4}}) {
    DeadlinePlan plan(Time{}, 4 * whole_gpu);
    const auto promised = plan.promise(job, whole_seconds(100), whole_seconds(deadline_s));
    EXPECT_TRUE(promised.in_time);
    EXPECT_EQ(promised.tasks, tasks) << deadline_s;
    EXPECT_EQ(plan.free_now(), (4 - tasks) * whole_gpu);
  }
  DeadlinePlan plan(Time{}, 4 * whole_gpu);
  const auto late = plan.promise(job, whole_seconds(100), whole_seconds(33));
  EXPECT_FALSE(late.in_time);
  EXPECT_EQ(late.tasks, 4u);
}

// The first job holds three GPUs for 60 s; the second, with one GPU, has done 60 s of its 100 s then, and the rest
// takes 40 / 1.8 s on two.
TEST(DeadlinePlan, FillsWhatOthersLeave) {
  const SizedJob rigid{.job = JobId{0}, .milli_per_task = whole_gpu, .least = 3, .most = 3};
  DeadlinePlan plan(Time{}, 4 * whole_gpu);
  EXPECT_TRUE(plan.promise(rigid, whole_seconds(60), whole_seconds(60)).in_time);
  const auto second = plan.promise(sized(doubling), whole_seconds(100), whole_seconds(83));
  EXPECT_TRUE(second.in_time);
  EXPECT_EQ(second.level, 1u);
  EXPECT_EQ(second.tasks, 1u);
  EXPECT_EQ(plan.free_now(), 0);
}

// Both cannot end in time: the first is promised two GPUs, which leaves too few for the second. That one is not
// admitted, runs on the rest, and is late.
TEST(ElasticFlow, AdmitsWhoCanEndInTime) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .family = "a", .deadline = 60},
                                  {.submit = 0, .work = 100, .gpus = 1, .family = "a", .deadline = 40}});
  const ElasticModel model = model_of(jobs, {{"a", curve_of({1, 1.8, 2.4, 3})}});
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
  ElasticFlow policy;
  SizeLog log;
  RunLog metrics;
  ASSERT_TRUE(simulate(engine, policy, log, metrics));
  EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 2}, {1, 2}}}));
  EXPECT_TRUE(policy.admitted(JobId{0}));
  EXPECT_FALSE(policy.admitted(JobId{1}));
  EXPECT_NEAR(to_seconds(engine.end(JobId{0})), 100 / 1.8, 1e-5);
  EXPECT_DOUBLE_EQ(compute_metrics(engine, metrics).deadline_miss_rate.value(), 0.5);
}

// A job without a deadline runs on what is left, and gets the rest.
TEST(ElasticFlow, GivesTheRestToJobsWithoutDeadlines) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 1, .family = "a"},
                                  {.submit = 0, .work = 100, .gpus = 1, .family = "b", .deadline = 110}});
  const ElasticModel model = model_of(jobs, {{"a", curve_of({1, 2, 3, 4})}, {"b", curve_of({1, 1.1, 1.15, 1.2})}});
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.elastic = &model});
  ElasticFlow policy;
  SizeLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.seen[0], (Sizes{Time{}, {{0, 2}, {1, 2}}}));  // 1 and 1, then 2 for the first, then the last GPU
}

// Where changing a size costs nothing and nodes do not fail, who was admitted ends in time.
RC_GTEST_PROP(ElasticFlow, KeepsItsPromises, ()) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 25);
  std::vector<Row> rows;
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    now += *rc::gen::inRange(0, 60);
    const std::int64_t work = *rc::gen::inRange(1, 300);
    rows.push_back({.submit = now, .work = work, .gpus = 1, .family = i % 2 == 0 ? "a" : "b"});
    if (*rc::gen::inRange(0, 4) > 0) rows.back().deadline = now + work / 3 + *rc::gen::inRange(0, 400);
    if (*rc::gen::inRange(0, 6) == 0) rows.back().gpus = 2;
  }
  const JobTable jobs = table_of(rows);
  RC_PRE(jobs.families().size() == 3);
  const ElasticModel model =
      model_of(jobs, {{"a", curve_of({1, 1.8, 2.4, 3})}, {"b", curve_of({1, 1.5, 1.4, 1.6, 1, 1, 1, 3})}});
  Engine engine(jobs, Cluster::pool(8), {}, {.elastic = &model});
  ElasticFlow policy;
  RC_ASSERT(simulate(engine, policy));
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (policy.admitted(JobId{i})) RC_ASSERT(engine.end(JobId{i}) <= jobs.deadline(JobId{i}));
  }
}

}  // namespace
}  // namespace gpusched::test
