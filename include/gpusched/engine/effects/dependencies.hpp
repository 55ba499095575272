// SPDX-License-Identifier: Apache-2.0
/// Dependencies: the jobs of a run that were submitted and wait for the end of others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"

namespace gpusched::detail {

/// An effect: a job joins its queue when the last job that it waits for has ended and its delay has passed. Where jobs
/// are hosted, the host knows of that.
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
  /// Jobs submitted that wait for others, or for the time behind their ends.
  [[nodiscard]] std::uint32_t out_of_queues() const { return held_back_; }
  /// When the job might run first. Precondition: active().
  [[nodiscard]] Time eligible(JobId job) const { return eligible_[index(job)]; }

  [[nodiscard]] Time next_time() const { return delayed_.empty() ? Time::max() : delayed_.begin()->first; }

  template <class Kernel>
  void happen(Kernel&) {
    ready_.push_back(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    --held_back_;
  }

  template <class Kernel>
  bool holds_back(Kernel& kernel, JobId job) {
    if (open_[index(job)] == 0) {
      if (eligible(job) <= kernel.state.now) return false;
      delayed_.insert({eligible(job), job});
    }
    ++held_back_;
    return true;
  }

  template <class Kernel>
  void ended(Kernel& kernel, JobId job) {
    for (const JobId waiting : jobs_->successors().of(job)) {
      if (open_[index(waiting)] == no_index) continue;  // cancelled
      if (--open_[index(waiting)] > 0) continue;
      Time& eligible = eligible_[index(waiting)];
      eligible = std::max(eligible, later_by(kernel.state.now, jobs_->dependencies().delay(waiting)));
      if (index(waiting) >= kernel.state.arrived) continue;
      // Of an end that a decision brought about, policies are to hear: an event of the next advance(), at this instant.
      if (eligible > kernel.state.now || kernel.state.is_carrying_out()) {
        delayed_.insert({eligible, waiting});
        continue;
      }
      --held_back_;
      ready_.push_back(waiting);
    }
  }

  // The jobs that may run from this instant on join their queues, by id.
  template <class Kernel>
  void react(Kernel& kernel) {
    if (ready_.empty()) return;
    std::sort(ready_.begin(), ready_.end());
    for (const JobId job : std::exchange(ready_, {})) kernel.enter_queue(job);
  }

  /// A job's submission is refused: it never waits.
  void refuse(JobId job) {
    if (active()) give_up(job);
  }

  /// A job that was submitted and waits for others is cancelled.
  void cancel(JobId job) {
    if (open_[index(job)] > 0 || delayed_.erase({eligible(job), job}) > 0) {
      --held_back_;
    } else {
      std::erase(ready_, job);  // what it waited for was cancelled at this instant
    }
    give_up(job);
  }

 private:
  // It never comes to be eligible.
  void give_up(JobId job) {
    open_[index(job)] = no_index;
    eligible_[index(job)] = jobs_->submit(job);
  }

  const JobTable* jobs_ = nullptr;
  std::vector<std::uint32_t> open_;  // by job: others that it waits for
  std::vector<Time> eligible_;       // by job; its submission where the last predecessor has not ended, or it is done
  std::set<std::pair<Time, JobId>> delayed_;  // submitted, and all that they wait for ended too short a time ago
  std::vector<JobId> ready_;
  std::uint32_t held_back_ = 0;
};

}  // namespace gpusched::detail
