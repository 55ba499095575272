// SPDX-License-Identifier: Apache-2.0
// Every policy, with its defaults and in its other forms, on random worlds: its runs are checked by their intervals
// alone. GPUSCHED_RANDOM_RUNS=100000 makes as many runs of each (random_runs.hpp); a fault is told with the seed that
// repeats it.
#include "tests/support/random_runs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/policies/seam/unfinished.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/interval_checker.hpp"
#include "tests/policies/random_world.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual = 200;  // 2,000 in scripts/deep_test.sh

// Where preemptions cost as much as turns bring, a run may come further only when a failure disturbs the turns, and
// ends after some millions of instants.
constexpr std::uint32_t most_instants_in_all = 50'000'000;

// Since when a run gets nowhere: no job comes or ends, and the least work ever left falls no more.
class Stagnation {
 public:
  // True when it does so for `most_instants`: ProgressWatch should have said so.
  bool is_too_long(const OracleView& view, std::uint32_t instant) {
    if (instant % 1024 != 0) return false;  // O(jobs)
    double left_s = 0;
    for (std::uint32_t i = 0; i < view.arrived(); ++i) {
      if (view.phase(JobId{i}) != JobPhase::done) left_s += to_seconds(view.work_left(JobId{i}));
    }
    const bool comes_and_goes = arrived_ != view.arrived() || finished_ != view.finished();
    if (comes_and_goes || left_s < least_left_s_) {
      least_left_s_ = left_s;
      since_ = instant;
    }
    arrived_ = view.arrived();
    finished_ = view.finished();
    return instant - since_ >= most_instants;
  }

 private:
  std::uint32_t arrived_ = 0, finished_ = 0, since_ = 0;
  double least_left_s_ = 0;
};

bool has_own_overheads(const Contestant& contestant) {
  for (const char* sign : {"@", "migrate=true", "pods=true"}) {
    if (contestant.policy.find(sign) != std::string::npos) return true;
  }
  return false;
}

// The account of a job's GPU time, whatever stopped it.
std::optional<std::string> fault_of_account(const Engine& engine) {
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    const JobId job{i};
    if (engine.is_cancelled(job)) continue;
    const Time sum = engine.jobs().work(job) + engine.overhead(job) + engine.lost(job);
    if (engine.ran(job) != sum) {
      return "job " + std::to_string(i) + " ran for another time than its work, overhead and losses";
    }
  }
  return std::nullopt;
}

// A job might run when it was submitted and the jobs that it waits for had ended, and did not run before.
std::optional<std::string> fault_of_order(const Engine& engine) {
  const JobTable& jobs = engine.jobs();
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    Time eligible = jobs.submit(job);
    for (const JobId other : jobs.dependencies().of(job)) {
      eligible = std::max(eligible, engine.end(other) + jobs.dependencies().delay(job));
    }
    if (engine.is_cancelled(job) && engine.first_start(job) == Time::max()) continue;
    if (engine.submit(job) != eligible) return "job " + std::to_string(i) + " might run at another time than it should";
    if (engine.first_start(job) < eligible) return "job " + std::to_string(i) + " runs before what it waits for ended";
  }
  return std::nullopt;
}

// The GPU time of every job, at whatever size, is that of its intervals.
std::optional<std::string> fault_of_sizes(const Engine& engine, std::span<const Interval> intervals) {
  std::vector<gpusched::detail::WideInt> held(engine.jobs().size());
  for (const Interval& interval : intervals) {
    held[index(interval.job)] += gpusched::detail::WideInt{(interval.end - interval.start).us} * interval.gpu_milli;
  }
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    const JobId job{i};
    if (engine.gpu_time(job).held() != held[i]) {
      return "job " + std::to_string(i) + " held other GPU time than its intervals say";
    }
    if (engine.gpu_time(job).useful < 0) return "job " + std::to_string(i) + " lost more than it held";
  }
  return std::nullopt;
}

// Every bill adds up, and no cap was exceeded, not even between two events.
std::optional<std::string> fault_of_power(const Engine& engine) {
  if (!engine.power().adds_up()) return "the bills of jobs and others are not that of the meter";
  for (std::uint32_t cap = 0; cap < engine.power().caps().size(); ++cap) {
    if (engine.power().caps().excess(cap) != gpusched::detail::CapExcess{}) return "a cap was exceeded";
  }
  return std::nullopt;
}

