// SPDX-License-Identifier: Apache-2.0
/// JobHeaps: waiting jobs in the order of a key that does not change while they wait, kept as one heap for each shape.
/// A shape that does not fit now is passed over whole, so that a greedy pass costs O(shapes) and not O(jobs).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// `Key` orders ascending; ties go to the lower job id. Every scheduling queue has an order of its own, or, with
/// `one_order`, all have one together.
template <class Key>
class JobHeaps {
 public:
  explicit JobHeaps(bool one_order = false) : one_order_(one_order) {}

  void push(const View& view, JobId job, Key key) {
    const std::uint32_t order = one_order_ ? 0 : view.queue_of(job);
    const std::uint32_t shape = view.demand(job) + (one_order_ ? view.queue_of(job) * view.demand_count() : 0);
    if (orders_.size() <= order) orders_.resize(order + 1);
    auto& [heaps, active] = orders_[order];
    if (heaps.size() <= shape) heaps.resize(shape + 1);
    if (heaps[shape].empty()) active.push_back(shape);
    heaps[shape].push_back({key, job});
    std::push_heap(heaps[shape].begin(), heaps[shape].end(), Later{});
  }

  /// Starts jobs in key order. With `skip`, jobs that do not fit are passed over; without, the first of them blocks its
  /// order.
  void start_in_order(Decision& decision, bool skip) {
    for (Order& order : orders_) start(order, decision, skip);
  }

  /// Takes out the first of all; no_job when there is none. Precondition: `one_order`.
  JobId pop() {
    if (orders_.empty() || orders_.front().active.empty()) return no_job;
    Order& order = orders_.front();
    std::size_t candidates = order.active.size();
    const std::size_t best = first_of(order, candidates);
    const JobId job = order.heaps[order.active[best]].front().job;
    take(order, best, candidates);
    return job;
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

  struct Order {
    std::vector<std::vector<Entry>> heaps;  // [shape]
    std::vector<std::uint32_t> active;      // shapes with waiting jobs, in no order
  };

  void start(Order& order, Decision& decision, bool skip) {
    std::size_t candidates = order.active.size();  // those from active[candidates] on did not fit at this instant
    while (candidates > 0) {
      const std::size_t best = first_of(order, candidates);
      if (decision.start(order.heaps[order.active[best]].front().job) == Verdict::ok) {
        take(order, best, candidates);
      } else if (skip) {
        std::swap(order.active[best], order.active[--candidates]);
      } else {
        return;
      }
    }
  }

  // The place among the active shapes of the one whose first job comes first. Precondition: candidates > 0.
  static std::size_t first_of(const Order& order, std::size_t candidates) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates; ++i) {
      if (Later{}(order.heaps[order.active[best]].front(), order.heaps[order.active[i]].front())) best = i;
    }
    return best;
  }

  // Takes out the first job of an active shape that is a candidate.
  static void take(Order& order, std::size_t at, std::size_t& candidates) {
    auto& [heaps, active] = order;
    auto& heap = heaps[active[at]];
    std::pop_heap(heap.begin(), heap.end(), Later{});
    heap.pop_back();
    if (!heap.empty()) return;
    // Drop the shape: the last candidate takes its place, the last of all takes the candidate's.
    std::swap(active[at], active[--candidates]);
    std::swap(active[candidates], active.back());
    active.pop_back();
  }

  bool one_order_;
  std::vector<Order> orders_;
};

}  // namespace gpusched
