// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/max_min.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

std::uint32_t MaxMin::party_of(const View& view, JobId job) const {
  switch (party_) {
    case FairParty::user: return view.user(job);
    case FairParty::group: return view.group(job);
    case FairParty::vc: break;
  }
  return view.vc(job);
}

void MaxMin::decide(const View& view, Decision& decision) {
  note_events(view);
  const auto unblock = [&] { blocked_.assign(view.queue_count(), std::vector<std::uint8_t>(view.shape_count(), 0)); };
  unblock();
  for (auto at = hungry_.begin(); at != hungry_.end();) {
    const JobId job = first_that_may_fit(view, parties_[at->second]);
    if (job == no_job) {
      ++at;
      continue;
    }
    if (decision.start(job) == Verdict::ok) {
      started(view, job);
    } else if (!preempts_ || !start_by_force(view, decision, job)) {
      blocked_[view.queue_of(job)][view.shape_id(job)] = 1;
      continue;
    }
    // Those passed over before could not start with less taken, and cannot now: but by force, from who now holds more,
    // or where a gang that stopped left more than was wanted.
    if (preempts_) unblock();
    at = hungry_.begin();
  }
}

void MaxMin::started(const View& view, JobId job) {
  const std::uint32_t number = party_of(view, job);
  Party& party = parties_[number];
  auto& waiting = party.by_shape[view.shape_id(job)];
  waiting.erase(std::find(waiting.begin(), waiting.end(), job));
  hungry_.erase({party.held, number});
  --party.waiting;
  party.held += view.shape(job).gpu_milli();
  if (party.waiting > 0) hungry_.insert({party.held, number});
}

// Precondition: the job's party is not among hungry_.
void MaxMin::wait(const View& view, JobId job) {
  Party& party = parties_[party_of(view, job)];
  if (party.by_shape.empty()) party.by_shape.resize(view.shape_count());
  auto& jobs = party.by_shape[view.shape_id(job)];
  jobs.insert(std::upper_bound(jobs.begin(), jobs.end(), job), job);  // one that ran is older than the rest
  ++party.waiting;
}

bool MaxMin::start_by_force(const View& view, Decision& decision, JobId job) {
  const std::vector<JobId> stopped = make_room(job, view.options().placement, victims_for(view, job), decision);
  if (view.phase(job) != JobPhase::running) return false;
  started(view, job);
  for (const JobId victim : stopped) {
    const std::uint32_t number = party_of(view, victim);
    hungry_.erase({parties_[number].held, number});
    parties_[number].held -= view.shape(victim).gpu_milli();
    wait(view, victim);
    hungry_.insert({parties_[number].held, number});
  }
  return true;
}

// In the order in which they go; none when all of them would not do. What is free counts in full, as the rest of a card
// may fall idle with a share that goes.
std::vector<JobId> MaxMin::victims_for(const View& view, JobId job) const {
  const MilliGpu wanted = view.shape(job).gpu_milli();
  const std::uint32_t taker = party_of(view, job);
  const MilliGpu then_held = parties_[taker].held + wanted;
  MilliGpu spare = view.cluster().free_gpu_milli();
  std::vector<MilliGpu> left(parties_.size());
  for (std::uint32_t number = 0; number < parties_.size(); ++number) {
    left[number] = parties_[number].held;
    if (number != taker) spare += std::max<MilliGpu>(left[number] - then_held, 0);
  }
  std::vector<JobId> victims;
  if (spare < wanted) return victims;
  for (const JobId other : view.running()) {
    const MilliGpu held = left[party_of(view, other)];
    if (party_of(view, other) != taker && held > then_held) victims.push_back(other);
  }
  std::sort(victims.begin(), victims.end(), [&](JobId a, JobId b) {
    const MilliGpu held_a = left[party_of(view, a)], held_b = left[party_of(view, b)];
    if (held_a != held_b) return held_a > held_b;
    return std::pair(view.first_start(a), a) > std::pair(view.first_start(b), b);
  });
  std::erase_if(victims, [&](JobId victim) {
    MilliGpu& held = left[party_of(view, victim)];
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
    const std::uint32_t number = party_of(view, event.job);
    if (number >= parties_.size()) parties_.resize(number + 1);
    Party& party = parties_[number];
    hungry_.erase({party.held, number});
    if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
      party.held -= view.shape(event.job).gpu_milli();
    }
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
      wait(view, event.job);
    }
    if (party.waiting > 0) hungry_.insert({party.held, number});
  }
}

// Of each shape the first waiting job, and of those the earliest submitted, leaving out what is known not to fit now.
JobId MaxMin::first_that_may_fit(const View& view, const Party& party) const {
  JobId best = no_job;
  for (const auto& waiting : party.by_shape) {
    if (waiting.empty()) continue;
    // A shape may fit in one scheduling queue and not in another; the first job not blocked stands for it.
    for (const JobId job : waiting) {
      if (blocked_[view.queue_of(job)][view.shape_id(job)]) {
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
          .complexity = "O(waiting parties x shapes); a preemption O(parties + running log running)",
          .parameters = {{.name = "by",
                          .fallback = std::string("user"),
                          .meaning = "whose share is kept fair",
                          .words = {"user", "group", "vc"}},
                         {.name = "preempt",
                          .fallback = false,
                          .meaning = "stop jobs of those who hold more, while they keep as much as the taker gets"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            const std::string& by = parameters.word("by");
            const bool known = by == "user"    ? context.jobs->has_users()
                               : by == "group" ? context.jobs->has_groups()
                                               : context.jobs->has_vcs();
            if (!known) {
              return unexpected("policy 'max-min' shares GPUs between " + by + "s, and the trace names none" +
                                (by == "user" ? "; try max-min{by=vc} or max-min{by=group}" : ""));
            }
            const FairParty party = by == "user" ? FairParty::user : by == "group" ? FairParty::group : FairParty::vc;
            return AnyPolicy(MaxMin(party, parameters.flag("preempt")));
          },
          .preemptive = true,
          .work_conserving = true};
}

}  // namespace gpusched
