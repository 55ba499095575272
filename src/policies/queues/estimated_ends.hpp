// SPDX-License-Identifier: Apache-2.0
/// EstimatedEnds: the estimated ends of running jobs, from which reservations are made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "src/policies/queues/overrun_rule.hpp"
#include "src/policies/seam/duration_estimator.hpp"

namespace gpusched {

/// Running jobs in order of their estimated ends, which an OverrunRule corrects where jobs outlive their estimates.
/// O(log n) a start, an end or a correction.
class EstimatedEnds {
 public:
  struct End {
    Time time{};
    JobId job = no_job;
    friend bool operator<(const End& a, const End& b) {
      return a.time != b.time ? a.time < b.time : index(a.job) < index(b.job);
    }
  };

  EstimatedEnds(AnyDurationEstimator estimator, OverrunRule overrun)
      : estimator_(std::move(estimator)), overrun_(overrun) {}

  [[nodiscard]] bool clairvoyant() const { return estimator_.clairvoyant(); }
  [[nodiscard]] const std::set<End>& ends() const { return ends_; }
  /// Precondition: the job is running.
  [[nodiscard]] Time end(JobId job) const { return runs_[index(job)].end; }

  /// Estimated run time of a job that waits, as of when it began to wait.
  [[nodiscard]] Time estimate(JobId job) const { return runs_[index(job)].estimate; }

  /// A job that overran is believed to end then, because it must end some time (OverrunRule::now): that end is an event
  /// of its own, and the instant nothing to wait for. In the past where there is none.
  [[nodiscard]] Time due_any_time() const { return due_any_time_; }

  /// Running jobs whose end was moved by the last observe(), in arbitrary order; a job may be listed twice.
  [[nodiscard]] const std::vector<JobId>& moved() const { return moved_; }

  /// Takes in the instant's events. True when some job ended at another time than believed, or outlived its estimate.
  bool observe(const OracleView& view) {
    if (runs_.empty()) runs_.resize(view.job_count());
    estimator_.observe(view);
    moved_.clear();
    // Now that it runs, the place of a job is known to estimators that know everything; they count from the last change
    // of its rate.
    for (const JobId job : started_) {
      if (view.phase(job) != JobPhase::running) continue;
      const Time from = clairvoyant() ? view.running_since(job) : runs_[index(job)].start;
      move(job, from + at_least(estimator_.estimate(view, job)));
    }
    started_.clear();
    bool surprised = false;
    for (const Event& event : view.events()) {
      if (event.job == no_job) continue;
      if (leaves_cluster(event.kind)) {
        surprised = surprised || end(event.job) != view.now();
        ends_.erase({end(event.job), event.job});
      }
      if (enters_queue(event.kind)) {
        runs_[index(event.job)].estimate = at_least(estimator_.estimate(view, event.job));
      }
    }
    while (overrun_ != OverrunRule::kill && !ends_.empty() && ends_.begin()->time <= view.now()) {
      const JobId job = ends_.begin()->job;
      Run& run = runs_[index(job)];
      move(job, corrected_end(overrun_, run.start, run.end, view.now(), run.corrections));
      if (overrun_ == OverrunRule::now) due_any_time_ = end(job);
      surprised = true;
    }
    return surprised;
  }

  /// The decision just preempted this job, which waits again.
  void preempt(const OracleView& view, JobId job) {
    ends_.erase({end(job), job});
    std::erase(started_, job);
    runs_[index(job)].estimate = at_least(estimator_.estimate(view, job));
  }

  /// The decision just started this job.
  void start(const View& view, JobId job) {
    runs_[index(job)].start = view.now();
    runs_[index(job)].end = view.now() + estimate(job);
    runs_[index(job)].corrections = 0;
    ends_.insert({end(job), job});
    started_.push_back(job);
  }

 private:
  struct Run {
    Time estimate{};
    Time start{};  // of the present run; View::running_since moves with every change of rate
    Time end{};
    std::uint8_t corrections = 0;  // of that end
  };

  // A run takes time, however short, and no sum of times overflows.
  static Time at_least(Time estimate) {
    constexpr Time longest = whole_seconds(std::int64_t{100} * 365 * 24 * 3600);
    return std::clamp(estimate, Time{0}, longest);
  }

  void move(JobId job, Time end_time) {
    ends_.erase({end(job), job});
    runs_[index(job)].end = end_time;
    ends_.insert({end_time, job});
    moved_.push_back(job);
  }

  AnyDurationEstimator estimator_;
  OverrunRule overrun_;
  Time due_any_time_ = Time{-end_of_time.us};
  std::set<End> ends_;
  std::vector<Run> runs_;  // by job
  std::vector<JobId> started_, moved_;
};

}  // namespace gpusched
