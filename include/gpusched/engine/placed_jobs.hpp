// SPDX-License-Identifier: Apache-2.0
/// PlacedJobs: of each queue, the waiting jobs that hold their places, so that the next one after a place is found
/// without a walk.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/id_set.hpp"
#include "gpusched/engine/job_states.hpp"

namespace gpusched::detail {

/// Jobs join a queue in the order of their places, so that each has a rank there for good; those that wait are a set of
/// ranks. All jobs that wait hold their places but those that a decision preempted. Operations are O(log64 n). Nothing
/// is kept until open(), since most runs have no job that comes back.
class PlacedJobs {
 public:
  /// False until open().
  [[nodiscard]] bool active() const { return !rank_.empty(); }

  /// Counts from now on; list() the jobs that joined before. Precondition: there are jobs.
  void open(std::size_t jobs, std::size_t queues) {
    rank_.resize(jobs, no_index);
    queues_.resize(queues);
  }
  /// One of them, in the order of their places; its state tells whether it waits.
  void list(std::uint32_t queue, const JobStates& states, JobId job) {
    const JobState& state = states[index(job)];
    join(queue, index(job));
    if (state.phase != JobPhase::pending || state.stands_last) leave(queue, index(job));
  }

  /// A job joins the queue, at a place after all others.
  void join(std::uint32_t queue, std::uint32_t job) {
    Queue& ranks = queues_[queue];
    rank_[job] = static_cast<std::uint32_t>(ranks.joined.size());
    ranks.joined.push_back(job);
    if (ranks.joined.size() > ranks.capacity) ranks.grow();
    ranks.waiting.insert(rank_[job]);
  }
  /// A job that joined comes back to its place, or leaves it.
  /// \{
  void come_back(std::uint32_t queue, std::uint32_t job) { queues_[queue].waiting.insert(rank_[job]); }
  void leave(std::uint32_t queue, std::uint32_t job) { queues_[queue].waiting.erase(rank_[job]); }
  /// \}

  /// The first job of the queue that holds a place, or no_index.
  [[nodiscard]] std::uint32_t first(std::uint32_t queue) const { return queues_[queue].at_least(0); }
  /// The next one after the place of a job that joined the queue, or no_index.
  [[nodiscard]] std::uint32_t next(std::uint32_t queue, std::uint32_t job) const {
    return queues_[queue].at_least(rank_[job] + 1);
  }

 private:
  struct Queue {
    std::vector<std::uint32_t> joined;  // jobs by rank
    IdSet waiting;                      // ranks
    std::uint32_t capacity = 0;         // of `waiting`

    [[nodiscard]] std::uint32_t at_least(std::uint32_t rank) const {
      const std::uint32_t found = rank < capacity ? waiting.next(rank) : no_index;
      return found == no_index ? no_index : joined[found];
    }
    void grow() {
      const std::uint32_t more = capacity == 0 ? 64 : 2 * capacity;
      IdSet larger(more);
      for (std::uint32_t rank = capacity == 0 ? no_index : waiting.first(); rank != no_index;) {
        larger.insert(rank);
        rank = rank + 1 < capacity ? waiting.next(rank + 1) : no_index;
      }
      waiting = larger;
      capacity = more;
    }
  };

  std::vector<Queue> queues_;
  std::vector<std::uint32_t> rank_;  // by job, in its queue; no_index: it never joined
};

}  // namespace gpusched::detail
