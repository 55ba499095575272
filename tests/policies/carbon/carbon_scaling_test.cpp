// SPDX-License-Identifier: Apache-2.0
// The policy `carbonscaler`; tests/differential compares it with its definition on full clusters.
#include "src/policies/carbon/carbon_scaling.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

constexpr Time slot = whole_seconds(3600);
const std::string known = "forecast=perfect,estimate=exact";

Time hours(std::int64_t h) { return whole_seconds(3600 * h); }

Signal hourly(const std::vector<std::int64_t>& values) {
  std::vector<Signal::Step> steps;
  for (std::size_t h = 0; h < values.size(); ++h) {
    steps.push_back({hours(static_cast<std::int64_t>(h)), values[h] * 1'000'000});
  }
  return Signal(std::move(steps));
}

PowerModel emitting(Signal signal) {
  PowerModel model;
  model.places = {{.carbon_g_per_kwh = std::move(signal), .usd_per_mwh = {}}};
  return model;
}

Result<AnyPolicy> scaler(const std::string& parameters, const JobTable& jobs, const PowerModel* power) {
  const Cluster cluster = Cluster::pool(64);
  const auto specs = parse_policy_list("carbonscaler{" + parameters + "}");
  return registry().make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = 5, .power = power});
}

std::string refusal_of(const std::string& parameters, const JobTable& jobs, const PowerModel* power) {
  const auto made = scaler(parameters, jobs, power);
  return made ? std::string() : made.error().to_string();
}

/// Jobs that ask for one GPU have this curve.
ElasticModel speeds(const JobTable& jobs, const std::vector<double>& factors) {
  ElasticCurve curve{.min_tasks = 1, .max_tasks = static_cast<std::uint32_t>(factors.size()), .phases = {{}}};
  for (const double factor : factors) curve.phases[0].rates.push_back(static_cast<RatePpm>(factor * reference_rate));
  ElasticModel model(jobs.shapes().size());
  for (std::uint32_t shape = 0; shape < jobs.shapes().size(); ++shape) {
    if (jobs.shapes()[shape].tasks == 1) model.add(0, shape, curve);
  }
  return model;
}

/// From when on a job has so many tasks, by job.
struct SizeChange {
  std::uint32_t job = 0;
  Time at{};
  std::uint32_t tasks = 0;
  friend bool operator==(const SizeChange&, const SizeChange&) = default;
  friend std::ostream& operator<<(std::ostream& out, const SizeChange& change) {
    return out << "job " << change.job << " at " << to_seconds(change.at) << ": " << change.tasks;
  }
};

class SizeChanges {
 public:
  void observe(const OracleView& view, std::span<const Event>) {
    held_.resize(view.job_count());
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      const std::uint32_t tasks = view.phase(JobId{i}) == JobPhase::running ? view.held_tasks(JobId{i}) : 0;
      if (tasks != held_[i]) seen.push_back({i, view.now(), tasks});
      held_[i] = tasks;
    }
  }
  std::vector<SizeChange> seen;

 private:
  std::vector<std::uint32_t> held_;
};

struct Outcome {
  std::vector<SizeChange> changes;
  std::vector<Time> ends;
};

Outcome run_scaler(const std::string& parameters, const JobTable& jobs, const Cluster& cluster, const PowerModel& power,
                   const ElasticModel& model, const EngineOptions& options = {}) {
  auto policy = scaler(parameters, jobs, &power);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().to_string());
  Engine engine(jobs, cluster, options, {.elastic = &model});
  SizeChanges log;
  EXPECT_TRUE(simulate(engine, *policy, log));
  Outcome outcome{.changes = log.seen, .ends = {}};
  for (std::uint32_t i = 0; i < jobs.size(); ++i) outcome.ends.push_back(engine.end(JobId{i}));
  return outcome;
}

// Grams, each task drawing a kilowatt.
double emitted(const std::vector<SizeChange>& changes, const Signal& signal) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    sum += changes[i].tasks * static_cast<double>(signal.integral(changes[i].at, changes[i + 1].at)) / 3600e12;
  }
  return sum;
}

using Changes = std::vector<SizeChange>;

// 4 hours until 6 h, at 10, 1, 4, 2, 8, 3 g: first tasks are worth 1 / intensity, second ones 0.5 / intensity. By
// worth: hour 1 first and second (1 and 0.5), hour 3 first (of equals the second of hour 1 comes first), hour 5 (1/3),
// hour 2 (1/4), and hour 3 second (1/4, the later): 1.5 + 1 + 1 + 1 = 4.5 is enough before that.
TEST(CarbonScaling, SizesOneJobByHand) {
  const PowerModel power = emitting(hourly({10, 1, 4, 2, 8, 3, 9}));
  const JobTable jobs = table_of({{.submit = 0, .work = 4 * 3600, .estimate = 4 * 3600}});
  const ElasticModel model = speeds(jobs, {1, 1.5});
  const Outcome outcome = run_scaler(known + ",wait_h=2", jobs, Cluster::pool(4), power, model);
  EXPECT_EQ(outcome.changes, (Changes{{0, hours(1), 2},
                                      {0, hours(2), 1},
                                      {0, hours(4), 0},
                                      {0, hours(5), 1},
                                      {0, whole_seconds(5 * 3600 + 1800), 0}}));
}

