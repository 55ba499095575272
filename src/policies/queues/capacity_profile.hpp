// SPDX-License-Identifier: Apache-2.0
/// CapacityProfile: free capacity over future time, given the planned starts and ends of jobs; backfilling searches it
/// for holes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/mig.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/step_list.hpp"

namespace gpusched {

/// A step function of time over cells: nodes, or, where only GPU counts decide (all nodes are of one owner and GPU
/// type, none has MIG, and no job asks for more than one whole GPU a task, or for CPU or memory), all nodes together.
/// Nodes with MIG have a lane for each memory slice of each GPU, and what is planned there is certain instances; the
/// shares of other GPUs are added up over each node.
///
/// With S steps and C cells that the gang may use: where there is one cell and no quota, all is O(S / 64 + 64) but for
/// earliest(), and find() then, which cost that for each time that ends room too early. Else change() is O(S) and O(S^2
/// C) finds a hole.
class CapacityProfile {
 public:
  /// Tasks of a gang in one cell.
  struct Part {
    std::uint32_t cell = 0;
    std::uint32_t tasks = 0;
    std::uint64_t devices = 0;  ///< as Grant::devices; 0 where the cell has no MIG
    std::uint8_t slice = 0;     ///< as Grant::slice
  };
  /// What a gang wants, and where; without cells of their own (by_node() is false) gangs have no parts.
  struct Gang {
    const Shape& shape;
    std::uint32_t queue = 0;
    const std::vector<Part>& parts;
  };
  struct Hole {
    Time start{};
    std::vector<Part> parts;
  };

  /// Everything is free at all times.
  CapacityProfile(const Cluster& cluster, const JobTable& jobs);

  [[nodiscard]] bool by_node() const { return by_node_; }

  /// The parts of a running job; none without cells of their own.
  [[nodiscard]] std::vector<Part> parts_of(const View& view, JobId job) const;

  /// How a job started.
  enum class Started : std::uint8_t {
    no,         ///< there is no room
    on_parts,   ///< as planned
    elsewhere,  ///< where the run's placement rule found room
  };
  /// Starts the job on its parts or, where they have no GPU with room, anywhere; `parts` then says where.
  Started start(const View& view, Decision& decision, JobId job, std::vector<Part>& parts) const;

  /// Forgets what was before `now`.
  void drop_before(Time now) { steps_.drop_before(now); }

  /// Takes what these gangs hold from `now` until they end, from a profile of which nothing is taken: with each an end
  /// after `now`, rising. O(gangs).
  struct Holder {
    Time end{};
    Gang gang;
  };
  void take_from(Time now, std::span<const Holder> holders);

  /// Takes (sign -1) or gives back (+1) capacity from `start` until `end`, as far as that is not forgotten. More may be
  /// taken than is there.
  void change(Time start, Time end, const Gang& gang, int sign);
  /// True when the gang's parts are free from `start` until `end`.
  [[nodiscard]] bool is_free(Time start, Time end, const Gang& gang) const;
  /// True when more is taken than is there at some time from `start` until `end`.
  [[nodiscard]] bool is_overdrawn(Time start, Time end) const;
  /// The earliest hole of that length from `now` on; nothing when the empty cluster could not hold the gang.
  [[nodiscard]] std::optional<Hole> find(Time now, Time length, const Shape& shape, std::uint32_t queue,
                                         const ClusterState& cluster) const;
  /// The earliest start from `from` on and before `before` of a gang that has its own place from then on: it must be
  /// free for `length` or until `before`. Precondition: not by_node().
  [[nodiscard]] std::optional<Time> earliest(Time from, Time before, Time length, const Shape& shape,
                                             std::uint32_t queue) const;

 private:
  using Row = StepList::Row;
  using Step = StepList::At;

