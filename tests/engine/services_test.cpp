// SPDX-License-Identifier: Apache-2.0
// Services beside jobs, worked out by hand and against closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/serving/erlang.hpp"
#include "gpusched/watch/metrics.hpp"
#include "tests/engine/service_support.hpp"

namespace gpusched::test {
namespace {

using Phases = std::vector<RequestPhase>;
using enum RequestPhase;

// Runs of first-fit, and what else a test does at an instant; the engine's audit after each.
struct ServedRun {
  ServiceModel model;
  JobTable jobs;
  Engine engine;
  RunLog log;
  std::vector<std::pair<Time, Event>> events = {};
  bool finished = false;

  using Also = std::function<void(const View&, Decision&)>;
  ServedRun(std::vector<ServiceSpec> services, const std::vector<Row>& rows, std::uint32_t gpus, RunInputs inputs = {},
            const EngineOptions& options = {}, const Also& also = {}, const std::vector<LimitRule>& limits = {})
      : model{.services = std::move(services)},
        jobs(with_services(model, rows)),
        engine(jobs, cluster_of(gpus, limits), options, (inputs.services = &model, inputs)) {
    run(also);
  }

  static Cluster cluster_of(std::uint32_t gpus, const std::vector<LimitRule>& limits = {}) {
    Cluster cluster = Cluster::pool(1);
    cluster.limits = limits;
    cluster.nodes.assign(gpus, Node{.gpus = 1});
    return cluster;
  }

  void run(const Also& also) {
    Decision decision = engine.decision();
    bool consistent = true;
    while (engine.advance()) {
      note();
      if (also) also(engine.view(), decision);
      FirstFit::decide(engine.view(), decision);
      engine.apply();
      note();
      consistent = consistent && engine.consistent();
    }
    EXPECT_TRUE(consistent);
    finished = engine.all_finished();
    if (finished && !log_is_empty()) {
      EXPECT_EQ(fault_of_account(engine, log), std::nullopt);
    }
  }
  void note() {
    if (engine.events().empty()) return;
    for (const Event& event : engine.events()) events.emplace_back(engine.view().now(), event);
    log.observe(engine.view(), engine.events());
  }
  [[nodiscard]] bool log_is_empty() const { return events.empty(); }

