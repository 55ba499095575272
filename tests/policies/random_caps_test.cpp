// SPDX-License-Identifier: Apache-2.0
// Every policy on random worlds whose power caps fall and rise, with failures, changes and limits beside them: no
// decision adds to what exceeds a cap, and nobody waits for ever once the caps are high again.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/policy/progress_watch.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/random_limits.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_capped_worlds = 24;

double full_watts(const Cluster& cluster) {
  double watts = 0;
  for (const Node& node : cluster.nodes) watts += 40.0 + 200.0 * node.gpus;
  return watts;
}

// One cap of all nodes, and sometimes one of the first node: from a third of what they could draw to all of it.
PowerModel random_capped_power(std::uint64_t seed, const Cluster& cluster, Time begin) {
  gpusched::test::detail::WorldDraws draw(seed ^ 0xCA9);
  PowerModel model;
  GpuPower gpu{.load = {.idle_w = 30, .full_w = 200}, .limits = {}};
  if (draw.chance(2)) gpu.limits = {{100, 0.5, 600'000}, {150, 0.8, 850'000}, {200, 1, reference_rate}};
  model.gpus.assign(std::max<std::size_t>(1, cluster.gpu_types.size()), gpu);
  model.kinds = {{.base_w = 40}};
  model.kind_of.assign(cluster.nodes.size(), 0);
  model.rule =
      draw.one_of(std::array<CapRule, 4>{CapRule::admit, CapRule::uniform, CapRule::priority, CapRule::efficiency});
  model.cap_latency = whole_seconds(draw.one_of(std::array<std::int64_t, 3>{0, 0, 7}));
  model.hysteresis = draw.chance(2) ? 0.1 : 0;
  const double all_w = full_watts(cluster);
  const auto falling = [&](double most_w) {
    std::vector<Signal::Step> steps;
    Time at = begin;
    for (std::uint64_t count = 1 + draw.below(12); count > 0; --count) {
      steps.push_back({at, Signal::to_micro(most_w * static_cast<double>(4 + draw.below(8)) / 12)});
      at = at + whole_seconds(static_cast<std::int64_t>(1 + draw.below(120)));
    }
    steps.push_back({at, Signal::to_micro(most_w * 2)});
    return Signal(std::move(steps));
  };
  model.caps.push_back({.watts = falling(all_w)});
  if (draw.chance(3)) model.caps.push_back({.watts = falling(40.0 + 200.0 * cluster.nodes[0].gpus), .nodes = {0}});
  return model;
}

std::optional<std::string> fault_of_caps(const Contestant& contestant, const RandomWorld& world,
                                         const RunInputs& inputs) {
  auto policy = make(contestant, world.jobs, world.cluster);
  if (!policy) return std::nullopt;
  Engine engine(world.jobs, world.cluster, world.options, inputs);
  Decision decision = engine.decision();
  gpusched::detail::ProgressWatch turns(engine.view());
  while (engine.advance()) {
    const OracleView view = engine.view();
    turns.observe(view, engine.events());
    std::vector<std::int64_t> before;
    const auto& caps = engine.power().caps();
    for (std::uint32_t cap = 0; cap < caps.size(); ++cap) before.push_back(caps.drawn_mw(cap));
    policy->decide(view, decision);
    engine.apply();
    if (!engine.consistent()) return "capacity or jobs are not conserved";
    for (std::uint32_t cap = 0; cap < caps.size() && inputs.power->cap_latency.us == 0; ++cap) {
      if (caps.drawn_mw(cap) > std::max(before[cap], caps.limit_mw(cap)))
        return "a decision adds to what exceeds a cap";
    }
    turns.observe(view, engine.events());
    // Where preemption costs more than a turn does, turns go on for ever.
    const PreemptionCost& cost = world.options.preemption;
    const bool is_free = cost.checkpoint.us == 0 && cost.restart.us == 0 && cost.checkpoint_interval.us == 0;
    if (turns.endless()) return is_free ? std::optional<std::string>("the policy goes on for ever") : std::nullopt;
  }
  const bool may_lock = contestant.policy.find("pods=true") != std::string::npos;
  if (!engine.all_finished() && !may_lock) return "the policy leaves jobs waiting for ever";
  return std::nullopt;
}

class RandomCaps : public testing::TestWithParam<Contestant> {};

INSTANTIATE_TEST_SUITE_P(Policies, RandomCaps, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(RandomCaps, AreKeptAndNobodyWaitsForEver) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual_capped_worlds); ++seed) {
    RandomWorld world = random_world(seed, kind);
    if (world.jobs.size() == 0) continue;
    const NodeFailures failures = seed % 4 == 0 ? random_failures(world, seed) : NodeFailures{};
    if (seed % 3 == 0) world.cluster.limits = random_limits(seed);
    const JobChanges changes = seed % 4 == 1 ? possible_changes(world, seed, kind) : JobChanges{};
    const PowerModel power = random_capped_power(seed, world.cluster, world.jobs.submit(JobId{0}));
    const auto fault = fault_of_caps(GetParam(), world, {.failures = &failures, .changes = &changes, .power = &power});
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

}  // namespace
}  // namespace gpusched::test
