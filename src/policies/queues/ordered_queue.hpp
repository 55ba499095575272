// SPDX-License-Identifier: Apache-2.0
/// OrderedQueue: waiting jobs in a PriorityOrder, kept up to date by the events.
#pragma once

#include <utility>

#include "src/policies/queues/waiting_jobs.hpp"
#include "src/policies/seam/priority_order.hpp"

namespace gpusched {

/// A PriorityOrder together with the jobs that wait in it; keeps up with the instant's events.
class OrderedQueue {
 public:
  explicit OrderedQueue(PriorityOrder order) : order_(std::move(order)), waiting_(order_.ages()) {}

  [[nodiscard]] const PriorityOrder& order() const { return order_; }
  [[nodiscard]] WaitingJobs& waiting() { return waiting_; }

  /// Learns from the jobs that finished, takes in those that began to wait and takes out those that were cancelled.
  void observe(const OracleView& view) {
    learn(view);
    for (const Event& event : view.events()) note(view.at(event), event);
  }
  /// The first part of observe().
  void learn(const OracleView& view) { order_.estimator.observe(view); }
  /// The rest of it, for one event.
  void note(const OracleView& view, const Event& event) {
    if (enters_queue(event.kind)) push(view, event.job);
    if (event.kind == EventKind::withdraw) waiting_.erase(view, event.job);
    if (event.kind != EventKind::reprioritize || view.phase(event.job) != JobPhase::pending) return;
    waiting_.erase(view, event.job);
    push(view, event.job);
  }

  void push(const OracleView& view, JobId job) {
    const JobFacts facts = facts_of(view, job, order_.estimator.estimate(view, job));
    waiting_.push(view, job, order_.ages() ? order_.growth(facts) : order_.score(facts));
  }

 private:
  PriorityOrder order_;
  WaitingJobs waiting_;
};

}  // namespace gpusched
