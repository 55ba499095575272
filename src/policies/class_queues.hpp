// SPDX-License-Identifier: Apache-2.0
/// What fair-share policies have in common: whose jobs they are (Owners), what each owner holds (usage), and waiting
/// jobs kept as one first-come queue for each class of jobs that such a policy cannot tell apart (ClassQueues).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Which column says who owns a job.
enum class OwnerColumn : std::uint8_t { user, vc };

/// The parameter `by` of a policy that is fair between owners.
ParameterInfo owner_parameter(std::string fallback);
/// What `by` says, or one line that names the missing column.
Result<OwnerColumn> owner_column(std::string_view policy, const PolicyParameters& parameters,
                                 const PolicyContext& context);

[[nodiscard]] inline std::uint32_t owner_of(OwnerColumn column, const View& view, JobId job) {
  return column == OwnerColumn::user ? view.user(job) : view.vc(job);
}

/// Weights of owners in order of first appearance in the trace, in thousandths; an owner beyond the list weighs one.
class OwnerWeights {
 public:
  OwnerWeights() = default;
  /// Entry 0 of a name table is the unknown owner; the list starts with the first named one.
  explicit OwnerWeights(const std::vector<double>& weights) : milli_{1000} {
    for (const double weight : weights) milli_.push_back(static_cast<std::int64_t>(weight * 1000 + 0.5));
  }
  [[nodiscard]] std::int64_t milli(std::uint32_t owner) const { return owner < milli_.size() ? milli_[owner] : 1000; }

 private:
  std::vector<std::int64_t> milli_;
};

ParameterInfo weights_parameter();

/// What happened to an attempt to start the first job of a class.
enum class Attempt : std::uint8_t {
  started,
  no_room,      ///< the cluster has no place for the shape: no other class of it is tried at this instant
  not_allowed,  ///< the policy's own limit: only this class is done for this instant
};

/// Waiting jobs by class: equal owner, priority, scheduling queue and shape. Within a class, first come first served.
class ClassQueues {
 public:
  struct Class {
    std::uint32_t owner = 0;
    std::int32_t priority = 0;
    std::uint32_t queue = 0;
    std::uint32_t shape = 0;
    std::vector<JobId> jobs = {};  ///< a heap with the lowest id at the front

    [[nodiscard]] JobId first() const { return jobs.front(); }
  };

  void push(const View& view, JobId job, std::uint32_t owner) {
    const auto key = std::tuple(owner, view.priority(job), view.queue_of(job), view.shape_id(job));
    const auto [place, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(classes_.size()));
    if (added) {
      classes_.push_back(
          {.owner = owner, .priority = view.priority(job), .queue = view.queue_of(job), .shape = view.shape_id(job)});
    }
    std::vector<JobId>& jobs = classes_[place->second].jobs;
    if (jobs.empty()) active_.push_back(place->second);
    jobs.push_back(job);
    std::push_heap(jobs.begin(), jobs.end(), std::greater<>());
  }

  /// Calls `attempt(class)`, which tries to start the class's first job, for the class of the lowest
  /// (score(class), first job), until none is left to try. Without `skip`, a job without room ends its scheduling
  /// queue. O(classes) an attempt.
  template <class Score, class Try>
  void start_best(bool skip, Score score, Try attempt) {
    candidates_ = active_;
    while (!candidates_.empty()) {
      std::size_t best = 0;
      auto best_score = score(classes_[candidates_[0]]);
      for (std::size_t i = 1; i < candidates_.size(); ++i) {
        const Class& other = classes_[candidates_[i]];
        auto other_score = score(other);
        const JobId leader = classes_[candidates_[best]].first();
        if (best_score < other_score || (!(other_score < best_score) && leader < other.first())) continue;
        best = i;
        best_score = std::move(other_score);
      }
      const std::uint32_t number = candidates_[best];
      switch (attempt(std::as_const(classes_[number]))) {
        case Attempt::started:
          pop(number);
          if (classes_[number].jobs.empty()) drop_candidate(best);
          break;
        case Attempt::not_allowed: drop_candidate(best); break;
        case Attempt::no_room: drop_like(classes_[number], skip); break;
      }
    }
  }

  /// Classes that have waiting jobs, in no order that means anything.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const std::uint32_t number : active_) visit(classes_[number]);
  }

  /// Takes `job` out. Precondition: it is the first of its class.
  void pop_first(const View& view, JobId job, std::uint32_t owner) {
    pop(numbers_.at(std::tuple(owner, view.priority(job), view.queue_of(job), view.shape_id(job))));
  }

 private:
  void pop(std::uint32_t number) {
    std::vector<JobId>& jobs = classes_[number].jobs;
    std::pop_heap(jobs.begin(), jobs.end(), std::greater<>());
    jobs.pop_back();
    if (jobs.empty()) active_.erase(std::find(active_.begin(), active_.end(), number));
  }

  void drop_candidate(std::size_t at) {
    candidates_[at] = candidates_.back();
    candidates_.pop_back();
  }

  void drop_like(const Class& refused, bool skip) {
    std::erase_if(candidates_, [&](std::uint32_t number) {
      const Class& other = classes_[number];
      return other.queue == refused.queue && (!skip || other.shape == refused.shape);
    });
  }

  std::map<std::tuple<std::uint32_t, std::int32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> active_;      // classes with waiting jobs
  std::vector<std::uint32_t> candidates_;  // those not yet given up in this pass
};

/// GPU thousandths by owner, grown on demand.
class OwnerSums {
 public:
  [[nodiscard]] std::int64_t operator[](std::uint32_t owner) const { return owner < sums_.size() ? sums_[owner] : 0; }
  void add(std::uint32_t owner, std::int64_t amount) {
    if (owner >= sums_.size()) sums_.resize(owner + 1, 0);
    sums_[owner] += amount;
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sums_.size()); }

 private:
  std::vector<std::int64_t> sums_;
};

/// Preempts `victims` in turn until `job` can start, then gives those back their place that need not have gone. Returns
/// the jobs that stay preempted, or nothing and everything as before when even all of them do not suffice.
std::vector<JobId> make_room(JobId job, const std::vector<JobId>& victims, Decision& decision);

/// Divides `total` by weight so that nobody gets more than it demands and what one leaves goes to the others: weighted
/// max-min. `weights` and `demands` have one entry an owner; integers, rounded down.
std::vector<std::int64_t> deserved_shares(std::int64_t total, const std::vector<std::int64_t>& weights,
                                          const std::vector<std::int64_t>& demands);

}  // namespace gpusched
