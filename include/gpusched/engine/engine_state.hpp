// SPDX-License-Identifier: Apache-2.0
/// EngineState: everything that a run changes, as one copyable value. View reads it, Decision edits it under checks,
/// Engine moves it through time; nobody else touches it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/cluster_state.hpp"
#include "gpusched/engine/demand_table.hpp"
#include "gpusched/engine/effects/account_window.hpp"
#include "gpusched/engine/effects/changes.hpp"
#include "gpusched/engine/effects/dependencies.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/effects/limits.hpp"
#include "gpusched/engine/effects/mig_layouts.hpp"
#include "gpusched/engine/effects/outages.hpp"
#include "gpusched/engine/effects/power.hpp"
#include "gpusched/engine/effects/services.hpp"
#include "gpusched/engine/effects/sharing.hpp"
#include "gpusched/engine/effects/sizes.hpp"
#include "gpusched/engine/effects/stages.hpp"
#include "gpusched/engine/effects/time_limits.hpp"
#include "gpusched/engine/effects/trials.hpp"
#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/job_states.hpp"
#include "gpusched/engine/occupancy.hpp"
#include "gpusched/engine/placed_jobs.hpp"
#include "gpusched/engine/run_inputs.hpp"
#include "gpusched/engine/run_records.hpp"

namespace gpusched::detail {

/// The effects of a run. Their order is the order of an instant: first jobs end and timers ring, then happens what each
/// effect brings, one effect after another, then jobs are submitted; then the policy decides.
using Effects = EffectList<TimeLimits, Changes, Stages, Outages, MigLayouts, Sharing, Sizes, Dependencies, Power,
                           Services, Trials, Limits, AccountWindow>;

struct EngineState {
  const JobTable* jobs = nullptr;         // borrowed
  const RuntimeModel* runtime = nullptr;  // borrowed; null = reference rate everywhere
  EngineOptions options;

  Time now{};
  std::uint32_t arrived = 0;  ///< jobs submitted so far = id of the next arrival
  std::uint32_t coming =
      0;  ///< jobs from this id on are not submitted by themselves: never (forget_future), or by a host
  std::uint32_t finished = 0;
  std::uint32_t expected = 0;  ///< jobs that finish here in all
  bool others_go_on = false;   ///< jobs are elsewhere that have not ended
  std::uint32_t away = 0;      ///< submitted jobs of a host that are not here
  std::uint64_t events_seen = 0;
  EventQueue planned;
  Effects effects;
  ClusterState cluster;
  Occupancy occupancy;                     ///< empty unless an effect asks
  std::vector<NodeId> touched;             ///< nodes on which the runs changed since an effect was told
  std::vector<NodeId> told;                ///< those that effects are being told of
  DemandTable demands;                     ///< of the jobs, as far as this cluster tells them apart
  std::vector<std::uint32_t> queue_of_vc;  ///< scheduling queue of each JobTable vc; empty: all in queue 0
  std::vector<JobList> queues;
  std::vector<std::uint32_t> queue_numbers;  ///< by job, of its place; no_index: it never joined; empty: its id
  std::uint32_t joined = 0;                  ///< queues, by jobs
  PlacedJobs placed;                         ///< of the queues, once a job came back
  JobList running;
  JobStates states;
  std::vector<SavedState> saved;     ///< by job; empty unless runs lose work or spend time on overhead
  std::vector<JobAccount> accounts;  ///< by job; empty while all time that jobs run is useful, at one size
  GpuTime booked, at_mark;           ///< of all runs that are over; of all runs at RunAccount::mark()
  WideInt lost_before_mark = 0;      ///< of what was lost since the mark: done before it
  std::vector<Event> events;         ///< of this instant
  std::vector<Command> commands;     ///< of the open decision
  bool keeps_order = false;          ///< Decision::keep_order()
  bool is_cut_short = false;         ///< by that: the open decision starts no other job
  std::vector<Resized> resized;      ///< jobs that ran until their users changed their size at this instant

  /// A decision is being carried out: what happens now is not yet another event for policies.
  [[nodiscard]] bool is_carrying_out() const { return !commands.empty(); }

  JobState& operator[](JobId job) { return states[GPUSCHED_CHECKED(index(job), states, "no such job")]; }
  const JobState& operator[](JobId job) const { return states[GPUSCHED_CHECKED(index(job), states, "no such job")]; }

  [[nodiscard]] std::uint32_t queue_of(JobId job) const { return queue_of_vc.empty() ? 0 : queue_of_vc[jobs->vc(job)]; }

