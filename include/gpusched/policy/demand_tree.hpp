// SPDX-License-Identifier: Apache-2.0
/// DemandTree: the first of many demands, where one that does not fit settles all that ask for as much or more.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gpusched/data/placement.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// True when a gang for which `rule` finds no room shows that no gang that asks for as much or more would find any,
/// whatever its rule: this rule looks everywhere. False under a rule of the run that draws random numbers, because a
/// search that is left out would shift those.
inline bool settles_larger(Placement rule, const View& view) {
  return uses_remnants(rule) && view.options().placement != Placement::random;
}

/// The demands of a run (View::demand) as the leaves of a tree over what they ask for: a k-d tree over tasks and the
/// GPU, CPU and memory of a task. Logs with a memory column have nearly as many demands as jobs. Each scheduling queue
/// has a first demand of its own, by the caller's order: `before(a, b)` tells it of two demands of which jobs wait.
class DemandTree {
 public:
  /// Makes room for the run's queues and demands, of which none waits. Call it before anything else; once it costs
  /// O(demands x log demands).
  void prepare(const View& view) {
    if (!queues_.empty()) return;
    const std::uint32_t demands = view.demand_count();
    queues_.resize(view.queue_count());
    capacity_ = std::bit_ceil(demands);
    boxes_.resize(2 * std::size_t{capacity_});
    std::vector<Point> points;
    for (std::uint32_t demand = 0; demand < demands; ++demand) points.push_back(point(view.shape_of_demand(demand)));
    std::vector<std::uint32_t> order(demands);
    std::iota(order.begin(), order.end(), 0);
    leaf_of_.resize(demands);
    build(points, order.data(), {.node = 1, .leaves = capacity_, .demands = demands}, 0);
  }

  /// Jobs of that demand began or ceased to wait in the queue, or another of them is the first now. O(log demands).
  template <class Before>
  void update(std::uint32_t number, std::uint32_t demand, bool waits, Before before) {
    Queue& queue = queues_[number];
    if (queue.first.empty()) {
      queue.first.assign(boxes_.size(), no_index);
      queue.is_passed.assign(boxes_.size(), 0);
    }
    queue.first[leaf_of_[demand]] = waits ? demand : no_index;
    replay(queue, leaf_of_[demand], before);
  }

  /// The order of the queue changed as a whole. O(demands that wait).
  template <class Before>
  void reorder(std::uint32_t number, Before before) {
    if (!queues_[number].first.empty()) reorder_below(queues_[number], 1, before);
  }

  /// From now on no demand of the queue is passed over. O(log demands) a subtree that was.
  template <class Before>
  void begin_pass(std::uint32_t number, Before before) {
    Queue& queue = queues_[number];
    for (const std::uint32_t node : queue.passed) {
      queue.is_passed[node] = 0;
      replay(queue, node, before);
    }
    queue.passed.clear();
  }

  /// The first demand that waits in the queue and is not passed over; no_index when there is none. O(1).
  [[nodiscard]] std::uint32_t first(std::uint32_t number) const {
    return queues_[number].first.empty() ? no_index : queues_[number].of(1);
  }

  /// Leaves out that demand in this pass, and with `larger` all that ask for the same GPU type and as much or more of
  /// everything. O(log demands) a subtree that these fill.
  template <class Before>
  void pass_over(std::uint32_t number, std::uint32_t demand, bool larger, Before before) {
    const std::uint32_t leaf = leaf_of_[demand];
    if (larger) {
      pass_over_larger(queues_[number], 1, boxes_[leaf].least, before);
    } else {
      pass(queues_[number], leaf);
      replay(queues_[number], leaf, before);
    }
  }

 private:
  static constexpr std::size_t dimensions = 5;
  using Point = std::array<std::int64_t, dimensions>;  // GPU type, then amounts
  struct Box {
    Point least{}, most{};
  };
  struct Queue {
    std::vector<std::uint32_t> first;  // by node: the first demand below it that is not passed over, or no_index
    std::vector<std::uint8_t> is_passed;
    std::vector<std::uint32_t> passed;  // the nodes of which is_passed is true

