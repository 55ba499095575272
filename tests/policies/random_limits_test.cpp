// SPDX-License-Identifier: Apache-2.0
// Every policy on random worlds with limits, failures, changes, dependencies and elastic jobs, against a slow
// reference: at every instant it counts from the jobs that run, by names alone, who may run beside them.
#include "tests/policies/random_limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/job_limits.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_limited_worlds = 40;

std::string owner_name(const JobTable& jobs, LimitOwner owner, JobId job) {
  switch (owner) {
    case LimitOwner::user: return jobs.users()[jobs.user(job)];
    case LimitOwner::account: return jobs.groups()[jobs.group(job)];
    case LimitOwner::vc: return jobs.vcs()[jobs.vc(job)];
    case LimitOwner::qos: return jobs.qos_names()[jobs.qos(job)];
    case LimitOwner::array: return std::string(array_of_id(jobs.external_id(job)));
    case LimitOwner::job: return jobs.external_id(job);
    case LimitOwner::all: break;
  }
  return "everybody";
}

// The reference: rules, jobs that run with the shapes that they hold, and jobs that were taken.
class SlowLimits {
 public:
  SlowLimits(const JobTable& jobs, const Cluster& cluster) : jobs_(jobs), cluster_(cluster) {}

  [[nodiscard]] bool is_of(const LimitRule& rule, JobId job) const {
    const auto contains = [&](const std::vector<std::string>& names, LimitOwner owner) {
      return std::find(names.begin(), names.end(), owner_name(jobs_, owner, job)) != names.end();
    };
    const auto lists = [&](const std::vector<std::string>& names, LimitOwner owner) {
      return names.empty() || contains(names, owner);
    };
    const bool is_listed = lists(rule.users, LimitOwner::user) && lists(rule.accounts, LimitOwner::account) &&
                           lists(rule.vcs, LimitOwner::vc) && lists(rule.qos, LimitOwner::qos);
    return (is_listed || contains(rule.or_vcs, LimitOwner::vc)) && !owner_name(jobs_, rule.per, job).empty() &&
           !contains(rule.except_vcs, LimitOwner::vc);
  }
  [[nodiscard]] bool binds(const LimitRule& rule, JobId job) const {
    return is_of(rule, job) && std::find(rule.unbound_vcs.begin(), rule.unbound_vcs.end(),
                                         owner_name(jobs_, LimitOwner::vc, job)) == rule.unbound_vcs.end();
  }
  // What the jobs that share the rule with `job` hold, itself left out. Beside a job that runs, others may have started
  // that count and are not bound.
  [[nodiscard]] LimitAmounts held_beside(const LimitRule& rule, JobId job, const View& view) const {
    LimitAmounts sum{.gpu_milli = 0, .cpu_milli = 0, .memory_mib = 0, .jobs = 0};
    for (const JobId other : view.running()) {
      const bool counts = view.phase(job) == JobPhase::running ? binds(rule, other) : is_of(rule, other);
      if (other == job || !counts) continue;
      if (owner_name(jobs_, rule.per, other) != owner_name(jobs_, rule.per, job)) continue;
      Shape shape = view.shape(other);
      shape.tasks = view.held_tasks(other);
      const LimitAmounts one = JobLimits::amounts_of(shape);
      sum.gpu_milli += one.gpu_milli;
      sum.cpu_milli += one.cpu_milli;
      sum.memory_mib += one.memory_mib;
      sum.jobs += 1;
    }
    return sum;
  }
  [[nodiscard]] bool may_run(JobId job, const Shape& shape, const View& view) const {
    const LimitAmounts asks = JobLimits::amounts_of(shape);
    return std::all_of(cluster_.limits.begin(), cluster_.limits.end(), [&](const LimitRule& rule) {
      if (!binds(rule, job)) return true;
      const LimitAmounts held = held_beside(rule, job, view);
      return held.gpu_milli + asks.gpu_milli <= rule.most.gpu_milli &&
             held.cpu_milli + asks.cpu_milli <= rule.most.cpu_milli &&
             held.memory_mib + asks.memory_mib <= rule.most.memory_mib && held.jobs + 1 <= rule.most.jobs;
    });
  }