  [[nodiscard]] const Changes& changes() const { return effects.get<Changes>(); }
  [[nodiscard]] const Sizes& sizes() const { return effects.get<Sizes>(); }
  [[nodiscard]] const Power& power() const { return effects.get<Power>(); }
  [[nodiscard]] const Limits& limits() const { return effects.get<Limits>(); }

  /// Number of what the job asks for now, in JobTable::shapes().
  [[nodiscard]] std::uint32_t shape_id(JobId job) const {
    const std::uint32_t listed = jobs->shape_id(job);
    return sizes().active() && changes().resizes() ? changes().shape_id(job) : listed;
  }
  /// What the job asks for now.
  [[nodiscard]] GPUSCHED_HOT const Shape& shape(JobId job) const { return jobs->shapes()[shape_id(job)]; }

  /// What the job holds by the commands so far, or held last: another number of tasks than it asks for, perhaps.
  [[nodiscard]] const Shape& held_shape(JobId job) const { return sizes().active() ? sizes()[job].shape : shape(job); }

  /// The card that a grant of a share is on; no_index for whole GPUs and nodes that do not tell their GPUs apart.
  [[nodiscard]] std::uint32_t card_of(JobId job, const Grant& grant) const {
    if (grant.devices == 0 || !shape(job).is_share()) return no_index;
    return cluster.card(grant.node, static_cast<std::uint32_t>(std::countr_zero(grant.devices)));
  }

  /// True for a replica of a service, which has no state that is saved or loaded.
  [[nodiscard]] bool is_replica(JobId job) const {
    const Services& services = effects.get<Services>();
    return services.active() && services.is_replica(job);
  }

  /// When the job was submitted, or might run first because others that it waits for had ended; of a replica and of a
  /// task of a study, when it was asked for last.
  [[nodiscard]] Time submit(JobId job) const {
    if (is_replica(job)) return effects.get<Services>().asked(job);
    const Trials& trials = effects.get<Trials>();
    if (trials.active() && trials.is_trial(job)) return trials.asked(job);
    if (states.is_hosted()) return submit_of_hosted(job);
    const Dependencies& dependencies = effects.get<Dependencies>();
    return dependencies.active() ? dependencies.eligible(job) : jobs->submit(job);
  }

  /// A job with a host is submitted when it joins its queue here.
  [[nodiscard]] GPUSCHED_RARE Time submit_of_hosted(JobId job) const {
    const Stay stay = states.stay(index(job));
    return stay.number == no_index ? jobs->submit(job) : stay.joined;
  }

  /// Larger is more urgent.
  [[nodiscard]] std::int32_t priority(JobId job) const {
    return changes().active() ? changes().priority(job) : jobs->priority(job);
  }

  /// The job's rates by GPU type, alone on its GPUs; none where it runs at the reference rate on all.
  [[nodiscard]] std::span<const RatePpm> speeds(JobId job) const {
    return runtime == nullptr ? std::span<const RatePpm>{} : runtime->rates(jobs->family(job), shape(job));
  }

  /// The factor on the rate of a job that holds nodes: what its span costs it.
  [[nodiscard]] SpanFactor span_factor(JobId job) const {
    if (runtime == nullptr || runtime->spans().is_empty()) return {};
    const SpanModel& spans = runtime->spans();
    return spans.factor(jobs->family(job), held_shape(job), cluster.span_of((*this)[job].grants));
  }

  /// The rule that places this job where `rule` is the run's: Placement::skew is another one for each family.
  [[nodiscard]] Placement rule_for(JobId job, Placement rule) const {
    if (rule != Placement::skew) return rule;
    const bool skewed = runtime != nullptr && runtime->spans().is_skewed(jobs->family(job));
    return skewed ? Placement::consolidate : Placement::best_fit;
  }

  [[nodiscard]] QueuePlace queue_place(JobId job) const {
    if (states.is_hosted()) return {states.stay(index(job)).number, job};
    return {queue_numbers.empty() ? index(job) : queue_numbers[index(job)], job};
  }

  /// A submitted job joins its queue at the end.
  GPUSCHED_HOT void join_queue(JobId job) {
    const std::uint32_t queue = queue_of(job);
    append(queues[queue], job);
    if (!queue_numbers.empty()) queue_numbers[index(job)] = joined++;
    if (states.is_hosted() && effects.get<Services>().active()) states.renumber(index(job), joined++);
    if (placed.active()) placed.join(queue, index(job));
    if (limits().active()) effects.get<Limits>().joins_queue(job);
  }

