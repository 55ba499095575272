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

  /// A change that is still to come: not before the last one that pop() took.
  void add(const JobChange& change, const JobTable& jobs) {
    if (!is_active_) begin(jobs);
    const auto after = [](const JobChange& a, const JobChange& b) { return a.time < b.time; };
    const auto open = changes_.begin() + static_cast<std::ptrdiff_t>(next_);
    changes_.insert(std::upper_bound(open, changes_.end(), change, after), change);
    plan();
    if (change.kind == JobChange::Kind::cancel) cancels_[index(change.job)] = 1;
    if (change.kind != JobChange::Kind::size || std::exchange(resizes_, true)) return;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) shape_.push_back(jobs.shape_id(JobId{i}));
  }

  /// True when some job changes.
  [[nodiscard]] bool active() const { return is_active_; }
  /// True when some job changes its size.
  [[nodiscard]] bool resizes() const { return resizes_; }
  /// When the next change comes, or a job joins its queue anew; Time::max(): never.
  [[nodiscard]] Time next_time() const { return next_time_; }

  // True: nothing else is to happen before the policy decides.
  template <class Kernel>
  GPUSCHED_RARE bool happen_first(Kernel& kernel) {
    if (!outside_.empty()) {
      for (const JobId job : bring_back()) kernel.wait_in_queue(job);
      return true;
    }
    while (is_due(kernel.state.now) && !kernel.all_finished()) {
      change_job(kernel);
      if (kernel.state.options.one_event_a_step) return true;
    }
    return false;
  }

  /// The job was cancelled before it ended.
  [[nodiscard]] bool is_cancelled(JobId job) const { return active() && is_cancelled_[index(job)] != 0; }
  /// The changes may cancel it.
  [[nodiscard]] bool cancels(JobId job) const { return active() && cancels_[index(job)] != 0; }

  /// Jobs that are to join their queues anew.
  [[nodiscard]] std::uint32_t out_of_queues() const { return static_cast<std::uint32_t>(outside_.size()); }

  /// Preconditions of these: active(), of those on shapes resizes(). \{
  [[nodiscard]] std::uint32_t shape_id(JobId job) const { return shape_[index(job)]; }
  [[nodiscard]] std::int32_t priority(JobId job) const { return priority_[index(job)]; }
  [[nodiscard]] std::int32_t priority_before(JobId job) const { return priority_before_[index(job)]; }
  /// \}

 private:
  [[nodiscard]] bool is_due(Time now) const { return next_ < changes_.size() && changes_[next_].time == now; }

  template <class Kernel>
  void change_job(Kernel& kernel) {
    const JobChange change = changes_[next_++];
    plan();
    GPUSCHED_ASSERT(index(change.job) < kernel.state.arrived, "a job changes before it is submitted");
    const JobPhase phase = kernel.state[change.job].phase;
    if (phase == JobPhase::done) return;
    if (change.kind == JobChange::Kind::cancel) {
      is_cancelled_[index(change.job)] = 1;
      return kernel.give_up(change.job);
    }
    if (change.kind == JobChange::Kind::size) return resize(kernel, change.job, change.shape);
    if (change.priority == priority_[index(change.job)]) return;
    priority_before_[index(change.job)] = std::exchange(priority_[index(change.job)], change.priority);
    if (phase != JobPhase::future) kernel.emit({EventKind::reprioritize, change.job});
  }

  // The job leaves its queue, after its nodes if it runs, and comes back with the other shape once the policy has
  // decided. Until then policies see its present shape, to which their books refer.
  template <class Kernel>
  void resize(Kernel& kernel, JobId job, std::uint32_t shape) {
    if (shape_[index(job)] == shape) return;
    if (kernel.state[job].phase == JobPhase::future) {
      shape_[index(job)] = shape;
      return;
    }
    kernel.take_out(job);
    outside_.emplace_back(job, shape);
    next_time_ = kernel.state.now;
  }

  // Gives jobs their new shapes and takes them, in the order in which they left.
  [[nodiscard]] std::vector<JobId> bring_back() {
    std::vector<JobId> jobs;
    for (const auto& [job, shape] : std::exchange(outside_, {})) {
      shape_[index(job)] = shape;
      jobs.push_back(job);
    }
    plan();
    return jobs;
  }

  // While a job is outside, its instant is the next.
  void plan() {
    if (outside_.empty()) next_time_ = next_ < changes_.size() ? changes_[next_].time : Time::max();
  }

  void begin(const JobTable& jobs) {
    is_active_ = true;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) priority_.push_back(jobs.priority(JobId{i}));
    priority_before_ = priority_;
    cancels_.assign(jobs.size(), 0);
    is_cancelled_.assign(jobs.size(), 0);
  }

  Time next_time_ = Time::max();  // asked at every event
  bool is_active_ = false, resizes_ = false;
  std::vector<JobChange> changes_;  // by time
  std::size_t next_ = 0;            // the first that is to come
  // By job; empty when nothing changes.
  std::vector<std::int32_t> priority_, priority_before_;
  std::vector<std::uint8_t> cancels_, is_cancelled_;
  std::vector<std::uint32_t> shape_;  // by job; empty when no size changes
  std::vector<std::pair<JobId, std::uint32_t>> outside_;
};

}  // namespace gpusched::detail
