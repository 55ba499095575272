// SPDX-License-Identifier: Apache-2.0
/// OpenChanges: the changes of jobs that are still to come in a run, and what the others left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched::detail {

/// Costs nothing where no job changes.
class OpenChanges {
 public:
  /// Nothing changes.
  OpenChanges() = default;
  /// Before the first submission.
  OpenChanges(const JobChanges& changes, const JobTable& jobs) {
    if (changes.is_empty()) return;
    begin(jobs);
    for (const JobChange& change : changes.all()) add(change, jobs);
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
  /// A change is to be taken at this instant.
  [[nodiscard]] bool is_due(Time now) const { return next_ < changes_.size() && changes_[next_].time == now; }
  /// Takes the next change. Precondition: there is one.
  JobChange pop() {
    const JobChange change = changes_[next_++];
    plan();
    return change;
  }

  /// The job was cancelled before it ended.
  void cancel(JobId job) { is_cancelled_[index(job)] = 1; }
  [[nodiscard]] bool is_cancelled(JobId job) const { return active() && is_cancelled_[index(job)] != 0; }
  /// The changes may cancel it.
  [[nodiscard]] bool cancels(JobId job) const { return active() && cancels_[index(job)] != 0; }

  /// The job left its queue at this instant and joins it with that shape once the policy has decided.
  void take_out(JobId job, std::uint32_t shape, Time now) {
    outside_.emplace_back(job, shape);
    next_time_ = now;
  }
  /// Jobs that are to join their queues anew.
  [[nodiscard]] std::uint32_t outside() const { return static_cast<std::uint32_t>(outside_.size()); }
  /// Gives them their new shapes and takes them, in the order in which they left.
  [[nodiscard]] std::vector<JobId> bring_back() {
    std::vector<JobId> jobs;
    for (const auto& [job, shape] : std::exchange(outside_, {})) {
      set_shape(job, shape);
      jobs.push_back(job);
    }
    plan();
    return jobs;
  }

  /// Preconditions of these: active(), of those on shapes resizes(). \{
  void set_shape(JobId job, std::uint32_t shape) { shape_[index(job)] = shape; }
  [[nodiscard]] std::uint32_t shape_id(JobId job) const { return shape_[index(job)]; }
  void set_priority(JobId job, std::int32_t priority) {
    priority_before_[index(job)] = std::exchange(priority_[index(job)], priority);
  }
  [[nodiscard]] std::int32_t priority(JobId job) const { return priority_[index(job)]; }
  [[nodiscard]] std::int32_t priority_before(JobId job) const { return priority_before_[index(job)]; }
  /// \}

 private:
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
