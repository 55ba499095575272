// SPDX-License-Identifier: Apache-2.0
/// WaitingShapes: what holds for all waiting jobs of one shape in one scheduling queue, asked and described once for
/// them all and kept until the cluster changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/detail/known_ends.hpp"
#include "gpusched/learn/detail/node_groups.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched {

/// A slot for each (scheduling queue, shape), by number.
class WaitingShapes {
 public:
  /// What is kept of one.
  struct Slot {
    std::uint64_t stamp = 0;           // of fits
    std::uint64_t earliest_stamp = 0;  // of earliest_us
    std::int64_t earliest_us = 0;
    JobId example = no_job;  // has this shape now
    std::uint32_t waiting = 0;
    std::uint32_t room = no_index;          // into rooms_; no_index: nobody waited yet
    bool counts_suffice = false;            // ClusterState::may_fit is exact
    bool fits = false;                      ///< as of the last fits()
    float gpus = 0;                         ///< of the gang
    MilliGpu milli = 0;                     ///< thousandths of a GPU of the gang
    std::array<float, job_features> row{};  ///< a token as of the last describe(); what differs from job to job is 0
  };

  [[nodiscard]] const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  [[nodiscard]] std::span<const Slot> slots() const { return slots_; }

  /// A job begins to wait; gives its slot.
  std::uint32_t join(const View& view, JobId job) {
    const std::uint32_t shapes = view.shape_count();
    if (slots_.empty()) slots_.resize(std::size_t{shapes} * view.queue_count());
    const std::uint32_t at = view.queue_of(job) * shapes + view.shape_id(job);
    Slot& slot = slots_[at];
    if (slot.room == no_index) look_up(view, job, slot);
    if (slot.waiting == 0) slot.example = job;
    if (slot.waiting++ == 0) active_.push_back(at);
    return at;
  }

  /// A job of the slot waits no longer.
  void leave(std::uint32_t slot) {
    if (--slots_[slot].waiting == 0) active_.erase(std::find(active_.begin(), active_.end(), slot));
  }

  /// A job may have another shape now: `other(slot)` stands in its place as the example of a slot in which jobs wait.
  template <class Other>
  void replace_example(JobId job, Other other) {
    for (const std::uint32_t at : active_) {
      if (slots_[at].example == job) slots_[at].example = other(at);
    }
  }

  /// What was asked and described is out of date from now on.
  void cluster_changed() { ++stamp_; }

  /// True when a job of the slot could start now. The engine is asked once a state of the cluster.
  bool fits(const View& view, Decision& decision, std::uint32_t at) {
    Slot& slot = slots_[at];
    if (slot.stamp == stamp_) return slot.fits;
    slot.stamp = stamp_;
    slot.fits = slot.milli <= room_of(view, slot) && (slot.counts_suffice || decision.fits(slot.example));
    return slot.fits;
  }

  /// Although it fits, the engine refused a job of the slot in this state of the cluster.
  void refuse(std::uint32_t at) {
    slots_[at].stamp = stamp_;
    slots_[at].fits = false;
  }

  /// Asks it of every slot in which jobs wait; true when one of them could.
  bool ask_all(const View& view, Decision& decision) {
    bool any = false;
    for (const std::uint32_t slot : active_) any = fits(view, decision, slot) || any;
    return any;
  }

  /// The instant at which enough is free for a slot by known ends, as of the present state of the cluster; now when
  /// that never comes. Precondition: the slot does not fit now.
  std::int64_t earliest_us(const View& view, KnownEnds& ends, std::uint32_t slot) {
    return earliest_us(view, ends, slots_[slot]);
  }

