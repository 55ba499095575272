// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/loaning.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/service_support.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

using test::Row;
using test::Span;
using test::Spans;

Spans run(const std::string& policy, const std::vector<Row>& rows, std::uint32_t nodes) {
  return test::run_policy(policy, test::table_of(rows), Cluster::homogeneous(nodes, 4));
}

TEST(Loaning, LendsWholeIdleServersAndTakesThemBack) {
  const std::vector<Row> rows{{.submit = 0, .work = 100, .gpus = 8},                  // on the nodes of jobs
                              {.submit = 1, .work = 100, .gpus = 4},                  // on a server
                              {.submit = 2, .work = 200, .gpus = 4, .priority = 1},   // on the other one
                              {.submit = 3, .work = 200, .gpus = 4, .priority = 1}};  // takes the first one back
  EXPECT_EQ(run("loaning", rows, 4), (Spans{{0, 100}, {1, 198}, {2, 202}, {3, 203}}));
  EXPECT_EQ(run("loaning{lend=false}", rows, 4), (Spans{{0, 100}, {100, 200}, {2, 202}, {3, 203}}));
  EXPECT_EQ(run("loaning{service_priority=2}", rows, 4), (Spans{{0, 100}, {1, 101}, {2, 202}, {100, 300}}));
}

// Server 1 has two jobs, server 2 one of as many GPUs.
TEST(Loaning, TakesTheServerOfFewestJobs) {
  const std::vector<Row> rows{{.submit = 0, .work = 100, .gpus = 4},
                              {.submit = 1, .work = 50, .gpus = 2},
                              {.submit = 2, .work = 50, .gpus = 2},
                              {.submit = 3, .work = 50, .gpus = 4},
                              {.submit = 10, .work = 20, .gpus = 4, .priority = 1}};
  EXPECT_EQ(run("loaning{part=0.67}", rows, 3), (Spans{{0, 100}, {1, 51}, {2, 52}, {3, 73}, {10, 30}}));
}

// A job over two servers is one preemption for both: a half of one each.
TEST(Loaning, TakesBothServersOfAWideJob) {
  const std::vector<Row> rows{{.submit = 0, .work = 100, .gpus = 4},
                              {.submit = 1, .work = 50, .gpus = 4},
                              {.submit = 2, .work = 50, .gpus = 8},
                              {.submit = 10, .work = 20, .gpus = 4, .priority = 1},
                              {.submit = 11, .work = 30, .gpus = 4, .priority = 1}};
  EXPECT_EQ(run("loaning{part=0.75}", rows, 4), (Spans{{0, 100}, {1, 51}, {2, 83}, {10, 30}, {11, 41}}));
}

// Three GPUs of the server are free, and stay so.
TEST(Loaning, NeverMixesServicesAndJobsOnAServer) {
  const std::vector<Row> rows{{.submit = 0, .work = 50, .gpus = 4},
                              {.submit = 1, .work = 20, .gpus = 1, .priority = 1},
                              {.submit = 2, .work = 10, .gpus = 1}};
  EXPECT_EQ(run("loaning", rows, 2), (Spans{{0, 50}, {1, 21}, {21, 31}}));
  const std::vector<Row> lent{{.submit = 0, .work = 50, .gpus = 4},
                              {.submit = 1, .work = 20, .gpus = 1},
                              {.submit = 2, .work = 10, .gpus = 1, .priority = 1}};
  EXPECT_EQ(run("loaning", lent, 2), (Spans{{0, 50}, {1, 31}, {2, 12}}));
  // Two GPUs are free beside two jobs, and the server of one job comes back all the same.
  const std::vector<Row> partly{{.submit = 0, .work = 100, .gpus = 4},
                                {.submit = 1, .work = 50, .gpus = 1},
                                {.submit = 2, .work = 50, .gpus = 1},
                                {.submit = 3, .work = 50, .gpus = 4},
                                {.submit = 10, .work = 20, .gpus = 1, .priority = 1}};
  EXPECT_EQ(run("loaning{part=0.67}", partly, 3), (Spans{{0, 100}, {1, 51}, {2, 52}, {3, 73}, {10, 30}}));
}

TEST(Loaning, TakesNothingBackInVain) {
  // The service needs two servers, and one of them serves for long.
  const std::vector<Row> rows{{.submit = 0, .work = 100, .gpus = 8},
                              {.submit = 1, .work = 60, .gpus = 4, .priority = 1},
                              {.submit = 2, .work = 20, .gpus = 4},
                              {.submit = 3, .work = 10, .gpus = 8, .priority = 1}};
  EXPECT_EQ(run("loaning", rows, 4), (Spans{{0, 100}, {1, 61}, {2, 22}, {61, 71}}));
}

