// SPDX-License-Identifier: Apache-2.0
/// TimeLimits: the jobs of a run that are ended when they have run for as long as they asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// An effect: a job ends for good when it has held its nodes for the run time that it asked for, whatever work is left.
/// What it did counts as useful, as that of a job whose log says that it ended so. A job that finishes at that instant
/// has finished. The limit is of one attempt: time preempted does not count, and a run after a failure of a node or
/// another attempt has all of it again. No request, or one of 0, is no limit. Source: Slurm, sbatch --time.
class TimeLimits {
 public:
  /// No limits.
  TimeLimits() = default;
  explicit TimeLimits(const EffectWorld& world) {
    if (!world.inputs.kill_at_limit || !world.jobs.has_estimates()) return;
    jobs_ = &world.jobs;
    runs_.resize(jobs_->size());
  }

  /// True when jobs are ended at their limits.
  [[nodiscard]] bool active() const { return jobs_ != nullptr; }
  /// When the next running job reaches its limit; Time::max(): none will.
  [[nodiscard]] Time next_time() const { return ends_.empty() ? Time::max() : ends_.begin()->first; }
  /// The job was ended at its limit.
  [[nodiscard]] bool ended(JobId job) const { return active() && runs_[index(job)].ended; }

  /// How much longer the job, which has run for `ran` in all, may run; Time::max(): for ever.
  [[nodiscard]] Time left(JobId job, Time ran, std::uint16_t attempt) const {
    const Time limit = active() ? jobs_->estimate(job) : Time::max();
    if (limit == Time::max() || limit.us == 0) return Time::max();
    const Run& run = runs_[index(job)];
    const Time used = run.attempt == attempt ? ran - run.before : Time{};
    return std::max(limit - used, Time{});
  }

  template <class Kernel>
  Time begin(Kernel& kernel, JobId job) {
    const JobState& state = kernel.state[job];
    Run& run = runs_[index(job)];
    if (run.attempt != state.attempt) run = {.before = state.ran, .attempt = state.attempt};
    const Time left_now = left(job, state.ran, state.attempt);
    run.end = left_now == Time::max() ? Time::max() : later_by(kernel.state.now, left_now);
    if (run.end != Time::max()) ends_.insert({run.end, job});
    return {};
  }

  template <class Kernel>
  void end(Kernel& kernel, JobId job, EndOfRun why) {
    Run& run = runs_[index(job)];
    ends_.erase({std::exchange(run.end, Time::max()), job});
    if (why == EndOfRun::killed) run.before = kernel.state[job].ran;
  }

  template <class Kernel>
  GPUSCHED_RARE void happen(Kernel& kernel) {
    const JobId job = ends_.begin()->second;
    runs_[index(job)].ended = true;
    kernel.give_up(job);
  }

  template <class State>
  [[nodiscard]] bool audit(const State& state, JobId job) const {
    const Run& run = runs_[index(job)];
    const JobState& now = state[job];
    const Time left_now = left(job, state.ran_now(now), now.attempt);
    const Time end = left_now == Time::max() ? Time::max() : later_by(state.now, left_now);
    return run.end == end && ends_.contains({run.end, job}) == (end != Time::max());
  }

 private:
  struct Run {
    Time end = Time::max();  ///< when the present run reaches the limit
    Time before{};           ///< what the job had run in all when the limit began anew
    std::uint16_t attempt = 0;
    bool ended = false;
  };
  struct Earlier {
    bool operator()(const std::pair<Time, JobId>& a, const std::pair<Time, JobId>& b) const {
      return a.first != b.first ? a.first < b.first : index(a.second) < index(b.second);
    }
  };

  const JobTable* jobs_ = nullptr;
  std::vector<Run> runs_;  // by job
  std::set<std::pair<Time, JobId>, Earlier> ends_;
};

}  // namespace gpusched::detail
