// SPDX-License-Identifier: Apache-2.0
// Elastic jobs in the engine, worked out by hand and at random.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "gpusched/watch/metrics.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

// GPU-microseconds.
std::int64_t gpu_us(gpusched::detail::WideInt held) { return static_cast<std::int64_t>(held / whole_gpu); }

constexpr RatePpm ppm(double factor) { return static_cast<RatePpm>(factor * reference_rate); }

// 1 to 4 tasks; relative to two: a half, one, one and a half, one again.
ElasticCurve falling_curve() {
  return {.min_tasks = 1, .max_tasks = 4, .phases = {{1, {ppm(0.5), ppm(1), ppm(1.5), ppm(1)}}}};
}

// All jobs of shape 0 and no family have that curve.
ElasticModel model_of(const JobTable& jobs, ElasticCurve curve) {
  ElasticModel model(jobs.shapes().size());
  model.add(0, 0, std::move(curve));
  return model;
}

/// An engine whose decisions a test makes.
struct Stage {
  JobTable jobs;
  ElasticModel model;
  Engine engine;
  RunLog log;

  Stage(const std::vector<Row>& rows, ElasticCurve curve, const EngineOptions& options = {}, std::uint32_t gpus = 4)
      : jobs(table_of(rows)),
        model(model_of(jobs, std::move(curve))),
        engine(jobs, Cluster::homogeneous(1, gpus), options, {.elastic = &model}) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void advance(std::int64_t to_s) {
    ASSERT_TRUE(engine.advance_to(whole_seconds(to_s)) || engine.view().now() == whole_seconds(to_s));
    log.observe(engine.view(), engine.events());
  }
  template <class Command>
  void decide(Command command) {
    Decision decision = engine.decision();
    command(decision);
    engine.apply();
    EXPECT_TRUE(engine.consistent());
    log.observe(engine.view(), engine.events());
  }
};

constexpr JobId first{0};

TEST(ElasticJob, RunsAsFastAsItsSizeSays) {
  for (const auto& [size, seconds] :
       std::vector<std::pair<std::uint32_t, double>>{{1, 200}, {2, 100}, {3, 66.666667}, {4, 100}}) {
    const std::uint32_t tasks = size;  // a lambda of clang 14 cannot take a structured binding
    Stage run({{.submit = 0, .work = 100, .gpus = 2}}, falling_curve());
    run.advance(0);
    run.decide([&](Decision& d) { EXPECT_EQ(d.start_with(first, tasks), Verdict::ok); });
    EXPECT_EQ(run.engine.view().held_tasks(first), tasks);
    EXPECT_EQ(run.engine.view().cluster().free_gpu_milli(), (4 - tasks) * whole_gpu);
    run.advance(300);
    EXPECT_NEAR(to_seconds(run.engine.end(first)), seconds, 1e-5);
    const Metrics m = compute_metrics(run.engine, run.log);
    EXPECT_NEAR(m.gpu_allocation, tasks / 4.0, 1e-6);
    EXPECT_NEAR(m.gpu_utilization, tasks / 4.0, 1e-6);
  }
}

TEST(ElasticJob, GetsWhatItAsksForFromAPlainStart) {
  Stage run({{.submit = 0, .work = 100, .gpus = 2}}, falling_curve());
  run.advance(0);
  run.decide([&](Decision& d) { EXPECT_EQ(d.start_with(first, 3), Verdict::ok); });
  run.advance(20);
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.preempt(first), Verdict::ok);
    EXPECT_EQ(d.start(first), Verdict::ok);
  });
  EXPECT_EQ(run.engine.view().held_tasks(first), 2u);
  run.advance(300);
  EXPECT_EQ(run.engine.end(first), whole_seconds(20 + 70));
  EXPECT_EQ(run.engine.view().attained_gpu_us(first), (20 * 3 + 70 * 2) * microseconds_per_second);
  EXPECT_EQ(run.engine.preemptions(first), 1u);
}