  [[nodiscard]] const RequestLedger& queue(std::uint32_t service = 0) const {
    return engine.services().requests(service);
  }
  [[nodiscard]] std::vector<double> ends() const {
    std::vector<double> values;
    for (const RequestRecord& record : queue().records()) values.push_back(to_seconds(record.end));
    return values;
  }
  [[nodiscard]] Phases phases() const {
    Phases values;
    for (const RequestRecord& record : queue().records()) values.push_back(record.phase);
    return values;
  }
  // Seconds at which something of a replica happened.
  [[nodiscard]] std::vector<double> times_of(EventKind kind, std::uint32_t row = 0) const {
    std::vector<double> values;
    for (const auto& [time, event] : events) {
      if (event.kind == kind && event.job == JobId{row}) values.push_back(to_seconds(time));
    }
    return values;
  }
};

using Seconds = std::vector<double>;

// What it has served is useful, whatever ends the run, and it neither saves nor loads: 15 and 5 s on the node.
TEST(Services, AReplicaHasNoStateToLose) {
  NodeFailures failures;
  failures.add_changes(
      std::vector<NodeChange>{{whole_seconds(15), NodeId{0}, false}, {whole_seconds(16), NodeId{0}, true}});
  EngineOptions options;
  options.preemption = {.checkpoint = whole_seconds(4), .restart = whole_seconds(7)};
  for (const std::int64_t interval_s : {0, 3}) {
    options.preemption.checkpoint_interval = whole_seconds(interval_s);
    options.preemption.periodic_checkpoint = whole_seconds(interval_s == 0 ? 0 : 1);
    const ServedRun run({service_of({{0, 10}, {20, 1}})}, {}, 1, {.failures = &failures}, options);
    ASSERT_TRUE(run.finished);
    EXPECT_EQ(run.ends(), (std::vector<double>{10, 21}));
    const GpuTime time = run.engine.gpu_time(JobId{0});
    EXPECT_EQ(time.useful, detail::WideInt{20'000'000} * whole_gpu);
    EXPECT_EQ(time.lost + time.overhead, 0);
  }
}

TEST(Services, OneReplicaServesInTheOrderOfArrival) {
  const ServedRun run({service_of({{0, 1}, {0, 1}, {0.5, 1}, {9, 2}})}, {}, 1);
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.ends(), (Seconds{1, 2, 3, 11}));
  EXPECT_EQ(run.times_of(EventKind::start), Seconds{0});
  EXPECT_EQ(run.times_of(EventKind::finish), Seconds{11});
  EXPECT_EQ(run.engine.services().closed(0), whole_seconds(11));
  const ServiceFigures figures = service_figures(run.engine).front();
  EXPECT_DOUBLE_EQ(figures.mean_latency_s, (1 + 2 + 2.5 + 2) / 4);
  EXPECT_DOUBLE_EQ(figures.mean_replicas, 1);
  EXPECT_DOUBLE_EQ(figures.gpu_hours, 11.0 / 3600);
  EXPECT_EQ(figures.requests.completed, 4u);
}

// A job of the only GPU comes first; the replica waits for its end, and so do requests, two of which give up.
TEST(Services, RequestsWaitForAReplicaOrLeave) {
  ServiceSpec service = service_of({{0, 1}, {1, 1}, {4, 1}, {4.5, 1}});
  service.begin = whole_seconds(1);
  service.timeout = whole_seconds(5);
  service.promise = LatencyPromise{.part = 0.5, .within = whole_seconds(4)};
  const ServedRun run({service}, {{0, 9}}, 1);
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.phases(), (Phases{timed_out, timed_out, completed, completed}));
  EXPECT_EQ(run.ends(), (Seconds{6, 7, 10, 11}));  // arrivals at 1, 2, 5 and 5.5
  EXPECT_EQ(run.engine.end(JobId{1}), whole_seconds(9));
  EXPECT_EQ(run.engine.submit(JobId{0}), whole_seconds(1));
  const ServiceFigures figures = service_figures(run.engine).front();
  EXPECT_EQ(figures.slo_attainment, 0.0);
  EXPECT_EQ(figures.kept, false);
}

TEST(Services, AtOnceBesideEachOtherAndOnTheReplicaWithFewest) {
  ServiceSpec service = service_of({{1, 4}, {1, 4}, {1, 4}, {2, 1}, {2, 1}}, 2);
  service.at_once = 2;
  const ServedRun run({service}, {}, 2);
  EXPECT_EQ(run.ends(), (Seconds{5, 5, 5, 3, 4}));
  Seconds replicas;
  for (const RequestRecord& record : run.queue().records()) replicas.push_back(record.replica);
  EXPECT_EQ(replicas, (Seconds{0, 1, 0, 1, 1}));
}

// A batch begins when it is full, or when its oldest request waited half a second.
TEST(Services, BatchesWaitForNoLongerThanTheirDelay) {
  ServiceSpec service = service_of({{0, 0}, {0.25, 0}, {1, 0}, {1.1, 0}, {1.2, 0}, {9, 0}});
  service.batches = {whole_seconds(1), from_seconds(1.5), whole_seconds(2)};
  service.batch_delay = from_seconds(0.5);
  const ServedRun run({service}, {}, 1);
  EXPECT_EQ(run.ends(), (Seconds{2, 2, 4, 4, 4, 10.5}));
}

// To zero and back: the last replica ends 30 s after none is wanted; the next start finds its node warm.
TEST(Services, KnativeGoesToZeroAndAStartIsColdThenWarm) {
  ServiceSpec service = service_of({{0, 1}, {300, 1}, {2000, 1}});
  service.autoscaler = Autoscaler(Kpa({.limits = {.least = 0, .most = 1}, .concurrency = 1}));
  service.cold_start = whole_seconds(10);
  service.warm_start = whole_seconds(2);
  service.keep_warm = whole_seconds(600);
  const ServedRun run({service}, {}, 1);
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.ends(), (Seconds{11, 303, 2011}));
  EXPECT_EQ(run.engine.services().starts(0).cold, 2u);
  EXPECT_EQ(run.engine.services().starts(0).warm, 1u);
  EXPECT_EQ(run.times_of(EventKind::submit), (Seconds{0, 300, 2000}));
  // The ledger: what it takes to start is overhead, the rest of what it held is useful.
  const GpuTime time = run.engine.gpu_time(JobId{0});
  EXPECT_EQ(time.overhead, detail::WideInt{22} * 1'000'000 * whole_gpu);
  EXPECT_EQ(time.lost, 0);
}

