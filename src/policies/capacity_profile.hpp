// SPDX-License-Identifier: Apache-2.0
/// CapacityProfile: what will be free when, if everybody keeps to the plan; conservative backfilling looks for holes in
/// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpusched/cluster.hpp"
#include "gpusched/job_table.hpp"
#include "gpusched/view.hpp"

namespace gpusched {

/// A step function of time over cells: nodes, or, where only GPU counts decide (all nodes are of one owner and GPU
/// type, and no job asks for more than one whole GPU a task, or for CPU or memory), all nodes together.
class CapacityProfile {
 public:
  /// Tasks of a gang in one cell.
  struct Part {
    std::uint32_t cell = 0;
    std::uint32_t tasks = 0;
  };
  struct Hole {
    Time start{};
    std::vector<Part> parts;
  };

  /// Everything free, for ever.
  CapacityProfile(const Cluster& cluster, const JobTable& jobs);

  [[nodiscard]] bool by_node() const { return by_node_; }

  /// Forgets all plans; from `now` on everything is free again.
  void clear(Time now);
  /// Forgets what was before `now`.
  void drop_before(Time now);

  /// Takes (sign -1) or gives back (+1) capacity from `start` until `end`.
  void change(Time start, Time end, const Shape& shape, std::uint32_t queue, const std::vector<Part>& parts, int sign);
  /// True when the parts are free from `start` until `end`.
  [[nodiscard]] bool is_free(Time start, Time end, const Shape& shape, std::uint32_t queue,
                             const std::vector<Part>& parts) const;
  /// The earliest hole of that length from `now` on; nothing when the empty cluster could not hold the gang.
  [[nodiscard]] std::optional<Hole> find(Time now, Time length, const Shape& shape, std::uint32_t queue,
                                         const ClusterState& cluster) const;
  /// The cells that a running job holds.
  [[nodiscard]] std::vector<Part> parts_of(const View& view, JobId job) const;

 private:
  struct Free {
    MilliGpu gpu_milli = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
  };
  using Row = std::span<const Free>;  // cells, then the quota of each virtual cluster

  [[nodiscard]] static std::int64_t tasks_in(const Free& free, const Shape& shape);
  [[nodiscard]] std::vector<bool> allowed_cells(const Shape& shape, std::uint32_t queue,
                                                const ClusterState& cluster) const;
  // Tasks that fit into the allowed cells and the quota, up to the gang's.
  [[nodiscard]] std::int64_t capacity_for(Row row, const Shape& shape, std::uint32_t queue,
                                          const std::vector<bool>& allowed) const;
  [[nodiscard]] std::vector<Part> choose(Row row, const Shape& shape, const std::vector<bool>& allowed) const;

  // The step in which `t` lies. Precondition: t is not before the first.
  [[nodiscard]] std::size_t step_at(Time t) const;
  // The same, made to begin at `t`.
  std::size_t split_at(Time t);
  [[nodiscard]] Row row(std::size_t step) const { return Row(free_).subspan(step * empty_.size(), empty_.size()); }

  bool by_node_ = false;
  std::uint32_t cells_ = 0;
  std::vector<std::uint32_t> cell_of_node_;
  std::vector<NodeId> node_of_cell_;  // one node of it
  std::vector<Free> empty_;
  // Steps lie side by side, because looking for a hole walks over them all: when each begins, and its row.
  std::vector<Time> begins_;
  std::vector<Free> free_;
};

}  // namespace gpusched