// A rigid job of two GPUs runs in the cheapest of four slots and is suspended between; the restart of 10 min is work of
// the last.
TEST(CarbonScaling, SuspendsRigidJobs) {
  const PowerModel power = emitting(hourly({5, 1, 4, 2, 8, 9}));
  const JobTable jobs = table_of({{.submit = 0, .work = 2 * 3600 - 1200, .gpus = 2}});
  const Outcome outcome = run_scaler(known + ",short_wait_h=2.5", jobs, Cluster::pool(4), power, {},
                                     {.preemption = {.restart = whole_seconds(600)}});
  EXPECT_EQ(outcome.changes,
            (Changes{{0, hours(1), 2}, {0, hours(2), 0}, {0, hours(3), 2}, {0, hours(4) - whole_seconds(600), 0}}));
}

// Without slack an hour's work has one slot; with less than that, it runs at once where it is fastest.
TEST(CarbonScaling, RunsWhoIsLateAsFastAsItCan) {
  const PowerModel power = emitting(hourly({9, 1, 1, 1}));
  const JobTable jobs = table_of({{.submit = 0, .work = 3600, .deadline = 3600},
                                  {.submit = 0, .work = 3600, .deadline = 1800},
                                  {.submit = 0, .work = 3600, .deadline = 900}});
  const ElasticModel model = speeds(jobs, {1, 2, 3, 2.5});
  const Outcome outcome = run_scaler(known + ",deadline=trace", jobs, Cluster::pool(8), power, model);
  EXPECT_EQ(outcome.changes, (Changes{{0, Time{}, 1},
                                      {1, Time{}, 2},
                                      {2, Time{}, 3},
                                      {2, whole_seconds(1200), 0},
                                      {1, whole_seconds(1800), 0},
                                      {0, hours(1), 0}}));
}

// Both want four GPUs in hours 0 and 1. Of four GPUs the earlier deadline has them; the other gets one that is free, is
// planned anew when its slot ends, and has four as soon as they are free then.
TEST(CarbonScaling, GivesWhatIsFreeByDeadline) {
  const PowerModel power = emitting(hourly({1, 1, 1, 9, 9, 9, 9, 9, 9}));
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 8 * 3600, .deadline = 9 * 3600}, {.submit = 0, .work = 4 * 3600, .deadline = 8 * 3600}});
  const ElasticModel model = speeds(jobs, {1, 2, 3, 4});
  const Outcome outcome = run_scaler(known + ",deadline=trace", jobs, Cluster::pool(5), power, model);
  EXPECT_EQ(
      outcome.changes,
      (Changes{
          {0, Time{}, 1}, {1, Time{}, 4}, {1, hours(1), 0}, {0, hours(1), 4}, {0, hours(2), 3}, {0, hours(3), 0}}));
}

// Alone on a large cluster a job has the sizes of carbon_scaler_plan(), slot by slot, whatever lies behind the decimal
// point of its length.
RC_GTEST_PROP(CarbonScaling, FollowsThePlanOfOneJobAlone, ()) {
  std::vector<std::int64_t> values;
  for (int h = 0; h < 60; ++h) values.push_back(*rc::gen::inRange(1, 500));
  const PowerModel power = emitting(hourly(values));
  std::vector<double> factors{1};
  std::vector<ReplicaPoint> points{{1, 1}};
  for (int more = *rc::gen::inRange(0, 6); more > 0; --more) {
    factors.push_back(factors.back() + *rc::gen::inRange(-2, 11) / 10.0);
    const auto rate = static_cast<double>(static_cast<RatePpm>(factors.back() * reference_rate)) / reference_rate;
    points.push_back({static_cast<double>(factors.size()), rate});
  }
  const std::int64_t submit = *rc::gen::inRange(0, 5000), work = *rc::gen::inRange(60, 20 * 3600);
  const JobTable jobs = table_of({{.submit = submit, .work = work}});
  const ElasticModel model = speeds(jobs, factors);
  const int wait_h = *rc::gen::inRange(1, 24);
  const std::string wait = ",wait_h=" + std::to_string(wait_h) + ",short_h=0";
  const Outcome outcome = run_scaler(known + wait, jobs, Cluster::pool(16), power, model);

  const Time begin = whole_seconds(submit), end = begin + whole_seconds(work) + hours(wait_h);
  const Forecast perfect{.kind = Forecast::Kind::perfect};
  const double work_h = (static_cast<double>(work) - 1e-3) / 3600;
  const ReplicaPlan plan = carbon_scaler_plan(
      expected_slots(power.places[0].carbon_g_per_kwh, perfect, begin, end, slot), points, work_h, slot);
  RC_ASSERT(plan.in_time);
  Changes expected;
  std::uint32_t held = 0;
  double left_s = static_cast<double>(work);
  for (std::size_t i = 0; i < plan.replicas.size() && left_s > 2e-3; ++i) {
    const std::uint32_t tasks = plan.replicas[i];
    if (tasks != held) expected.push_back({0, begin + hours(static_cast<std::int64_t>(i)), tasks});
    if (tasks > 0) left_s -= 3600 * points[tasks - 1].throughput;
    held = tasks;
  }
  expected.push_back({0, outcome.ends[0], 0});
  RC_LOG() << testing::PrintToString(outcome.changes) << testing::PrintToString(expected);
  RC_ASSERT(outcome.changes == expected);
  RC_ASSERT(outcome.ends[0] <= end);
}

