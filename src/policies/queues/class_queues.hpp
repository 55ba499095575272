// SPDX-License-Identifier: Apache-2.0
/// ClassQueues: waiting jobs kept as one first-come queue for each class of jobs that a policy cannot tell apart, and
/// the loop that starts them. Where owners are many and their turns change, RankedClasses costs less.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// What happened to an attempt to start the first job of a class.
enum class Attempt : std::uint8_t {
  started,
  no_room,      ///< the cluster has no place for the demand: no other class of it is tried at this instant
  not_allowed,  ///< the policy's own limit: only this class is done for this instant
  started_anew  ///< started, which lowered the scores of others (for RankedClasses)
};

/// Waiting jobs by class: equal owner, priority, scheduling queue and demand. Within a class, first come first served.
class ClassQueues {
 public:
  struct Class {
    std::uint32_t owner = 0;
    std::int32_t priority = 0;
    std::uint32_t queue = 0;
    std::uint32_t demand = 0;
    std::vector<QueuePlace> jobs = {};  ///< a heap with the earliest at the front

    [[nodiscard]] JobId first() const { return jobs.front().job; }
  };

  void push(const View& view, JobId job, std::uint32_t owner) {
    const auto key = std::tuple(owner, view.priority(job), view.queue_of(job), view.demand(job));
    const auto [place, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(classes_.size()));
    if (added) add_class(owner, view.priority(job), view.queue_of(job), view.demand(job));
    std::vector<QueuePlace>& jobs = classes_[place->second].jobs;
    if (jobs.empty()) activate(place->second);
    if (class_of_.empty()) class_of_.resize(view.job_count(), no_index);
    class_of_[index(job)] = place->second;
    jobs.push_back(view.queue_place(job));
    std::push_heap(jobs.begin(), jobs.end(), std::greater<>());
  }

  /// Takes out a job, which need not be the first, whatever it was given since it came. O(jobs of its class).
  /// Precondition: it is in here.
  void erase(const View& view, JobId job) {
    const std::uint32_t number = class_of_[index(job)];
    std::vector<QueuePlace>& jobs = classes_[number].jobs;
    std::erase(jobs, view.queue_place(job));
    std::make_heap(jobs.begin(), jobs.end(), std::greater<>());
    if (jobs.empty()) deactivate(number);
  }

  /// The job has another priority now (EventKind::reprioritize): moves it to the class of that. One that came to wait
  /// at this instant is in there. O(jobs of its class).
  void reprioritize(const View& view, JobId job, std::uint32_t owner) {
    erase(view, job);
    push(view, job, owner);
  }

  /// Calls `attempt(class)`, which tries to start the class's first job, for the class of the lowest
  /// (score(class), first job), until none is left to try. Without `skip`, a job without room ends its scheduling
  /// queue. Precondition: starting a job lowers no score at this instant. O(classes), and O(classes alike in scheduling
  /// queue and demand) a start.
  template <class Score, class Try>
  void start_best(bool skip, Score score, Try attempt) {
    start_best(
        skip, [](std::uint32_t, std::uint32_t) { return true; }, score, attempt);
  }

