// SPDX-License-Identifier: Apache-2.0
/// simulate(): the whole run, engine + policy + observers, in one call.
#pragma once

#include <concepts>
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

/// Detects preemption livelock: jobs that preempt each other for ever and spend every run on restarting and on
/// repeating lost work. The sign: since the last finish, with no submission to come, there were a thousand preemptions
/// for every unfinished job, and no job progressed by as much as one preemption costs. Costs next to nothing while
/// preemption is free or rare.
class TurnWatch {
 public:
  explicit TurnWatch(const PreemptionCost& cost) : cost_(cost.checkpoint + cost.restart + cost.checkpoint_interval) {}

  void observe(const OracleView& view, std::span<const Event> events) {
    if (cost_ == Time{}) return;
    for (const Event& event : events) {
      if (event.kind == EventKind::preempt) ++preemptions_;
      if (!leaves_cluster(event.kind)) continue;
      preemptions_ = 0;
      left_.clear();
    }
    const std::uint64_t unfinished = view.job_count() - view.finished();
    if (view.arrived() == view.job_count() && preemptions_ > turns_a_job * unfinished) take_stock(view);
  }

  [[nodiscard]] bool endless() const { return endless_; }

 private:
  static constexpr std::uint64_t turns_a_job = 1000;

  void take_stock(const OracleView& view) {
    std::vector<Time> left(view.job_count());
    endless_ = !left_.empty();
    for (std::uint32_t i = 0; i < view.job_count(); ++i) {
      left[i] = view.phase(JobId{i}) == JobPhase::done ? Time{} : view.remaining(JobId{i});
      if (!left_.empty() && left[i] + cost_ < left_[i]) endless_ = false;
    }
    left_ = std::move(left);
    preemptions_ = 0;
  }

  Time cost_;
  std::uint64_t preemptions_ = 0;
  std::vector<Time> left_;  // by job, at the last check; empty when a job finished since
  bool endless_ = false;
};

}  // namespace detail

/// Runs until nothing is left to happen. Returns true when every job finished; false means that the policy left jobs
/// waiting for ever, or a preemption livelock (ends_in_turns).
template <Policy P, Observer... Observers>
bool simulate(Engine& engine, P& policy, Observers&... observers) {
  Decision decision = engine.decision();
  detail::TurnWatch turns(engine.view().options().preemption);
  while (engine.advance()) {
    const OracleView view = engine.view();
    turns.observe(view, engine.events());
    (observers.observe(view, engine.events()), ...);
    policy.decide(view, decision);
    engine.apply();
    if (engine.events().empty()) continue;
    (observers.observe(view, engine.events()), ...);
    turns.observe(view, engine.events());
    if (turns.endless()) return false;
  }
  return engine.all_finished();
}

/// After simulate() returned false: true for a preemption livelock, false when the policy left jobs waiting for ever.
[[nodiscard]] inline bool ends_in_turns(const Engine& engine) { return engine.next_event_time() != Time::max(); }

}  // namespace gpusched