  // A row holds what is free: of each cell GPU thousandths and, with nodes, CPU thousandths and MiB; then the quota of
  // each virtual cluster; then what is free of each memory slice of GPUs in nodes with MIG, in GPU thousandths. A GPU
  // that is not cut is free alike on all its slices.
  [[nodiscard]] std::size_t lanes_per_cell() const { return by_node_ ? 3 : 1; }
  [[nodiscard]] std::size_t width() const { return empty_.size(); }
  // Where the quota of a scheduling queue is; width() when it has none.
  [[nodiscard]] std::size_t quota_lane(std::uint32_t queue) const {
    return queue < quotas_ ? cells_ * lanes_per_cell() + queue : width();
  }
  // Where the slices of a GPU are. Precondition: has_slices(cell).
  [[nodiscard]] std::size_t slice_lane(std::uint32_t cell, std::uint32_t device) const {
    return first_slice_[cell] + std::size_t{device} * most_mig_slices;
  }
  [[nodiscard]] bool has_slices(std::uint32_t cell) const { return first_slice_[cell] > 0; }
  // The slices of an instance; all for number 0.
  [[nodiscard]] MigSlices slices_of(std::uint32_t cell, std::uint8_t slice) const;
  // Tasks that fit on the GPU, and the slices of it that are not free.
  [[nodiscard]] std::int64_t tasks_on(Row row, std::uint32_t cell, std::uint32_t device, const Shape& shape,
                                      const ClusterState& cluster) const;
  [[nodiscard]] MigSlices held_slices(Row row, std::uint32_t cell, std::uint32_t device) const;
  // Chooses GPUs or instances for tasks that fit into the cell, as the engine would, and takes them from the row.
  void choose_slices(std::vector<std::int64_t>& row, std::uint32_t cell, std::uint32_t tasks, const Shape& shape,
                     const ClusterState& cluster, std::vector<Part>& parts) const;
  void add_part(std::int64_t* lanes, const Part& part, const Shape& shape, int sign) const;
  void add(std::int64_t* lanes, const Gang& gang, int sign) const;
  [[nodiscard]] static bool holds(Row row, std::size_t lane, std::int64_t wanted) {
    return lane == row.size() || row[lane] >= wanted;
  }

  [[nodiscard]] bool parts_are_free(Row row, const Gang& gang) const;
  // `cluster`: null for cells without slices.
  [[nodiscard]] std::int64_t tasks_in(Row row, std::uint32_t cell, const Shape& shape,
                                      const ClusterState* cluster) const;
  [[nodiscard]] std::vector<std::uint32_t> allowed_cells(const Shape& shape, std::uint32_t queue,
                                                         const ClusterState& cluster) const;
  // Tasks that fit into the allowed cells and the quota, up to the gang's.
  [[nodiscard]] std::int64_t capacity_for(Row row, const Shape& shape, std::uint32_t queue,
                                          const std::vector<std::uint32_t>& allowed, const ClusterState& cluster) const;
  [[nodiscard]] std::vector<Part> choose(Row row, const Shape& shape, const std::vector<std::uint32_t>& allowed,
                                         const ClusterState& cluster) const;
  // Leaves of `common` no more than the row has, in all that concerns those cells and that queue.
  void lower(std::vector<std::int64_t>& common, Row row, std::uint32_t queue,
             const std::vector<std::uint32_t>& allowed) const;
  [[nodiscard]] std::optional<Time> earliest_by_rows(Time from, Time before, Time length, const Shape& shape,
                                                     std::uint32_t queue) const;

  bool by_node_ = false;
  std::uint32_t cells_ = 0;
  std::vector<NodeId> node_of_cell_;          // one node of it
  std::vector<std::uint32_t> cards_of_cell_;  // GPUs that are told apart; no_index: they are a number
  std::vector<std::size_t> first_slice_;      // by cell: its first lane of a slice; 0: it has none
  std::vector<const MigModel*> model_;        // by cell; null where it has no slices
  std::uint32_t quotas_ = 0;                  // of virtual clusters
  bool has_slices_ = false;                   // some cell has
  std::vector<std::int64_t> empty_;           // the row of the empty cluster
  StepList steps_;
};

}  // namespace gpusched
