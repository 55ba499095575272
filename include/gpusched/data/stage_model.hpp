// SPDX-License-Identifier: Apache-2.0
/// StageModel: what a run goes through on its nodes before it works, what stays there for the next one, and how fast
/// data moves.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// The column of a JobTable that says what a job needs.
enum class StageColumn : std::uint8_t {
  none,    ///< all jobs need the same
  user,    ///< JobTable::user()
  group,   ///< JobTable::group()
  vc,      ///< JobTable::vc()
  name,    ///< JobTable::name()
  family,  ///< JobTable::family()
};

/// Immutable while a run lasts; the engine borrows it. Made for one JobTable, whose numbers it holds.
class StageModel {
 public:
  /// Something that a node fetches from storage and may keep: an image, or the weights of a model.
  struct Item {
    std::int64_t bytes = 0;  ///< to move, and that it takes in the node's cache
    Time unpack{};           ///< after each fetch
    Time load{};             ///< at each start, fetched or not
  };
  /// Which item each job needs.
  struct Needs {
    StageColumn column = StageColumn::none;  ///< whose value decides
    /// Positions in StageModel::items by the number of that value; no_index: nothing. `none`: the first entry, if any.
    std::vector<std::uint32_t> items = {};
  };
  /// A cache that never gets full.
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  Time provision{};                      ///< to make a container (or a virtual machine) on a node
  Time keep_alive{};                     ///< a container waits so long for a next run; 0: not at all
  std::int64_t cache_bytes = unlimited;  ///< of each node, for all items together
  std::vector<Item> items = {};          ///< what there is to fetch
  Needs images = {};                     ///< a container is of one image
  Needs weights = {};                    ///< fetched beside the image
  double transfer_bytes_per_s = 0;       ///< of one transfer at most; above 0 where anything is to be moved
  /// Of all transfers together, which share it evenly (processor sharing).
  double storage_bytes_per_s = std::numeric_limits<double>::infinity();
  /// Of the uplink of each rack (Node::rack), which all transfers of its nodes share evenly; where all nodes stand in
  /// one rack, of each node. A transfer that storage and uplink bound gets its max-min fair share of both.
  double uplink_bytes_per_s = std::numeric_limits<double>::infinity();
  /// Of the state that a periodic checkpoint writes; above 0, its time depends on who else transfers.
  double checkpoint_bytes_per_gpu = 0;

  /// True when a run works at once and checkpoints move no data.
  [[nodiscard]] bool is_empty() const { return provision.us == 0 && items.empty() && checkpoint_bytes_per_gpu == 0; }
  /// True when transfers share uplinks.
  [[nodiscard]] bool has_uplinks() const { return uplink_bytes_per_s < std::numeric_limits<double>::infinity(); }
  /// The image that a job runs in; no_index: none.
  [[nodiscard]] std::uint32_t image_of(const JobTable& jobs, JobId job) const { return item_of(images, jobs, job); }
  /// The weights that it loads; no_index: none.
  [[nodiscard]] std::uint32_t weights_of(const JobTable& jobs, JobId job) const { return item_of(weights, jobs, job); }

 private:
  static std::uint32_t value_of(StageColumn column, const JobTable& jobs, JobId job) {
    switch (column) {
      case StageColumn::user: return jobs.user(job);
      case StageColumn::group: return jobs.group(job);
      case StageColumn::vc: return jobs.vc(job);
      case StageColumn::name: return jobs.name(job);
      case StageColumn::family: return jobs.family(job);
      case StageColumn::none: break;
    }
    return 0;
  }

  static std::uint32_t item_of(const Needs& needs, const JobTable& jobs, JobId job) {
    const std::uint32_t value = value_of(needs.column, jobs, job);
    return value < needs.items.size() ? needs.items[value] : no_index;
  }
};

/// What the starts of one job found on their nodes.
struct StartCounts {
  std::uint32_t cold = 0;          ///< for which a node fetched something or, with keep_alive, made a container
  std::uint32_t warm = 0;          ///< the others
  std::int64_t fetched_bytes = 0;  ///< by all nodes, for this job
};

}  // namespace gpusched