// Two are begun for two requests; the one that became idle last serves the third, and each ends 10 s after its last.
TEST(Services, AFunctionGoesFromZeroAndBack) {
  ServiceSpec service = service_of({{0, 1}, {0.5, 1}, {5, 1}, {30, 1}}, 3);
  service.cold_start = service.warm_start = whole_seconds(2);
  service.autoscaler = Autoscaler(
      FunctionReplicas({.limits = {.least = 0, .most = 3}, .keep_alive = FixedKeepAlive(whole_seconds(10))}));
  const ServedRun run({service}, {}, 4);
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.ends(), (Seconds{3, 3.5, 6, 33}));
  EXPECT_EQ(run.times_of(EventKind::start, 0), (Seconds{0, 30}));
  EXPECT_EQ(run.times_of(EventKind::start, 1), Seconds{0.5});
  EXPECT_EQ(run.engine.services().starts(0).cold, 3u);
  EXPECT_DOUBLE_EQ(service_figures(run.engine).front().gpu_hours, (16 + 12.5 + 3) / 3600);
}

// Mahmoudi and Khazaei, "SimFaaS", CLOSER 2021: cold starts within 10 %, instances within 2 %, over 10^6 s.
TEST(Services, AFunctionHasTheColdStartsOfSimFaas) {
  struct Setting {
    double rate, warm_s, cold_s, keep_s, cold_share, instances;
  };
  for (const Setting& set : {Setting{.1, 2.016, 2.163, 600, .007062, 2.634}, Setting{.01, 2, 5, 60, .5619, .4952}}) {
    ServiceSpec service = service_of({}, 50);
    Rng gaps = Rng(3).split("gaps"), works = Rng(3).split("works");
    constexpr double span_s = 1e6;
    for (double at = gaps.exponential(1 / set.rate); at < span_s; at += gaps.exponential(1 / set.rate)) {
      service.requests.push_back({.arrival = from_seconds(at), .work = from_seconds(works.exponential(set.warm_s))});
    }
    service.cold_start = service.warm_start = from_seconds(set.cold_s - set.warm_s);
    service.autoscaler = Autoscaler(
        FunctionReplicas({.limits = {.least = 0, .most = 50}, .keep_alive = FixedKeepAlive(from_seconds(set.keep_s))}));
    const auto requests = static_cast<double>(service.requests.size());
    const ServedRun run({service}, {}, 50);
    ASSERT_TRUE(run.finished);
    const double share = static_cast<double>(run.engine.services().starts(0).cold) / requests;
    EXPECT_NEAR(share, set.cold_share, .1 * set.cold_share);
    const double instances = service_figures(run.engine).front().gpu_hours * 3600 / span_s;
    EXPECT_NEAR(instances, set.instances, .02 * set.instances);
  }
}

// Two replicas, one of which is not wanted any more while both serve: it ends with its request.
TEST(Services, AReplicaThatIsNotWantedEndsWithItsRequest) {
  ServiceSpec service = service_of({{0, 100}, {0, 100}, {50, 1}, {130, 1}}, 2);
  service.autoscaler = Autoscaler(RequestRate({.limits = {.least = 1, .most = 2},
                                               .rate_per_replica = 0.02,
                                               .window = whole_seconds(60),
                                               .up_after = whole_seconds(20),
                                               .down_after = whole_seconds(20)}));
  const ServedRun run({service}, {}, 2);
  ASSERT_TRUE(run.finished);
  // Two arrivals in a minute want two replicas, one arrival (from the look of 80 s on) wants one.
  EXPECT_EQ(run.times_of(EventKind::start, 1), Seconds{0});
  EXPECT_EQ(run.times_of(EventKind::finish, 1), Seconds{100});
  EXPECT_EQ(run.ends(), (Seconds{100, 100, 101, 131}));
  EXPECT_EQ(run.queue().counts().completed, 4u);
}