TEST(ElasticJob, RefusesSizesThatItCannotRunWith) {
  Stage run({{.submit = 0, .work = 100, .gpus = 2}, {.submit = 0, .work = 10, .gpus = 1}}, falling_curve(), {}, 3);
  run.advance(0);
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.start_with(first, 0), Verdict::wrong_size);
    EXPECT_EQ(d.start_with(first, 5), Verdict::wrong_size);
    EXPECT_EQ(d.start_with(first, 4), Verdict::does_not_fit);
    EXPECT_EQ(d.start_with(JobId{1}, 2), Verdict::wrong_size);  // it is rigid
    EXPECT_EQ(d.start_with(JobId{1}, 1), Verdict::ok);
    EXPECT_EQ(d.start_with(first, 2), Verdict::ok);
    EXPECT_EQ(d.start_with(first, 1), Verdict::wrong_phase);
  });
  EXPECT_EQ(run.engine.view().held_tasks(first), 2u);
}

// What the size was before is still known when no other is found.
TEST(ElasticJob, IsRestoredAtItsSize) {
  Stage run({{.submit = 0, .work = 100, .gpus = 2}, {.submit = 0, .work = 10, .gpus = 1}}, falling_curve());
  run.advance(0);
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.start_with(first, 3), Verdict::ok);
    EXPECT_EQ(d.start(JobId{1}), Verdict::ok);
  });
  run.advance(5);
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.preempt(first), Verdict::ok);
    EXPECT_EQ(d.start_with(first, 4), Verdict::does_not_fit);
    EXPECT_EQ(d.restore(first), Verdict::ok);
  });
  EXPECT_EQ(run.engine.view().held_tasks(first), 3u);
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.preempt(first), Verdict::ok);
    EXPECT_EQ(d.start_with(first, 1), Verdict::ok);
    EXPECT_EQ(d.preempt(first), Verdict::ok);  // takes the start back
    EXPECT_EQ(d.start_with(first, 3), Verdict::ok);
  });
  EXPECT_EQ(run.engine.view().held_tasks(first), 3u);
  EXPECT_EQ(run.engine.preemptions(first), 1u);
}

// A restart takes 6 s: the GPUs of the new size stand by for it.
TEST(ElasticJob, PaysForAChangeOfSize) {
  EngineOptions options;
  options.preemption.restart = whole_seconds(6);
  Stage run({{.submit = 0, .work = 100, .gpus = 2}}, falling_curve(), options);
  run.advance(0);
  run.decide([&](Decision& d) { EXPECT_EQ(d.start_with(first, 1), Verdict::ok); });
  run.advance(40);  // 20 s of work done
  run.decide([&](Decision& d) {
    EXPECT_EQ(d.preempt(first), Verdict::ok);
    EXPECT_EQ(d.start_with(first, 4), Verdict::ok);
  });
  run.advance(300);
  EXPECT_EQ(run.engine.end(first), whole_seconds(40 + 6 + 80));
  EXPECT_EQ(gpu_us(run.engine.gpu_time(first).held()), (40 + 4 * 86) * microseconds_per_second);
  EXPECT_EQ(gpu_us(run.engine.gpu_time(first).overhead), 4 * 6 * microseconds_per_second);
  const Metrics m = compute_metrics(run.engine, run.log);
  EXPECT_NEAR(m.gpu_allocation, (40 + 4 * 86) / (4 * 126.0), 1e-9);
  EXPECT_NEAR(m.gpu_utilization, (40 + 4 * 80) / (4 * 126.0), 1e-9);
  EXPECT_NEAR(m.gpu_overhead.value(), 24 / (4 * 126.0), 1e-9);
}

// Half of the work at twice the speed with four tasks, the rest at three times: 25 s and 50/3 s.
TEST(ElasticJob, ChangesItsCurveWhereAPhaseEnds) {
  const ElasticCurve curve{
      .min_tasks = 2, .max_tasks = 4, .phases = {{0.5, {ppm(1), ppm(1.5), ppm(2)}}, {1, {ppm(1), ppm(2), ppm(3)}}}};
  Stage run({{.submit = 0, .work = 100, .gpus = 2}}, curve);
  run.advance(0);
  run.decide([&](Decision& d) { EXPECT_EQ(d.start_with(first, 4), Verdict::ok); });
  run.advance(25);
  EXPECT_EQ(run.engine.view().curve_phase(first), 1u);
  run.advance(300);
  EXPECT_NEAR(to_seconds(run.engine.end(first)), 25 + 50.0 / 3, 1e-5);
  Stage plain({{.submit = 0, .work = 100, .gpus = 2}}, curve);
  plain.advance(0);
  plain.decide([&](Decision& d) { EXPECT_EQ(d.start(first), Verdict::ok); });
  plain.advance(300);
  EXPECT_EQ(plain.engine.end(first), whole_seconds(100));
}

