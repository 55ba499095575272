// SPDX-License-Identifier: Apache-2.0
/// AdoptedPolicy: any policy, which may join in mid-run.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/rehearsal.hpp"

namespace gpusched {

/// A policy that is there from the beginning, or takes over a run that others began. One that takes over knows who
/// runs, since when and with what left (Rehearsal), and then sees every waiting job come, by its place in the queue. It
/// knows nothing of jobs that are over. A running job that it would not have started yet stays unknown to it: such a
/// job keeps its nodes until it ends, which the policy sees as a node that comes back, and comes to the policy as a new
/// job if it loses them. Where the policy places all jobs afresh at every event (AnyPolicy::places_afresh), it is
/// preempted instead. One that decided until now can leave it what it knows of jobs that are over.
class AdoptedPolicy {
 public:
  /// A policy that was never asked.
  explicit AdoptedPolicy(AnyPolicy policy) : policy_(std::move(policy)) {}

  /// The policy's name.
  [[nodiscard]] std::string_view name() const { return policy_.name(); }
  /// Whether it reads true run times.
  [[nodiscard]] bool clairvoyant() const { return policy_.clairvoyant(); }
  /// What it tells of its run (AnyPolicy::notes).
  [[nodiscard]] std::string notes() const { return policy_.notes(); }
  /// Running jobs that it does not know.
  [[nodiscard]] std::size_t unknown() const { return unknown_.size(); }

  /// Takes over at the instant of `view`, before any command of it, and decides. `before`: who decided until now
  /// (AnyPolicy::inherit), or null. Precondition: the policy was never asked. O(jobs of the table), and a decision for
  /// each job that runs.
  void adopt(const OracleView& view, Decision& decision, const AdoptedPolicy* before = nullptr) {
    detail::Rehearsal rehearsal(view);
    rehearsal.play(policy_);
    policy_.adopt(view);
    if (before != nullptr) policy_.inherit(before->policy_, view);
    for (const JobId job : rehearsal.unknown()) {
      NodeId node = no_node;
      view.for_each_grant(job, [&node](const Grant& grant) { node = grant.node; });
      if (policy_.places_afresh()) {
        decision.preempt(job);
      } else {
        unknown_.push_back({job, node});
      }
    }
    std::vector<QueuePlace> waiting;
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) waiting.push_back(view.queue_place(job));
    }
    std::sort(waiting.begin(), waiting.end());
    events_ = {{EventKind::wake, no_job}};
    for (const QueuePlace& place : waiting) events_.push_back({EventKind::submit, place.job});
    for (const Time wake : rehearsal.wakes()) {
      if (wake > view.now()) decision.wake(wake);
    }
    policy_.decide(view.showing(events_), decision);
    forget_stopped(view);
  }

  /// As any policy.
  void decide(const OracleView& view, Decision& decision) {
    if (unknown_.empty()) return policy_.decide(view, decision);
    events_.clear();
    for (const Event& event : view.events()) tell(event);
    if (events_.empty()) events_.push_back({EventKind::wake, no_job});
    policy_.decide(view.showing(events_), decision);
    forget_stopped(view);
  }

 private:
  struct Unknown {
    JobId job = no_job;
    NodeId node = no_node;  // one of its nodes
  };

  // What the policy sees of an event.
  void tell(const Event& event) {
    const auto unknown = std::find_if(unknown_.begin(), unknown_.end(), [&event](const Unknown& other) {
      return event.job != no_job && other.job == event.job;
    });
    if (unknown == unknown_.end()) return events_.push_back(event);
    if (!leaves_cluster(event.kind)) return;
    if (event.kind == EventKind::finish) {
      events_.push_back({EventKind::node_up, no_job, unknown->node});
    } else {
      events_.push_back({EventKind::submit, event.job, no_node, event.shape});
    }
    unknown_.erase(unknown);
  }

  // Those that the policy preempted although it did not start them.
  void forget_stopped(const View& view) {
    std::erase_if(unknown_, [&view](const Unknown& other) { return view.phase(other.job) != JobPhase::running; });
  }

  AnyPolicy policy_;
  std::vector<Unknown> unknown_;
  std::vector<Event> events_;  // that the policy is shown
};

}  // namespace gpusched