// One of two replicas may run. The other waits outside the queue until the service closes, and so does a job.
TEST(Services, LimitsHoldForReplicas) {
  const LimitRule one{.most = {.jobs = 1}, .submitted = 1};
  const ServedRun run({service_of({{0, 100}, {0, 100}}, 2)}, {{0, 50, 1}}, 3, {}, {}, {}, {one});
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.ends(), (Seconds{100, 200}));
  EXPECT_EQ(run.times_of(EventKind::start, 1), Seconds{});
  EXPECT_EQ(run.times_of(EventKind::start, 2), Seconds{200});
  EXPECT_FALSE(run.engine.is_refused(JobId{2})) << "nobody submits replicas";
}

// Preempted at 2 s, placed again at once: its request begins anew, or is gone.
TEST(Services, APreemptedReplicasRequestsAreServedAgainOrDropped) {
  const auto preempt_at_two = [](const View& view, Decision& decision) {
    if (view.now() == Time{}) decision.wake(whole_seconds(2));
    if (view.now() == whole_seconds(2) && view.phase(JobId{0}) == JobPhase::running) decision.preempt(JobId{0});
  };
  ServiceSpec service = service_of({{0, 3}, {1, 3}});
  const ServedRun again({service}, {}, 1, {}, {}, preempt_at_two);
  EXPECT_EQ(again.ends(), (Seconds{5, 8}));
  EXPECT_EQ(again.queue().records()[0].retries, 1);
  service.lost = LostRequests::drop;
  const ServedRun gone({service}, {}, 1, {}, {}, preempt_at_two);
  EXPECT_EQ(gone.phases(), (Phases{dropped, completed}));
  EXPECT_EQ(gone.ends(), (Seconds{2, 5}));
  EXPECT_EQ(gone.engine.services().starts(0).preempted, 1u);
}

TEST(Services, AReplicaGoesWithItsNodeAndComesBackWithIt) {
  NodeFailures failures;
  failures.add_changes(
      std::vector<NodeChange>{{whole_seconds(4), NodeId{0}, false}, {whole_seconds(7), NodeId{0}, true}});
  const ServedRun run({service_of({{0, 3}, {1, 3}})}, {}, 1, {.failures = &failures});
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.ends(), (Seconds{3, 10}));
  EXPECT_EQ(run.times_of(EventKind::kill), Seconds{4});
  EXPECT_EQ(run.engine.services().starts(0).killed, 1u);
  EXPECT_EQ(run.queue().records()[1].retries, 1);
}

// Two nodes fail at once: what one replica held does not go to the other, which is lost too.
TEST(Services, WhatReplicasHeldGoesToThoseThatStay) {
  NodeFailures failures;
  failures.add_changes(std::vector<NodeChange>{{whole_seconds(4), NodeId{0}, false},
                                               {whole_seconds(4), NodeId{1}, false},
                                               {whole_seconds(50), NodeId{0}, true},
                                               {whole_seconds(50), NodeId{1}, true}});
  for (const RoutingRule routing : {RoutingRule::shared_queue, RoutingRule::round_robin, RoutingRule::least_loaded}) {
    ServiceSpec service = service_of({{0, 10}}, 3);
    service.routing = routing;
    const ServedRun run({service}, {}, 3, {.failures = &failures});
    ASSERT_TRUE(run.finished);
    EXPECT_EQ(run.ends(), Seconds{14});
    EXPECT_EQ(run.queue().records()[0].retries, 1);
    EXPECT_EQ(run.queue().records()[0].replica, 2u);
    EXPECT_EQ(run.engine.services().starts(0).killed, 2u);
  }
}

