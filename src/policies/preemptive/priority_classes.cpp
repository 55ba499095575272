// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/priority_classes.hpp"

namespace gpusched {

void PriorityClasses::decide(const View& view, Decision& decision) {
  if (waiting_.empty()) {
    waiting_.resize(view.queue_count());
    running_.resize(view.queue_count());
    keys_.resize(view.job_count());
  }
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const std::uint32_t queue = view.queue_of(event.job);
    std::set<Place>& jobs = (view.phase(event.job) == JobPhase::running ? running_ : waiting_)[queue];
    const bool moves = event.kind == EventKind::reprioritize;
    if (leaves_cluster(event.kind)) running_[queue].erase(place_of(view, event.job));
    if (moves || event.kind == EventKind::withdraw) jobs.erase(place_of(view, event.job));
    if (!moves && !enters_queue(event.kind)) continue;
    keys_[index(event.job)] = key_of(view, event.job);
    jobs.insert(place_of(view, event.job));
  }
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) fill(queue, view, decision);
}

void PriorityClasses::fill(std::uint32_t queue, const View& view, Decision& decision) {
  while (!waiting_[queue].empty()) {
    const Place head = *waiting_[queue].begin();
    if (decision.start(head.job) != Verdict::ok && !(preempts_ && preempt_for(head, queue, view, decision))) return;
    waiting_[queue].erase(head);
    running_[queue].insert(head);
  }
}

// Makes room for the head and starts it, or changes nothing.
bool PriorityClasses::preempt_for(const Place& head, std::uint32_t queue, const View& view, Decision& decision) {
  victims_.clear();
  bool started = false;
  const Shape& shape = view.shape(head.job);
  for (auto victim = running_[queue].rbegin(); victim != running_[queue].rend() && head < *victim && !started;
       ++victim) {
    if (view.priority(victim->job) >= view.priority(head.job)) continue;
    decision.preempt(victim->job);
    victims_.push_back(*victim);
    started = view.cluster().may_fit(shape, queue) && decision.start(head.job) == Verdict::ok;
  }
  // Those that did not have to give way run on, the most urgent first.
  for (auto victim = victims_.rbegin(); victim != victims_.rend(); ++victim) {
    if (decision.restore(victim->job) == Verdict::ok) continue;
    running_[queue].erase(*victim);
    waiting_[queue].insert(*victim);
  }
  return started;
}

PolicyInfo priority_info() {
  return {.name = "priority",
          .summary = "priority classes, preemptive, with aging: waiting aging_s outweighs one class",
          .source = "the common practice of batch systems; the bound on the wait is stated and tested here",
          .complexity = "O(log n), and O(log n) for each preemption considered",
          .parameters = {{.name = "aging_s",
                          .fallback = 3600.0,
                          .meaning = "waiting time that outweighs one priority class",
                          .least = 0,
                          .most = 1e9},
                         {.name = "preempt", .fallback = true, .meaning = "stop running jobs of lower classes"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            if (!context.jobs->has_priorities()) {
              return unexpected("policy priority: the trace has no priorities but 0 (column priority)");
            }
            return AnyPolicy(PriorityClasses(from_seconds(parameters.number("aging_s")), parameters.flag("preempt")));
          },
          .preemptive = true};
}

}  // namespace gpusched
