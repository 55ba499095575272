// SPDX-License-Identifier: Apache-2.0
/// Slurm with its backfilling scheduler, sched/backfill: the policy `slurm+easy`.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "src/policies/fair/slurm.hpp"
#include "src/policies/queues/capacity_profile.hpp"
#include "src/policies/queues/estimated_ends.hpp"
#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// The main scheduling loop of Slurm at every event and, after events, at most once an interval, a backfilling pass. A
/// pass plans anew from the estimated ends of running jobs: in order of priority, each waiting job gets the earliest
/// hole that delays no job planned before it; it starts if that is now, and else keeps the hole reserved for the pass
/// if it begins within the window. A job that has the right to stop others (SlurmPreemption) starts in their place
/// where that keeps the holes of jobs planned before it. Source: Slurm documentation, "Scheduling Configuration Guide"
/// and slurm.conf, SchedulerParameters bf_window, bf_max_job_test, bf_interval. Times are exact (no bf_resolution).
///
/// A pass costs O(waiting + (running + jobs tested) x steps of the profile), or more where nodes matter
/// (capacity_profile.hpp).
class SlurmBackfill {
 public:
  struct Options {
    Time window = whole_seconds(86'400);     ///< bf_window
    std::uint32_t most_jobs = 500;           ///< bf_max_job_test
    Time interval = whole_seconds(30);       ///< bf_interval
    OverrunRule overrun = OverrunRule::now;  ///< kill is as now
  };

  /// `empty`: the profile of the empty cluster.
  SlurmBackfill(Slurm slurm, const Options& options, AnyDurationEstimator estimator, CapacityProfile empty)
      : slurm_(std::move(slurm)),
        options_(options),
        ends_(std::move(estimator), options.overrun == OverrunRule::kill ? OverrunRule::now : options.overrun),
        empty_(std::move(empty)) {}

  [[nodiscard]] std::string_view name() const { return "slurm+easy"; }
  [[nodiscard]] bool clairvoyant() const { return ends_.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);
  /// Usage, and when the next pass may be; see AnyPolicy.
  void inherit(const SlurmBackfill& before, const View& view) {
    slurm_.inherit(before.slurm_, view);
    next_pass_ = before.next_pass_;
    changed_ = before.changed_;
  }

 private:
  void backfill(const OracleView& view, Decision& decision);
  [[nodiscard]] CapacityProfile profile_of_running(const View& view) const;
  bool preempt_for(const OracleView& view, Decision& decision, JobId job, CapacityProfile& profile);

  Slurm slurm_;
  Options options_;
  EstimatedEnds ends_;
  CapacityProfile empty_;
  Time next_pass_{std::numeric_limits<std::int64_t>::min()};  // not before
  bool changed_ = false;                                      // some event since the last pass
};

}  // namespace gpusched
