// SPDX-License-Identifier: Apache-2.0
/// JobsByDemand: what a greedy preemptive policy asks of the waiting and running jobs of each queue and demand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/policy/demand_tree.hpp"
#include "gpusched/policy/most_freed.hpp"

namespace gpusched {

/// The waiting and the running jobs of each scheduling queue and demand, in ascending order of their places. When the
/// first waiting job of a demand cannot be placed, no other of that demand can, nor, under most placement rules, one
/// that asks for more (DemandTree): a question costs O(log demands), whatever the number of jobs.
///
/// `Waiting` and `Running` are totally ordered by < and have a member `job`. `place_of(const Running&)` converts to a
/// `Waiting` with the place the job has now; within a demand both orders must agree, whenever a function takes
/// place_of.
template <class Waiting, class Running = Waiting>
class JobsByDemand {
 public:
  /// Makes room for the run's queues and demands. Call it before anything else but empty().
  void prepare(const View& view) {
    if (!jobs_.empty()) return;
    jobs_.resize(std::size_t{view.queue_count()} * view.demand_count());
    running_demands_.resize(view.queue_count());
    demand_of_.resize(view.job_count());
    tree_.prepare(view);
  }
  /// True until prepare().
  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  /// The jobs of that queue and demand, in order of their places. Precondition: prepared.
  /// \{
  [[nodiscard]] const std::set<Waiting>& waiting(const View& view, std::uint32_t queue, std::uint32_t demand) const {
    return jobs_[slot(view, queue, demand)].waiting;
  }
  [[nodiscard]] const std::set<Running>& running(const View& view, std::uint32_t queue, std::uint32_t demand) const {
    return jobs_[slot(view, queue, demand)].running;
  }
  /// \}

  /// The demand of a job when it was added last: its user may want something else since.
  [[nodiscard]] std::uint32_t demand_of(JobId job) const { return demand_of_[index(job)]; }

  /// The job waits from now on. O(log n), as the next three.
  void add(const View& view, const Waiting& entry) {
    const std::uint32_t queue = view.queue_of(entry.job), demand = view.demand(entry.job);
    demand_of_[index(entry.job)] = demand;
    std::set<Waiting>& waiting = jobs_[slot(view, queue, demand)].waiting;
    const auto [place, added] = waiting.insert(entry);
    if (added && place == waiting.begin()) tree_.update(queue, demand, true, order(view, queue));
  }
  /// It waits no longer.
  void remove(const View& view, const Waiting& entry) {
    const std::uint32_t queue = view.queue_of(entry.job), demand = demand_of(entry.job);
    std::set<Waiting>& waiting = jobs_[slot(view, queue, demand)].waiting;
    const auto place = waiting.find(entry);
    if (place == waiting.end()) return;
    const bool was_first = place == waiting.begin();
    waiting.erase(place);
    if (was_first) tree_.update(queue, demand, !waiting.empty(), order(view, queue));
  }
  /// A job waits no longer, wherever it stands. O(waiting jobs of its queue and demand).
  void remove_job(const View& view, JobId job) {
    const auto& waiting = jobs_[slot(view, view.queue_of(job), demand_of(job))].waiting;
    const auto place =
        std::find_if(waiting.begin(), waiting.end(), [&job](const Waiting& entry) { return entry.job == job; });
    if (place != waiting.end()) remove(view, Waiting(*place));
  }
  /// The job runs from now on.
  void add_running(const View& view, const Running& entry) {
    const std::uint32_t queue = view.queue_of(entry.job), demand = view.demand(entry.job);
    demand_of_[index(entry.job)] = demand;
    std::set<Running>& running = jobs_[slot(view, queue, demand)].running;
    if (running.empty()) running_demands_[queue].insert(demand);
    running.insert(entry);
  }
  /// It runs no longer.
  void remove_running(const View& view, const Running& entry) {
    const std::uint32_t queue = view.queue_of(entry.job), demand = demand_of(entry.job);
    std::set<Running>& running = jobs_[slot(view, queue, demand)].running;
    running.erase(entry);
    if (running.empty()) running_demands_[queue].erase(demand);
  }

