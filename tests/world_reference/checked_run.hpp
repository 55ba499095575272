// SPDX-License-Identifier: Apache-2.0
/// A run of the engine beside SlowWorld, and the same run in other ways.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/progress_watch.hpp"
#include "gpusched/watch/metrics.hpp"
#include "tests/world_reference/drawn_world.hpp"
#include "tests/world_reference/recorded_run.hpp"

namespace gpusched::test {

/// A run that gets nowhere is left there.
inline constexpr std::uint32_t most_instants_here = 4000;

/// How an engine is moved through time.
enum class Mode : std::uint8_t { straight, from_copies, in_steps };

inline std::string text(const Event& event) {
  std::ostringstream out;
  out << "event " << int(event.kind);
  if (event.job != no_job) out << " of job " << index(event.job);
  if (event.node != no_node) out << " on node " << index(event.node);
  return out.str();
}

inline std::vector<std::string> texts(std::span<const Event> events) {
  std::vector<std::string> texts;
  for (const Event& event : events) texts.push_back(text(event));
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Where the engine and the reference differ now.
class Comparison {
 public:
  Comparison(const Engine& engine, const SlowWorld& slow) : engine_(&engine), slow_(&slow) {}

  [[nodiscard]] std::string at_instant() {
    same("the instant", engine_->view().now().us, slow_->now().us);
    if (texts(engine_->events()) != texts(slow_->events())) {
      out_ << "events: engine";
      for (const std::string& event : texts(engine_->events())) out_ << " [" << event << "]";
      out_ << ", reference";
      for (const std::string& event : texts(slow_->events())) out_ << " [" << event << "]";
      out_ << "\n";
    }
    jobs();
    nodes();
    return out_.str();
  }

  [[nodiscard]] std::string at_end(const RunLog& log) {
    for (std::uint32_t i = 0; i < engine_->jobs().size(); ++i) outcome(JobId{i});
    same("withheld GPU time", log.withheld(), slow_->withheld_time());
    same("idle GPU time", log.idle(), slow_->idle_time());
    gpusched::detail::WideInt held = 0;
    for (std::uint32_t i = 0; i < engine_->jobs().size(); ++i) held += slow_->job(JobId{i}).held_gpu;
    same("held GPU time", log.held(), held);
    same("capacity", log.capacity(), held + slow_->withheld_time() + slow_->idle_time());
    return out_.str();
  }

 private:
  template <class A, class B>
  void same(const std::string& what, A engine, B reference) {
    if (engine != reference) {
      out_.precision(17);
      out_ << what << ": engine " << static_cast<double>(engine) << ", reference " << static_cast<double>(reference)
           << "\n";
    }
  }

  void near(const std::string& what, double engine, double reference, double within) {
    if (std::abs(engine - reference) > within) {
      out_ << what << ": engine " << engine << ", reference " << reference << "\n";
    }
  }

  void jobs() {
    const OracleView view = engine_->view();
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      const JobId job{i};
      const SlowJob& slow = slow_->job(job);
      const std::string name = "job " + std::to_string(i);
      same(name + " is in phase", int(view.phase(job)), int(slow.phase));
      if (slow.phase == JobPhase::future || slow.is_resized) continue;
      same(name + " has work left", view.remaining(job).us, slow_->remaining(job).us);
      if (slow.phase == JobPhase::running) {
        same(name + " has its rate since", view.running_since(job).us, slow.run.since.us);
        same(name + " is to end at", view.expected_end(job).us, SlowWorld::expected_end(slow).us);
        same(name + " holds", view.held_gpu_milli(job), slow.run.milli);
      }
      same(name + " has priority", view.priority(job), slow.priority);
    }
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) order(queue);
  }

  // Waiting jobs stand in the order in which they joined their queue, but for those that a decision preempted.
  void order(std::uint32_t queue) {
    std::uint32_t last = 0;
    for (const JobId job : engine_->view().queue(queue)) {
      if (slow_->job(job).was_preempted_last) continue;
      if (slow_->job(job).joined < last) out_ << "queue " << queue << " is out of order at job " << index(job) << "\n";
      last = slow_->job(job).joined;
    }
  }

