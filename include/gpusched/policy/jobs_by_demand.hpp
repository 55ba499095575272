// SPDX-License-Identifier: Apache-2.0
/// JobsByDemand: what a greedy preemptive policy asks of the waiting and running jobs of each queue and demand.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/policy/most_freed.hpp"

namespace gpusched {

/// The waiting and the running jobs of each scheduling queue and demand, in ascending order of their places. When the
/// first waiting job of a demand cannot be placed, no other of that demand can: a question costs O(demands), whatever
/// the number of jobs.
///
/// `Waiting` and `Running` are totally ordered by < and have a member `job`. `place_of(const Running&)` converts to a
/// `Waiting` with the place the job has now; within a demand both orders must agree, whenever a function takes
/// place_of.
template <class Waiting, class Running = Waiting>
class JobsByDemand {
 public:
  /// The jobs of one queue and demand.
  struct Jobs {
    std::set<Waiting> waiting;  ///< in order of their places
    std::set<Running> running;  ///< the same
  };

  /// Makes room for the run's queues and demands. Call it before anything else but empty().
  void prepare(const View& view) {
    if (jobs_.empty()) jobs_.resize(std::size_t{view.queue_count()} * view.demand_count());
  }
  /// True until prepare().
  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  /// The jobs of that queue and demand. Precondition: prepared.
  /// \{
  Jobs& of(const View& view, std::uint32_t queue, std::uint32_t demand) { return jobs_[slot(view, queue, demand)]; }
  [[nodiscard]] const Jobs& of(const View& view, std::uint32_t queue, std::uint32_t demand) const {
    return jobs_[slot(view, queue, demand)];
  }
  /// \}
  /// The jobs of that job's queue and demand.
  Jobs& of(const View& view, JobId job) { return of(view, view.queue_of(job), view.demand(job)); }

  /// The demand whose first waiting job comes before that of all others, demands with blocked[demand] != 0 left out;
  /// no_index when no job is left.
  [[nodiscard]] std::uint32_t best_waiting(const View& view, std::uint32_t queue,
                                           const std::vector<std::uint8_t>& blocked) const {
    std::uint32_t best = no_index;
    const Waiting* least = nullptr;
    for (std::uint32_t demand = 0; demand < view.demand_count(); ++demand) {
      const auto& waiting = of(view, queue, demand).waiting;
      if (blocked[demand] || waiting.empty()) continue;
      if (least == nullptr || *waiting.begin() < *least) {
        least = &*waiting.begin();
        best = demand;
      }
    }
    return best;
  }

  /// False when the candidate would not fit even if every running job behind it were preempted; true is no promise.
  template <class PlaceOf>
  [[nodiscard]] bool could_fit(const View& view, std::uint32_t queue, const Waiting& candidate,
                               PlaceOf place_of) const {
    const Shape& wanted = view.shape(candidate.job);
    MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, queue);
    for (std::uint32_t demand = 0; demand < view.demand_count() && missing > 0; ++demand) {
      const auto& running = of(view, queue, demand).running;
      for (auto last = running.rbegin(); last != running.rend() && missing > 0; ++last) {
        if (!(candidate < place_of(*last))) break;
        missing -= most_freed(view.shape(last->job), wanted);
      }
    }
    return missing <= 0;
  }

  /// The running job that comes last of all and behind the candidate, or null.
  template <class PlaceOf>
  [[nodiscard]] const Running* last_running_behind(const View& view, std::uint32_t queue, const Waiting& candidate,
                                                   PlaceOf place_of) const {
    Waiting last = candidate;
    const Running* found = nullptr;
    for (std::uint32_t demand = 0; demand < view.demand_count(); ++demand) {
      const auto& running = of(view, queue, demand).running;
      if (running.empty()) continue;
      const Waiting& place = place_of(*running.rbegin());
      if (!(last < place)) continue;
      last = place;
      found = &*running.rbegin();
    }
    return found;
  }

 private:
  [[nodiscard]] static std::size_t slot(const View& view, std::uint32_t queue, std::uint32_t demand) {
    return std::size_t{queue} * view.demand_count() + demand;
  }

  std::vector<Jobs> jobs_;  // [queue x demand]
};

}  // namespace gpusched
