// SPDX-License-Identifier: Apache-2.0
/// JobHeaps: waiting jobs in the order of a key that does not change while they wait, kept as one heap for each demand.
/// A demand that does not fit now is passed over whole, so that a greedy pass costs O(demands) and not O(jobs).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/demand_tree.hpp"

namespace gpusched {

/// `Key` orders ascending; ties go to the earlier place (QueuePlace). Every scheduling queue has an order of its own,
/// or, with `one_order`, all have one together.
template <class Key>
class JobHeaps {
 public:
  explicit JobHeaps(bool one_order = false) : one_order_(one_order) {}

  void push(const View& view, JobId job, Key key) {
    if (queues_.empty()) {
      tree_.prepare(view);
      queues_.resize(view.queue_count());
    }
    const std::uint32_t queue = view.queue_of(job), demand = view.demand(job);
    if (queues_[queue].empty()) queues_[queue].resize(view.demand_count());
    std::vector<Entry>& heap = queues_[queue][demand];
    heap.push_back({key, view.queue_place(job)});
    std::push_heap(heap.begin(), heap.end(), Later{});
    if (heap.front().place.job == job) tree_.update(queue, demand, true, order(queue));
  }

  /// Takes out a job, which need not be the first. O(jobs of its queue and demand). Precondition: it is in here.
  void erase(const View& view, JobId job) {
    const std::uint32_t queue = view.queue_of(job), demand = view.demand(job);
    std::vector<Entry>& heap = queues_[queue][demand];
    const auto at = std::find_if(heap.begin(), heap.end(), [&](const Entry& entry) { return entry.place.job == job; });
    *at = heap.back();
    heap.pop_back();
    std::make_heap(heap.begin(), heap.end(), Later{});
    tree_.update(queue, demand, !heap.empty(), order(queue));
  }

  /// True when a job of the queue and demand of `job` waits.
  [[nodiscard]] bool waits_like(const View& view, JobId job) const {
    const std::uint32_t queue = view.queue_of(job);
    return queue < queues_.size() && !queues_[queue].empty() && !queues_[queue][view.demand(job)].empty();
  }

  /// Starts jobs in key order. With `skip`, jobs that do not fit are passed over; without, the first of them blocks its
  /// order.
  void start_in_order(const View& view, Decision& decision, bool skip) {
    start_in_order(skip, settles_larger(view.options().placement, view),
                   [&](JobId job) { return decision.start(job) == Verdict::ok; });
  }

  /// Starts jobs in order by the caller's `start(job)`, which is false when there is no room. `settles`: then there is
  /// none for jobs that ask for as much or more either.
  template <class Start>
  void start_in_order(bool skip, bool settles, Start start) {
    for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) tree_.begin_pass(queue, order(queue));
    const auto queues = static_cast<std::uint32_t>(queues_.size());
    if (one_order_) return start_jobs(skip, settles, start, {0, queues});
    for (std::uint32_t queue = 0; queue < queues; ++queue) start_jobs(skip, settles, start, {queue, queue + 1});
  }

  /// Takes out the first of all; no_job when there is none. Precondition: `one_order`.
  JobId pop() {
    for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) tree_.begin_pass(queue, order(queue));
    open_turns({0, static_cast<std::uint32_t>(queues_.size())});
    const Place first = next_turn();
    if (first.demand == no_index) return no_job;
    const JobId job = queues_[first.queue][first.demand].front().place.job;
    take(first);
    return job;
  }

 private:
  struct Entry {
    Key key;
    QueuePlace place;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.key != b.key ? b.key < a.key : b.place < a.place; }
  };
  struct Span {
    std::uint32_t begin = 0, end = 0;
  };
  struct Place {
    std::uint32_t queue = 0, demand = no_index;
  };

  struct Turn {
    Entry first;
    Place place;
  };
  struct LaterTurn {
    bool operator()(const Turn& a, const Turn& b) const { return Later{}(a.first, b.first); }
  };

  // The order of a queue's demands by their first jobs.
  [[nodiscard]] auto order(std::uint32_t queue) const {
    return [&heaps = queues_[queue]](std::uint32_t a, std::uint32_t b) {
      return Later{}(heaps[b].front(), heaps[a].front());
    };
  }

  template <class Start>
  void start_jobs(bool skip, bool settles, Start start, Span queues) {
    const bool is_one = queues.end - queues.begin == 1;
    const auto next = [&] { return is_one ? Place{queues.begin, tree_.first(queues.begin)} : next_turn(); };
    if (!is_one) open_turns(queues);
    for (Place first = next(); first.demand != no_index; first = next()) {
      const JobId job = queues_[first.queue][first.demand].front().place.job;
      if (start(job)) {
        take(first);
      } else if (skip) {
        tree_.pass_over(first.queue, first.demand, settles, order(first.queue));
      } else {
        return;
      }
      if (!is_one) offer(first.queue);
    }
  }

  // The first jobs of these queues, each with its queue and demand, the demands passed over left out.
  void open_turns(Span queues) {
    turns_.clear();
    for (std::uint32_t queue = queues.begin; queue < queues.end; ++queue) offer(queue);
  }
  void offer(std::uint32_t queue) {
    const std::uint32_t demand = tree_.first(queue);
    if (demand == no_index) return;
    turns_.push_back({queues_[queue][demand].front(), {queue, demand}});
    std::push_heap(turns_.begin(), turns_.end(), LaterTurn{});
  }
  // Where the first of them is.
  Place next_turn() {
    if (turns_.empty()) return {};
    std::pop_heap(turns_.begin(), turns_.end(), LaterTurn{});
    const Place place = turns_.back().place;
    turns_.pop_back();
    return place;
  }

  void take(Place place) {
    std::vector<Entry>& heap = queues_[place.queue][place.demand];
    std::pop_heap(heap.begin(), heap.end(), Later{});
    heap.pop_back();
    tree_.update(place.queue, place.demand, !heap.empty(), order(place.queue));
  }

  bool one_order_;
  std::vector<std::vector<std::vector<Entry>>> queues_;  // [queue][demand]
  DemandTree tree_;
  std::vector<Turn> turns_;  // a heap, the first job in front
};

}  // namespace gpusched
