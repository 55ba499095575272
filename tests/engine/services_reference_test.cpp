// SPDX-License-Identifier: Apache-2.0
// Random worlds of services, jobs and failing nodes against the slow reference of slow_services.hpp.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/slow_services.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

Time drawn_s(Rng& rng, std::int64_t least, std::int64_t most) {
  return whole_seconds(least + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1))));
}

Autoscaler drawn_rule(Rng& rng, const ServiceSpec& service) {
  const ReplicaLimits limits{.least = static_cast<std::int32_t>(rng.below(2)),
                             .most = static_cast<std::int32_t>(service.most)};
  switch (rng.below(7)) {
    case 0: return Autoscaler(FixedReplicas(static_cast<std::int32_t>(1 + rng.below(service.most))));
    case 1:
      return Autoscaler(Hpa({.limits = limits,
                             .metric = rng.below(2) == 0 ? HpaOptions::Metric::busy : HpaOptions::Metric::held,
                             .period = drawn_s(rng, 1, 5),
                             .down_window = drawn_s(rng, 1, 15)}));
    case 2:
      return Autoscaler(Kpa({.limits = limits,
                             .concurrency = 1 + rng.uniform(),
                             .stable_window = drawn_s(rng, 5, 12),
                             .panic_window = drawn_s(rng, 1, 4),
                             .to_zero_after = drawn_s(rng, 1, 9),
                             .period = drawn_s(rng, 1, 3)}));
    case 3:
      return Autoscaler(RequestRate({.limits = limits,
                                     .rate_per_replica = 0.1 + rng.uniform(),
                                     .window = drawn_s(rng, 2, 9),
                                     .up_after = drawn_s(rng, 2, 6),
                                     .down_after = drawn_s(rng, 2, 12),
                                     .period = drawn_s(rng, 1, 2)}));
    case 4:
      return Autoscaler(FunctionReplicas({.limits = limits,
                                          .at_once = static_cast<std::int32_t>(service.at_once),
                                          .keep_alive = FixedKeepAlive(drawn_s(rng, 0, 20))}));
    case 5:
      return Autoscaler(FunctionReplicas(
          {.limits = limits,
           .keep_alive = HistogramKeepAlive(
               {.bins = 20, .bin = drawn_s(rng, 1, 3), .head_margin = 1, .tail_margin = 1, .least_samples = 2})}));
    default:
      return Autoscaler(QueueTarget({.limits = limits,
                                     .target = {.within_s = 12, .quantile = 0.8},
                                     .window = drawn_s(rng, 3, 12),
                                     .down_window = drawn_s(rng, 1, 9),
                                     .period = drawn_s(rng, 1, 5)}));
  }
}

ServiceSpec drawn_service(Rng& rng, int number) {
  ServiceSpec service{.name = "s" + std::to_string(number), .most = 1 + static_cast<std::uint32_t>(rng.below(4))};
  service.begin = drawn_s(rng, 0, rng.below(2) == 0 ? 0 : 20);
  const std::uint64_t requests = 3 + rng.below(40), gap = 1 + rng.below(6);
  Time at{};
  for (std::uint64_t i = 0; i < requests; ++i) {
    at += drawn_s(rng, 0, static_cast<std::int64_t>(rng.below(10) == 0 ? 40 : gap));
    service.requests.push_back({.arrival = at, .work = drawn_s(rng, 1, 8)});
  }
  if (rng.below(3) == 0) {
    service.batches = {drawn_s(rng, 1, 3), drawn_s(rng, 2, 5), drawn_s(rng, 3, 7)};
    service.batch_delay = drawn_s(rng, 0, 4);
  } else {
    service.at_once = 1 + static_cast<std::uint32_t>(rng.below(2));
  }
  const std::array rules{RoutingRule::shared_queue, RoutingRule::least_loaded, RoutingRule::round_robin};
  service.routing = rules[rng.below(3)];
  if (rng.below(2) == 0) service.timeout = drawn_s(rng, 2, 20);
  service.lost = rng.below(2) == 0 ? LostRequests::retry : LostRequests::drop;
  service.cold_start = drawn_s(rng, 0, 6);
  service.warm_start = drawn_s(rng, 0, service.cold_start.us / microseconds_per_second);
  service.keep_warm = rng.below(2) == 0 ? Time{} : drawn_s(rng, 1, 40);
  service.mean_service_s = 4;
  service.autoscaler = drawn_rule(rng, service);
  return service;
}

