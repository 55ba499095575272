// SPDX-License-Identifier: Apache-2.0
// Every policy takes over in mid-run, on random worlds with everything that happens in them.
#include "gpusched/policy/adopted_policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/progress_watch.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_takeovers = 4;  // 2,000 in scripts/deep_test.sh

enum class Happens : std::uint8_t { nothing, failures, changes, elastic, dependencies };

struct Handover {
  std::string first;
  std::uint32_t at = 0;  // instants before it
  bool took_over = false;
  std::size_t ran = 0, unknown = 0;  // jobs then
};

// A fault of a run that another policy took over; nothing when all is well or a policy does not take this world.
std::optional<std::string> fault_of_takeover(const Contestant& second, std::uint64_t seed, Happens happens,
                                             Handover& handover) {
  WorldKind kind = kind_for(second.policy);
  if (kind == WorldKind::any) kind = kind_for(handover.first);
  RandomWorld world = random_world(seed, kind, happens == Happens::dependencies);
  NodeFailures failures;
  JobChanges changes;
  ElasticModel elastic;
  if (happens == Happens::failures) failures = random_failures(world, seed);
  if (happens == Happens::changes) changes = random_changes(world, seed, kind);
  if (happens == Happens::elastic) elastic = random_elastic_model(world, seed);
  auto before = make(Contestant{handover.first}, world.jobs, world.cluster);
  auto after = make(second, world.jobs, world.cluster);
  if (!before || !after) return std::nullopt;
  Engine engine(world.jobs, world.cluster, world.options,
                {.failures = &failures, .elastic = &elastic, .changes = &changes});
  AdoptedPolicy policy(*std::move(before));
  Decision decision = engine.decision();
  gpusched::detail::ProgressWatch progress(engine.view());
  for (std::uint32_t instant = 0; engine.advance(); ++instant) {
    progress.observe(engine.view(), engine.events());
    if (progress.endless()) return std::nullopt;  // turns that cost as much as they bring, whoever gives them
    if (instant > most_instants) return "goes round in circles";
    if (engine.events().empty()) continue;
    if (!handover.took_over && instant >= handover.at && !engine.view().running().empty()) {
      handover.took_over = true;
      handover.ran = engine.view().running().size();
      policy = AdoptedPolicy(*after);
      policy.adopt(engine.view(), decision);
      handover.unknown = policy.unknown();
    } else {
      policy.decide(engine.view(), decision);
    }
    engine.apply();
    if (!engine.consistent()) return "capacity or jobs are not conserved";
    progress.observe(engine.view(), engine.events());
  }
  if (engine.all_finished()) return std::nullopt;
  Engine again(world.jobs, world.cluster, world.options,
               {.failures = &failures, .elastic = &elastic, .changes = &changes});
  if (!simulate(again, *after)) return std::nullopt;  // as by itself in this world: k8s{pods=true}
  return "leaves jobs waiting for ever";
}

class Adopted : public testing::TestWithParam<Contestant> {};

std::vector<Contestant> policies_that_take_over() {
  std::vector<Contestant> all = contestants();
  std::erase_if(all, [](const Contestant& contestant) {
    return contestant.policy.starts_with("gavel") && !contestant.policy.starts_with("gavel@") && !has_lp_solver();
  });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Policies, Adopted, testing::ValuesIn(policies_that_take_over()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(Adopted, CompletesAllJobsOfARunThatAnotherPolicyBegan) {
  const bool is_published = kind_for(GetParam().policy) == WorldKind::one_gpu_tasks;
  constexpr std::array<const char*, 4> others = {"fifo-skip", "las", "max-min", "srtf"};
  std::uint64_t took_over = 0;
  // Some policies take few worlds.
  for (std::uint64_t seed = 0; seed < random_runs(usual_takeovers) || (took_over < 3 && seed < 100); ++seed) {
    for (const Happens happens :
         {Happens::nothing, Happens::failures, Happens::changes, Happens::elastic, Happens::dependencies}) {
      Handover handover{.first = is_published ? "fifo-skip" : others[seed % others.size()],
                        .at = static_cast<std::uint32_t>(seed % 23)};
      const auto fault = fault_of_takeover(GetParam(), seed, happens, handover);
      took_over += handover.took_over ? 1 : 0;
      ASSERT_FALSE(fault) << "seed " << seed << ", effect " << static_cast<int>(happens) << ": it took over from "
                          << handover.first << " and " << *fault;
    }
  }
  EXPECT_TRUE(took_over > 0 || GetParam().policy == "as-recorded");  // no world has recorded starts
}

// ---- it knows the present ----

// The history of a run, wakes left out, in which the policy hands over to a fresh one of its kind; `at`: after so many
// instants; none: never.
std::optional<std::uint64_t> history_with_takeover(const RandomWorld& world, const AnyPolicy& fresh,
                                                   std::optional<std::uint32_t> at) {
  Engine engine(world.jobs, world.cluster, world.options);
  AdoptedPolicy policy(fresh);
  Decision decision = engine.decision();
  HistoryHash history;
  gpusched::detail::ProgressWatch progress(engine.view());
  for (std::uint32_t instant = 0; engine.advance(); ++instant) {
    std::vector<Event> events(engine.events().begin(), engine.events().end());
    progress.observe(engine.view(), events);
    if (progress.endless() || instant > most_instants) return std::nullopt;
    std::erase_if(events, [](const Event& event) { return event.kind == EventKind::wake; });
    if (!events.empty()) history.observe(engine.view(), events);
    if (engine.events().empty()) continue;
    if (at && instant >= *at && !engine.view().running().empty()) {
      at = std::nullopt;
      policy = AdoptedPolicy(fresh);
      policy.adopt(engine.view(), decision);
    } else {
      policy.decide(engine.view(), decision);
    }
    engine.apply();
    progress.observe(engine.view(), engine.events());
    history.observe(engine.view(), engine.events());
  }
  return history.value();
}

// Of policies whose choices the present alone decides. Others rest on what they saw: run times of ended jobs, past
// usage, reservations and leases given earlier, the phase of their rounds, when a job that came back began to wait
// (agenda, rl).
class Present : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Policies, Present,
                         testing::Values("fifo", "fifo-skip", "sjf", "lpjf", "edf", "priority", "srtf", "srsf",
                                         "tiresias", "max-min", "drf", "hdrf", "elasticflow", "fgd", "pwr", "pwr+fgd",
                                         "bestfit", "random-node", "static-partition", "yarn-capacity", "yarn-fair",
                                         "volcano", "k8s", "sjf{skip=true}", "edf{skip=true}", "max-min{preempt=true}",
                                         "priority{aging_s=1e9}", "hdrf{rescale=false}", "k8s{score=most-allocated}",
                                         "loaning"),
                         [](const auto& instance) { return readable(instance.param); });

TEST_P(Present, DecidesWhatATakeoverDoes) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < random_runs(10); ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam()));
    const auto policy = make(Contestant{GetParam()}, world.jobs, world.cluster);
    if (!policy) continue;
    ++compared;
    EXPECT_EQ(history_with_takeover(world, *policy, static_cast<std::uint32_t>(seed % 17)),
              history_with_takeover(world, *policy, std::nullopt))
        << seed;
  }
  EXPECT_GT(compared, 5);
}

}  // namespace
}  // namespace gpusched::test
