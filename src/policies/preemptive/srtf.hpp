// SPDX-License-Identifier: Apache-2.0
/// Shortest remaining time first and shortest remaining service first, preemptive, clairvoyant.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/jobs_by_shape.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// At every event the runnable jobs, in order of remaining time (SRTF) or remaining time x GPUs (SRSF), get the cluster
/// greedily: a job that does not fit is passed over, and running jobs that others outrank are preempted. Equal keys
/// keep the order that a stable sort, in place, of the list that the last event left gives them: arrivals and retries
/// join its end, and so does a job whose key a preemption cost raised, behind those that had that key before (of one
/// decision, stopped jobs before started ones, each in list order).
///
/// The outcome is that of emptying the cluster and walking the whole order, but the walk is never made. Time passing
/// only moves running jobs forward, which changes no outcome; so between events the assignment stays greedy, and an
/// event costs only the jobs it starts, the jobs they displace, and one test a shape: O(shapes x log n). The first
/// waiting job of a shape is its best, and when it cannot be placed, no other of that shape can.
class ShortestRemaining {
 public:
  explicit ShortestRemaining(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf" : "srtf"; }

  void decide(const OracleView& view, Decision& decision) {
    jobs_.prepare(view);
    note_outcome(view);
    touched_.assign(view.queue_count(), false);
    for (const Event& event : view.events()) note(view, event);
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
        if (!touched_[queue]) continue;
        touched_[queue] = false;
        if (!view.queue(queue).empty() && fill(queue, view, decision)) again = touch_all();
      }
    }
  }

 private:
  // A job's place in the order is its key and when it came to it, a point of the list's history: twice the number of
  // the first decision of the instant for a job that ran down to it, and one more than twice that of the decision at
  // which it joined the end of the list.
  //
  // Of two that run with equal keys that fall alike, both had one key when the later of them started. If that one had
  // waited with its key until then, it was ahead; if it came to its key at that very instant, it was behind.
  struct Start {
    bool waited = false;
    std::int64_t time = 0;
    std::int64_t since = 0;     // as the rank before the start
    std::int64_t sequence = 0;  // likewise
    friend bool operator==(const Start&, const Start&) = default;
    friend bool operator<(const Start& a, const Start& b) {
      if (a.waited != b.waited) return a.waited;
      if (a.time != b.time) return a.waited ? b.time < a.time : a.time < b.time;
      return a.since != b.since ? a.since < b.since : a.sequence < b.sequence;
    }
  };
  // Among those that ran down to the key at one instant, the one whose key fell more slowly was ahead before they met,
  // and of those whose keys fell alike, the start decides. When the instant is over, those that stopped are numbered in
  // that order, so that what decides does not grow with the history.
  struct Rank {
    std::int64_t key = 0;
    std::int64_t since = 0;
    MilliGpu slope = 0;  // GPUs under SRSF; all keys fall alike under SRTF. 0 once numbered
    Start start = {};    // none once numbered
    std::int64_t sequence = 0;
    JobId job = no_job;
    friend bool operator<(const Rank& a, const Rank& b) {
      if (a.key != b.key) return a.key < b.key;
      if (a.since != b.since) return a.since < b.since;
      if (a.slope != b.slope) return a.slope < b.slope;
      return a.start != b.start ? a.start < b.start : a.sequence < b.sequence;
    }
  };
  // A running job: within a shape the order of ends is the order of keys, at any time.
  struct Running {
    std::int64_t end = 0;
    Start start = {};
    JobId job = no_job;
    Rank before = {};  // when it started
    friend bool operator<(const Running& a, const Running& b) {
      return a.end != b.end ? a.end < b.end : a.start < b.start;
    }
  };
  struct Displaced {
    Running running;
    Rank rank;
  };
  using Jobs = JobsByShape<Rank, Running>::Jobs;

  [[nodiscard]] std::int64_t key(JobId job, Time remaining, const View& view) const {
    return by_service_ ? mul_div(remaining.us, view.shape(job).gpu_milli(), whole_gpu) : remaining.us;
  }
  [[nodiscard]] MilliGpu slope(JobId job, const View& view) const {
    return by_service_ ? view.shape(job).gpu_milli() : 0;
  }

  // Joins the end of the list.
  Rank newcomer(JobId job, std::int64_t key_now) {
    return {.key = key_now, .since = 2 * decision_ + 1, .sequence = ++last_sequence_, .job = job};
  }

  [[nodiscard]] Rank rank(const Running& running, const OracleView& view) const {
    if (running.start.time == view.now().us) return running.before;  // no time has passed since
    return {.key = key(running.job, view.remaining(running.job), view),
            .since = 2 * first_of_instant_,
            .slope = slope(running.job, view),
            .start = running.start,
            .job = running.job};
  }

  // What the last decision brought about shows only now: what preemption cost the stopped jobs, and when the started
  // ones end.
  void note_outcome(const OracleView& view) {
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

  void replace(const Rank& before, const Rank& after, const View& view) {
    auto& waiting = jobs_.of(view, before.job).waiting;
    waiting.erase(before);
    waiting.insert(after);
  }

  // The instant is over; those that it stopped and did not start again get numbers instead of their past.
  void number_stopped(const View& view) {
    for (const Rank& before : stopped_) {
      if (!jobs_.of(view, before.job).waiting.contains(before)) continue;
      replace(before, {.key = before.key, .since = before.since, .sequence = ++last_sequence_, .job = before.job},
              view);
    }
    stopped_.clear();
  }

  // Notes the start if the restart cost did, or did not, prolong the job; one of no work has already ended.
  void note_start(const Rank& started, bool prolonged, const OracleView& view) {
    const JobId job = started.job;
    if (view.phase(job) != JobPhase::running) return;
    const Time start = view.running_since(job), end = view.expected_end(job);
    const std::int64_t at_start = key(job, end - start, view);
    if ((started.key != at_start) != prolonged) return;
    const Rank before = prolonged ? newcomer(job, at_start) : started;
    // One that was stopped and started again at the same instant goes on as if it had run through.
    const bool ran_on = before.since == 2 * first_of_instant_;
    const bool waited = before.since < 2 * first_of_instant_;
    const Start order = ran_on ? before.start : Start{waited, start.us, before.since, before.sequence};
    jobs_.of(view, job).running.insert({end.us, order, job, before});
  }

  void note(const OracleView& view, const Event& event) {
    if (event.job == no_job) return;
    Jobs& jobs = jobs_.of(view, event.job);
    touched_[view.queue_of(event.job)] = true;
    if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
      auto ended = jobs.running.begin();  // it is among the few that end now, unless it never took any time
      while (ended != jobs.running.end() && ended->end == view.now().us && ended->job != event.job) ++ended;
      if (ended != jobs.running.end() && ended->job == event.job) jobs.running.erase(ended);
      touch_all();
    }
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
      jobs.waiting.insert(newcomer(event.job, key(event.job, view.remaining(event.job), view)));
    }
  }

  // Capacity that one queue gives up, another may use, unless each has machines of its own.
  bool touch_all() {
    touched_.assign(touched_.size(), true);
    return true;
  }

  // Gives the queue's waiting jobs what they may have; true when that preempted others.
  bool fill(std::uint32_t queue, const OracleView& view, Decision& decision) {
    bool preempted = false;
    blocked_.assign(view.shape_count(), 0);
    for (;;) {
      const std::uint32_t shape = jobs_.best_waiting(view, queue, blocked_);
      if (shape == no_index) return preempted;
      Jobs& jobs = jobs_.of(view, queue, shape);
      const Rank candidate = *jobs.waiting.begin();
      if (!place(queue, candidate, view, decision)) {
        blocked_[shape] = 1;
        continue;
      }
      preempted = preempted || !victims_.empty();
      jobs.waiting.erase(candidate);
    }
  }

  bool place(std::uint32_t queue, const Rank& candidate, const OracleView& view, Decision& decision) {
    victims_.clear();
    if (const auto displaced = displaced_.find(candidate.job);
        displaced != displaced_.end() && decision.restore(candidate.job) == Verdict::ok) {
      jobs_.of(view, candidate.job).running.insert(displaced->second.running);  // it still has its place
      return true;
    }
    if (decision.start(candidate.job) != Verdict::ok && !displace(queue, candidate, view, decision)) return false;
    started_.push_back(candidate);
    return true;
  }

  // Preempts the lowest-ranked running jobs behind the candidate until it fits. Those that need not have gone get their
  // place back when their turn in the order comes.
  bool displace(std::uint32_t queue, const Rank& candidate, const OracleView& view, Decision& decision) {
    const auto place_of = [&](const Running& running) { return rank(running, view); };
    if (!jobs_.could_fit(view, queue, candidate, place_of)) return false;
    bool placed = false;
    while (!placed) {
      const Running* const last = jobs_.last_running_behind(view, queue, candidate, place_of);
      if (last == nullptr) break;
      const Displaced victim{*last, rank(*last, view)};
      jobs_.of(view, last->job).running.erase(victim.running);
      victims_.push_back(victim);
      decision.preempt(victim.rank.job);
      placed = decision.start(candidate.job) == Verdict::ok;
    }
    for (const Displaced& victim : victims_) {
      const JobId job = victim.rank.job;
      if (placed) {
        jobs_.of(view, job).waiting.insert(victim.rank);
        displaced_.insert_or_assign(job, victim);
      } else {
        decision.restore(job);
        jobs_.of(view, job).running.insert(victim.running);
      }
    }
    return placed;
  }

  bool by_service_;
  JobsByShape<Rank, Running> jobs_;
  std::int64_t last_sequence_ = 0;
  Time decided_at_ = Time::max();
  std::int64_t decision_ = 0;  // its number
  std::int64_t first_of_instant_ = 0;
  std::set<Rank> stopped_;                // in this instant, to which they ran down
  std::vector<Rank> started_;             // by the last decision
  std::map<JobId, Displaced> displaced_;  // by the last decision
  std::vector<Displaced> victims_;        // of the present candidate
  std::vector<bool> touched_;
  std::vector<std::uint8_t> blocked_;
};

PolicyInfo srtf_info();
PolicyInfo srsf_info();

}  // namespace gpusched