  void nodes() {
    const ClusterState& state = engine_->view().cluster();
    MilliGpu withheld = 0, free = 0;
    for (std::uint32_t i = 0; i < state.node_count(); ++i) {
      const NodeId node{i};
      const SlowWorld::Held held = slow_->held(node);
      const auto& account = state.node(node);
      const std::string name = "node " + std::to_string(i);
      const bool is_up = slow_->is_in_service(node);
      const MilliGpu left = state.node_gpus(node) * whole_gpu - held.gpu;
      (is_up ? free : withheld) += left;
      same(name + " is in service", state.is_up(node), is_up);
      same(name + " has free GPU thousandths", state.node_free_gpu_milli(node), is_up ? left : 0);
      if (!is_up) continue;
      if (account.cpu_capacity < unlimited) {
        same(name + " has free CPU", state.node_free_cpu_milli(node), account.cpu_capacity - held.cpu);
      }
      if (account.memory_capacity < unlimited) {
        same(name + " has free memory", state.node_free_memory_mib(node), account.memory_capacity - held.memory);
      }
      for (const auto& [device, milli] : held.devices) {
        same(name + " has left of GPU " + std::to_string(device), MilliGpu{state.node_device_left(node, device)},
             whole_gpu - milli);
      }
    }
    same("withheld", state.withheld_gpu_milli(), withheld);
    same("free", state.free_gpu_milli(), free);
  }

  void outcome(JobId job) {
    const SlowJob& slow = slow_->job(job);
    const std::string name = "job " + std::to_string(index(job));
    const double us = 2.0 * static_cast<double>(slow.account.roundings);  // each is off by two microseconds at most
    const double milli_us = us * static_cast<double>(most_held(job));
    same(name + " might first run at", engine_->submit(job).us, slow.eligible.us);
    same(name + " first started at", engine_->first_start(job).us, slow.first_start.us);
    same(name + " ended at", engine_->end(job).us, slow.end.us);
    same(name + " ran", engine_->ran(job).us, slow.ran.us);
    same(name + " was preempted", engine_->preemptions(job), slow.preemptions);
    same(name + " was killed", engine_->kills(job), slow.kills);
    same(name + " was cancelled", engine_->is_cancelled(job), slow.is_cancelled);
    const GpuTime time = engine_->gpu_time(job);
    same(name + " held GPU time", time.held(), slow.held_gpu);
    near(name + " had overhead", static_cast<double>(engine_->overhead(job).us), slow.account.overhead.wall, us);
    near(name + " lost", static_cast<double>(engine_->lost(job).us), slow.account.lost.wall, us);
    near(name + " had useful GPU time", static_cast<double>(time.useful), slow.account.useful.gpu, milli_us);
    near(name + " had overhead in GPU time", static_cast<double>(time.overhead), slow.account.overhead.gpu, milli_us);
    near(name + " lost GPU time", static_cast<double>(time.lost), slow.account.lost.gpu, milli_us);
    if (!slow_->has_stages()) return;
    same(name + " had cold starts", engine_->starts(job).cold, slow_->starts(job).cold);
    same(name + " had warm starts", engine_->starts(job).warm, slow_->starts(job).warm);
    same(name + " fetched", engine_->starts(job).fetched_bytes, slow_->starts(job).fetched_bytes);
  }

  [[nodiscard]] MilliGpu most_held(JobId job) const {
    MilliGpu most = slow_->job(job).asked.gpu_milli() + 8 * whole_gpu;
    return std::max(most, engine_->jobs().shape(job).gpu_milli());
  }

  const Engine* engine_;
  const SlowWorld* slow_;
  std::ostringstream out_;
};

// A run of the engine in some way.
class Run {
 public:
  Run(const DrawnWorld& world, AnyPolicy policy, Mode mode, std::uint64_t seed)
      : engine_(world.jobs(), world.cluster(), world.world.options, world.inputs()),
        policy_(std::move(policy)),
        mode_(mode),
        rng_(Rng(seed).split("steps")) {}

  // Moves to the next instant. False: nothing is left.
  bool advance() {
    if (mode_ != Mode::in_steps) return engine_.advance();
    while (engine_.next_event_time() != Time::max()) {
      const Time step{1 + static_cast<std::int64_t>(rng_.below(rng_.below(3) == 0 ? 100 : 20'000'000))};
      if (engine_.advance_to(engine_.view().now() + step)) return true;
    }
    return false;
  }

  // The policy decides; returns what it said.
  std::vector<ToldCommand> decide() {
    Decision decision = engine_.decision();
    policy_.decide(engine_.view(), decision);
    const std::vector<ToldCommand> told = engine_.told();
    engine_.apply();
    return told;
  }

