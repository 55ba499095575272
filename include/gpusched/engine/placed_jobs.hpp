// SPDX-License-Identifier: Apache-2.0
/// PlacedJobs: of each queue, the jobs that hold their places, in the order of those: all but the preempted ones.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// While nothing was preempted, the queues themselves are these lists, and nothing is kept here: active() is false.
/// Where most jobs that wait were preempted, a search for a place would walk past them all.
class PlacedJobs {
 public:
  /// False until open().
  [[nodiscard]] bool active() const { return !links_.empty(); }

  /// Lists what waits now, none of it preempted. `states` are those of all jobs, of which there is one.
  void open(const std::vector<JobState>& states, const std::vector<JobList>& queues) {
    lists_ = queues;
    links_.resize(states.size());
    for (const JobList& list : lists_) {
      for (std::uint32_t at = list.first; at != no_index; at = states[at].next) {
        links_[at] = {.previous = states[at].previous, .next = states[at].next};
      }
    }
  }

  /// The placed jobs of a queue.
  [[nodiscard]] const JobList& list(std::uint32_t queue) const { return lists_[queue]; }
  /// The placed job after `at`, or no_index.
  [[nodiscard]] std::uint32_t next(std::uint32_t at) const { return links_[at].next; }
  /// The placed job before `at`, or no_index.
  [[nodiscard]] std::uint32_t previous(std::uint32_t at) const { return links_[at].previous; }

  /// A job joins before `next`; at the end, when that is no_index.
  void insert(std::uint32_t queue, std::uint32_t job, std::uint32_t next) {
    JobList& list = lists_[queue];
    const std::uint32_t previous = next == no_index ? list.last : links_[next].previous;
    links_[job] = {.previous = previous, .next = next};
    (previous == no_index ? list.first : links_[previous].next) = job;
    (next == no_index ? list.last : links_[next].previous) = job;
    ++list.size;
  }

  /// A placed job leaves.
  void remove(std::uint32_t queue, std::uint32_t job) {
    JobList& list = lists_[queue];
    const Links links = links_[job];
    (links.previous == no_index ? list.first : links_[links.previous].next) = links.next;
    (links.next == no_index ? list.last : links_[links.next].previous) = links.previous;
    --list.size;
  }

 private:
  struct Links {
    std::uint32_t previous = no_index, next = no_index;
  };

  std::vector<JobList> lists_;  // by queue; previous and next of their jobs are in links_
  std::vector<Links> links_;    // by job
};

}  // namespace gpusched::detail
