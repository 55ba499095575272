// SPDX-License-Identifier: Apache-2.0
/// Events that a station has planned: the earliest first, and of one instant the one planned first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Things that happen at times known ahead.
template <class What>
class EventHeap {
 public:
  /// Plans an event. O(log events).
  void push(Time time, What what) {
    events_.push_back({time, number_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), is_later);
  }
  /// Takes the first out. Precondition: not empty. O(log events).
  What take() {
    std::pop_heap(events_.begin(), events_.end(), is_later);
    What what = std::move(events_.back().what);
    events_.pop_back();
    return what;
  }
  /// When the first happens; Time::max(): none is planned.
  [[nodiscard]] Time time() const { return events_.empty() ? Time::max() : events_.front().time; }
  /// The first. Precondition: not empty.
  [[nodiscard]] const What& front() const { return events_.front().what; }
  /// True when none is planned.
  [[nodiscard]] bool empty() const { return events_.empty(); }

 private:
  struct Event {
    Time time;
    std::uint64_t number;
    What what;
  };
  static bool is_later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }

  std::vector<Event> events_;
  std::uint64_t number_ = 0;
};

/// When the first event of all heaps happens; Time::max(): none is planned.
template <class What, std::size_t Count>
Time first_time(const std::array<EventHeap<What>, Count>& heaps) {
  Time first = Time::max();
  for (const EventHeap<What>& heap : heaps) first = std::min(first, heap.time());
  return first;
}

/// The first heap with an event at `time`. Precondition: there is one.
template <class What, std::size_t Count>
std::size_t first_due(const std::array<EventHeap<What>, Count>& heaps, Time time) {
  std::size_t heap = 0;
  while (heaps[heap].time() != time) ++heap;
  return heap;
}

}  // namespace gpusched
