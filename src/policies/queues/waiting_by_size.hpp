// SPDX-License-Identifier: Apache-2.0
/// WaitingBySize: the waiting part of a greedy walk through an order of jobs, kept so that an instant costs what starts
/// and one test a size of job, not the queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Waiting jobs, those that ask for as much (GPUs, or thousandths of them) in one queue, in ascending order of `Place`,
/// which is unique and changes only when the policy moves the job. For walks in which capacity only shrinks, and in
/// which a job fits wherever a larger one does.
template <class Place>
class WaitingBySize {
 public:
  struct Entry {
    Place place;
    JobId job = no_job;
    friend bool operator<(const Entry& a, const Entry& b) { return a.place < b.place; }
  };

  /// Not during a walk.
  void insert(std::int64_t size, const Entry& entry) { queue_of(size).entries.insert(entry); }
  /// Not during a walk. Precondition: it was inserted so.
  void erase(std::int64_t size, const Entry& entry) { queue_of(size).entries.erase(entry); }

  /// Takes out a job, wherever it stands; false: it is not in here. Not during a walk. O(jobs of its size).
  bool erase_job(std::int64_t size, JobId job) {
    return std::erase_if(queue_of(size).entries, [&](const Entry& entry) { return entry.job == job; }) > 0;
  }

  /// All jobs are to be looked at. O(sizes).
  void begin_walk() {
    open_ = queues_.size();
    find_next();
  }

  /// Walks on to `place`: takes out, in order, each job before it of which `starts(entry, size)` is true. False: it
  /// does not fit, and no job of its size or a larger one is asked in the rest of the walk. Precondition: begin_walk().
  /// O(1) when there is none before `place`; O(sizes + log n) a job taken out, O(sizes) a size that does not fit.
  template <class Starts>
  void walk_to(const Place& place, Starts starts) {
    while (next_ < open_ && queues_[next_].entries.begin()->place < place) {
      std::set<Entry>& entries = queues_[next_].entries;
      if (starts(*entries.begin(), queues_[next_].size)) {
        entries.erase(entries.begin());
      } else {
        open_ = next_;
      }
      find_next();
    }
  }

 private:
  struct Queue {
    std::int64_t size = 0;
    std::set<Entry> entries;
  };

  // Workloads know some dozen sizes.
  Queue& queue_of(std::int64_t size) {
    const auto at = std::lower_bound(queues_.begin(), queues_.end(), size,
                                     [](const Queue& queue, std::int64_t wanted) { return queue.size < wanted; });
    if (at != queues_.end() && at->size == size) return *at;
    return *queues_.insert(at, {size, {}});
  }

  void find_next() {
    next_ = open_;
    for (std::size_t i = 0; i < open_; ++i) {
      if (queues_[i].entries.empty()) continue;
      if (next_ == open_ || *queues_[i].entries.begin() < *queues_[next_].entries.begin()) next_ = i;
    }
  }

  std::vector<Queue> queues_;  // ascending by size
  // Of the present walk:
  std::size_t open_ = 0;  // this queue and those after it do not fit
  std::size_t next_ = 0;  // the queue before it with the first job of all; open_: there is none
};

}  // namespace gpusched
