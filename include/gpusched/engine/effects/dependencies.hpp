// SPDX-License-Identifier: Apache-2.0
/// Dependencies: the jobs of a run that were submitted and wait for the end of others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"

namespace gpusched::detail {

/// An effect: a job joins its queue when the last job that it waits for has ended. Where jobs are hosted, the host
/// knows of that.
class Dependencies {
 public:
  static constexpr bool holds_jobs_back = true;

  /// Of a table whose jobs do not wait for each other.
  Dependencies() = default;
  explicit Dependencies(const EffectWorld& world) {
    const JobTable& jobs = world.jobs;
    if (jobs.dependencies().is_empty() || world.inputs.hosted != nullptr) return;
    jobs_ = &jobs;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      open_.push_back(static_cast<std::uint32_t>(jobs.dependencies().of(JobId{i}).size()));
      eligible_.push_back(jobs.submit(JobId{i}));
    }
  }

  /// True when some job of the table waits for another.
  [[nodiscard]] bool active() const { return jobs_ != nullptr; }
  /// Jobs submitted that wait for others now.
  [[nodiscard]] std::uint32_t out_of_queues() const { return held_back_; }
  /// When the job might run first. Precondition: active().
  [[nodiscard]] Time eligible(JobId job) const { return eligible_[index(job)]; }

  template <class Kernel>
  bool holds_back(Kernel&, JobId job) {
    if (open_[index(job)] == 0) return false;
    ++held_back_;
    return true;
  }

  template <class Kernel>
  void ended(Kernel& kernel, JobId job) {
    for (const JobId waiting : jobs_->successors().of(job)) {
      if (open_[index(waiting)] == no_index) continue;  // cancelled
      if (--open_[index(waiting)] > 0 || index(waiting) >= kernel.state.arrived) continue;
      --held_back_;
      eligible_[index(waiting)] = kernel.state.now;
      ready_.push_back(waiting);
    }
  }

  // The jobs whose last predecessor ended at this instant join their queues, by id.
  template <class Kernel>
  void react(Kernel& kernel) {
    if (ready_.empty()) return;
    std::sort(ready_.begin(), ready_.end());
    for (const JobId job : std::exchange(ready_, {})) kernel.enter_queue(job);
  }

  /// A job's submission is refused: it never waits.
  void refuse(JobId job) {
    if (active()) open_[index(job)] = no_index;
  }

  /// A job that was submitted and waits for others is cancelled.
  void cancel(JobId job) {
    if (std::exchange(open_[index(job)], no_index) == 0) {
      std::erase(ready_, job);  // what it waited for was cancelled at this instant
    } else {
      --held_back_;
    }
  }

 private:
  const JobTable* jobs_ = nullptr;
  std::vector<std::uint32_t> open_;  // by job: others that it waits for
  std::vector<Time> eligible_;       // by job
  std::vector<JobId> ready_;
  std::uint32_t held_back_ = 0;
};

}  // namespace gpusched::detail