  // Another copy goes on from here; this one is run on for a while and given up.
  void change_to_copy() {
    if (mode_ != Mode::from_copies || rng_.below(8) != 0) return;
    WatchedEngine engine = engine_;
    AnyPolicy policy = policy_;
    for (int i = 0; i < 3 && advance(); ++i) decide();
    engine_ = std::move(engine);
    policy_ = std::move(policy);
  }

  [[nodiscard]] const WatchedEngine& engine() const { return engine_; }

 private:
  WatchedEngine engine_;
  AnyPolicy policy_;
  Mode mode_;
  Rng rng_;
};

struct CheckedOutcome {
  std::string fault = {};
  bool ended = false;  ///< all jobs
  std::vector<Instant> instants = {};
};

// Beside the reference.
inline CheckedOutcome straight(const DrawnWorld& world, const AnyPolicy& policy, std::uint64_t seed) {
  Run run(world, policy, Mode::straight, seed);
  SlowWorld slow(world.jobs(), world.cluster(), world.world.options, world.inputs());
  RunLog log;
  CheckedOutcome outcome;
  gpusched::detail::ProgressWatch progress(run.engine().view());
  const auto differs = [&](const std::string& when) {
    outcome.fault = Comparison(run.engine(), slow).at_instant();
    if (outcome.fault.empty()) return false;
    outcome.fault = when + " at " + std::to_string(to_seconds(run.engine().view().now())) + " s: " + outcome.fault;
    return true;
  };
  while (run.advance()) {
    const Engine& engine = run.engine();
    if (!slow.advance()) {
      // Plans that have changed since let nodes fail a little longer.
      if (!engine.all_finished()) return outcome;
      outcome.fault = "the reference is over";
      return outcome;
    }
    if (differs("before the decision")) return outcome;
    progress.observe(engine.view(), engine.events());
    log.observe(engine.view(), engine.events());
    outcome.instants.push_back(
        {.now = engine.view().now(), .events = {engine.events().begin(), engine.events().end()}});
    const std::vector<ToldCommand> told = run.decide();
    outcome.instants.back().told = told;
    slow.decide(told);
    if (differs("after the decision")) return outcome;
    outcome.instants.back().carried_out = {engine.events().begin(), engine.events().end()};
    progress.observe(engine.view(), engine.events());
    log.observe(engine.view(), engine.events());
    if (progress.endless() || outcome.instants.size() > most_instants_here) return outcome;
  }
  if (slow.advance()) outcome.fault = "the engine is over, the reference is not";
  outcome.ended = run.engine().all_finished();
  if (outcome.fault.empty() && outcome.ended) outcome.fault = Comparison(run.engine(), slow).at_end(log);
  return outcome;
}

// The same run in another way.
inline std::string fault_of(const DrawnWorld& world, const AnyPolicy& policy, Mode mode, std::uint64_t seed,
                            const std::vector<Instant>& expected) {
  Run run(world, policy, mode, seed);
  for (const Instant& instant : expected) {
    if (!run.advance()) return "is over";
    Instant found{.now = run.engine().view().now(),
                  .events = {run.engine().events().begin(), run.engine().events().end()}};
    found.told = run.decide();
    found.carried_out = {run.engine().events().begin(), run.engine().events().end()};
    if (!is_same(found, instant)) return "differs at " + std::to_string(to_seconds(instant.now)) + " s";
    run.change_to_copy();
  }
  return {};
}

struct Tally {
  std::uint64_t worlds = 0, ended = 0, instants = 0;
};

inline void check(const std::string& name, const DrawnWorld& world, const AnyPolicy& policy, std::uint64_t seed,
                  Tally& tally) {
  const CheckedOutcome outcome = straight(world, policy, seed);
  ++tally.worlds;
  tally.ended += outcome.ended ? 1 : 0;
  tally.instants += outcome.instants.size();
  ASSERT_EQ(outcome.fault, "") << name << ", seed " << seed;
  ASSERT_EQ(fault_of(world, policy, Mode::from_copies, seed, outcome.instants), "") << name << ", seed " << seed;
  ASSERT_EQ(fault_of(world, policy, Mode::in_steps, seed, outcome.instants), "") << name << ", seed " << seed;
}

}  // namespace gpusched::test
