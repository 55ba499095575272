// SPDX-License-Identifier: Apache-2.0
/// EventQueue: what will happen, in the total order (time, kind, sequence). Submissions are not here: they come sorted
/// with the JobTable, so a cursor serves.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// What can happen. The events of one instant are applied in the order finish, retry, wake; withdraw, reprioritize and
/// submit by what users change (and the finish or kill of a running job that they stop); node_down and node_up (and the
/// kills that they bring); more_power; submit. `start`, `preempt`, `move` and the `withdraw` of a job that it cancels
/// are the traces of a decision and follow it.
enum class EventKind : std::uint8_t {
  finish,   ///< a job did its last work
  retry,    ///< an attempt of a job ended, and the job waits for its next attempt
  wake,     ///< a timer that the policy set, or a decision that it cut short (Decision::keep_order) goes on
  submit,   ///< a job arrived, or waits for the end of others no more
  start,    ///< a decision started a job
  preempt,  ///< a decision stopped a job
  move,     ///< a decision gave a running job other nodes
  /// A running job lost its nodes and waits to run again: one went down (its node_down follows), or, without a node,
  /// the user gave the job another size (its withdraw and submit follow).
  kill,
  node_down,  ///< a node went out of service; jobs that run on a drained one run on
  node_up,    ///< a node came back, empty
  /// A waiting job left its queue: it was cancelled and is done (one that runs when its user does that finishes), its
  /// submit with another size follows, its host sent it elsewhere (Engine::leave), or a limit holds it back (Limits),
  /// until another submit.
  withdraw,
  more_power,    ///< a cap rose, or what nodes draw fell by itself, after a start was refused (Verdict::no_power)
  reprioritize,  ///< a job has another priority from now on, and waits or runs as before
  /// A job that is in no queue is done, and no policy has to do anything: its submission exceeds a limit, or it was
  /// cancelled while it waited for others or a limit held it back.
  refuse,
};

/// True when a running job loses its nodes and waits in its queue again, not by a decision: its next attempt is due, a
/// node went down, or the job is to have another size.
constexpr bool returns_to_queue(EventKind kind) { return kind == EventKind::retry || kind == EventKind::kill; }

/// True when a job comes to wait in its queue by itself: it was submitted, or returns. A decision's own `preempt` is in
/// none of these predicates, because the policy that gave it knows.
constexpr bool enters_queue(EventKind kind) { return kind == EventKind::submit || returns_to_queue(kind); }

/// True when a running job gives up its nodes by itself: it finished, or was cancelled, or returns to its queue.
constexpr bool leaves_cluster(EventKind kind) { return kind == EventKind::finish || returns_to_queue(kind); }

/// True when jobs that did not fit may fit now although no job left: a node came back, or there is more power.
constexpr bool brings_room(EventKind kind) { return kind == EventKind::node_up || kind == EventKind::more_power; }

/// True when the event is about a job.
constexpr bool concerns_job(EventKind kind) {
  return kind != EventKind::wake && kind != EventKind::node_down && kind != EventKind::node_up &&
         kind != EventKind::more_power;
}

/// Something that happened at the current instant.
struct Event {
  EventKind kind = EventKind::wake;  ///< what happened
  JobId job = no_job;                ///< no_job unless concerns_job(kind)
  NodeId node = no_node;             ///< of a kill by a node, node_down or node_up
  /// Where users change sizes: what the job asked for then (JobTable::shape_id). View::at() reads it.
  std::uint32_t shape = no_index;

  /// Same in all of them.
  friend bool operator==(const Event&, const Event&) = default;
};

/// A min-heap of planned events. A plan that changed is not searched for: its generation no longer matches the job's,
/// and the engine drops it when it surfaces.
class EventQueue {
 public:
  /// A planned event.
  struct Entry {
    Time time;                     ///< when it is due
    std::uint64_t order = 0;       ///< kind in the top byte, sequence below
    JobId job = no_job;            ///< no_job for wake
    std::uint32_t generation = 0;  ///< of the job's plan when this was planned

    /// The kind, from `order`.
    [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(order >> 56); }
    /// The total order of events: time, kind, sequence.
    [[nodiscard]] bool before(const Entry& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  /// True when nothing is planned.
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// Planned events, stale ones included.
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// The earliest. Precondition: not empty.
  [[nodiscard]] const Entry& top() const { return heap_.front(); }

  /// Plans an event; the next sequence number is its own. O(log size).
  GPUSCHED_HOT void push(Time time, EventKind kind, JobId job, std::uint32_t generation) {
    const Entry entry{time, std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | sequence_++, job, generation};
    std::size_t hole = heap_.size();
    heap_.push_back(entry);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / arity;
      if (!entry.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  /// Removes the earliest; O(log size).
  /// Precondition: not empty.
  void pop() {
    const Entry moved = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * arity + 1;
      if (first >= size) break;
      const std::size_t end = first + arity < size ? first + arity : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].before(heap_[least])) least = child;
      }
      if (!heap_[least].before(moved)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = moved;
  }

 private:
  // Four children per node: half the depth of a binary heap, and the children share a cache line or two.
  static constexpr std::size_t arity = 4;

  std::vector<Entry> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace gpusched
