// SPDX-License-Identifier: Apache-2.0
/// JobHeaps: waiting jobs in the order of a key that does not change while they wait, kept as one heap for each shape.
/// A shape that does not fit now is passed over whole, so that a greedy pass costs O(shapes) and not O(jobs).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"

namespace gpusched {

/// `Key` orders ascending; ties go to the lower job id.
template <class Key>
class JobHeaps {
 public:
  void push(const View& view, JobId job, Key key) {
    const std::uint32_t queue = view.queue_of(job);
    const std::uint32_t shape = view.shape_id(job);
    if (queues_.size() < view.queue_count()) queues_.resize(view.queue_count());
    auto& heaps = queues_[queue];
    if (heaps.size() < view.shape_count()) heaps.resize(view.shape_count());
    if (heaps[shape].empty()) active_of(queue).push_back(shape);
    heaps[shape].push_back({key, job});
    std::push_heap(heaps[shape].begin(), heaps[shape].end(), Later{});
  }

  /// Starts jobs in key order. With `skip`, jobs that do not fit are passed over; without, the first of them blocks its
  /// scheduling queue.
  void start_in_order(Decision& decision, bool skip) {
    for (std::uint32_t queue = 0; queue < active_.size(); ++queue) start_queue(queue, decision, skip);
  }

 private:
  struct Entry {
    Key key;
    JobId job;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.key != b.key ? b.key < a.key : index(b.job) < index(a.job);
    }
  };

  std::vector<std::uint32_t>& active_of(std::uint32_t queue) {
    if (active_.size() <= queue) active_.resize(queue + 1);
    return active_[queue];
  }

  void start_queue(std::uint32_t queue, Decision& decision, bool skip) {
    auto& heaps = queues_[queue];
    auto& shapes = active_[queue];
    std::size_t candidates = shapes.size();  // shapes[candidates..] did not fit at this instant
    while (candidates > 0) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < candidates; ++i) {
        if (Later{}(heaps[shapes[best]].front(), heaps[shapes[i]].front())) best = i;
      }
      auto& heap = heaps[shapes[best]];
      if (decision.start(heap.front().job) != Verdict::ok) {
        if (!skip) return;
        std::swap(shapes[best], shapes[--candidates]);
        continue;
      }
      std::pop_heap(heap.begin(), heap.end(), Later{});
      heap.pop_back();
      if (!heap.empty()) continue;
      // Drop the shape: the last candidate takes its place, the last of all takes the candidate's.
      std::swap(shapes[best], shapes[--candidates]);
      std::swap(shapes[candidates], shapes.back());
      shapes.pop_back();
    }
  }

  std::vector<std::vector<std::vector<Entry>>> queues_;  // [queue][shape]: heap
  std::vector<std::vector<std::uint32_t>> active_;       // [queue]: shapes with waiting jobs, in no order
};

}  // namespace gpusched