/// What is wrong with one run; nothing when all is well or the policy does not take this world.
std::optional<std::string> fault_of_run(const Contestant& contestant, const RandomWorld& world,
                                        const NodeFailures& failures = {}, const ElasticModel& elastic = {},
                                        const JobChanges& changes = {}, const PowerModel& power = {}) {
  auto policy = make(contestant, world.jobs, world.cluster);
  if (!policy) return std::nullopt;
  Engine engine(world.jobs, world.cluster, world.options,
                {.failures = &failures, .elastic = &elastic, .changes = &changes, .power = &power});
  IntervalLog intervals;
  Decision decision = engine.decision();
  Time last = engine.view().now();
  gpusched::detail::ProgressWatch turns(engine.view());
  Stagnation stagnation;
  for (std::uint32_t instants = 0; engine.advance(); ++instants) {
    const OracleView view = engine.view();
    if (instants == most_instants_in_all || stagnation.is_too_long(view, instants)) return "it goes on for ever";
    if (view.now() < last) return "time runs backwards";
    last = view.now();
    turns.observe(view, engine.events());
    intervals.observe(view, engine.events());
    policy->decide(view, decision);
    engine.apply();
    const bool linked = !world.jobs.dependencies().is_empty() || !changes.is_empty();
    if ((linked || !failures.is_empty() || !elastic.is_empty()) && !engine.consistent())
      return "capacity or jobs are not conserved";
    if (engine.knows_power() && engine.power().caps().headroom_mw() < 0) return "a cap is exceeded";
    turns.observe(view, engine.events());
    intervals.observe(view, engine.events());
    if (turns.endless()) return std::nullopt;  // which simulate() tells
  }
  // Pods without a gang may lock each other out: that is what they are for.
  if (!engine.all_finished()) {
    return contestant.policy.find("pods=true") == std::string::npos ? std::optional(why_unfinished(engine))
                                                                    : std::nullopt;
  }
  if (auto wrong = fault_of_order(engine)) return wrong;
  if (engine.knows_power()) return fault_of_power(engine);
  if (engine.has_elastic_jobs()) return fault_of_sizes(engine, intervals.intervals());
  const bool own_overheads = has_own_overheads(contestant);
  const bool moves = own_overheads && contestant.policy.find("pods=true") == std::string::npos;
  if (!own_overheads) {
    if (auto wrong = fault_of_account(engine)) return wrong;
  }
  return IntervalChecker(engine, world.cluster, intervals.intervals())
      .fault({.own_overheads = own_overheads || !failures.is_empty(), .moves = moves});
}

class RandomRuns : public testing::TestWithParam<Contestant> {};

INSTANTIATE_TEST_SUITE_P(Policies, RandomRuns, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(RandomRuns, HaveIntervalsThatHold) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual); ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam().policy));
    if (world.jobs.size() == 0) continue;
    const auto fault = fault_of_run(GetParam(), world);
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// The same where jobs wait for the end of others, with and without failures.
TEST_P(RandomRuns, KeepDependencies) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam().policy), true);
    if (world.jobs.size() == 0) continue;
    const auto fault = fault_of_run(GetParam(), world, seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{});
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// The same where jobs may run at other sizes, with and without failures.
TEST_P(RandomRuns, TakeElasticJobs) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam().policy));
    if (world.jobs.size() == 0) continue;
    const auto fault = fault_of_run(GetParam(), world, seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{},
                                    random_elastic_model(world, seed));
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// The same where users cancel jobs and change their priorities and sizes, with and without failures and dependencies.
TEST_P(RandomRuns, TakeChangesOfJobs) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    RandomWorld world = random_world(seed, kind, seed % 3 == 0);
    if (world.jobs.size() == 0) continue;
    const JobChanges changes = random_changes(world, seed, kind);
    const auto fault =
        fault_of_run(GetParam(), world, seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{}, {}, changes);
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// The same where some jobs are elastic and users change the sizes of others.
TEST_P(RandomRuns, TakeElasticJobsBesideChangesOfRigidOnes) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    RandomWorld world = random_world(seed, kind);
    if (world.jobs.size() == 0) continue;
    const JobChanges all = random_changes(world, seed, kind);  // adds shapes, which curves are kept by
    const ElasticModel elastic = random_elastic_model(world, seed);
    std::vector<JobChange> changes(all.all().begin(), all.all().end());
    std::erase_if(changes, [&](const JobChange& change) {
      return change.kind == JobChange::Kind::size && elastic.curve(world.jobs, change.job) != nullptr;
    });
    const auto fault = fault_of_run(GetParam(), world, seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{},
                                    elastic, JobChanges(std::move(changes), world.jobs.size()));
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// Nobody is lost, nobody runs twice, on a node that is down, or on what another holds.
TEST_P(RandomRuns, SurviveFailuresOfNodes) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam().policy));
    if (world.jobs.size() == 0) continue;
    const auto fault = fault_of_run(GetParam(), world, random_failures(world, seed));
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// Everybody ends under caps that let any job run alone; with failures and sizes too.
TEST_P(RandomRuns, KeepPowerCaps) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual) / 4; ++seed) {
    const RandomWorld world = random_world(seed, kind);
    if (world.jobs.size() == 0) continue;
    const bool any_size = seed % 3 == 0;
    const auto fault = fault_of_run(GetParam(), world, seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{},
                                    any_size ? random_elastic_model(world, seed) : ElasticModel{}, {},
                                    random_power(world, seed, any_size));
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

}  // namespace
}  // namespace gpusched::test