// The small server costs one job, and does not suffice; the large one, taken next, does alone.
TEST(Loaning, LetsJobsOfServersThatItDoesNotNeedRunOn) {
  Cluster cluster = Cluster::homogeneous(3, 4);
  cluster.nodes[2].gpus = 8;
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 4},
                                        {.submit = 1, .work = 50, .gpus = 4},
                                        {.submit = 2, .work = 50, .gpus = 4},
                                        {.submit = 3, .work = 50, .gpus = 4},
                                        {.submit = 10, .work = 20, .gpus = 8, .priority = 1}});
  EXPECT_EQ(test::run_policy("loaning{part=0.67}", jobs, cluster),
            (Spans{{0, 100}, {1, 51}, {2, 72}, {3, 73}, {10, 30}}));
}

TEST(Loaning, PlacesServicesTooLargeForServersAsJobs) {
  const std::vector<Row> rows{{.submit = 0, .work = 10, .gpus = 4},
                              {.submit = 1, .work = 10, .gpus = 12, .priority = 1},
                              {.submit = 2, .work = 10, .gpus = 4, .priority = 1}};
  EXPECT_EQ(run("loaning", rows, 4), (Spans{{0, 10}, {1, 19}, {2, 12}}));
}

TEST(Loaning, StartsJobsInTheOrderThatIsNamed) {
  const std::vector<Row> rows{
      {.submit = 0, .work = 10, .gpus = 8}, {.submit = 1, .work = 30, .gpus = 8}, {.submit = 2, .work = 10, .gpus = 8}};
  EXPECT_EQ(run("loaning", rows, 2), (Spans{{0, 10}, {10, 40}, {40, 50}}));
  EXPECT_EQ(run("loaning{order=[sjf]}", rows, 2), (Spans{{0, 10}, {20, 50}, {10, 20}}));
}

TEST(Loaning, RefusesWhatWouldWaitForEver) {
  const Cluster cluster = Cluster::homogeneous(4, 4);
  const JobTable jobs = test::table_of({{.work = 10, .gpus = 12}});
  const auto message = [&](const std::string& policy) { return test::make(policy, jobs, cluster).error().to_string(); };
  EXPECT_NE(message("loaning{lend=false}").find("fits none of the nodes of jobs"), std::string::npos);
  EXPECT_NE(message("loaning{order=[srtf]}").find("parameter order"), std::string::npos);
  EXPECT_NE(message("loaning{order=[fifo,sjf]}").find("one order"), std::string::npos);
}

// A replica comes when its service begins, and is a service whatever its priority.
TEST(Loaning, TakesAServerBackForAReplica) {
  ServiceModel services{.services = {test::service_of({{0, 5}, {30, 5}})}};
  services.services[0].begin = whole_seconds(20);
  const JobTable jobs =
      test::with_services(services, {{.submit = 0, .work = 100, .gpus = 4}, {.submit = 0, .work = 100, .gpus = 4}});
  const Cluster cluster = Cluster::homogeneous(2, 4);
  auto policy = test::make("loaning", jobs, cluster);
  ASSERT_TRUE(policy);
  Engine engine(jobs, cluster, {}, {.services = &services});
  ASSERT_TRUE(simulate(engine, *policy));
  // Served until 55 s; the job has 80 s left then.
  EXPECT_EQ(test::spans_of(engine), (Spans{{20, 55}, {0, 100}, {0, 135}}));
  EXPECT_FALSE(test::make("loaning{part=0}", jobs, cluster));
}

// ---- random worlds ----

struct Setting {
  std::uint32_t first_server = 0;
  bool lends = true;
};

// Room on the servers alone, by the engine's own search for nodes.
bool fits_servers(ClusterState state, const Setting& setting, const Shape& shape, std::uint32_t queue) {
  for (std::uint32_t node = 0; node < setting.first_server; ++node) {
    if (state.is_up(NodeId{node})) state.withhold(NodeId{node});
  }
  return state.place(shape, queue, Placement::consolidate) != no_index;
}

// What a run under the policy must keep at every instant, from its events and grants alone.
class LoanWatch {
 public:
  LoanWatch(const test::RandomWorld& world, Setting own)
      : setting_(own), empty_(world.cluster, world.jobs.gpu_specs(), Rng{}) {}

  void before_decision(const OracleView& view, std::span<const Event> events) {
    for (const Event& event : events) {
      const bool is_moved = event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending;
      if (!is_moved && !enters_queue(event.kind)) continue;
      const View then = view.at(event);
      services_[event.job] = view.priority(event.job) >= 1 &&
                             fits_servers(empty_, setting_, then.shape(event.job), view.queue_of(event.job));
    }
  }

