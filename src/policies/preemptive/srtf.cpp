// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/srtf.hpp"

#include <algorithm>

namespace gpusched {

void ShortestRemaining::decide(const OracleView& view, Decision& decision) {
  decision.keep_order();
  jobs_.prepare(view);
  note_outcome(view);
  touched_.resize(view.queue_count(), false);
  for (const Event& event : view.events()) note(view.at(event), event);
  take_in(view);
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      if (!touched_[queue]) continue;
      touched_[queue] = false;
      if (!view.queue(queue).empty() && fill(queue, view, decision)) again = touch_all();
    }
  }
}

std::int64_t ShortestRemaining::key(JobId job, Time remaining, const View& view) const {
  return by_service_ ? mul_div(remaining.us, view.shape(job).gpu_milli(), whole_gpu) : remaining.us;
}

MilliGpu ShortestRemaining::slope(JobId job, const View& view) const {
  return by_service_ ? view.shape(job).gpu_milli() : 0;
}

// Joins the end of the list.
ShortestRemaining::Rank ShortestRemaining::newcomer(JobId job, std::int64_t key_now) {
  return {.key = key_now, .since = 2 * decision_ + 1, .sequence = ++last_sequence_, .job = job};
}

ShortestRemaining::Rank ShortestRemaining::rank(const Running& running, const OracleView& view) const {
  if (running.start.time == view.now().us) return running.before;  // no time has passed since
  return {.key = key(running.job, view.remaining(running.job), view),
          .since = 2 * first_of_instant_,
          .slope = slope(running.job, view),
          .start = running.start,
          .job = running.job};
}

// The outcome of the last decision is known only now: the work that preemption added to stopped jobs, and the ends of
// started ones.
void ShortestRemaining::note_outcome(const OracleView& view) {
  std::set<Rank> stopped;
  for (const auto& [job, displaced] : displaced_) {
    if (view.phase(job) == JobPhase::pending) stopped.insert(displaced.rank);
  }
  for (const Rank& before : stopped) {
    const std::int64_t now = key(before.job, view.remaining(before.job), view);
    if (before.key != now) {
      replace(before, newcomer(before.job, now), view);
    } else if (before.since == 2 * first_of_instant_) {
      stopped_.insert(before);
    }
  }
  displaced_.clear();
  for (const bool prolonged : {false, true}) {
    for (const Rank& started : started_) note_start(started, prolonged, view);
  }
  started_.clear();
  ++decision_;
  if (decided_at_ == view.now()) return;
  number_stopped(view);
  decided_at_ = view.now();
  first_of_instant_ = decision_;
}

void ShortestRemaining::replace(const Rank& before, const Rank& after, const View& view) {
  jobs_.remove(view, before);
  jobs_.add(view, after);
}

// The instant is over. Jobs that it stopped and did not start again are numbered in order, which replaces their
// history.
void ShortestRemaining::number_stopped(const View& view) {
  for (const Rank& before : stopped_) {
    if (!jobs_.waiting(view, view.queue_of(before.job), jobs_.demand_of(before.job)).contains(before)) continue;
    replace(before, {.key = before.key, .since = before.since, .sequence = ++last_sequence_, .job = before.job}, view);
  }
  stopped_.clear();
}

// Records the start of a job that the restart cost prolonged, or did not, as `prolonged` says. A job without work has
// already ended.
void ShortestRemaining::note_start(const Rank& started, bool prolonged, const OracleView& view) {
  const JobId job = started.job;
  if (view.phase(job) != JobPhase::running) return;
  const Time start = view.running_since(job), end = view.expected_end(job);
  // At that instant the work left, as of waiting jobs: a run that its node or a cap slows takes longer, but ranks
  // alike.
  const Time left = start == view.now() ? view.remaining(job) : end - start;
  const std::int64_t at_start = key(job, left, view);
  if ((started.key != at_start) != prolonged) return;
  const Rank before = prolonged ? newcomer(job, at_start) : started;
  // One that was stopped and started again at the same instant goes on as if it had run through.
  const bool ran_on = before.since == 2 * first_of_instant_;
  const bool waited = before.since < 2 * first_of_instant_;
  const Start order = ran_on ? before.start : Start{waited, start.us, before.since, before.sequence};
  add_running(view, {end.us, order, job, before});
}

void ShortestRemaining::add_running(const View& view, const Running& running) {
  place_of_.resize(view.job_count());
  place_of_[index(running.job)] = {running.end, running.start};
  jobs_.add_running(view, running);
}

// Where rates change a job may end at another instant than it was to: it is found by its place, not by the time.
void ShortestRemaining::remove_running(const View& view, JobId job) {
  if (index(job) >= place_of_.size()) return;
  const Place& place = place_of_[index(job)];
  const std::set<Running>& running = jobs_.running(view, view.queue_of(job), jobs_.demand_of(job));
  const auto at = running.find({.end = place.end, .start = place.start});
  if (at != running.end() && at->job == job) jobs_.remove_running(view, Running(*at));
}

