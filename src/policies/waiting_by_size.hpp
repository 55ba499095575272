// SPDX-License-Identifier: Apache-2.0
/// WaitingBySize: the waiting part of a greedy walk through an order of jobs, kept so that an instant costs what starts
/// and one test a size of job, not the queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gpusched/types.hpp"

namespace gpusched {

/// Waiting jobs, those that ask for as much (GPUs, or thousandths of them) in one queue, in ascending order of `Place`,
/// which is unique and changes only when the policy moves the job. For walks in which capacity only shrinks: when a job
/// does not fit, no later one of its size does.
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

  /// All jobs are to be looked at. O(sizes).
  void begin_walk() {
    open_.clear();
    for (std::uint32_t i = 0; i < queues_.size(); ++i) {
      if (!queues_[i].entries.empty()) open_.push_back(i);
    }
    std::make_heap(open_.begin(), open_.end(), later());
  }

  /// No job is left to be looked at.
  void end_walk() { open_.clear(); }

  [[nodiscard]] bool walked() const { return open_.empty(); }

  // ---- while not walked() ----

  /// The first job in order of those still to be looked at, and its size.
  [[nodiscard]] const Entry& first() const { return *queues_[open_.front()].entries.begin(); }
  [[nodiscard]] std::int64_t first_size() const { return queues_[open_.front()].size; }

  /// Removes first(), which starts.
  Entry take() {
    std::pop_heap(open_.begin(), open_.end(), later());
    std::set<Entry>& entries = queues_[open_.back()].entries;
    const Entry taken = entries.extract(entries.begin()).value();
    if (entries.empty()) {
      open_.pop_back();
    } else {
      std::push_heap(open_.begin(), open_.end(), later());
    }
    return taken;
  }

  /// first() does not fit, and so no other of its size.
  void pass_over() {
    std::pop_heap(open_.begin(), open_.end(), later());
    open_.pop_back();
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

  // Of two queues, the one whose first job comes later.
  [[nodiscard]] auto later() const {
    return
        [this](std::uint32_t a, std::uint32_t b) { return *queues_[b].entries.begin() < *queues_[a].entries.begin(); };
  }

  std::vector<Queue> queues_;        // ascending by size
  std::vector<std::uint32_t> open_;  // heap of those still looked at in this walk, the one with the first job on top
};

}  // namespace gpusched
