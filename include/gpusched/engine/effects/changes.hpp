// SPDX-License-Identifier: Apache-2.0
/// Changes: the changes of jobs that are still to come in a run, and what the others left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// An effect: users cancel jobs and give them another priority or size.
class Changes {
 public:
  /// Nothing changes.
  Changes() = default;
  explicit Changes(const EffectWorld& world) {
    if (world.inputs.changes == nullptr || world.inputs.changes->is_empty()) return;
    begin(world.jobs);
    for (const JobChange& change : world.inputs.changes->all()) add(change, world.jobs);
  }

  /// A change that is still to come: not before the last one that happened.
  void add(const JobChange& change, const JobTable& jobs) {
    if (!is_active_) begin(jobs);
    const auto after = [](const JobChange& a, const JobChange& b) { return a.time < b.time; };
    const auto open = changes_.begin() + static_cast<std::ptrdiff_t>(next_);
    changes_.insert(std::upper_bound(open, changes_.end(), change, after), change);
    if (change.kind == JobChange::Kind::cancel) cancels_[index(change.job)] = 1;
    if (change.kind != JobChange::Kind::size || std::exchange(resizes_, true)) return;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) shape_.push_back(jobs.shape_id(JobId{i}));
  }

  /// True when some job changes.
  [[nodiscard]] bool active() const { return is_active_; }
  /// True when some job changes its size.
  [[nodiscard]] bool resizes() const { return resizes_; }
  /// When the next change comes; Time::max(): never.
  [[nodiscard]] Time next_time() const { return next_ < changes_.size() ? changes_[next_].time : Time::max(); }

  template <class Kernel>
  GPUSCHED_RARE void happen(Kernel& kernel) {
    const JobChange change = changes_[next_++];
    GPUSCHED_ASSERT(index(change.job) < kernel.state.arrived, "a job changes before it is submitted");
    const JobPhase phase = kernel.state[change.job].phase;
    if (phase == JobPhase::done) return;
    switch (change.kind) {
      case JobChange::Kind::cancel:
        kernel.state[change.job].cancelled_by = Canceller::user;
        kernel.give_up(change.job);
        break;
      case JobChange::Kind::priority:
        if (change.priority == priority_[index(change.job)]) break;
        priority_[index(change.job)] = change.priority;
        if (phase != JobPhase::future) kernel.emit({EventKind::reprioritize, change.job});
        break;
      case JobChange::Kind::size:
        if (shape_[index(change.job)] == change.shape) break;
        if (phase == JobPhase::running) kernel.interrupt(change.job);
        if (phase != JobPhase::future) kernel.emit({EventKind::withdraw, change.job});
        shape_[index(change.job)] = change.shape;
        kernel.tell_asked(change.job);
        if (phase != JobPhase::future) kernel.emit({EventKind::submit, change.job});
        break;
    }
  }

  // Users change nothing more.
  void forget_future() { changes_.resize(next_); }

  /// The changes may cancel it.
  [[nodiscard]] bool cancels(JobId job) const { return active() && cancels_[index(job)] != 0; }

  /// Preconditions of these: active(), of those on shapes resizes(). \{
  [[nodiscard]] std::uint32_t shape_id(JobId job) const { return shape_[index(job)]; }
  [[nodiscard]] std::int32_t priority(JobId job) const { return priority_[index(job)]; }
  /// \}

 private:
  void begin(const JobTable& jobs) {
    is_active_ = true;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) priority_.push_back(jobs.priority(JobId{i}));
    cancels_.assign(jobs.size(), 0);
  }

  bool is_active_ = false, resizes_ = false;
  std::vector<JobChange> changes_;  // by time
  std::size_t next_ = 0;            // the first that is to come
  // By job; empty when nothing changes.
  std::vector<std::int32_t> priority_;
  std::vector<std::uint8_t> cancels_;
  std::vector<std::uint32_t> shape_;  // by job; empty when no size changes
};

}  // namespace gpusched::detail