TEST(Services, RequestsAreServedAtTheSpeedOfTheirReplica) {
  ServiceModel model{.services = {service_of({{0, 3}, {1, 3}})}};
  const JobTable jobs = with_services(model, {}, "m");
  RuntimeModel speeds(static_cast<std::uint32_t>(jobs.families().size()), 1);
  speeds.set(jobs.families().find("m"), 0, reference_rate / 2);
  Cluster cluster = ServedRun::cluster_of(1);
  Engine engine(jobs, cluster, {}, {.runtime = &speeds, .services = &model});
  FirstFit policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.services().requests(0).records()[0].end, whole_seconds(6));
  EXPECT_EQ(engine.services().requests(0).records()[1].end, whole_seconds(12));
}

// A job takes the place of a replica in the figures of nobody: those of jobs are the same with the replica elsewhere.
TEST(Services, FiguresOfJobsLeaveReplicasOut) {
  ServiceModel model{.services = {service_of({{0, 30}})}};
  const std::vector<Row> rows{{0, 10}, {0, 10}, {5, 4}};
  const JobTable jobs = with_services(model, rows), alone = table_of(rows);
  const MeasureWindow window{.first = 1};
  const auto metrics_of = [](const JobTable& table, std::uint32_t gpus, const RunInputs& inputs) {
    Engine engine(table, ServedRun::cluster_of(gpus), {}, inputs);
    RunLog log(inputs.measured);
    FirstFit policy;
    EXPECT_TRUE(simulate(engine, policy, log));
    EXPECT_EQ(fault_of_account(engine, log, inputs.measured), std::nullopt);
    return compute_metrics(engine, log, inputs.measured);
  };
  const Metrics beside = metrics_of(jobs, 3, {.services = &model, .measured = window});
  const Metrics without = metrics_of(alone, 2, {});
  EXPECT_EQ(beside.jobs, 3u);
  EXPECT_EQ(beside.avg_jct_s, without.avg_jct_s);
  EXPECT_EQ(beside.p99_wait_s, without.p99_wait_s);
  EXPECT_EQ(beside.makespan_s, without.makespan_s);
  EXPECT_EQ(without.gpu_utilization * 2 + 1, beside.gpu_utilization * 3);  // the replica's time is useful
  EXPECT_EQ(beside.p99_latency_s, 30.0);
}

// Closed forms of M/M/c: mean wait within four standard errors of batch means, and Little's law exactly: the integral
// of requests in the system is the sum of their latencies.
TEST(Services, ReplicasAreTheServersOfAnErlangQueue) {
  struct Setting {
    double arrivals, served;
    std::uint32_t servers;
    double wait_s;
  };
  for (const Setting& set :
       {Setting{8, 1, 10, .20459008}, Setting{90, 10, 10, .06687315}, Setting{45, 1, 50, .07277289}}) {
    EXPECT_NEAR(MmcQueue::of(set.arrivals, set.served, set.servers).mean_wait_s(), set.wait_s, 1e-8);
    ServiceSpec service = service_of({}, set.servers);
    Rng gaps = Rng(7).split("gaps"), works = Rng(7).split("works");
    constexpr std::uint32_t count = 150'000, batch = 5'000;
    double at = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      at += gaps.exponential(1 / set.arrivals);
      service.requests.push_back(
          {.arrival = from_seconds(at), .work = from_seconds(works.exponential(1 / set.served))});
    }
    const ServedRun run({service}, {}, set.servers);
    std::vector<double> means(count / batch);
    std::int64_t latencies_us = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const RequestRecord& record = run.queue().records()[i];
      means[i / batch] += to_seconds(record.start - run.queue().arrival(i)) / batch;
      latencies_us += (record.end - run.queue().arrival(i)).us;
    }
    double mean = 0, squares = 0;
    for (const double value : means) mean += value / static_cast<double>(means.size());
    for (const double value : means) squares += (value - mean) * (value - mean);
    const auto batches = static_cast<double>(means.size());
    EXPECT_NEAR(mean, set.wait_s, 4 * std::sqrt(squares / (batches - 1) / batches)) << set.servers;
    EXPECT_EQ(run.queue().held_us(), latencies_us);
  }
}

}  // namespace
}  // namespace gpusched::test
