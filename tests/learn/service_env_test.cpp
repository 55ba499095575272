// SPDX-License-Identifier: Apache-2.0
// The environment that sets replicas: its runs are those of the engine, and its rewards add up to the figures of the
// run.
#include "gpusched/learn/service_env.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "tests/engine/service_support.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {
namespace {

// What a scene points at.
struct World {
  ServiceModel services;
  JobTable jobs;
  Cluster cluster = Cluster::homogeneous(3, 2);
  PowerModel power;
};

ServiceSpec drawn_service(Rng& rng, std::uint32_t number) {
  std::vector<std::pair<double, double>> requests;
  double second = 0;
  for (int i = 0; i < 300; ++i) {
    second += rng.exponential(2 + 2 * std::sin(second / 100));
    requests.emplace_back(second, 0.2 + rng.exponential(2));
  }
  ServiceSpec service = service_of(requests, 1 + static_cast<std::uint32_t>(rng.below(3)));
  service.name = "s" + std::to_string(number);
  service.begin = whole_seconds(static_cast<std::int64_t>(rng.below(90)));
  service.mean_service_s = 2.2;
  service.promise = LatencyPromise{.part = 0.9, .within = whole_seconds(6)};
  service.cold_start = whole_seconds(static_cast<std::int64_t>(rng.below(20)));
  if (rng.below(2) == 0) service.timeout = whole_seconds(20);
  if (rng.below(2) == 0) service.at_once = 2;
  return service;
}

// 40 jobs of one GPU or two beside one or two services.
std::unique_ptr<World> drawn_world(std::uint64_t seed) {
  Rng rng = Rng(seed).split("world");
  auto world = std::make_unique<World>();
  const std::uint64_t services = 1 + rng.below(2);
  for (std::uint32_t i = 0; i < services; ++i) world->services.services.push_back(drawn_service(rng, i));
  std::vector<Row> rows;
  std::int64_t second = 0;
  for (int i = 0; i < 40; ++i) {
    second += static_cast<std::int64_t>(rng.below(40));
    rows.push_back({.submit = second,
                    .work = 1 + static_cast<std::int64_t>(rng.below(120)),
                    .gpus = 1 + static_cast<std::uint32_t>(rng.below(2))});
  }
  world->jobs = with_services(world->services, rows);
  world->power = changing_signals();
  return world;
}

ServiceScene scene_of(const World& world) {
  return {.jobs = &world.jobs,
          .cluster = &world.cluster,
          .inputs = {.power = &world.power, .services = &world.services},
          .scheduler = AnyPolicy(FirstFit{})};
}

// What the terms add up to, from the run itself.
ServiceRewardVector sums_of(const Engine& engine, const World& world) {
  ServiceRewardVector sums{};
  for (std::uint32_t i = 0; i < world.services.services.size(); ++i) {
    const RequestLedger& ledger = engine.services().requests(i);
    sums[service_reward_missed] -=
        static_cast<double>(ledger.counts().injected) - detail::requests_in_time(ledger, world.services.services[i]);
    for (std::uint32_t r = 0; r < ledger.records().size(); ++r) {
      sums[service_reward_latency] -= to_seconds(ledger.records()[r].end - ledger.arrival(r));
    }
  }
  for (const ServiceFigures& figures : service_figures(engine)) sums[service_reward_replicas] -= figures.gpu_hours;
  for (std::uint32_t row = world.services.rows(); row < world.jobs.size(); ++row) {
    const JobId job{row};
    sums[service_reward_jct] -= to_seconds(engine.end(job) - engine.submit(job));
    sums[service_reward_wait] -= to_seconds(engine.end(job) - engine.submit(job) - engine.ran(job));
  }
  sums[service_reward_energy] = -engine.power().meter().kwh();
  sums[service_reward_carbon] = -engine.power().meter().carbon_kg();
  sums[service_reward_money] = -engine.power().meter().usd();
  return sums;
}

void expect_near(const ServiceRewardVector& got, const ServiceRewardVector& expected) {
  for (std::size_t term = 0; term < service_reward_terms; ++term) {
    EXPECT_NEAR(got[term], expected[term], 1e-6 * std::max(1e-3, std::abs(expected[term])))
        << service_reward_names[term];
  }
}

std::vector<std::int32_t> drawn_replicas(const ServiceEnv& env, Rng& rng) {
  std::vector<std::int32_t> replicas;
  for (const ServiceSpec& service : env.specs()) {
    replicas.push_back(static_cast<std::int32_t>(rng.below(service.most + 1)));
  }
  return replicas;
}

TEST(ServiceEnv, RewardsAddUpToTheFiguresOfTheRun) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    auto world = drawn_world(seed);
    world->services = told_replicas(world->services);
    const ServiceScene scene = scene_of(*world);
    Rng rng = Rng(seed).split("actions");
    ServiceEnv env({.period = whole_seconds(7 + static_cast<std::int64_t>(rng.below(60))), .weights = {1, 0, 3}});
    ServiceStep step = env.reset(scene);
    double scalar = step.scalar;
    std::vector<float> seen(env.size());
    while (!step.done()) {
      const ServiceEnv before = env;
      const std::vector<std::int32_t> replicas = drawn_replicas(env, rng);
      step = env.step(replicas);
      scalar += step.scalar;
      env.encode(seen.data());
      for (const float value : seen) ASSERT_TRUE(std::isfinite(value) && value >= -1 && value <= 4);
      if (rng.below(10) != 0) continue;
      ServiceEnv copy = before;  // goes on as the original did
      ASSERT_EQ(copy.step(replicas).reward, step.reward);
    }
    ASSERT_TRUE(step.terminated);
    const ServiceRewardVector sums = sums_of(env.engine(), *world);
    expect_near(env.totals(), sums);
    EXPECT_NEAR(scalar, sums[service_reward_missed] + 3 * sums[service_reward_replicas], 1e-6);
    EXPECT_TRUE(env.engine().consistent());
  }
}