  /// Starts the best jobs of the classes whose `may_fit(queue, demand)` is true, which costs only those: for policies
  /// that pass over whatever does not fit. What it leaves out must have no room.
  template <class MayFit, class Score, class Try>
  void start_best(bool skip, MayFit may_fit, Score score, Try attempt) {
    using Value = decltype(score(classes_[0]));
    struct Leader {  // the first class of a kind, with its score when it was elected
      std::size_t kind = 0;
      std::uint32_t number = no_index;
      Value value = {};
    };
    const auto before = [this](const Value& a, std::uint32_t class_a, const Value& b, std::uint32_t class_b) {
      return a < b || (!(b < a) && classes_[class_a].jobs.front() < classes_[class_b].jobs.front());
    };
    const auto elect = [&](std::size_t kind) {
      Leader leader{.kind = kind};
      for (const std::uint32_t number : kinds_[kind].active) {
        if (places_[number].given_up == pass_) continue;
        const Value value = score(std::as_const(classes_[number]));
        if (leader.number == no_index || before(value, number, leader.value, leader.number)) {
          leader.number = number;
          leader.value = value;
        }
      }
      return leader;
    };
    ++pass_;
    std::vector<Leader> leaders;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (kinds_[kind].active.empty() || !may_fit(kinds_[kind].queue, kinds_[kind].demand)) continue;
      leaders.push_back(elect(kind));
    }
    while (!leaders.empty()) {
      const auto best = std::min_element(leaders.begin(), leaders.end(), [&](const Leader& a, const Leader& b) {
        return before(a.value, a.number, b.value, b.number);
      });
      const Class& jobs = classes_[best->number];
      if (score(jobs) == best->value) {  // else a start changed the score, and another of its kind may come first
        const Attempt outcome = attempt(jobs);
        if (outcome == Attempt::no_room) {
          std::erase_if(leaders, [&](const Leader& leader) {
            const Kind& kind = kinds_[leader.kind];
            return kind.queue == jobs.queue && (!skip || kind.demand == jobs.demand);
          });
          continue;
        }
        if (outcome == Attempt::started) pop(best->number);
        if (outcome == Attempt::not_allowed) places_[best->number].given_up = pass_;
      }
      *best = elect(best->kind);
      if (best->number == no_index) leaders.erase(best);
    }
  }

  /// Classes that have waiting jobs, in an arbitrary but repeatable order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Kind& kind : kinds_) {
      for (const std::uint32_t number : kind.active) visit(classes_[number]);
    }
  }

 private:
  // Classes of equal scheduling queue and demand: they fit together, or none does.
  struct Kind {
    std::uint32_t queue = 0;
    std::uint32_t demand = 0;
    std::vector<std::uint32_t> active = {};  // classes with waiting jobs
  };
  // Where a class stands.
  struct Place {
    std::uint32_t kind = 0;
    std::uint32_t at = 0;        // in Kind::active
    std::uint64_t given_up = 0;  // the last pass in which the policy did not allow it
  };

  void add_class(std::uint32_t owner, std::int32_t priority, std::uint32_t queue, std::uint32_t demand) {
    const auto same = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const Kind& kind) { return kind.queue == queue && kind.demand == demand; });
    places_.push_back({.kind = static_cast<std::uint32_t>(same - kinds_.begin())});
    if (same == kinds_.end()) kinds_.push_back({.queue = queue, .demand = demand});
    classes_.push_back({.owner = owner, .priority = priority, .queue = queue, .demand = demand});
  }

  void activate(std::uint32_t number) {
    std::vector<std::uint32_t>& active = kinds_[places_[number].kind].active;
    places_[number].at = static_cast<std::uint32_t>(active.size());
    active.push_back(number);
  }

  void pop(std::uint32_t number) {
    std::vector<QueuePlace>& jobs = classes_[number].jobs;
    std::pop_heap(jobs.begin(), jobs.end(), std::greater<>());
    jobs.pop_back();
    if (jobs.empty()) deactivate(number);
  }

  void deactivate(std::uint32_t number) {
    std::vector<std::uint32_t>& active = kinds_[places_[number].kind].active;
    active[places_[number].at] = active.back();  // the last takes its place
    places_[active.back()].at = places_[number].at;
    active.pop_back();
  }

  std::map<std::tuple<std::uint32_t, std::int32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> class_of_;  // by job: where it waits, or waited last
  std::vector<Place> places_;            // [class]
  std::vector<Kind> kinds_;
  std::uint64_t pass_ = 0;
};

/// Preempts `victims` one after another until `job` can start where `rule` puts it, then restores each victim whose
/// place is still free. Returns the jobs that stay preempted. When preempting all victims does not suffice, all are
/// restored and the list is empty.
std::vector<JobId> make_room(JobId job, Placement rule, const std::vector<JobId>& victims, Decision& decision);

}  // namespace gpusched
