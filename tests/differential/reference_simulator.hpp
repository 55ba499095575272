// SPDX-License-Identifier: Apache-2.0
/// A slow, obvious simulator to compare the engine with: it looks at every job every second and shares no code with the
/// engine. One pool of GPUs; whole seconds only. What decides is a rule (reference_orders.hpp and its neighbours).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace gpusched::test {

/// A job as the reference simulator sees it. Seconds and GPUs throughout.
struct ReferenceJob {
  std::int64_t id = 0;
  std::int64_t submit = 0;
  std::vector<std::int64_t> attempts;
  std::int64_t gpus = 1;
  std::int64_t user = 0;
  std::int64_t vc = 0;
  std::int64_t estimate = -1;  ///< -1 = none
  std::int64_t priority = 0;
  std::int64_t deadline = -1;  ///< -1 = none
  std::int64_t recorded_start = -1;

  std::size_t attempt = 0;
  std::int64_t remaining = 0;     ///< of the attempt, overheads included
  std::int64_t ran = 0;           ///< seconds running so far
  std::int64_t ran_this_run = 0;  ///< since the last start
  std::int64_t start = -1;
  std::int64_t end = -1;
  std::int64_t start_number = 0;  ///< of the present run, in the order of all starts
  bool running = false;
  bool must_restart = false;
  std::int64_t loading = 0;  ///< seconds of the present run that its restart takes

  // For the rules that go by beliefs: run times of the attempt, in microseconds, as of when the job began to wait.
  std::int64_t believed_us = 0;  ///< what the order goes by
  std::int64_t planned_us = 0;   ///< what reservations go by
  std::int64_t planned_end = 0;  ///< of a running job, in seconds
  std::size_t corrections = 0;   ///< of that end
};

struct ReferenceCosts {
  std::int64_t restart = 0;
  std::int64_t checkpoint_interval = 0;
};

class ReferenceSimulator {
 public:
  /// Called after all that happened in a second, and again in that second when jobs of no work ended.
  using Rule = std::function<void(ReferenceSimulator&)>;

  ReferenceSimulator(std::vector<ReferenceJob> jobs, std::int64_t gpus, Rule rule, ReferenceCosts costs = {})
      : jobs_(std::move(jobs)), gpus_(gpus), rule_(std::move(rule)), costs_(costs) {}

  /// Runs second by second until every job ended, and returns the jobs.
  const std::vector<ReferenceJob>& run() {
    while (finished_ < jobs_.size()) {
      bool something = true;
      for (bool first = true; something; first = false) {  // a job of no work ends in the second in which it starts
        ended_.clear();
        came_.clear();
        something = end_jobs();
        if (first) something = submit_jobs() || something;
        line_up();
        if (first) something = wakes_.erase(now_) > 0 || something;
        if (something) rule_(*this);
      }
      for (ReferenceJob& job : jobs_) {
        if (!job.running) continue;
        --job.remaining;
        ++job.ran;
        ++job.ran_this_run;
      }
      ++now_;
    }
    return jobs_;
  }

  // ---- what a rule sees ----
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] std::int64_t gpus() const { return gpus_; }
  /// All that wait and run. New ones join the end; the rule may sort it.
  std::vector<ReferenceJob*>& list() { return list_; }
  /// Whose attempts ended just now (in order of their starts), of finished jobs and of those that wait again.
  [[nodiscard]] const std::vector<ReferenceJob*>& ended() const { return ended_; }
  /// Who began to wait just now, by submission: those of `ended` that go on, and new jobs.
  [[nodiscard]] const std::vector<ReferenceJob*>& came() const { return came_; }
  [[nodiscard]] std::vector<ReferenceJob*> waiting() const { return those(false); }
  /// Of the whole trace.
  [[nodiscard]] const std::vector<ReferenceJob>& jobs() const { return jobs_; }
  [[nodiscard]] std::vector<ReferenceJob*> running() const { return those(true); }
  [[nodiscard]] std::int64_t free() const {
    std::int64_t left = gpus_;
    for (const ReferenceJob* job : running()) left -= job->gpus;
    return left;
  }

  // ---- what a rule does ----
  /// Precondition: it waits and fits.
  void start(ReferenceJob& job) {
    if (job.start < 0) job.start = now_;
    job.loading = job.must_restart ? costs_.restart : 0;
    prolong(job, job.loading);
    job.must_restart = false;
    job.running = true;
    job.ran_this_run = 0;
    job.start_number = ++starts_;
  }

  void stop(ReferenceJob& job) {
    job.running = false;
    job.must_restart = true;
    const std::int64_t worked = std::max<std::int64_t>(job.ran_this_run - job.loading, 0);
    const std::int64_t interval = costs_.checkpoint_interval;
    prolong(job, job.ran_this_run - job.loading - (interval == 0 ? worked : worked - worked % interval));
  }

  /// Stops the running jobs that are not among `chosen`, then starts those of them that wait, in that order.
  void run_only(const std::vector<ReferenceJob*>& chosen) {
    const std::vector<ReferenceJob*> before = list_;
    for (ReferenceJob* job : before) {
      if (job->running && std::find(chosen.begin(), chosen.end(), job) == chosen.end()) stop(*job);
    }
    for (ReferenceJob* job : chosen) {
      if (!job->running) start(*job);
    }
  }

  /// The rule is called in that second, whatever else happens. Precondition: it is yet to come.
  void wake_at(std::int64_t second) { wakes_.insert(second); }

 private:
  bool end_jobs() {
    for (ReferenceJob& job : jobs_) {
      if (job.running && job.remaining == 0) ended_.push_back(&job);
    }
    std::sort(ended_.begin(), ended_.end(), [](auto* a, auto* b) { return a->start_number < b->start_number; });
    for (ReferenceJob* job : ended_) {
      job->running = false;
      list_.erase(std::find(list_.begin(), list_.end(), job));
      if (++job->attempt == job->attempts.size()) {
        job->end = now_;
        ++finished_;
      } else {
        join(*job);
      }
    }
    return !ended_.empty();
  }

  bool submit_jobs() {
    for (ReferenceJob& job : jobs_) {
      if (job.submit == now_) join(job);
    }
    return !came_.empty();
  }

  void join(ReferenceJob& job) {
    job.remaining = job.attempts[job.attempt];
    came_.push_back(&job);
  }

  // Those of one instant by submission, whether they come or come back.
  void line_up() {
    std::sort(came_.begin(), came_.end(),
              [](auto* a, auto* b) { return std::pair(a->submit, a->id) < std::pair(b->submit, b->id); });
    list_.insert(list_.end(), came_.begin(), came_.end());
  }

  // A job that a cost prolonged lines up behind those that had its new key before.
  void prolong(ReferenceJob& job, std::int64_t cost) {
    if (cost == 0) return;
    job.remaining += cost;
    list_.erase(std::find(list_.begin(), list_.end(), &job));
    list_.push_back(&job);
  }

  [[nodiscard]] std::vector<ReferenceJob*> those(bool running) const {
    std::vector<ReferenceJob*> some;
    for (ReferenceJob* job : list_) {
      if (job->running == running) some.push_back(job);
    }
    return some;
  }

  std::vector<ReferenceJob> jobs_;
  std::int64_t gpus_;
  Rule rule_;
  ReferenceCosts costs_;
  std::vector<ReferenceJob*> list_, ended_, came_;
  std::set<std::int64_t> wakes_;
  std::size_t finished_ = 0;
  std::int64_t now_ = 0;
  std::int64_t starts_ = 0;
};

}  // namespace gpusched::test
