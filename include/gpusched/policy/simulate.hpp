// SPDX-License-Identifier: Apache-2.0
/// simulate(): the whole run, engine + policy + observers, in one call.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/policy.hpp"

namespace gpusched {

/// Watches a run. observe() is called with the events of each instant after they were applied, and again with the
/// starts and preemptions of the decision, if there were any. An observer changes nothing.
template <class O>
concept Observer = requires(O observer, const OracleView& view, std::span<const Event> events) {
  observer.observe(view, events);
};

namespace detail {

/// Detects preemption livelock: jobs that preempt each other (or are killed by failures of nodes) for ever and spend
/// every run on restarting and on repeating lost work. The sign: since the last finish, with no submission to come,
/// either there were a thousand preemptions for every unfinished job, and no job progressed by as much as one
/// preemption costs; or there were thirty for each of many jobs, and none progressed at all; or a thousand changes of
/// each node, and no job started. Costs next to nothing while preemption is free or rare and nodes do not fail.
class TurnWatch {
 public:
  explicit TurnWatch(const OracleView& view)
      : cost_(cost_of(view.options().preemption)), fails_(view.nodes_can_fail()) {}

  void observe(const OracleView& view, std::span<const Event> events) {
    if (cost_ == Time{} && !fails_) return;
    for (const Event& event : events) {
      const bool stops = event.kind == EventKind::preempt || event.kind == EventKind::kill;
      if (stops) ++preemptions_;
      if (event.kind == EventKind::start) changes_ = 0;
      if (!concerns_job(event.kind) && event.kind != EventKind::wake) ++changes_;
      if (stops || !leaves_cluster(event.kind)) continue;
      preemptions_ = 0;
      before_.clear();
    }
    if (view.arrived() != view.job_count()) return;
    if (preemptions_ > 0) judge(view);
    endless_ = endless_ || (view.running().empty() && changes_ / 1000 > view.cluster().node_count());
  }

  [[nodiscard]] bool endless() const { return endless_; }

 private:
  static Time cost_of(const PreemptionCost& cost) { return cost.checkpoint + cost.restart + cost.checkpoint_interval; }

  // What a job had left at the last check.
  struct Left {
    Time work;
    bool waited = false;
  };

  // Few jobs are watched for longer: it costs as little.
  static std::uint64_t turns_without_progress(std::uint64_t jobs) {
    return std::max(30 * jobs, std::min<std::uint64_t>(1000 * jobs, 100'000));
  }

  void judge(const OracleView& view) {
    const std::uint64_t unfinished = view.job_count() - view.finished();
    if (before_.empty()) {
      if (preemptions_ > unfinished) take_stock(view);
    } else if (!glanced_ && preemptions_ > turns_without_progress(unfinished)) {
      glanced_ = true;
      endless_ = !any_progressed(view, Time{});
    } else if (preemptions_ > 1000 * unfinished) {
      endless_ = !any_progressed(view, cost_);
      take_stock(view);
    }
  }

  // By more than `least`, and by more than a preemption costs where the job ran then or runs now: it may have begun to
  // restart, or be about to lose what it did.
  [[nodiscard]] bool any_progressed(const OracleView& view, Time least) const {
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      const JobId job{i};
      if (view.phase(job) == JobPhase::done) continue;
      const bool waited = before_[i].waited && view.phase(job) == JobPhase::pending;
      if (view.remaining(job) + (waited ? least : cost_) < before_[i].work) return true;
    }
    return false;
  }

  void take_stock(const OracleView& view) {
    before_.resize(view.job_count());
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      const JobId job{i};
      if (view.phase(job) == JobPhase::done) continue;
      before_[i] = {view.remaining(job), view.phase(job) == JobPhase::pending};
    }
    preemptions_ = 0;
    glanced_ = false;
  }

  Time cost_;
  bool fails_ = false;             // nodes can
  std::uint64_t preemptions_ = 0;  // and kills, since the last check, or since a job finished
  std::vector<Left> before_;       // by job, at the last check; empty when a job finished since
  std::uint64_t changes_ = 0;      // of nodes, since a job started
  bool glanced_ = false;           // after that check, whether any job progresses at all
  bool endless_ = false;
};

}  // namespace detail

/// Runs until nothing is left to happen. Returns true when every job finished; false means that the policy left jobs
/// waiting for ever, or a preemption livelock (ends_in_turns).
template <Policy P, Observer... Observers>
bool simulate(Engine& engine, P& policy, Observers&... observers) {
  Decision decision = engine.decision();
  detail::TurnWatch turns(engine.view());
  while (engine.advance()) {
    const OracleView view = engine.view();
    turns.observe(view, engine.events());
    (observers.observe(view, engine.events()), ...);
    policy.decide(view, decision);
    engine.apply();
    if (!engine.events().empty()) {
      (observers.observe(view, engine.events()), ...);
      turns.observe(view, engine.events());
    }
    if (turns.endless()) return false;
  }
  return engine.all_finished();
}

/// After simulate() returned false: true for a preemption livelock, false when the policy left jobs waiting for ever.
[[nodiscard]] inline bool ends_in_turns(const Engine& engine) { return engine.next_event_time() != Time::max(); }

}  // namespace gpusched