  // Before a decision: who waits may run, and who may not waits in no queue. After one: nothing is exceeded.
  [[nodiscard]] std::optional<std::string> fault(const View& view, bool is_before) {
    for (const JobId job : view.running()) {
      Shape shape = view.shape(job);
      shape.tasks = view.held_tasks(job);
      if (!may_run(job, shape, view)) return "a limit of job " + std::to_string(index(job)) + " is exceeded";
    }
    if (!is_before) return std::nullopt;
    for (std::uint32_t i = 0; i < view.arrived(); ++i) {
      const JobId job{i};
      const JobPhase phase = view.phase(job);
      if (phase != JobPhase::pending && phase != JobPhase::future) continue;
      const auto& others = jobs_.dependencies().of(job);
      const bool waits_for_others =
          phase == JobPhase::future &&
          std::any_of(others.begin(), others.end(), [&](JobId other) { return view.phase(other) != JobPhase::done; });
      const bool may_think = phase == JobPhase::future && jobs_.dependencies().delay(job) > Time{};
      if (waits_for_others || may_think) continue;
      const bool may = may_run(job, view.shape(job), view);
      if (may && phase == JobPhase::future && is_put_off(job)) continue;
      if (may != (phase == JobPhase::pending)) {
        return "job " + std::to_string(i) +
               (may ? " waits for a limit that does not hold it back" : " waits in its queue");
      }
    }
    return std::nullopt;
  }

  // Notes who was held back at this instant, and how often. Who was so often waits for another instant, or for the
  // decision after its events.
  void note(const View& view) {
    if (view.now() != instant_) {
      std::erase_if(turns_, [](const auto& turns) { return turns.second < most_turns; });
      old_turns_ = std::exchange(turns_, {});
      instant_ = view.now();
      decisions_ = 0;
    } else {
      old_turns_ = {};
    }
    ++decisions_;
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::withdraw) ++turns_[event.job];
    }
  }
  // At this instant.
  [[nodiscard]] std::uint32_t decisions() const { return decisions_; }
  [[nodiscard]] bool is_put_off(JobId job) const {
    const auto now = turns_.find(job);
    return old_turns_.contains(job) || (now != turns_.end() && now->second >= most_turns);
  }

  // The first one is what was submitted at this instant. A job is refused if too many of those that share a rule with
  // it wait or run, or if it could not run alone.
  [[nodiscard]] std::optional<std::string> fault_of_submissions(const View& view, std::uint32_t first,
                                                                const Engine& engine, std::vector<bool>& there) const {
    for (std::uint32_t i = first; i < view.arrived(); ++i) {
      const JobId job{i};
      bool refused = false;
      for (const LimitRule& rule : cluster_.limits) {
        if (!binds(rule, job)) continue;
        std::int64_t others = 0;
        for (std::uint32_t other = 0; other < i; ++other) {
          if (!there[other] || !is_of(rule, JobId{other})) continue;
          if (owner_name(jobs_, rule.per, JobId{other}) == owner_name(jobs_, rule.per, job)) ++others;
        }
        const LimitAmounts asks = JobLimits::amounts_of(jobs_.shape(job));
        const bool is_too_long = jobs_.estimate(job) < Time::max() && jobs_.estimate(job) > rule.wall;
        const std::string account = owner_name(jobs_, LimitOwner::account, job);
        const auto& allowed = rule.allow_accounts;
        const bool is_barred =
            !allowed.empty() && !account.empty() && std::find(allowed.begin(), allowed.end(), account) == allowed.end();
        refused =
            refused || others >= rule.submitted || !JobLimits::within(asks, rule.most) || is_too_long || is_barred;
      }
      if (refused != engine.is_refused(job)) {
        return "job " + std::to_string(i) + (refused ? " should be refused" : " is refused");
      }
      there[i] = !refused;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t most_turns = 4;

  const JobTable& jobs_;
  const Cluster& cluster_;
  Time instant_ = Time::max();
  std::uint32_t decisions_ = 0;
  std::map<JobId, std::uint32_t> turns_, old_turns_;  // of this instant, of the one before
};

std::optional<std::string> fault_of_limits(const Contestant& contestant, const RandomWorld& world,
                                           const RunInputs& inputs) {
  auto policy = make(contestant, world.jobs, world.cluster);
  if (!policy) return std::nullopt;
  Engine engine(world.jobs, world.cluster, world.options, inputs);
  SlowLimits slow(world.jobs, world.cluster);
  std::vector<bool> there(world.jobs.size());
  Decision decision = engine.decision();
  gpusched::detail::ProgressWatch turns(engine.view());
  std::uint32_t seen = 0;
  while (engine.advance()) {
    const OracleView view = engine.view();
    turns.observe(view, engine.events());
    // Who ended before this instant's submissions; a job of no work ends after its start.
    for (std::uint32_t i = 0; i < seen; ++i) there[i] = there[i] && view.phase(JobId{i}) != JobPhase::done;
    if (auto wrong = slow.fault_of_submissions(view, seen, engine, there)) return wrong;
    seen = view.arrived();
    slow.note(view);
    if (slow.decisions() > 1000) return "time stands still";
    // Who has another priority since this instant leaves its queue after the decision.
    const bool is_settled = std::none_of(view.events().begin(), view.events().end(),
                                         [](const Event& event) { return event.kind == EventKind::reprioritize; });
    if (auto wrong = slow.fault(view, is_settled)) return wrong;
    policy->decide(view, decision);
    engine.apply();
    if (!engine.consistent()) return "capacity or jobs are not conserved";
    if (auto wrong = slow.fault(view, false)) return wrong;
    turns.observe(view, engine.events());
    if (turns.endless()) return std::nullopt;
  }
  const bool may_lock = contestant.policy.find("pods=true") != std::string::npos;
  if (!engine.all_finished() && !may_lock) return "the policy leaves jobs waiting for ever";
  for (std::uint32_t i = 0; i < world.jobs.size() && engine.all_finished(); ++i) {
    const JobId job{i};
    const bool ran = engine.first_start(job) != Time::max();
    if (engine.is_refused(job) ? ran : !ran && !engine.is_cancelled(job))
      return "job " + std::to_string(i) + " never ran";
  }
  return std::nullopt;
}

class RandomLimits : public testing::TestWithParam<Contestant> {};

INSTANTIATE_TEST_SUITE_P(Policies, RandomLimits, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(RandomLimits, AreKeptAtEveryInstant) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual_limited_worlds); ++seed) {
    RandomWorld world = random_world(seed, kind, seed % 3 == 0);
    if (world.jobs.size() == 0) continue;
    world.cluster.limits = random_limits(seed);
    const NodeFailures failures = seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{};
    const JobChanges changes = seed % 5 < 2 ? possible_changes(world, seed, kind) : JobChanges{};
    const ElasticModel elastic = seed % 5 == 2 ? random_elastic_model(world, seed) : ElasticModel{};
    const auto fault =
        fault_of_limits(GetParam(), world, {.failures = &failures, .elastic = &elastic, .changes = &changes});
    ASSERT_FALSE(fault.has_value()) << GetParam() << ", seed " << seed << ": " << *fault;
  }
}

