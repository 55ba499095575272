// SPDX-License-Identifier: Apache-2.0
// Random worlds of services, jobs and failing nodes against the slow reference of slow_services.hpp.
#include <gtest/gtest.h>

#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "tests/engine/random_services.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/engine/slow_services.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

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