TEST(ServicesReference, RequestsReplicasAndJobsAreThoseOfTheSlowSimulation) {
  std::uint64_t completed = 0, dropped = 0, timed_out = 0, retried = 0, warm = 0, killed = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(80); ++seed) {
    Rng rng(seed);
    SlowServices slow;
    ServiceModel model;
    const std::uint64_t services = 1 + rng.below(2);
    for (std::uint64_t i = 0; i < services; ++i) model.services.push_back(drawn_service(rng, static_cast<int>(i)));
    slow.nodes = 3 + static_cast<std::uint32_t>(rng.below(5));
    std::vector<Row> rows;
    std::int64_t submit = 0;
    for (std::uint64_t i = 0, jobs = rng.below(14); i < jobs; ++i) {
      const auto tasks = 1 + static_cast<std::uint32_t>(rng.below(3));
      rows.push_back({.submit = submit, .work = drawn_s(rng, 1, 40).us / 1'000'000, .gpus = tasks});
      slow.jobs.push_back({submit, rows.back().work, tasks});
      submit += drawn_s(rng, 0, 15).us / 1'000'000;
    }
    for (std::uint32_t node = 0; node < slow.nodes; ++node) {
      if (rng.below(3) != 0) continue;
      const Time at = drawn_s(rng, 1, 60);
      slow.changes.push_back({at, NodeId{node}, false});
      slow.changes.push_back({at + drawn_s(rng, 1, 20), NodeId{node}, true});
    }
    NodeFailures failures;
    failures.add_changes(slow.changes);
    slow.changes.assign(failures.changes().begin(), failures.changes().end());
    const JobTable jobs = with_services(model, rows);
    Cluster cluster = Cluster::pool(1);
    cluster.nodes.assign(slow.nodes, Node{.gpus = 1});
    slow.model = &model;
    slow.run();
    Engine engine(jobs, cluster, {}, {.failures = &failures, .services = &model});
    FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy)) << seed;
    for (std::uint32_t j = 0; j < rows.size(); ++j) {
      ASSERT_EQ(engine.end(JobId{jobs.replicas() + j}), whole_seconds(slow.job_ends[j])) << seed << " job " << j;
    }
    for (std::uint32_t i = 0; i < services; ++i) {
      const RequestLedger& queue = engine.services().requests(i);
      ASSERT_EQ(engine.services().closed(i), whole_seconds(slow.closed[i])) << seed;
      for (std::uint32_t k = 0; k < queue.records().size(); ++k) {
        const RequestRecord& own = queue.records()[k];
        const RequestRecord& other = slow.records[i][k];
        ASSERT_EQ(own.phase, other.phase) << seed << " service " << i << " request " << k;
        ASSERT_EQ(own.start, other.start) << seed << " service " << i << " request " << k;
        ASSERT_EQ(own.end, other.end) << seed << " service " << i << " request " << k;
        ASSERT_EQ(own.replica, other.replica) << seed << " service " << i << " request " << k;
        ASSERT_EQ(own.retries, other.retries) << seed << " service " << i << " request " << k;
        retried += own.retries;
      }
      const ReplicaStarts& starts = engine.services().starts(i);
      ASSERT_EQ(starts.cold, slow.starts[i].cold) << seed;
      ASSERT_EQ(starts.warm, slow.starts[i].warm) << seed;
      ASSERT_EQ(starts.killed, slow.starts[i].killed) << seed;
      completed += queue.counts().completed;
      dropped += queue.counts().dropped;
      timed_out += queue.counts().timed_out;
      warm += starts.warm;
      killed += starts.killed;
    }
  }
  for (const std::uint64_t some : {completed, dropped, timed_out, retried, warm, killed}) EXPECT_GT(some, 0u);
}

}  // namespace
}  // namespace gpusched::test
