// SPDX-License-Identifier: Apache-2.0
/// The cluster of Starburst's simulator: its queue and its way of choosing nodes.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"

namespace gpusched {

/// Starts waiting jobs in order of arrival, or of the run times that users estimate, equals as they came; one that does
/// not fit blocks those behind it, or is passed over (`loop`). A job takes the node with fewest idle GPUs that holds
/// it, of equals the one with the smallest number; one larger than a node takes whole nodes and what is left over on
/// another, in that order (Luo et al., "Starburst", USENIX ATC 2024; github.com/michaelzhiluo/starburst, skyburst).
/// Its gangs are of single GPUs, on nodes of equal size. O(waiting x nodes log nodes) an event.
struct StarburstQueue {
  bool loop = false;            ///< a job that does not fit is passed over
  bool shortest_first = false;  ///< by estimated run time
  [[nodiscard]] std::string_view name() const { return "starburst"; }

  void decide(const View& view, Decision& decision) const {
    std::vector<JobId> waiting;
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) waiting.push_back(job);
    }
    if (shortest_first) {
      std::stable_sort(waiting.begin(), waiting.end(),
                       [&](JobId a, JobId b) { return view.estimate(a) < view.estimate(b); });
    }
    for (const JobId job : waiting) {
      const std::vector<NodeTasks> nodes = place(view, job);
      if (!nodes.empty() && decision.start_on(job, nodes) == Verdict::ok) continue;
      if (!loop) return;
    }
  }

 private:
  // Nothing where it does not fit.
  static std::vector<NodeTasks> place(const View& view, JobId job) {
    const auto idle = [&](std::uint32_t node) { return view.cluster().node_free_gpu_milli(NodeId{node}) / whole_gpu; };
    std::vector<std::uint32_t> order(view.cluster().node_count());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return idle(a) < idle(b); });
    const std::int64_t size = order.empty() ? 0 : view.cluster().node_gpus(NodeId{0});
    std::int64_t left = view.shape(job).gpu_milli() / whole_gpu;
    std::vector<NodeTasks> nodes;
    do {
      const std::int64_t part = std::min(left, size);
      const auto node = std::find_if(order.begin(), order.end(), [&](auto at) { return idle(at) >= part; });
      if (node == order.end()) return {};
      nodes.push_back({.node = NodeId{*node}, .tasks = static_cast<std::uint32_t>(std::max<std::int64_t>(part, 1))});
      order.erase(node);
      left -= part;
    } while (left > 0);
    return nodes;
  }
};

}  // namespace gpusched
