// SPDX-License-Identifier: Apache-2.0
/// Python's heapq, which decides the order of equals in published programs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gpusched {

/// A queue whose items come out as those of heapq.heappush() and heappop() do (and so of queue.PriorityQueue), equal
/// items too. `Less` compares as the items' __lt__ does.
template <class T, class Less>
class PythonHeap {
 public:
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

  void push(T item) {
    items_.push_back(std::move(item));
    rise(items_.size() - 1);
  }

  /// Precondition: not empty.
  T pop() {
    T last = std::move(items_.back());
    items_.pop_back();
    if (items_.empty()) return last;
    std::swap(last, items_.front());
    // The smaller child moves up until there is none, the right one of equals; then what is at the bottom rises.
    std::size_t place = 0;
    for (std::size_t child = 1; child < items_.size(); child = 2 * place + 1) {
      if (child + 1 < items_.size() && !less_(items_[child], items_[child + 1])) ++child;
      std::swap(items_[place], items_[child]);
      place = child;
    }
    rise(place);
    return last;
  }

 private:
  void rise(std::size_t place) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / 2;
      if (!less_(items_[place], items_[parent])) break;
      std::swap(items_[place], items_[parent]);
      place = parent;
    }
  }

  std::vector<T> items_;
  Less less_;
};

}  // namespace gpusched
