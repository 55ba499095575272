// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/max_min.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

void MaxMin::decide(const View& view, Decision& decision) {
  note_events(view);
  const auto unblock = [&] { blocked_.assign(view.queue_count(), std::vector<std::uint8_t>(view.demand_count(), 0)); };
  unblock();
  for (auto at = hungry_.begin(); at != hungry_.end();) {
    const JobId job = first_that_may_fit(view, owners_[at->second]);
    if (job == no_job) {
      ++at;
      continue;
    }
    if (decision.start(job) == Verdict::ok) {
      started(view, job);
    } else if (!preempts_ || !start_by_force(view, decision, job)) {
      blocked_[view.queue_of(job)][view.demand(job)] = 1;
      continue;
    }
    // A start leaves less room, so what did not fit before does not fit now. A preemption may change that: its taker
    // now holds more, and the stopped gangs may have left more than was needed.
    if (preempts_) unblock();
    at = hungry_.begin();
  }
}

void MaxMin::started(const View& view, JobId job) {
  const std::uint32_t number = number_of(view, job);
  Owner& owner = owners_[number];
  auto& waiting = owner.by_shape[view.demand(job)];
  waiting.erase(std::find(waiting.begin(), waiting.end(), job));
  hungry_.erase({owner.held, number});
  --owner.waiting;
  owner.held += view.shape(job).gpu_milli();
  if (owner.waiting > 0) hungry_.insert({owner.held, number});
}

// Precondition: the job's owner is not among hungry_.
void MaxMin::wait(const View& view, JobId job) {
  Owner& owner = owners_[number_of(view, job)];
  if (owner.by_shape.empty()) owner.by_shape.resize(view.demand_count());
  auto& jobs = owner.by_shape[view.demand(job)];
  jobs.insert(std::upper_bound(jobs.begin(), jobs.end(), job), job);  // one that ran is older than the rest
  ++owner.waiting;
}

bool MaxMin::start_by_force(const View& view, Decision& decision, JobId job) {
  const std::vector<JobId> stopped = make_room(job, view.options().placement, victims_for(view, job), decision);
  if (view.phase(job) != JobPhase::running) return false;
  started(view, job);
  for (const JobId victim : stopped) {
    const std::uint32_t number = number_of(view, victim);
    hungry_.erase({owners_[number].held, number});
    owners_[number].held -= view.shape(victim).gpu_milli();
    wait(view, victim);
    hungry_.insert({owners_[number].held, number});
  }
  return true;
}

// In the order in which they go; none when all of them would not do. What is free counts in full, as the rest of a card
// may fall idle with a share that goes.
std::vector<JobId> MaxMin::victims_for(const View& view, JobId job) const {
  const MilliGpu wanted = view.shape(job).gpu_milli();
  const std::uint32_t taker = number_of(view, job);
  const MilliGpu then_held = owners_[taker].held + wanted;
  MilliGpu spare = view.cluster().free_gpu_milli();
  std::vector<MilliGpu> left(owners_.size());
  for (std::uint32_t number = 0; number < owners_.size(); ++number) {
    left[number] = owners_[number].held;
    if (number != taker) spare += std::max<MilliGpu>(left[number] - then_held, 0);
  }
  std::vector<JobId> victims;
  if (spare < wanted) return victims;
  for (const JobId other : view.running()) {
    const MilliGpu held = left[number_of(view, other)];
    if (number_of(view, other) != taker && held > then_held) victims.push_back(other);
  }
  std::sort(victims.begin(), victims.end(), [&](JobId a, JobId b) {
    const MilliGpu held_a = left[number_of(view, a)], held_b = left[number_of(view, b)];
    if (held_a != held_b) return held_a > held_b;
    return std::pair(view.first_start(a), a) > std::pair(view.first_start(b), b);
  });
  std::erase_if(victims, [&](JobId victim) {
    MilliGpu& held = left[number_of(view, victim)];
    const MilliGpu gpus = view.shape(victim).gpu_milli();
    const bool stays = gpus == 0 || held - gpus < then_held;
    if (!stays) held -= gpus;
    return stays;
  });
  return victims;
}

void MaxMin::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const std::uint32_t number = number_of(view, event.job);
    if (number >= owners_.size()) owners_.resize(number + 1);
    Owner& owner = owners_[number];
    hungry_.erase({owner.held, number});
    if (leaves_cluster(event.kind)) {
      owner.held -= view.shape(event.job).gpu_milli();
    }
    if (enters_queue(event.kind)) {
      wait(view, event.job);
    }
    if (owner.waiting > 0) hungry_.insert({owner.held, number});
  }
}

// Of each shape the first waiting job, and of those the earliest submitted, leaving out what is known not to fit now.
JobId MaxMin::first_that_may_fit(const View& view, const Owner& owner) const {
  JobId best = no_job;
  for (const auto& waiting : owner.by_shape) {
    if (waiting.empty()) continue;
    // A shape may fit in one scheduling queue and not in another; the first job not blocked stands for it.
    for (const JobId job : waiting) {
      if (blocked_[view.queue_of(job)][view.demand(job)]) {
        if (view.queue_count() == 1) break;
        continue;
      }
      if (index(job) < index(best)) best = job;
      break;
    }
  }
  return best;
}

PolicyInfo max_min_info() {
  return {.name = "max-min",
          .summary = "max-min fairness over GPUs: the user who holds the fewest goes next",
          .source = "progressive filling, Bertsekas & Gallager, 'Data Networks', section 6.5, over whole gangs",
          .complexity = "O(waiting owners x shapes); a preemption O(owners + running log running)",
          .parameters = {owner_parameter("user"),
                         {.name = "preempt",
                          .fallback = false,
                          .meaning = "stop jobs of those who hold more, while they keep as much as the taker gets"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            const auto column = owner_column("max-min", parameters, context);
            if (!column) return Unexpected{column.error()};
            return AnyPolicy(MaxMin(*column, parameters.flag("preempt")));
          },
          .preemptive = true,
          .work_conserving = true};
}

}  // namespace gpusched