  /// The running jobs of a queue have other places from now on: `renew(const Running&)` changes the one it is given.
  /// O(running jobs of the queue), and log n more for each that overtakes others.
  template <class Renew>
  void renew_running(const View& view, std::uint32_t queue, Renew renew) {
    for (const std::uint32_t demand : running_demands_[queue]) {
      std::set<Running>& jobs = jobs_[slot(view, queue, demand)].running;
      std::vector<typename std::set<Running>::node_type> moved;
      for (auto job = jobs.begin(); job != jobs.end();) {
        renew(*job);
        const auto next = std::next(job);
        if (job != jobs.begin() && !(*std::prev(job) < *job)) moved.push_back(take_out_of_order(jobs, job));
        job = next;
      }
      for (auto& job : moved) jobs.insert(std::move(job));
    }
  }

  /// Starts a walk through the waiting jobs of a queue: none is passed over yet.
  void begin_pass(const View& view, std::uint32_t queue) { tree_.begin_pass(queue, order(view, queue)); }
  /// The first waiting job of the demands not passed over, or null.
  [[nodiscard]] const Waiting* first_waiting(const View& view, std::uint32_t queue) const {
    const std::uint32_t demand = tree_.first(queue);
    return demand == no_index ? nullptr : &*waiting(view, queue, demand).begin();
  }
  /// Leaves out the jobs of that job's demand for the rest of the walk, because `rule` has no room for it; and with
  /// them all that are settled by that (settles_larger()). O(log demands) where demands differ in one resource alone.
  void pass_over(const View& view, JobId job, Placement rule) {
    const std::uint32_t queue = view.queue_of(job);
    tree_.pass_over(queue, view.demand(job), settles_larger(rule, view), order(view, queue));
  }

  /// The same of its demand alone, because something else than room refuses the job: what others ask for may be
  /// allowed.
  void pass_over_demand(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job);
    tree_.pass_over(queue, view.demand(job), false, order(view, queue));
  }

  /// False when the candidate would not fit even if every running job behind it were preempted; true is no promise.
  template <class PlaceOf>
  [[nodiscard]] bool could_fit(const View& view, std::uint32_t queue, const Waiting& candidate,
                               PlaceOf place_of) const {
    const Shape& wanted = view.shape(candidate.job);
    MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, queue);
    for (const std::uint32_t demand : running_demands_[queue]) {
      const std::set<Running>& jobs = running(view, queue, demand);
      for (auto last = jobs.rbegin(); last != jobs.rend() && missing > 0; ++last) {
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
    for (const std::uint32_t demand : running_demands_[queue]) {
      const Running& its_last = *running(view, queue, demand).rbegin();
      const Waiting& place = place_of(its_last);
      if (!(last < place)) continue;
      last = place;
      found = &its_last;
    }
    return found;
  }

 private:
  [[nodiscard]] static std::size_t slot(const View& view, std::uint32_t queue, std::uint32_t demand) {
    return std::size_t{queue} * view.demand_count() + demand;
  }

  // The order of demands by their first waiting jobs.
  [[nodiscard]] auto order(const View& view, std::uint32_t queue) const {
    return [this, &view, queue](std::uint32_t a, std::uint32_t b) {
      return *waiting(view, queue, a).begin() < *waiting(view, queue, b).begin();
    };
  }

  // The job or the one before it, after which those up to the job are in order.
  static auto take_out_of_order(std::set<Running>& jobs, typename std::set<Running>::iterator job) {
    const auto before = std::prev(job);
    const bool only_before = before == jobs.begin() || *std::prev(before) < *job;
    return jobs.extract(only_before ? before : job);
  }

  struct Jobs {
    std::set<Waiting> waiting;
    std::set<Running> running;
  };
  std::vector<Jobs> jobs_;                                // [queue x demand]
  std::vector<std::set<std::uint32_t>> running_demands_;  // [queue]: those of running jobs
  std::vector<std::uint32_t> demand_of_;                  // [job]
  DemandTree tree_;                                       // of those of waiting jobs
};

}  // namespace gpusched
