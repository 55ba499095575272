// SPDX-License-Identifier: Apache-2.0
/// WaitingJobs: the waiting jobs of every scheduling queue in a PriorityOrder, one tournament for each demand, so that
/// a demand that does not fit now is passed over whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/policy/demand_tree.hpp"
#include "src/policies/queues/kinetic_tournament.hpp"

namespace gpusched {

class WaitingJobs {
 public:
  explicit WaitingJobs(bool ages) : ages_(ages) {}

  /// `weight` as in Claim. Precondition: the job is not in here.
  void push(const View& view, JobId job, double weight) {
    if (queues_.empty()) {
      tree_.prepare(view);
      queues_.resize(view.queue_count());
      places_.resize(view.job_count());
    }
    const std::uint32_t number = view.queue_of(job), demand = view.demand(job);
    Queue& queue = queues_[number];
    if (queue.demands.empty()) {
      queue.demands.assign(view.demand_count(), KineticTournament(ages_));
      queue.place.assign(view.demand_count(), no_index);
    }
    KineticTournament& jobs = queue.demands[demand];
    if (jobs.empty()) {
      queue.place[demand] = static_cast<std::uint32_t>(queue.active.size());
      queue.active.push_back(demand);
    }
    places_[index(job)] = jobs.push({weight, view.submit(job), job, view.queue_place(job).number}, view.now());
    tree_.update(number, demand, true, ByFirst{queue, view.now()});
  }

  void erase(const View& view, JobId job) {
    const std::uint32_t number = view.queue_of(job), demand = view.demand(job);
    Queue& queue = queues_[number];
    KineticTournament& jobs = queue.demands[demand];
    jobs.erase(places_[index(job)], view.now());
    tree_.update(number, demand, !jobs.empty(), ByFirst{queue, view.now()});
    if (!jobs.empty()) return;
    queue.active[queue.place[demand]] = queue.active.back();  // the last takes its place
    queue.place[queue.active.back()] = queue.place[demand];
    queue.active.pop_back();
  }

  /// Starts a pass over a queue: no demand is passed over yet. In an order that ages O(demands).
  void begin_pass(const View& view, std::uint32_t queue) {
    if (queue >= queues_.size()) return;
    tree_.begin_pass(queue, ByFirst{queues_[queue], view.now()});
    if (ages_) tree_.reorder(queue, ByFirst{queues_[queue], view.now()});
  }

  /// The first job of the demands not passed over, or no_job.
  [[nodiscard]] JobId first(std::uint32_t queue, Time now) {
    const std::uint32_t demand = queue < queues_.size() ? tree_.first(queue) : no_index;
    return demand == no_index ? no_job : jobs(queue, demand)[jobs(queue, demand).first(now)].job;
  }

  /// True when `a` comes before `b` in the order. Preconditions: both are in here, in the same queue.
  [[nodiscard]] bool before(const View& view, JobId a, JobId b) const {
    return queues_[view.queue_of(a)].demands[view.demand(a)].before(claim(view, a), claim(view, b), view.now());
  }

  /// There is no room for `job`: leaves out all jobs of its demand for the rest of this pass, and all that ask for more
  /// where that settles them (settles_larger()).
  void pass_over(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job);
    tree_.pass_over(queue, view.demand(job), settles_larger(view.options().placement, view),
                    ByFirst{queues_[queue], view.now()});
  }
  /// Leaves out all jobs of the demand of `job` for the rest of this pass, whatever their size.
  void pass_over_demand_of(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job);
    tree_.pass_over(queue, view.demand(job), false, ByFirst{queues_[queue], view.now()});
  }

  /// Demands with waiting jobs, in no meaningful order.
  [[nodiscard]] const std::vector<std::uint32_t>& demands(std::uint32_t queue) const { return queues_[queue].active; }
  /// Precondition: the job is in here.
  [[nodiscard]] const Claim& claim(const View& view, JobId job) const {
    return queues_[view.queue_of(job)].demands[view.demand(job)][places_[index(job)]];
  }
  [[nodiscard]] KineticTournament& jobs(std::uint32_t queue, std::uint32_t demand) {
    return queues_[queue].demands[demand];
  }

 private:
  struct Queue {
    std::vector<KineticTournament> demands;
    std::vector<std::uint32_t> active;  // demands with jobs
    std::vector<std::uint32_t> place;   // of each demand in `active`
  };

  // The order of demands by their first jobs.
  struct ByFirst {
    Queue& queue;
    Time now;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      KineticTournament &first = queue.demands[a], &second = queue.demands[b];
      return first.before(first[first.first(now)], second[second.first(now)], now);
    }
  };

  bool ages_;
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> places_;  // of each job in its tournament
  DemandTree tree_;
};

}  // namespace gpusched