  /// A job that a decision preempts goes to the end of its queue, and holds no place.
  void join_queue_last(JobId job) {
    (*this)[job].stands_last = true;
    append(queues[queue_of(job)], job);
    if (limits().active()) effects.get<Limits>().joins_queue(job);
  }

  /// A waiting job starts, or is withdrawn.
  GPUSCHED_HOT void leave_queue(JobId job) {
    const std::uint32_t queue = queue_of(job);
    unlink(queues[queue], job);
    if (placed.active() && !(*this)[job].stands_last) placed.leave(queue, index(job));
    if (limits().active()) effects.get<Limits>().leaves_queue(job);
  }

  /// A job that comes back goes to its place in its queue: before the first that has a later place, those left out that
  /// a decision preempted, which stand where they were put. O(log n).
  void put_back(JobId job) {
    if (!placed.active()) open_placed();
    const std::uint32_t queue = queue_of(job);
    if (limits().active()) effects.get<Limits>().joins_queue(job);
    const std::uint32_t next = placed.next(queue, index(job));
    placed.come_back(queue, index(job));
    JobState& state = (*this)[job];
    state.stands_last = false;
    JobList& list = queues[queue];
    if (next == no_index) return append(list, job);
    state.next = next;
    state.previous = std::exchange(states[next].previous, index(job));
    (state.previous == no_index ? list.first : states[state.previous].next) = index(job);
    ++list.size;
  }

  // A job comes back for the first time in this run.
  GPUSCHED_RARE void open_placed() {
    std::vector<QueuePlace> places;
    for (std::uint32_t at = 0; at < arrived; ++at) {
      if (!states.is_here(at)) continue;  // it left, perhaps just now, and may wait elsewhere
      if (queue_place(JobId{at}).number != no_index) places.push_back(queue_place(JobId{at}));
    }
    std::sort(places.begin(), places.end());
    placed.open(states.size(), queues.size());
    for (const QueuePlace& place : places) placed.list(queue_of(place.job), states, place.job);
  }

  void append(JobList& list, JobId job) {
    JobState& state = (*this)[job];
    state.previous = list.last;
    state.next = no_index;
    (list.last == no_index ? list.first : states[list.last].next) = index(job);
    list.last = index(job);
    ++list.size;
  }

  GPUSCHED_HOT void unlink(JobList& list, JobId job) {
    const JobState& state = (*this)[job];
    (state.previous == no_index ? list.first : states[state.previous].next) = state.next;
    (state.next == no_index ? list.last : states[state.next].previous) = state.previous;
    --list.size;
  }

  /// Wall time that the job ran up to `now`, overhead included.
  [[nodiscard]] Time ran_now(const JobState& state) const {
    return state.clock_runs() ? state.ran + (now - state.since) : state.ran;
  }

  /// Work left of the job's present attempt at `now`.
  [[nodiscard]] Time remaining_now(const JobState& state) const {
    if (!state.clock_runs()) return state.remaining;
    return state.remaining - work_done(state.rate, now - state.since);
  }

  /// The same without what the run still has to load and without the checkpoints that it still has to write.
  [[nodiscard]] Time work_left(JobId job) const {
    const JobState& run = states.seen(index(job));
    const Time left = remaining_now(run);
    if (saved.empty() || !run.clock_runs()) return left;
    const SavedState& kept = saved[index(job)];
    // Of it, that is not booked as loaded yet.
    const Time done = work_done(run.rate, now - run.since) - accounts[index(job)].segment_work;
    const Time work = left - std::max(kept.loading_left - done, Time{});
    if (kept.saving.us == 0 || kept.saves == 0) return std::max(work, Time{});
    return Time{mul_div(std::max(work, Time{}).us, kept.interval.us, kept.interval.us + kept.saving.us)};
  }

  /// As the functions of that name (rate.hpp).
  /// \{
  static Time work_done(RatePpm rate, Time span) { return gpusched::work_done(rate, span); }
  static Time time_needed(RatePpm rate, Time work) { return gpusched::time_needed(rate, work); }
  /// \}

  /// When a running job's present attempt ends if nothing changes; Time::max() = never.
  static Time planned_end(const JobState& state) {
    const Time needed = time_needed(state.rate, state.remaining);
    return needed == Time::max() ? needed : later_by(state.since, needed);
  }
};

}  // namespace gpusched::detail
