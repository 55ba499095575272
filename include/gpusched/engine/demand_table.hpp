// SPDX-License-Identifier: Apache-2.0
/// DemandTable: which jobs ask for the same, as far as a cluster tells them apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// Shapes by demand. Where no node limits CPU (or memory), shapes that differ only in the amount of it are one demand:
/// jobs of all these shapes fit, or none does. Logs with a memory column have nearly as many shapes as jobs, while the
/// memory of their machines is often unknown. Asking for none of a resource is another demand than asking for some.
class DemandTable {
 public:
  DemandTable() = default;
  /// The demands of the shapes of `jobs` on `cluster`. O(shapes x log shapes + nodes).
  DemandTable(const JobTable& jobs, const Cluster& cluster) {
    const auto bounds = [&cluster](std::int64_t Node::*resource) {
      return std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                         [&resource](const Node& node) { return node.*resource < unlimited; });
    };
    const bool bounds_cpu = bounds(&Node::cpu_milli), bounds_memory = bounds(&Node::memory_mib);
    std::map<Shape, std::uint32_t> numbers;
    for (std::uint32_t shape = 0; shape < jobs.shapes().size(); ++shape) {
      Shape demand = jobs.shapes()[shape];
      if (!bounds_cpu) demand.cpu_milli_per_task = std::min<std::int64_t>(demand.cpu_milli_per_task, 1);
      if (!bounds_memory) demand.memory_mib_per_task = std::min<std::int64_t>(demand.memory_mib_per_task, 1);
      const auto [place, added] = numbers.try_emplace(demand, static_cast<std::uint32_t>(shape_of_.size()));
      if (added) shape_of_.push_back(shape);
      demand_of_.push_back(place->second);
    }
  }
  /// Number of demands.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(shape_of_.size()); }
  /// The demand of jobs of that shape (JobTable::shape_id).
  [[nodiscard]] std::uint32_t of_shape(std::uint32_t shape) const { return demand_of_[shape]; }
  /// One of the shapes of a demand: the first in the table of jobs.
  [[nodiscard]] std::uint32_t shape_of(std::uint32_t demand) const { return shape_of_[demand]; }

 private:
  std::vector<std::uint32_t> demand_of_;  // by shape
  std::vector<std::uint32_t> shape_of_;   // by demand
};

}  // namespace gpusched
