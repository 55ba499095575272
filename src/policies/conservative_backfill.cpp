// SPDX-License-Identifier: Apache-2.0
#include "src/policies/conservative_backfill.hpp"

#include <algorithm>

namespace gpusched {

void ConservativeBackfill::decide(const OracleView& view, Decision& decision) {
  // A wake for a start that was moved since is no event: believed ends are corrected at events.
  const bool only_woken = view.events().size() == 1 && view.events().front().kind == EventKind::wake;
  if (only_woken && view.now() != next_wake_) return;
  const bool surprised = ends_.observe(view);
  queue_.observe(view);
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) unplanned_.push_back(event.job);
  }
  profile_.drop_before(view.now());
  if (surprised || stale_) {
    stale_ = false;
    rebuild(view);
    improve(view);
  }
  do {
    take_in(view);
  } while (start_due(view, decision));  // what started leaves its reservation to the next
  wake_for_next(view, decision);
}

// Gives new jobs their reservations, as far as the depth goes.
void ConservativeBackfill::take_in(const View& view) {
  while (next_unplanned_ < unplanned_.size() && plans_.size() < depth_) {
    const JobId job = unplanned_[next_unplanned_++];
    plans_.push_back({.job = job, .start = {}, .length = std::max(ends_.estimate(job), Time{1}), .parts = {}});
    reserve(view, plans_.back());
  }
  if (next_unplanned_ == unplanned_.size()) {
    unplanned_.clear();
    next_unplanned_ = 0;
  }
}

// The profile from what is known now: running jobs, then every plan that still holds, then the others anew.
void ConservativeBackfill::rebuild(const View& view) {
  profile_.clear(view.now());
  for (const EstimatedEnds::End& end : ends_.ends()) {
    profile_.change(view.now(), end.time, view.shape(end.job), view.queue_of(end.job), profile_.parts_of(view, end.job),
                    -1);
  }
  sort_by_priority(view);
  std::vector<Plan*> broken;
  for (Plan& plan : plans_) {
    const Shape& shape = view.shape(plan.job);
    if (plan.start >= view.now() &&
        profile_.is_free(plan.start, plan.end(), shape, view.queue_of(plan.job), plan.parts)) {
      change(view, plan, -1);
    } else {
      broken.push_back(&plan);
    }
  }
  for (Plan* plan : broken) reserve(view, *plan);
}

// Moves plans to earlier holes. Each finds at least the one it holds.
void ConservativeBackfill::improve(const View& view) {
  for (Plan& plan : plans_) {
    change(view, plan, +1);
    reserve(view, plan);
  }
}

void ConservativeBackfill::sort_by_priority(const View& view) {
  const auto before = [&](const Plan& a, const Plan& b) {
    const std::uint32_t queue_a = view.queue_of(a.job);
    const std::uint32_t queue_b = view.queue_of(b.job);
    return queue_a != queue_b ? queue_a < queue_b : queue_.waiting().before(view, a.job, b.job);
  };
  std::sort(plans_.begin(), plans_.end(), before);
}

void ConservativeBackfill::reserve(const View& view, Plan& plan) {
  auto hole = profile_.find(view.now(), plan.length, view.shape(plan.job), view.queue_of(plan.job), view.cluster());
  GPUSCHED_ASSERT(hole.has_value(), "every job fits the empty cluster");
  plan.start = hole->start;
  plan.parts = std::move(hole->parts);
  change(view, plan, -1);
}

void ConservativeBackfill::change(const View& view, const Plan& plan, int sign) {
  profile_.change(plan.start, plan.end(), view.shape(plan.job), view.queue_of(plan.job), plan.parts, sign);
}

bool ConservativeBackfill::start_due(const View& view, Decision& decision) {
  const auto started = [&](const Plan& plan) {
    if (plan.start > view.now()) return false;
    if (!start(plan, decision)) {  // shares of GPUs that are free, but not on one device
      stale_ = true;
      return false;
    }
    ends_.start(view, plan.job);
    queue_.waiting().erase(view, plan.job);
    return true;
  };
  return std::erase_if(plans_, started) > 0;
}

bool ConservativeBackfill::start(const Plan& plan, Decision& decision) {
  if (!profile_.by_node()) return decision.start(plan.job) == Verdict::ok;
  std::vector<NodeTasks> nodes;
  for (const CapacityProfile::Part& part : plan.parts)
    nodes.push_back({.node = NodeId{part.cell}, .tasks = part.tasks});
  return decision.start_on(plan.job, nodes) == Verdict::ok;
}

// A planned start need not be an event of its own: the job it waits for may outlive its estimate.
void ConservativeBackfill::wake_for_next(const View& view, Decision& decision) {
  Time next = Time::max();
  for (const Plan& plan : plans_) {
    if (plan.start > view.now()) next = std::min(next, plan.start);
  }
  if (next != Time::max() && next != next_wake_) decision.wake(next);
  next_wake_ = next;
}

std::map<JobId, Time> ConservativeBackfill::reservations() const {
  std::map<JobId, Time> starts;
  for (const Plan& plan : plans_) starts.emplace(plan.job, plan.start);
  return starts;
}

}  // namespace gpusched