// Limits that nobody reaches change nothing.
TEST_P(RandomLimits, ThatNobodyReachesChangeNothing) {
  const WorldKind kind = kind_for(GetParam().policy);
  for (std::uint64_t seed = 1; seed <= random_runs(usual_limited_worlds) / 4; ++seed) {
    RandomWorld world = random_world(seed, kind, seed % 3 == 0);
    if (world.jobs.size() == 0) continue;
    const NodeFailures failures = seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{};
    const JobChanges changes = random_changes(world, seed, kind);
    std::vector<std::uint64_t> hashes;
    for (const bool limited : {false, true}) {
      if (limited) {
        world.cluster.limits = {{.per = LimitOwner::user,
                                 .most = {.gpu_milli = 1'000'000'000, .cpu_milli = 1'000'000'000'000, .jobs = 1000},
                                 .submitted = 1000}};
      }
      auto policy = make(GetParam(), world.jobs, world.cluster);
      if (!policy) break;
      Engine engine(world.jobs, world.cluster, world.options, {.failures = &failures, .changes = &changes});
      HistoryHash hash;
      simulate(engine, *policy, hash);
      hashes.push_back(hash.value());
    }
    if (hashes.size() == 2) {
      ASSERT_EQ(hashes[0], hashes[1]) << GetParam() << ", seed " << seed;
    }
  }
}

// The rows of a trace in another order give the same run.
TEST(RandomLimitsOfRows, InAnotherOrderAreTheSame) {
  for (std::uint64_t seed = 1; seed <= random_runs(usual_limited_worlds); ++seed) {
    RandomWorld world = random_world(seed, WorldKind::any);
    if (world.jobs.size() < 2) continue;
    world.cluster.limits = random_limits(seed);
    std::vector<JobId> rows;
    for (std::uint32_t i = 0; i < world.jobs.size(); ++i) rows.push_back(JobId{i});
    std::vector<std::uint64_t> hashes;
    for (const bool reversed : {false, true}) {
      if (reversed) std::reverse(rows.begin(), rows.end());
      JobTableBuilder builder;
      for (const JobId job : rows) {
        const std::string id = world.jobs.external_id(job);
        builder.add({.id = id,
                     .submit = world.jobs.submit(job),
                     .work = world.jobs.work(job),
                     .shape = world.jobs.shape(job),
                     .user = world.jobs.users()[world.jobs.user(job)],
                     .group = world.jobs.groups()[world.jobs.group(job)],
                     .vc = world.jobs.vcs()[world.jobs.vc(job)],
                     .gpu_spec = world.jobs.gpu_specs()[world.jobs.shape(job).gpu_spec]});
      }
      const JobTable jobs = *std::move(builder).build();
      auto policy = make(Contestant{"fifo"}, jobs, world.cluster);
      ASSERT_TRUE(policy);
      Engine engine(jobs, world.cluster, world.options);
      HistoryHash hash;
      simulate(engine, *policy, hash);
      hashes.push_back(hash.value());
    }
    ASSERT_EQ(hashes[0], hashes[1]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpusched::test