// Nothing is kept: the job begins again in its first phase, and what was done is lost at the size that did it.
TEST(ElasticJob, ThatIsKilledGoesBackToAnEarlierPhase) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 2}});
  const ElasticModel model = model_of(
      jobs,
      {.min_tasks = 2, .max_tasks = 4, .phases = {{0.5, {ppm(1), ppm(1.5), ppm(2)}}, {1, {ppm(1), ppm(2), ppm(3)}}}});
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(35), NodeId{0}, false}, {whole_seconds(40), NodeId{0}, true}};
  failures.add_changes(changes);
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.failures = &failures, .elastic = &model});
  ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(decision.start_with(first, 4), Verdict::ok);
  engine.apply();
  while (engine.view().phase(first) == JobPhase::running) ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().now(), whole_seconds(35));
  EXPECT_EQ(engine.view().curve_phase(first), 1u);
  while (engine.view().now() < whole_seconds(40)) ASSERT_TRUE(engine.advance());
  EXPECT_EQ(decision.start(first), Verdict::ok);
  engine.apply();
  EXPECT_EQ(engine.view().curve_phase(first), 0u);
  while (engine.advance()) {
  }
  EXPECT_EQ(engine.end(first), whole_seconds(140));
  EXPECT_EQ(gpu_us(engine.gpu_time(first).lost), 4 * 35 * microseconds_per_second);
  EXPECT_EQ(gpu_us(engine.gpu_time(first).held()), (4 * 35 + 2 * 100) * microseconds_per_second);
}

// The work left after `span_s` with so many tasks, phase by phase.
double left_after(double span_s, double left_s, double work_s, const ElasticCurve& curve, std::uint32_t tasks) {
  for (std::uint32_t phase = 0; phase < curve.phases.size(); ++phase) {
    const double end_s = work_s * (1 - curve.phases[phase].until);
    if (left_s <= end_s) continue;
    const double rate = static_cast<double>(curve.rate(tasks, phase)) / reference_rate;
    const double done_s = std::min(left_s - end_s, rate * span_s);
    left_s -= done_s;
    span_s -= done_s / rate;
  }
  return left_s;
}

/// Draws sizes anew at every decision, at random; keeps its own account of the GPU time of every job.
class RandomSizes {
 public:
  explicit RandomSizes(std::uint64_t seed) : rng_(seed) {}

  void decide(const View& view, Decision& decision) {
    std::vector<JobId> jobs(view.running().begin(), view.running().end());
    for (const JobId job : jobs) {
      if (rng_.below(3) == 0) decision.preempt(job);
    }
    jobs.assign(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : jobs) {
      const ElasticCurve* const curve = view.curve(job);
      if (curve == nullptr) {
        decision.start(job);
      } else {
        decision.start_with(
            job, curve->min_tasks + static_cast<std::uint32_t>(rng_.below(curve->max_tasks - curve->min_tasks + 1)));
      }
    }
    if (view.running().empty() && view.pending_count() > 0) decision.wake(view.now() + whole_seconds(1));
  }

 private:
  Rng rng_;
};