  /// Brings the rows of the slots in which jobs wait up to date. Precondition: ask_all(), and the groups are listed.
  void describe(const View& view, const NodeGroups& groups, KnownEnds& ends) {
    const float free = static_cast<float>(view.cluster().free_gpu_milli()) / static_cast<float>(whole_gpu);
    const float divisor = std::max(free, 1.0f);
    // In chunks, so that the logarithms are taken side by side.
    constexpr std::size_t chunk = 8;
    std::array<float, chunk> ahead{};
    for (std::size_t first = 0; first < active_.size(); first += chunk) {
      const std::size_t count = std::min(chunk, active_.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        ahead[i] = seconds_ahead(view, ends, slots_[active_[first + i]]);
      }
      detail::fast_log1p_each(ahead, count, 0.1f);
      for (std::size_t i = 0; i < count; ++i) {
        Slot& slot = slots_[active_[first + i]];
        slot.row[gpus_over_free] = std::min(4.0f, slot.gpus / divisor) * 0.25f;
        slot.row[fits_now] = slot.fits ? 1.0f : 0.0f;
        slot.row[fills_nodes] = fills(view, groups, slot) ? 1.0f : 0.0f;
        slot.row[log_earliest_start] = ahead[i];
      }
    }
  }

 private:
  // What all shapes of one demand (queue, GPU type, whole GPUs, shares or none) could draw on, until the cluster
  // changes.
  struct Room {
    std::uint32_t queue, gpu_spec;
    bool shares, no_gpu;
    std::uint64_t stamp = 0;
    MilliGpu milli = 0;
  };

  // What holds for all jobs of the slot for ever; `job` is the first of them.
  void look_up(const View& view, JobId job, Slot& slot) {
    const Shape& shape = view.shape(job);
    slot.milli = shape.gpu_milli();
    slot.gpus = gpus_of(shape);
    slot.counts_suffice = counts_decide(shape) && uses_remnants(view.options().placement);
    slot.row[log_gpus] = detail::fast_log1p(slot.gpus) / 5;
    slot.row[gpus_over_total] = slot.gpus * (1.0f / gpus_of(view.cluster()));
    const Room room{.queue = view.queue_of(job),
                    .gpu_spec = shape.gpu_spec,
                    .shares = shape.is_share(),
                    .no_gpu = shape.gpu_milli_per_task == 0};
    const auto same = std::find_if(rooms_.begin(), rooms_.end(), [&room](const Room& other) {
      return other.queue == room.queue && other.gpu_spec == room.gpu_spec && other.shares == room.shares &&
             other.no_gpu == room.no_gpu;
    });
    slot.room = static_cast<std::uint32_t>(same - rooms_.begin());
    if (same == rooms_.end()) rooms_.push_back(room);
  }

  // For such a gang ClusterState::may_fit is exact under a placement that uses remnants.
  static bool counts_decide(const Shape& shape) {
    return shape.gpu_milli_per_task == whole_gpu && shape.cpu_milli_per_task == 0 && shape.memory_mib_per_task == 0;
  }

  // ClusterState::available_gpu_milli, asked once for all shapes alike.
  MilliGpu room_of(const View& view, const Slot& slot) {
    Room& room = rooms_[slot.room];
    if (room.stamp != stamp_) {
      room.stamp = stamp_;
      room.milli = view.cluster().available_gpu_milli(view.shape(slot.example), room.queue);
    }
    return room.milli;
  }

  // It would start now and leave no partly used node that was idle before.
  bool fills(const View& view, const NodeGroups& groups, const Slot& slot) const {
    return slot.fits && !rooms_[slot.room].shares && groups.leaves_no_fragment(view, slot.milli / whole_gpu);
  }

  float seconds_ahead(const View& view, KnownEnds& ends, Slot& slot) const {
    if (slot.fits) return 0.0f;
    return static_cast<float>(std::max<std::int64_t>(0, earliest_us(view, ends, slot) - view.now().us)) * 1e-6f;
  }

  std::int64_t earliest_us(const View& view, KnownEnds& ends, Slot& slot) const {
    if (slot.earliest_stamp != stamp_) {
      slot.earliest_stamp = stamp_;
      slot.earliest_us = ends.until_freed(slot.milli - view.cluster().free_gpu_milli()).value_or(view.now().us);
    }
    return slot.earliest_us;
  }

  std::vector<Slot> slots_;
  std::vector<Room> rooms_;
  std::vector<std::uint32_t> active_;  // slots in which jobs wait
  std::uint64_t stamp_ = 1;            // counts changes of the cluster
};

}  // namespace gpusched
