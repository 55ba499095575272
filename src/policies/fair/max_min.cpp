// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/max_min.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

// The owner who holds the fewest GPUs, then the one whose first job came first.
struct MaxMin::ByHeld : RankedOrder {
  explicit ByHeld(const PerOwner<MilliGpu>& of_owners) : held(&of_owners) {}
  [[nodiscard]] std::int64_t major(const RankedClasses::Class& jobs) const { return (*held)[jobs.member]; }
  [[nodiscard]] static std::int64_t minor(const RankedClasses::Class& jobs) { return jobs.member; }
  [[nodiscard]] static Score score(const RankedClasses::Class& jobs) { return jobs.rank; }
  const PerOwner<MilliGpu>* held;
};

void MaxMin::decide(const View& view, Decision& decision) {
  if (!preempts_) decision.keep_order();
  note_events(view);
  if (!preempts_) {
    waiting_.start_while_any_fits(view, decision, view.options().placement, ByHeld(held_),
                                  [&](JobId job) { hold(view, job, +1); });
    return;
  }
  // A start may let others take from its owner what they could not take before.
  while (start_first(view, decision)) {
  }
}

// Starts the first job that fits or takes its room from others. False: there is none.
bool MaxMin::start_first(const View& view, Decision& decision) {
  bool found = false;
  std::vector<JobId> stopped;
  const auto any = [](const RankedClasses::Kind&) { return true; };
  waiting_.start_best(ByHeld(held_), any, [&](const RankedClasses::Class& jobs) {
    const JobId job = jobs.first();
    if (found) return Attempt::no_room;
    const Verdict verdict = decision.start(job);
    if (verdict == Verdict::over_limit) return Attempt::no_room;
    if (verdict != Verdict::ok) {
      stopped = make_room(job, view.options().placement, victims_for(view, job), decision);
    }
    found = view.phase(job) == JobPhase::running;
    if (!found) return Attempt::no_room;
    hold(view, job, +1);
    return Attempt::started;
  });
  for (const JobId victim : stopped) {
    hold(view, victim, -1);
    wait(view, victim);
  }
  return found;
}

void MaxMin::hold(const View& view, JobId job, std::int64_t sign) {
  held_[number_of(view, job)] += sign * view.shape(job).gpu_milli();
  waiting_.reorder_member(number_of(view, job), ByHeld(held_));
}

void MaxMin::wait(const View& view, JobId job) { waiting_.push(view, job, 0, number_of(view, job), ByHeld(held_)); }

// In the order in which they go; none when all of them would not do. What is free counts in full, as the rest of a card
// may fall idle with a share that goes.
std::vector<JobId> MaxMin::victims_for(const View& view, JobId job) const {
  const MilliGpu wanted = view.shape(job).gpu_milli();
  const std::uint32_t taker = number_of(view, job);
  const MilliGpu then_held = held_[taker] + wanted;
  MilliGpu spare = view.cluster().free_gpu_milli();
  PerOwner<MilliGpu> left = held_;
  PerOwner<std::uint8_t> counted;
  for (const JobId other : view.running()) {
    const std::uint32_t number = number_of(view, other);
    if (number == taker || std::exchange(counted[number], std::uint8_t{1}) != 0) continue;
    spare += std::max<MilliGpu>(left[number] - then_held, 0);
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
    return std::pair(view.first_start(a), view.queue_place(a)) > std::pair(view.first_start(b), view.queue_place(b));
  });
  std::erase_if(victims, [&](JobId victim) {
    const MilliGpu gpus = view.shape(victim).gpu_milli();
    const bool stays = gpus == 0 || left[number_of(view, victim)] - gpus < then_held;
    if (!stays) left[number_of(view, victim)] -= gpus;
    return stays;
  });
  return victims;
}

void MaxMin::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const View then = view.at(event);
    if (leaves_cluster(event.kind)) hold(then, event.job, -1);
    if (enters_queue(event.kind)) wait(then, event.job);
    if (event.kind == EventKind::withdraw) waiting_.erase(then, event.job, ByHeld(held_));
    if (event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(then, event.job, 0, number_of(view, event.job), ByHeld(held_));
    }
  }
}

PolicyInfo max_min_info() {
  return {.name = "max-min",
          .summary = "max-min fairness over GPUs: the user who holds the fewest goes next",
          .source = "progressive filling, Bertsekas & Gallager, 'Data Networks', section 6.5, over whole gangs",
          .complexity = "O(shapes x log n); a preemption O(running log running)",
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
