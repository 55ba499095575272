// SPDX-License-Identifier: Apache-2.0
/// PreemptiveOrder: the greedy preemptive assignment under an order of jobs, kept up to date instead of recomputed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/jobs_by_demand.hpp"

namespace gpusched {

/// Runnable jobs under keys that change only when the policy says so. fill() gives the cluster to them in ascending
/// order of key: a job that does not fit is passed over, and running jobs that others outrank are preempted. The
/// outcome is that of emptying the cluster and walking the whole order, but an event costs only the jobs it starts,
/// those they displace, and one test for each demand that does not fit and asks for less than those tested before it
/// (JobsByDemand): O(demands x log n). Each scheduling queue (virtual cluster) is an order of its own.
///
/// `Key` is totally ordered by <; equal keys go to the earlier place (QueuePlace). A policy's `Hooks` has
///   Key before_start(JobId)       the key under which the job runs;
///   void before_preempt(JobId)    the job keeps its key and waits;
///   void restored(JobId)          that preemption was taken back;
///   void before_displace()        last call to rekey running jobs: their order is about to matter;
///   Placement placement(JobId)    where its tasks go.
template <class Key>
class PreemptiveOrder {
 public:
  /// A job waits with this key. Precondition: it is not in the order.
  void wait(const View& view, JobId job, const Key& key) {
    prepare(view);
    touch(view, job);
    keys_[index(job)] = key;
    jobs_.add(view, entry(view, job));
  }

  /// A running job left the cluster.
  void leave(const View& view, JobId job) {
    touch_all();
    jobs_.remove_running(view, entry(view, job));
  }

  /// A waiting job left its queue: it is in the order no longer.
  void withdraw(const View& view, JobId job) {
    touch(view, job);  // others may be the first now
    jobs_.remove(view, entry(view, job));
  }

  /// A waiting or running job has another key from now on.
  void rekey(const View& view, JobId job, const Key& key) {
    touch(view, job);
    const Entry before = entry(view, job);
    keys_[index(job)] = key;
    const Entry after = entry(view, job);
    if (view.phase(job) == JobPhase::running) {
      jobs_.remove_running(view, before);
      jobs_.add_running(view, after);
    } else {
      jobs_.remove(view, before);
      jobs_.add(view, after);
    }
  }

  /// Every running job has the key `key_of(JobId)` from now on. O(running jobs), and log n for each that overtakes.
  template <class KeyOf>
  void rekey_running(const View& view, KeyOf key_of) {
    for (std::uint32_t queue = 0; queue < touched_.size(); ++queue) {
      jobs_.renew_running(view, queue, [this, queue, &key_of](const Entry& entry) {
        const Key key = key_of(entry.job);
        if (key == entry.key) return;
        entry.key = keys_[index(entry.job)] = key;
        touched_[queue] = 1;
      });
    }
  }

  /// The key of a waiting or running job.
  [[nodiscard]] const Key& key(JobId job) const { return keys_[index(job)]; }

  /// The key of the first waiting job of that queue and demand, or null.
  [[nodiscard]] const Key* first_waiting(const View& view, std::uint32_t queue, std::uint32_t demand) const {
    if (jobs_.empty()) return nullptr;
    const std::set<Entry>& waiting = jobs_.waiting(view, queue, demand);
    return waiting.empty() ? nullptr : &waiting.begin()->key;
  }