// Where one number is told from the first instant on, the run is that of a service without an autoscaler.
TEST(ServiceEnv, ANumberThatIsToldForEverIsAFixedNumber) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    auto world = drawn_world(seed);
    for (ServiceSpec& service : world->services.services) service.autoscaler = Autoscaler(FixedReplicas(1));
    Engine engine(world->jobs, world->cluster, {}, {.power = &world->power, .services = &world->services});
    FirstFit policy;
    ASSERT_TRUE(simulate(engine, policy));
    const ServiceRewardVector sums = sums_of(engine, *world);
    world->services = told_replicas(world->services);
    const ServiceScene scene = scene_of(*world);
    ServiceEnv env({.period = whole_seconds(30)});
    const std::vector<std::int32_t> one(world->services.services.size(), 1);
    for (ServiceStep step = env.reset(scene); !step.done();) step = env.step(one);
    expect_near(env.totals(), sums);
  }
}

// By hand: requests of 10 s each at 0, 1, 2 and 3 s; from 5 s on there are two replicas.
TEST(ServiceEnv, AReplicaMoreActsAtItsInstant) {
  World world;
  world.services.services = {service_of({{0, 10}, {1, 10}, {2, 10}, {3, 10}}, 2)};
  world.services.services[0].promise = LatencyPromise{.within = whole_seconds(15)};
  world.services = told_replicas(world.services);
  world.jobs = with_services(world.services, {});
  ServiceScene scene = scene_of(world);
  scene.inputs.power = nullptr;
  ServiceEnv env({.period = whole_seconds(5)});
  env.reset(scene);
  const std::vector<std::int32_t> one{1}, two{2};
  ServiceStep step = env.step(one);
  EXPECT_EQ(env.now(), whole_seconds(5));
  EXPECT_EQ(step.reward[service_reward_latency], -(5 + 4 + 3 + 2));
  std::vector<float> seen(env.size());
  env.encode(seen.data());
  EXPECT_FLOAT_EQ(seen[service_ready], 0.5f);
  EXPECT_FLOAT_EQ(seen[service_told], 0.5f);
  EXPECT_FLOAT_EQ(seen[service_rate], 3.0f);  // 3 in the last 5 s, of which a replica serves half a request: 6 of 2
  EXPECT_FLOAT_EQ(seen[service_queued], detail::fast_log1p(3) * 0.1f);
  EXPECT_FLOAT_EQ(seen[service_busy], 1.0f);
  while (!step.done()) step = env.step(two);
  // Served 0 to 10, 5 to 15, 10 to 20, 15 to 25: 10, 14, 18 and 22 s; two of them too late.
  EXPECT_EQ(env.totals()[service_reward_latency], -(10 + 14 + 18 + 22));
  EXPECT_EQ(env.totals()[service_reward_missed], -2);
  EXPECT_NEAR(env.totals()[service_reward_replicas], -(25 + 20) / 3600.0, 1e-12);
}

TEST(ServiceEnv, IsTruncatedAfterItsTime) {
  auto world = drawn_world(3);
  world->services = told_replicas(world->services);
  const ServiceScene scene = scene_of(*world);
  ServiceEnv env({.period = whole_seconds(20), .longest = whole_seconds(100)});
  ServiceStep step = env.reset(scene);
  const std::vector<std::int32_t> one(world->services.services.size(), 1);
  int steps = 0;
  for (; !step.done(); ++steps) step = env.step(one);
  EXPECT_TRUE(step.truncated);
  EXPECT_EQ(steps, 5);
}

TEST(ServiceVectorEnv, AnyNumberOfThreadsGivesTheSameSteps) {
  std::vector<std::unique_ptr<World>> worlds;
  std::vector<ServiceScene> scenes;
  for (std::uint64_t seed = 1; scenes.size() < 3; ++seed) {
    worlds.push_back(drawn_world(seed));
    if (worlds.back()->services.services.size() != 1) continue;
    worlds.back()->services = told_replicas(worlds.back()->services);
    scenes.push_back(scene_of(*worlds.back()));
  }
  const ServiceEnvOptions options{.period = whole_seconds(40), .weights = {1, 0.1, 1}};
  ServiceVectorEnv one(scenes, options, 5), three(scenes, options, 5, 3);
  one.reset(7);
  three.reset(7);
  Rng rng(1);
  std::size_t ended = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<std::int32_t> replicas(5);
    for (std::int32_t& count : replicas) count = static_cast<std::int32_t>(rng.below(4));
    one.step(replicas);
    three.step(replicas);
    ASSERT_EQ(one.batch().observation, three.batch().observation);
    ASSERT_EQ(one.batch().final_observation, three.batch().final_observation);
    ASSERT_EQ(one.batch().episode_totals, three.batch().episode_totals);
    ASSERT_EQ(one.batch().scenes, three.batch().scenes);
    ended += one.batch().ended.size();
  }
  EXPECT_GT(ended, 10u);
  const ServiceVectorEnv::State state = one.save();
  three.restore(state);
  const std::vector<std::int32_t> two(5, 2);
  one.step(two);
  three.step(two);
  EXPECT_EQ(one.batch().observation, three.batch().observation);
}

}  // namespace
}  // namespace gpusched::test