    [[nodiscard]] std::uint32_t of(std::uint32_t node) const { return is_passed[node] ? no_index : first[node]; }
  };
  struct Span {
    std::uint32_t node = 0, leaves = 0, demands = 0;
  };

  static Point point(const Shape& shape) {
    return {shape.gpu_spec, shape.gpu_milli_per_task, shape.tasks, shape.cpu_milli_per_task, shape.memory_mib_per_task};
  }

  // Node k has children 2k and 2k + 1; leaves are the second half. Each level halves the demands by the next dimension
  // in which they differ.
  void build(const std::vector<Point>& points, std::uint32_t* demands, const Span& span, std::size_t dimension) {
    if (span.demands == 0) return;
    Box& box = boxes_[span.node];
    box = {points[demands[0]], points[demands[0]]};
    for (std::uint32_t i = 1; i < span.demands; ++i) {
      for (std::size_t d = 0; d < dimensions; ++d) {
        box.least[d] = std::min(box.least[d], points[demands[i]][d]);
        box.most[d] = std::max(box.most[d], points[demands[i]][d]);
      }
    }
    if (span.leaves == 1) {
      leaf_of_[demands[0]] = span.node;
      return;
    }
    for (std::size_t tried = 0; tried < dimensions && box.least[dimension] == box.most[dimension]; ++tried) {
      dimension = (dimension + 1) % dimensions;
    }
    const std::uint32_t half = std::min(span.leaves / 2, span.demands);
    std::nth_element(demands, demands + half, demands + span.demands,
                     [&points, &dimension](std::uint32_t a, std::uint32_t b) {
                       return std::pair(points[a][dimension], a) < std::pair(points[b][dimension], b);
                     });
    const std::size_t next = (dimension + 1) % dimensions;
    build(points, demands, {2 * span.node, span.leaves / 2, half}, next);
    build(points, demands + half, {2 * span.node + 1, span.leaves / 2, span.demands - half}, next);
  }

  template <class Before>
  static void play(Queue& queue, std::uint32_t node, Before& before) {
    const std::uint32_t left = queue.of(2 * node), right = queue.of(2 * node + 1);
    const bool right_first = left == no_index || (right != no_index && before(right, left));
    queue.first[node] = right_first ? right : left;
  }

  template <class Before>
  static void replay(Queue& queue, std::uint32_t node, Before& before) {
    for (node /= 2; node > 0; node /= 2) play(queue, node, before);
  }

  template <class Before>
  void reorder_below(Queue& queue, std::uint32_t node, Before& before) {
    if (node >= capacity_ || queue.of(node) == no_index) return;
    reorder_below(queue, 2 * node, before);
    reorder_below(queue, 2 * node + 1, before);
    play(queue, node, before);
  }

  static void pass(Queue& queue, std::uint32_t node) {
    queue.is_passed[node] = 1;
    queue.passed.push_back(node);
  }

  template <class Before>
  void pass_over_larger(Queue& queue, std::uint32_t node, const Point& least, Before& before) {
    if (queue.of(node) == no_index) return;
    const Box& box = boxes_[node];
    bool all = box.least[0] == least[0] && box.most[0] == least[0];
    for (std::size_t d = 1; d < dimensions; ++d) {
      if (box.most[d] < least[d]) return;
      all = all && box.least[d] >= least[d];
    }
    if (all) return pass(queue, node);
    if (node >= capacity_ || least[0] < box.least[0] || box.most[0] < least[0]) return;
    pass_over_larger(queue, 2 * node, least, before);
    pass_over_larger(queue, 2 * node + 1, least, before);
    play(queue, node, before);
  }

  std::uint32_t capacity_ = 0;          // leaves: a power of two
  std::vector<Box> boxes_;              // by node
  std::vector<std::uint32_t> leaf_of_;  // node of each demand
  std::vector<Queue> queues_;
};

}  // namespace gpusched
