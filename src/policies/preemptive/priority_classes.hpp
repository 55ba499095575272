// SPDX-License-Identifier: Apache-2.0
/// Priority classes with preemption and aging.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Higher classes first, by arrival within a class; `aging` of waiting outweighs one class. The order is that of
/// submit - class x aging, which never changes. The first job that does not fit blocks its scheduling queue, and may
/// preempt running jobs of a lower class that come after it in the order, the last of them first, if that makes room.
///
/// The wait is bounded: once submitted, a job is overtaken only by jobs submitted within (difference of class) x aging
/// after it, and nothing behind it in the order starts or keeps it from starting for longer than the running jobs last.
/// O(shapes + log n) an event, and O(log n) for each preemption considered.
class PriorityClasses {
 public:
  PriorityClasses(Time aging, bool preempts) : aging_(aging), preempts_(preempts) {}

  [[nodiscard]] std::string_view name() const { return "priority"; }

  void decide(const View& view, Decision& decision);

 private:
  __extension__ using Key = __int128;  // microseconds; classes times aging exceed 64 bits

  // Where a job stands: by its key, then by its place.
  struct Place {
    Key key = 0;
    JobId job = no_job;
    std::uint32_t number = 0;  // of its QueuePlace
    friend bool operator<(const Place& a, const Place& b) {
      return a.key != b.key ? a.key < b.key : a.number < b.number;
    }
  };

  [[nodiscard]] Key key_of(const View& view, JobId job) const {
    return Key{view.submit(job).us} - Key{view.priority(job)} * aging_.us;
  }
  // Of a job that waits or runs.
  [[nodiscard]] Place place_of(const View& view, JobId job) const {
    return {keys_[index(job)], job, view.queue_place(job).number};
  }
  void fill(std::uint32_t queue, const View& view, Decision& decision);
  bool preempt_for(const Place& head, std::uint32_t queue, const View& view, Decision& decision);

  Time aging_;
  bool preempts_;
  std::vector<std::set<Place>> waiting_, running_;  // of each scheduling queue
  std::vector<Key> keys_;                           // by job, as of its last event
  std::vector<Place> victims_;
};

}  // namespace gpusched