void ShortestRemaining::note(const OracleView& view, const Event& event) {
  if (brings_room(event.kind)) touch_all();
  if (event.job == no_job) return;
  const std::uint32_t queue = view.queue_of(event.job);
  touched_[queue] = true;
  if (leaves_cluster(event.kind)) {
    remove_running(view, event.job);
    touch_all();
  }
  if (event.kind == EventKind::withdraw && std::erase(came_, view.queue_place(event.job)) == 0) {
    jobs_.remove_job(view, event.job);
  }
  if (enters_queue(event.kind)) came_.push_back(view.queue_place(event.job));
}

// Whoever comes, or comes back, at this instant joins the end of the list, by place.
void ShortestRemaining::take_in(const OracleView& view) {
  std::sort(came_.begin(), came_.end());
  for (const QueuePlace& place : came_) {
    jobs_.add(view, newcomer(place.job, key(place.job, view.remaining(place.job), view)));
  }
  came_.clear();
}

// Another queue may use freed capacity, unless each queue has machines of its own.
bool ShortestRemaining::touch_all() {
  touched_.assign(touched_.size(), true);
  return true;
}

// Starts the queue's waiting jobs as far as the order allows; true when that preempted others.
bool ShortestRemaining::fill(std::uint32_t queue, const OracleView& view, Decision& decision) {
  bool preempted = false;
  jobs_.begin_pass(view, queue);
  for (const Rank* first = jobs_.first_waiting(view, queue); first != nullptr;
       first = jobs_.first_waiting(view, queue)) {
    const Rank candidate = *first;
    const Verdict verdict = place(queue, candidate, view, decision);
    if (verdict != Verdict::ok) {
      if (verdict == Verdict::over_limit) touched_[queue] = true;  // Decision::keep_order(): at the next instant
      if (verdict == Verdict::does_not_fit) jobs_.pass_over(view, candidate.job, view.options().placement);
      if (verdict != Verdict::does_not_fit) jobs_.pass_over_demand(view, candidate.job);
      continue;
    }
    preempted = preempted || !victims_.empty();
    jobs_.remove(view, candidate);
  }
  return preempted;
}

// A job that a limit refuses waits for its own owner's jobs: nobody is preempted for it.
Verdict ShortestRemaining::place(std::uint32_t queue, const Rank& candidate, const OracleView& view,
                                 Decision& decision) {
  victims_.clear();
  if (const auto displaced = displaced_.find(candidate.job);
      displaced != displaced_.end() && decision.restore(candidate.job) == Verdict::ok) {
    add_running(view, displaced->second.running);  // it still has its place
    displaced_.erase(displaced);
    return Verdict::ok;
  }
  Verdict verdict = decision.start(candidate.job);
  if (verdict == Verdict::over_limit) return verdict;
  if (verdict != Verdict::ok) displace(queue, candidate, view, decision, verdict);
  if (verdict != Verdict::ok) return verdict;
  displaced_.erase(candidate.job);
  started_.push_back(candidate);
  return Verdict::ok;
}

// Preempts the lowest-ranked running jobs behind the candidate until it fits. Jobs that went in vain get their
// place back when their turn in the order comes. `verdict` becomes that of the last try.
void ShortestRemaining::displace(std::uint32_t queue, const Rank& candidate, const OracleView& view, Decision& decision,
                                 Verdict& verdict) {
  const auto place_of = [&](const Running& running) { return rank(running, view); };
  if (!jobs_.could_fit(view, queue, candidate, place_of)) return;
  while (verdict != Verdict::ok) {
    const Running* const last = jobs_.last_running_behind(view, queue, candidate, place_of);
    if (last == nullptr) break;
    const Displaced victim{*last, rank(*last, view)};
    jobs_.remove_running(view, victim.running);
    victims_.push_back(victim);
    decision.preempt(victim.rank.job);
    verdict = decision.start(candidate.job);
  }
  for (const Displaced& victim : victims_) {
    const JobId job = victim.rank.job;
    if (verdict == Verdict::ok) {
      jobs_.add(view, victim.rank);
      displaced_.insert_or_assign(job, victim);
    } else {
      decision.restore(job);
      add_running(view, victim.running);
    }
  }
}

namespace {

PolicyInfo shortest_remaining_info(bool by_service) {
  return {.name = by_service ? "srsf" : "srtf",
          .summary = by_service ? "shortest remaining time x GPUs first, preemptive, greedy"
                                : "shortest remaining time first, preemptive, greedy",
          .source = by_service ? "schedule 'shortest-gpu' of the Tiresias simulator (NSDI'19 artifact)"
                               : "schedule 'shortest' of the Tiresias simulator (NSDI'19 artifact)",
          .complexity = "O(shapes x log n)",
          .make = [by_service](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(ShortestRemaining(by_service));
          },
          .preemptive = true,
          .work_conserving = true,
          .aliases = {by_service ? "shortest-gpu" : "shortest"}};
}

}  // namespace

PolicyInfo srtf_info() { return shortest_remaining_info(false); }
PolicyInfo srsf_info() { return shortest_remaining_info(true); }

}  // namespace gpusched