// GPU time by the intervals on nodes equals the engine's account; the work done at each size adds up to the job's.
RC_GTEST_PROP(ElasticJobs, AreAccountedForAtEverySize, ()) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 12);
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    rows.push_back({.submit = static_cast<std::int64_t>(i) * *rc::gen::inRange(0, 30),
                    .work = *rc::gen::inRange(0, 200),
                    .gpus = *rc::gen::elementOf(std::vector<std::uint32_t>{2, 2, 2, 1, 3})});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
  const JobTable jobs = table_of(rows);
  const auto rate = [] { return static_cast<RatePpm>(*rc::gen::inRange(100'000, 4'000'000)); };
  ElasticModel model(jobs.shapes().size());
  const std::uint32_t asked = jobs.shapes()[0].tasks;
  ElasticCurve curve{.min_tasks = 1, .max_tasks = 5};
  const auto phases = *rc::gen::inRange<std::uint32_t>(1, 4);
  for (std::uint32_t phase = 1; phase <= phases; ++phase) {
    ElasticCurve::Phase part{.until = static_cast<double>(phase) / phases};
    for (std::uint32_t tasks = 1; tasks <= 5; ++tasks) part.rates.push_back(tasks == asked ? reference_rate : rate());
    curve.phases.push_back(part);
  }
  model.add(0, 0, curve);
  EngineOptions options;
  options.preemption.restart = whole_seconds(*rc::gen::inRange(0, 3));
  const Cluster cluster = Cluster::homogeneous(2, 4);
  Engine engine(jobs, cluster, options, {.elastic = &model});
  IntervalLog intervals;
  RunLog log;
  RandomSizes policy(*rc::gen::inRange<std::uint64_t>(0, 1000));
  Decision decision = engine.decision();
  std::vector<double> left_s;
  for (const Time work : jobs.works()) left_s.push_back(to_seconds(work));
  Time last = engine.view().now();
  std::vector<std::pair<JobId, std::uint32_t>> running;  // with its tasks
  const ElasticCurve rigid{.phases = {{1, {reference_rate}}}};
  for (int instants = 0; engine.advance() && instants < 20'000; ++instants) {
    const OracleView view = engine.view();
    for (const auto& [job, tasks] : running) {
      const ElasticCurve* const of = view.curve(job);
      double& left = left_s[index(job)];
      left = left_after(to_seconds(view.now() - last), left, to_seconds(jobs.work(job)), of == nullptr ? rigid : *of,
                        of == nullptr ? 1 : tasks);
      const bool ends_late = left == 0 && view.remaining(job) > Time{1000};
      if (options.preemption.restart == Time{}) RC_ASSERT(!ends_late);
    }
    last = view.now();
    log.observe(view, engine.events());
    intervals.observe(view, engine.events());
    policy.decide(view, decision);
    engine.apply();
    RC_ASSERT(engine.consistent());
    log.observe(view, engine.events());
    intervals.observe(view, engine.events());
    running.clear();
    for (const JobId job : view.running()) running.emplace_back(job, view.held_tasks(job));
  }
  RC_PRE(engine.all_finished());
  std::vector<std::int64_t> held(jobs.size());
  for (const Interval& interval : intervals.intervals()) {
    held[index(interval.job)] += interval.gpu_milli / whole_gpu * (interval.end - interval.start).us;
  }
  double held_gpu_s = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    RC_ASSERT(gpu_us(engine.gpu_time(JobId{i}).held()) == held[i]);
    RC_ASSERT(gpu_us(engine.gpu_time(JobId{i}).overhead) <= held[i]);
    held_gpu_s += static_cast<double>(held[i]) / microseconds_per_second;
    // Loading passes at the rate of the run that it begins: only runs without cost have the plain course.
    if (options.preemption.restart == Time{}) RC_ASSERT(left_s[i] < 1e-3);
  }
  RC_ASSERT(std::abs(RunLog::gpu_seconds(log.held()) - held_gpu_s) < 1e-3);
}

// ---- phases and checkpoints that take time ----

/// One job from start to end, in doubles: what it does next is worked out each time from where it is.
struct WrittenRun {
  double load, interval, write;                                     // seconds: of wall time, of work, of wall time
  std::vector<std::pair<double, std::vector<double>>> phases = {};  // until which share, and speeds by tasks from 1
  double work = 0;
  double left = work;                         // as the last checkpoint has it
  double useful = 0, overhead = 0, lost = 0;  // GPU-seconds
  double end = -1;

  /// Runs on `tasks` GPUs from `begin`, until `stop` at the latest. `loads`: it ran before.
  void run(double begin, double stop, std::size_t tasks, bool loads) {
    const auto gpus = static_cast<double>(tasks);
    double now = begin, at_risk = 0, done = 0;  // of work, in this run
    const auto pass = [&](double seconds, double& account) {
      const double part = std::min(seconds, stop - now);
      now += part;
      account += part * gpus;
      return part == seconds;
    };
    if (loads && !pass(load, overhead)) return;
    std::size_t phase = 0;
    const auto ends_at = [&](std::size_t number) {  // of work done in this run
      return number + 1 == phases.size() ? left : phases[number].first * work - (work - left);
    };
    while (ends_at(phase) <= 1e-9) ++phase;
    double saved = 0;
    const auto give_up = [&] {
      lost += at_risk;
      left -= saved;
    };
    for (;;) {
      const double next_save = saved + interval, next = std::min({next_save, ends_at(phase), left});
      if (!pass((next - done) / phases[phase].second[tasks - 1], at_risk)) return give_up();
      done = next;
      if (done >= left - 1e-9) break;
      if (done >= ends_at(phase) - 1e-9) ++phase;
      if (done < next_save - 1e-9) continue;
      if (!pass(write, overhead)) return give_up();
      saved = done;
      useful += at_risk;
      at_risk = 0;
    }
    useful += at_risk;
    end = now;
  }
};

TEST(ElasticJob, ItsCheckpointsTakeAsLongInEveryPhase) {
  // 60 s of work at speed 1, then 40 s at speed 2; a checkpoint of 5 s after each 25 s of work, but none at the end.
  const ElasticCurve curve{
      .min_tasks = 1, .max_tasks = 2, .phases = {{0.6, {ppm(0.5), ppm(1)}}, {1, {ppm(0.5), ppm(2)}}}};
  const EngineOptions options{
      .preemption = {.checkpoint_interval = whole_seconds(25), .periodic_checkpoint = whole_seconds(5)}};
  Stage run({{.submit = 0, .work = 100, .gpus = 2}}, curve, options);
  run.advance(0);
  run.decide([&](Decision& d) { EXPECT_EQ(d.start(first), Verdict::ok); });
  while (run.engine.advance()) {
  }
  EXPECT_EQ(run.engine.end(first), whole_seconds(60 + 20 + 3 * 5));
  EXPECT_EQ(gpu_us(run.engine.gpu_time(first).overhead), 2 * 15 * microseconds_per_second);
}

RC_GTEST_PROP(ElasticJob, PhasesAndCheckpointsThatTakeTimeAgreeWithAReference, ()) {
  using rc::gen::element;
  using rc::gen::inRange;
  const std::int64_t work = *inRange(1, 200), interval = *inRange(1, 60), write = *inRange(1, 9), load = *inRange(0, 9);
  WrittenRun reference{static_cast<double>(load), static_cast<double>(interval), static_cast<double>(write)};
  reference.work = reference.left = static_cast<double>(work);
  ElasticCurve curve{.min_tasks = 1, .max_tasks = 3, .phases = {}};
  const int phases = *inRange(1, 5);
  for (int i = 1; i <= phases; ++i) {
    const double until = static_cast<double>(i) / phases;
    ElasticCurve::Phase phase{.until = until};
    std::vector<double> speeds;
    for (int tasks = 1; tasks <= 3; ++tasks) {
      speeds.push_back(tasks == 2 ? 1 : *element(0.25, 0.5, 0.8, 1.5, 3.0));
      phase.rates.push_back(ppm(speeds.back()));
    }
    curve.phases.push_back(std::move(phase));
    reference.phases.emplace_back(until, speeds);
  }
  const EngineOptions options{.preemption = {.restart = whole_seconds(load),
                                             .checkpoint_interval = whole_seconds(interval),
                                             .periodic_checkpoint = whole_seconds(write)}};
  Stage run({{.submit = 0, .work = work, .gpus = 2}}, curve, options);
  run.advance(0);
  double now = 0;
  bool loads = false;
  for (int runs = *inRange(1, 5); reference.end < 0; --runs) {
    const auto tasks = static_cast<std::uint32_t>(*inRange(1, 4));
    // Never at an instant at which something else happens.
    const double stop = runs <= 1 ? 1e6 : now + *inRange(1, 120) + 0.31415;
    run.decide([&](Decision& d) {
      if (loads) RC_ASSERT(d.preempt(first) == Verdict::ok);
      RC_ASSERT(d.start_with(first, tasks) == Verdict::ok);
    });
    reference.run(now, stop, tasks, loads);
    run.engine.advance_to(from_seconds(stop));
    RC_ASSERT(run.engine.consistent());
    RC_ASSERT(run.engine.all_finished() == (reference.end >= 0));
    now = stop;
    loads = true;
  }
  const auto close = [](double found, double expected) { return std::abs(found - expected) < 1e-3; };
  const GpuTime time = run.engine.gpu_time(first);
  const auto gpu_s = [](gpusched::detail::WideInt held) { return static_cast<double>(gpu_us(held)) / 1e6; };
  RC_ASSERT(close(to_seconds(run.engine.end(first)), reference.end));
  RC_ASSERT(close(gpu_s(time.useful), reference.useful));
  RC_ASSERT(close(gpu_s(time.overhead), reference.overhead));
  RC_ASSERT(close(gpu_s(time.lost), reference.lost));
}

}  // namespace
}  // namespace gpusched::test