  /// Gives the cluster to the jobs in order, in the queues where something changed since the last call.
  template <class Hooks>
  void fill(const View& view, Decision& decision, Hooks& hooks) {
    displaced_.clear();
    for (const Event& event : view.events()) {
      if (brings_room(event.kind)) touch_all();
    }
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t queue = 0; queue < touched_.size(); ++queue) {
        const bool touched = std::exchange(touched_[queue], std::uint8_t{0}) != 0;
        if (!touched || view.queue(queue).empty()) continue;
        const std::size_t before = displaced_.size();
        fill_queue(view, decision, hooks, queue);
        if (displaced_.size() == before) continue;
        touch_all();
        again = true;
      }
    }
  }

 private:
  struct Entry {
    mutable Key key;  // rekey_running() puts what stands in a set in order again
    JobId job;
    std::uint32_t number;  // of its place (QueuePlace)
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.key < b.key) return true;
      if (b.key < a.key) return false;
      return a.number < b.number;
    }
  };

  // Of a job with the key that it has.
  [[nodiscard]] Entry entry(const View& view, JobId job) const {
    return {keys_[index(job)], job, view.queue_place(job).number};
  }

  void prepare(const View& view) {
    if (!jobs_.empty()) return;
    jobs_.prepare(view);
    keys_.resize(view.job_count());
    touched_.assign(view.queue_count(), 0);
  }

  void touch(const View& view, JobId job) { touched_[view.queue_of(job)] = 1; }
  // Capacity that one queue gives up, another may use, unless each has machines of its own.
  void touch_all() { std::fill(touched_.begin(), touched_.end(), std::uint8_t{1}); }

  template <class Hooks>
  void fill_queue(const View& view, Decision& decision, Hooks& hooks, std::uint32_t queue) {
    jobs_.begin_pass(view, queue);
    for (const Entry* first = jobs_.first_waiting(view, queue); first != nullptr;
         first = jobs_.first_waiting(view, queue)) {
      const Entry candidate = *first;
      const Placement rule = hooks.placement(candidate.job);
      const Verdict verdict = place(view, decision, hooks, queue, candidate, rule);
      if (verdict == Verdict::ok) continue;
      if (verdict == Verdict::over_limit) touched_[queue] = 1;  // Decision::keep_order(): at the next call
      if (verdict == Verdict::does_not_fit) jobs_.pass_over(view, candidate.job, rule);
      if (verdict != Verdict::does_not_fit) jobs_.pass_over_demand(view, candidate.job);
    }
  }

  // A job that a limit refuses waits for its own owner's jobs: nobody is preempted for it.
  template <class Hooks>
  Verdict place(const View& view, Decision& decision, Hooks& hooks, std::uint32_t queue, const Entry& candidate,
                Placement rule) {
    if (was_displaced(candidate.job) && decision.restore(candidate.job) == Verdict::ok) {  // its place is still free
      jobs_.remove(view, candidate);
      jobs_.add_running(view, candidate);
      hooks.restored(candidate.job);
      return Verdict::ok;
    }
    Verdict verdict = decision.start(candidate.job, rule);
    if (verdict == Verdict::over_limit) return verdict;
    if (verdict != Verdict::ok) displace(view, decision, hooks, queue, candidate, rule, verdict);
    if (verdict != Verdict::ok) return verdict;
    jobs_.remove(view, candidate);
    keys_[index(candidate.job)] = hooks.before_start(candidate.job);
    jobs_.add_running(view, entry(view, candidate.job));
    return Verdict::ok;
  }

  [[nodiscard]] bool was_displaced(JobId job) const {
    return std::find(displaced_.begin(), displaced_.end(), job) != displaced_.end();
  }

  // Preempts the last running jobs behind the candidate until it fits. A job that went in vain takes its place again
  // when its turn in the order comes. `verdict` becomes that of the last try.
  template <class Hooks>
  void displace(const View& view, Decision& decision, Hooks& hooks, std::uint32_t queue, const Entry& candidate,
                Placement rule, Verdict& verdict) {
    hooks.before_displace();
    if (!jobs_.could_fit(view, queue, candidate, std::identity())) return;
    victims_.clear();
    while (verdict != Verdict::ok) {
      const Entry* const last = jobs_.last_running_behind(view, queue, candidate, std::identity());
      if (last == nullptr) break;
      const Entry victim = *last;
      victims_.push_back(victim);
      jobs_.remove_running(view, victim);
      hooks.before_preempt(victim.job);
      decision.preempt(victim.job);
      verdict = decision.start(candidate.job, rule);
    }
    for (const Entry& victim : victims_) {
      if (verdict == Verdict::ok) {
        jobs_.add(view, victim);
        displaced_.push_back(victim.job);
      } else {
        decision.restore(victim.job);
        jobs_.add_running(view, victim);
        hooks.restored(victim.job);
      }
    }
  }

  JobsByDemand<Entry> jobs_;
  std::vector<Key> keys_;  // by job
  std::vector<std::uint8_t> touched_;
  std::vector<Entry> victims_;
  std::vector<JobId> displaced_;
};

}  // namespace gpusched
