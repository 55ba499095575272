// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm_backfill.hpp"

#include <algorithm>
#include <vector>

namespace gpusched {

void SlurmBackfill::decide(const OracleView& view, Decision& decision) {
  ends_.observe(view);
  for (const Event& event : view.events()) changed_ = changed_ || event.kind != EventKind::wake;
  const Slurm::Hooks hooks{.started = [&](JobId job) { ends_.start(view, job); },
                           .preempted =
                               [&](JobId job) {
                                 ends_.preempt(view, job);
                                 changed_ = true;
                               }};
  slurm_.decide(view, decision, hooks);
  if (!changed_ || view.pending_count() == 0) return;
  if (view.now() < next_pass_) {
    decision.wake(next_pass_);
    return;
  }
  backfill(view, decision);
  changed_ = false;
  next_pass_ = view.now() + options_.interval;
  slurm_.wait_again(view, decision, hooks);
}

void SlurmBackfill::backfill(const OracleView& view, Decision& decision) {
  CapacityProfile profile = profile_of_running(view);
  const Time now = view.now();
  for (const JobId job : slurm_.waiting_in_order(view, options_.most_jobs)) {
    const Shape& shape = view.shape(job);
    const Time length = std::max(ends_.estimate(job), Time{1});
    auto hole = profile.find(now, length, shape, view.queue_of(job), view.cluster());
    const bool waits = !hole || hole->start > now;
    if (waits && slurm_.preemption().has_rights(view, job) && preempt_for(view, decision, job, profile)) continue;
    if (!hole || hole->start - now > options_.window) continue;
    if (hole->start == now) {
      // No room: shares of GPUs that are free, but not on one device.
      if (empty_.start(view, decision, job, hole->parts) == CapacityProfile::Started::no) continue;
      slurm_.started(view, job);
      ends_.start(view, job);
    }
    profile.change(hole->start, hole->start + length, {shape, view.queue_of(job), hole->parts}, -1);
  }
}

// As the main loop, but in a hole of the profile: starts the job in place of others, or asks these to go, or changes
// nothing. True when it started; the profile then has what it holds.
bool SlurmBackfill::preempt_for(const OracleView& view, Decision& decision, JobId job, CapacityProfile& profile) {
  struct Victim {
    JobId job;
    Time end{};
    std::vector<CapacityProfile::Part> parts;
  };
  const Time now = view.now(), length = std::max(ends_.estimate(job), Time{1});
  const auto gang = [&](const Victim& victim) {
    return CapacityProfile::Gang{view.shape(victim.job), view.queue_of(victim.job), victim.parts};
  };
  CapacityProfile with_room = profile;
  std::vector<Victim> victims;
  std::vector<CapacityProfile::Part> parts;
  bool has_started = false;
  for (const JobId other : slurm_.preemption().victims_of(view, decision, job)) {
    victims.push_back({other, std::max(ends_.end(other), now + Time{1}), empty_.parts_of(view, other)});
    with_room.change(now, victims.back().end, gang(victims.back()), +1);
    decision.preempt(other);
    auto hole = with_room.find(now, length, view.shape(job), view.queue_of(job), view.cluster());
    if (!hole || hole->start > now) continue;
    parts = std::move(hole->parts);
    has_started = empty_.start(view, decision, job, parts) != CapacityProfile::Started::no;
    if (has_started) break;
  }
  std::vector<JobId> gone;
  const auto restore = [&](const Victim& victim) {
    const bool runs_on = decision.restore(victim.job) == Verdict::ok;
    if (runs_on) with_room.change(now, victim.end, gang(victim), -1);
    return runs_on;
  };
  for (const Victim& victim : victims) {
    if (!restore(victim)) gone.push_back(victim.job);
  }
  if (!has_started) return false;
  if (!slurm_.preemption().all_go_at_once(view, gone)) {
    decision.preempt(job);
    for (const JobId victim : gone) decision.restore(victim);
    slurm_.preemption().tell(view, decision, gone);
    return false;
  }
  for (const JobId victim : gone) {
    slurm_.preempted(view, decision, victim);
    ends_.preempt(view, victim);
  }
  slurm_.started(view, job);
  ends_.start(view, job);
  with_room.change(now, now + length, {view.shape(job), view.queue_of(job), parts}, -1);
  profile = std::move(with_room);
  return true;
}

CapacityProfile SlurmBackfill::profile_of_running(const View& view) const {
  std::vector<std::vector<CapacityProfile::Part>> parts;
  std::vector<CapacityProfile::Holder> holders;
  parts.reserve(ends_.ends().size());
  for (const EstimatedEnds::End& end : ends_.ends()) {
    parts.push_back(empty_.parts_of(view, end.job));
    const Time until = std::max(end.time, view.now() + Time{1});
    holders.push_back({until, {view.shape(end.job), view.queue_of(end.job), parts.back()}});
  }
  CapacityProfile profile = empty_;
  profile.take_from(view.now(), holders);
  return profile;
}

}  // namespace gpusched
