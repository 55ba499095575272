// SPDX-License-Identifier: Apache-2.0
/// WaitingJobs: the waiting jobs of every scheduling queue in a PriorityOrder, one tournament for each shape, so that a
/// shape that does not fit now is passed over whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "src/policies/queues/kinetic_tournament.hpp"

namespace gpusched {

class WaitingJobs {
 public:
  explicit WaitingJobs(bool ages) : ages_(ages) {}

  /// `weight` as in Claim. Precondition: the job is not in here.
  void push(const View& view, JobId job, double weight) {
    if (queues_.empty()) {
      queues_.resize(view.queue_count());
      slots_.assign(view.job_count(), no_index);
    }
    Queue& queue = queues_[view.queue_of(job)];
    if (queue.shapes.empty()) queue.shapes.assign(view.demand_count(), KineticTournament(ages_));
    KineticTournament& jobs = queue.shapes[view.demand(job)];
    if (jobs.empty()) queue.active.push_back(view.demand(job));
    slots_[index(job)] = jobs.push({weight, view.submit(job), job}, view.now());
  }

  void erase(const View& view, JobId job) {
    Queue& queue = queues_[view.queue_of(job)];
    KineticTournament& jobs = queue.shapes[view.demand(job)];
    jobs.erase(slots_[index(job)], view.now());
    if (!jobs.empty()) return;
    std::size_t at = 0;
    while (queue.active[at] != view.demand(job)) ++at;
    if (at < queue.candidates) {  // the last candidate takes its place, and the last of all takes the candidate's
      std::swap(queue.active[at], queue.active[--queue.candidates]);
      at = queue.candidates;
    }
    std::swap(queue.active[at], queue.active.back());
    queue.active.pop_back();
  }

  /// Starts a pass over a queue: no shape is passed over yet.
  void begin_pass(std::uint32_t queue) {
    if (queue < queues_.size()) queues_[queue].candidates = queues_[queue].active.size();
  }

  /// The first job of the shapes not passed over, or no_job. O(shapes).
  [[nodiscard]] JobId first(std::uint32_t number, Time now) {
    if (number >= queues_.size()) return no_job;
    Queue& queue = queues_[number];
    const Claim* best = nullptr;
    for (std::size_t i = 0; i < queue.candidates; ++i) {
      KineticTournament& jobs = queue.shapes[queue.active[i]];
      const Claim& claim = jobs[jobs.first(now)];
      if (best == nullptr || jobs.before(claim, *best, now)) best = &claim;
    }
    return best == nullptr ? no_job : best->job;
  }

  /// True when `a` comes before `b` in the order. Preconditions: both are in here, in the same queue.
  [[nodiscard]] bool before(const View& view, JobId a, JobId b) const {
    return queues_[view.queue_of(a)].shapes[view.demand(a)].before(claim(view, a), claim(view, b), view.now());
  }

  /// Leaves out all jobs of the shape of `job` for the rest of this pass.
  void pass_over_shape_of(const View& view, JobId job) {
    Queue& queue = queues_[view.queue_of(job)];
    std::size_t at = 0;
    while (queue.active[at] != view.demand(job)) ++at;
    std::swap(queue.active[at], queue.active[--queue.candidates]);
  }

  [[nodiscard]] bool empty(std::uint32_t queue) const {
    return queue >= queues_.size() || queues_[queue].active.empty();
  }

  /// Shapes with waiting jobs, in no meaningful order.
  [[nodiscard]] const std::vector<std::uint32_t>& shapes(std::uint32_t queue) const { return queues_[queue].active; }
  /// Precondition: the job is in here.
  [[nodiscard]] const Claim& claim(const View& view, JobId job) const {
    return queues_[view.queue_of(job)].shapes[view.demand(job)][slots_[index(job)]];
  }
  [[nodiscard]] KineticTournament& jobs(std::uint32_t queue, std::uint32_t shape) {
    return queues_[queue].shapes[shape];
  }

 private:
  struct Queue {
    std::vector<KineticTournament> shapes;
    std::vector<std::uint32_t> active;  // shapes with jobs: candidates of the pass first, then those passed over
    std::size_t candidates = 0;
  };

  bool ages_;
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> slots_;  // of each job in its tournament
};

}  // namespace gpusched