  std::optional<std::string> fault_after_decision(const Engine& engine, std::span<const Event> events) {
    bool service_started = false, job_stopped = false;
    for (const Event& event : events) {
      const bool is_service = event.job != no_job && services_[event.job];
      service_started = service_started || (event.kind == EventKind::start && is_service);
      if (event.kind != EventKind::preempt) continue;
      if (is_service) return "a service was preempted";
      job_stopped = true;
      ++stops;
    }
    if (job_stopped && !service_started) return "a job was preempted in vain";
    if (job_stopped && !setting_.lends) return "a partition preempts";
    if (auto fault = fault_of_servers(engine.view())) return fault;
    return fault_of_waits(engine);
  }

  std::uint64_t stops = 0, waits = 0;

 private:
  std::optional<std::string> fault_of_servers(const OracleView& view) {
    std::map<NodeId, std::pair<bool, bool>> on;  // a service, a job
    for (const JobId job : view.running()) {
      view.for_each_grant(
          job, [&](const Grant& grant) { (services_[job] ? on[grant.node].first : on[grant.node].second) = true; });
    }
    for (const auto& [node, who] : on) {
      const bool is_server = index(node) >= setting_.first_server;
      if (is_server && who.first && who.second) return "a server has both";
      if (!is_server && who.first) return "a service is on a node of jobs";
      if (is_server && who.second && !setting_.lends) return "a partition lends";
    }
    return std::nullopt;
  }

  // No service waits for which there were room if all lent servers came back.
  std::optional<std::string> fault_of_waits(const Engine& engine) {
    std::vector<JobId> waiting;
    for (std::uint32_t queue = 0; queue < engine.view().queue_count(); ++queue) {
      for (const JobId job : engine.view().queue(queue)) {
        if (services_[job]) waiting.push_back(job);
      }
    }
    if (waiting.empty()) return std::nullopt;
    ++waits;
    Engine copy = engine;
    const OracleView view = copy.view();
    Decision decision = copy.decision();
    std::vector<JobId> on_servers;
    for (const JobId job : view.running()) {
      bool is_there = false;
      view.for_each_grant(job, [&](const Grant& grant) { is_there |= index(grant.node) >= setting_.first_server; });
      if (is_there && !services_[job] && setting_.lends) on_servers.push_back(job);
    }
    for (const JobId job : on_servers) decision.preempt(job);
    for (const JobId job : waiting) {
      if (fits_servers(view.cluster(), setting_, view.shape(job), view.queue_of(job))) {
        return "service " + std::to_string(index(job)) + " waits in vain";
      }
    }
    return std::nullopt;
  }

  Setting setting_;
  ClusterState empty_;
  std::map<JobId, bool> services_;
};

TEST(Loaning, KeepsItsPromisesOnRandomWorlds) {
  std::uint64_t stops = 0, waits = 0;
  for (std::uint64_t seed = 1; seed <= test::random_runs(300); ++seed) {
    test::RandomWorld world = test::random_world(seed, test::WorldKind::any, seed % 3 == 0);
    const NodeFailures failures = seed % 2 == 0 ? test::random_failures(world, seed) : NodeFailures{};
    const JobChanges changes = seed % 5 == 0 ? test::random_changes(world, seed, test::WorldKind::any) : JobChanges{};
    const auto nodes = static_cast<std::uint32_t>(world.cluster.nodes.size());
    const Setting setting{.first_server = nodes - static_cast<std::uint32_t>(std::lround(0.5 * nodes)),
                          .lends = seed % 4 != 0};
    const std::string text = std::string("loaning{skip=true,order=[") + (seed % 2 == 0 ? "sjf" : "fifo") + "]" +
                             (setting.lends ? "}" : ",lend=false}");
    auto policy = test::make(text, world.jobs, world.cluster);
    if (!policy) continue;  // a partition that holds not every job
    Engine engine(world.jobs, world.cluster, world.options, {.failures = &failures, .changes = &changes});
    LoanWatch watch(world, setting);
    Decision decision = engine.decision();
    while (engine.advance()) {
      watch.before_decision(engine.view(), engine.events());
      policy->decide(engine.view(), decision);
      engine.apply();
      ASSERT_TRUE(engine.consistent()) << seed;
      const auto fault = watch.fault_after_decision(engine, engine.events());
      ASSERT_FALSE(fault) << *fault << ", seed " << seed << ", at " << to_seconds(engine.view().now()) << " s";
    }
    stops += watch.stops;
    waits += watch.waits;
    if (setting.lends) ASSERT_TRUE(engine.all_finished()) << seed;
  }
  EXPECT_GT(stops, 100u);
  EXPECT_GT(waits, 100u);
}

}  // namespace
}  // namespace gpusched