// Where the replicas of a plan do just the work, or the job is rigid, it emits no more than without waiting.
RC_GTEST_PROP(CarbonScaling, EmitsNoMoreThanWithoutWaiting, ()) {
  std::vector<std::int64_t> values;
  for (int h = 0; h < 60; ++h) values.push_back(*rc::gen::inRange(1, 500));
  const PowerModel power = emitting(hourly(values));
  const bool rigid = *rc::gen::arbitrary<bool>();
  const std::int64_t work = rigid ? *rc::gen::inRange(1, 20 * 3600) : 3600 * *rc::gen::inRange(1, 20);
  const JobTable jobs = table_of({{.submit = 0, .work = work}});
  std::vector<double> factors{1};
  for (int most = rigid ? 1 : *rc::gen::inRange(1, 6); most > 1; --most) factors.push_back(factors.back() + 1);
  const Outcome outcome = run_scaler(known + ",short_h=0,wait_h=" + std::to_string(*rc::gen::inRange(0, 24)), jobs,
                                     Cluster::pool(16), power, speeds(jobs, factors));
  const Signal& signal = power.places[0].carbon_g_per_kwh;
  const double at_once = emitted({{0, Time{}, 1}, {0, whole_seconds(work), 0}}, signal);
  RC_LOG() << testing::PrintToString(outcome.changes) << emitted(outcome.changes, signal) << " " << at_once;
  RC_ASSERT(emitted(outcome.changes, signal) <= at_once * (1 + 1e-9));
}

TEST(CarbonScaling, IsMarkedWhenItKnowsTheFuture) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .estimate = 1}});
  const PowerModel& power = signals_of_tests();
  const auto marked = [&](const std::string& text) { return scaler(text, jobs, &power)->clairvoyant(); };
  EXPECT_FALSE(marked(""));
  EXPECT_TRUE(marked("forecast=perfect"));
  EXPECT_TRUE(marked("forecast=noisy"));
  EXPECT_TRUE(marked("estimate=exact"));
}

TEST(CarbonScaling, RefusesWhatItCannotRead) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .estimate = 1}});
  const PowerModel carbon_alone = emitting(Signal(300)), far_off = emitting(Signal(2e6));
  EXPECT_EQ(refusal_of("", jobs, nullptr), "policy carbonscaler reads a signal; expected --power FILE with \"carbon\"");
  EXPECT_EQ(refusal_of("figure=price", jobs, &carbon_alone),
            "policy carbonscaler reads a signal; expected --power FILE with \"usd_per_mwh\"");
  EXPECT_EQ(refusal_of("", jobs, &far_off), "policy carbonscaler: expected a carbon below 1000000 in --power");
  EXPECT_EQ(refusal_of("deadline=trace", jobs, &carbon_alone),
            "policy carbonscaler: the trace has no deadlines (column deadline)");
}

// A user asked for one hour, and the job takes three: it runs on when that is over.
TEST(CarbonScaling, LetsWhoTakesLongerRunOn) {
  const PowerModel power = emitting(hourly({9, 9, 1, 9, 9, 9, 1, 1, 1, 1}));
  const JobTable jobs = table_of({{.submit = 0, .work = 3 * 3600, .estimate = 3600}});
  const Outcome outcome =
      run_scaler("forecast=perfect,estimate=user,short_wait_h=8", jobs, Cluster::pool(4), power, speeds(jobs, {1, 2}));
  EXPECT_EQ(outcome.changes, (Changes{{0, hours(2), 1}, {0, hours(5), 0}}));
}

}  // namespace
}  // namespace gpusched::test
