// SPDX-License-Identifier: Apache-2.0
/// JobsByShape: what a greedy preemptive policy asks of the waiting and running jobs of each queue and shape.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/policy/most_freed.hpp"

namespace gpusched {

/// The waiting and the running jobs of each scheduling queue and shape, in ascending order of their places. When the
/// first waiting job of a shape cannot be placed, no other of that shape can: a question costs O(shapes), whatever the
/// number of jobs.
///
/// `Waiting` and `Running` are totally ordered by < and have a member `job`. `place_of(const Running&)` converts to a
/// `Waiting` with the place the job has now; within a shape both orders must agree, whenever a function takes place_of.
template <class Waiting, class Running = Waiting>
class JobsByShape {
 public:
  /// The jobs of one queue and shape.
  struct Jobs {
    std::set<Waiting> waiting;  ///< in order of their places
    std::set<Running> running;  ///< the same
  };

  /// Makes room for the run's queues and shapes. Call it before anything else but empty().
  void prepare(const View& view) {
    if (jobs_.empty()) jobs_.resize(std::size_t{view.queue_count()} * view.demand_count());
  }
  /// True until prepare().
  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  /// The jobs of that queue and shape. Precondition: prepared.
  /// \{
  Jobs& of(const View& view, std::uint32_t queue, std::uint32_t shape) { return jobs_[slot(view, queue, shape)]; }
  [[nodiscard]] const Jobs& of(const View& view, std::uint32_t queue, std::uint32_t shape) const {
    return jobs_[slot(view, queue, shape)];
  }
  /// \}
  /// The jobs of that job's queue and shape.
  Jobs& of(const View& view, JobId job) { return of(view, view.queue_of(job), view.demand(job)); }

  /// The shape whose first waiting job comes before that of all others, shapes with blocked[shape] != 0 left out;
  /// no_index when no job is left.
  [[nodiscard]] std::uint32_t best_waiting(const View& view, std::uint32_t queue,
                                           const std::vector<std::uint8_t>& blocked) const {
    std::uint32_t best = no_index;
    const Waiting* least = nullptr;
    for (std::uint32_t shape = 0; shape < view.demand_count(); ++shape) {
      const auto& waiting = of(view, queue, shape).waiting;
      if (blocked[shape] || waiting.empty()) continue;
      if (least == nullptr || *waiting.begin() < *least) {
        least = &*waiting.begin();
        best = shape;
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
    for (std::uint32_t shape = 0; shape < view.demand_count() && missing > 0; ++shape) {
      const auto& running = of(view, queue, shape).running;
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
    for (std::uint32_t shape = 0; shape < view.demand_count(); ++shape) {
      const auto& running = of(view, queue, shape).running;
      if (running.empty()) continue;
      const Waiting& place = place_of(*running.rbegin());
      if (!(last < place)) continue;
      last = place;
      found = &*running.rbegin();
    }
    return found;
  }

 private:
  [[nodiscard]] static std::size_t slot(const View& view, std::uint32_t queue, std::uint32_t shape) {
    return std::size_t{queue} * view.demand_count() + shape;
  }

  std::vector<Jobs> jobs_;  // [queue x shape]
};

}  // namespace gpusched
