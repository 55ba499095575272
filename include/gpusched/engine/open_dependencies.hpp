// SPDX-License-Identifier: Apache-2.0
/// OpenDependencies: the jobs of a run that were submitted and wait for the end of others.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"

namespace gpusched::detail {

/// Who may run, and since when. Costs nothing where no job waits for another.
class OpenDependencies {
 public:
  /// Of a table whose jobs do not wait for each other.
  OpenDependencies() = default;
  /// Before the first submission. Borrows the table.
  explicit OpenDependencies(const JobTable& jobs) {
    if (jobs.dependencies().is_empty()) return;
    jobs_ = &jobs;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      open_.push_back(static_cast<std::uint32_t>(jobs.dependencies().of(JobId{i}).size()));
      eligible_.push_back(jobs.submit(JobId{i}));
    }
  }

  /// True when some job of the table waits for another.
  [[nodiscard]] bool active() const { return jobs_ != nullptr; }
  /// Jobs submitted that wait for others now.
  [[nodiscard]] std::uint32_t held_back() const { return held_back_; }
  /// When the job might run first. Precondition: active().
  [[nodiscard]] Time eligible(JobId job) const { return eligible_[index(job)]; }

  /// The job is submitted; false when it must wait for others.
  bool submit(JobId job) {
    if (open_[index(job)] == 0) return true;
    ++held_back_;
    return false;
  }

  /// The job ended; `arrived` jobs were submitted.
  void end(JobId job, std::uint32_t arrived, Time now) {
    for (const JobId waiting : jobs_->successors().of(job)) {
      if (open_[index(waiting)] == no_index) continue;  // cancelled
      if (--open_[index(waiting)] > 0 || index(waiting) >= arrived) continue;
      --held_back_;
      eligible_[index(waiting)] = now;
      ready_.push_back(waiting);
    }
  }

  /// A job that was submitted and waits for others is cancelled.
  void cancel(JobId job) {
    if (std::exchange(open_[index(job)], no_index) == 0) {
      std::erase(ready_, job);  // what it waited for was cancelled at this instant
    } else {
      --held_back_;
    }
  }

  /// The jobs that wait for others no more since the last call, in the order of the ends that they waited for.
  [[nodiscard]] std::vector<JobId> take_ready() { return std::exchange(ready_, {}); }

 private:
  const JobTable* jobs_ = nullptr;
  std::vector<std::uint32_t> open_;  // by job: others that it waits for
  std::vector<Time> eligible_;       // by job
  std::vector<JobId> ready_;
  std::uint32_t held_back_ = 0;
};

}  // namespace gpusched::detail
