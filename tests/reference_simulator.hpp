// SPDX-License-Identifier: Apache-2.0
/// A slow, obvious simulator to compare the engine with: it looks at every job every second, sorts the whole list at
/// every event and shares no code with the engine. One pool of GPUs; whole seconds only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
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
  std::int64_t estimate = -1;  ///< -1 = none
  std::int64_t priority = 0;
  std::int64_t deadline = -1;  ///< -1 = none

  std::size_t attempt = 0;
  std::int64_t remaining = 0;     ///< of the attempt, overheads included
  std::int64_t ran = 0;           ///< seconds running so far
  std::int64_t ran_this_run = 0;  ///< since the last start
  std::int64_t start = -1;
  std::int64_t end = -1;
  std::int64_t start_number = 0;  ///< of the present run, in the order of all starts
  bool running = false;
  bool must_restart = false;
};

struct ReferenceCosts {
  std::int64_t restart = 0;
  std::int64_t checkpoint_interval = 0;
};

/// A policy as a sort key: smaller goes first; equal keys keep the order that they had in the list.
struct ReferenceRule {
  std::function<std::int64_t(const ReferenceJob&)> key = {};
  bool skips = false;     ///< pass over jobs that do not fit, instead of stopping at the first
  bool preempts = false;  ///< hand out the whole cluster anew at every event, running jobs included
  bool by_id = false;     ///< equal keys go by id instead
  bool by_share = false;  ///< no key: again and again the first fitting job of the user who holds fewest GPUs
};

class ReferenceSimulator {
 public:
  ReferenceSimulator(std::vector<ReferenceJob> jobs, std::int64_t gpus, ReferenceRule rule, ReferenceCosts costs = {})
      : jobs_(std::move(jobs)), gpus_(gpus), rule_(std::move(rule)), costs_(costs) {}

  /// Runs second by second until every job ended, and returns the jobs.
  const std::vector<ReferenceJob>& run() {
    while (ended_ < jobs_.size()) {
      bool something = true;
      for (bool first = true; something; first = false) {  // a job of no work ends in the second in which it starts
        something = end_jobs();
        if (first) something = submit_jobs() || something;
        if (something) schedule();
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

 private:
  bool end_jobs() {
    std::vector<ReferenceJob*> ending;
    for (ReferenceJob& job : jobs_) {
      if (job.running && job.remaining == 0) ending.push_back(&job);
    }
    std::sort(ending.begin(), ending.end(), [](auto* a, auto* b) { return a->start_number < b->start_number; });
    for (ReferenceJob* job : ending) {
      job->running = false;
      list_.erase(std::find(list_.begin(), list_.end(), job));
      if (++job->attempt == job->attempts.size()) {
        job->end = now_;
        ++ended_;
      } else {
        job->remaining = job->attempts[job->attempt];
        list_.push_back(job);
      }
    }
    return !ending.empty();
  }

  bool submit_jobs() {
    bool any = false;
    for (ReferenceJob& job : jobs_) {
      if (job.submit != now_) continue;
      job.remaining = job.attempts.front();
      list_.push_back(&job);
      any = true;
    }
    return any;
  }

  void sort() {
    if (!rule_.key) return;
    std::stable_sort(list_.begin(), list_.end(), [&](const ReferenceJob* a, const ReferenceJob* b) {
      const auto key_a = rule_.key(*a), key_b = rule_.key(*b);
      return key_a != key_b ? key_a < key_b : rule_.by_id && a->id < b->id;
    });
  }

  // Start by start; the user who holds fewest GPUs first, its earliest job first.
  void schedule_by_share() {
    for (;;) {
      std::map<std::int64_t, std::int64_t> held;
      std::int64_t free = gpus_;
      for (const ReferenceJob* job : list_) {
        if (job->running) held[job->user] += job->gpus;
        if (job->running) free -= job->gpus;
      }
      ReferenceJob* next = nullptr;
      for (ReferenceJob* job : list_) {
        if (job->running || job->gpus > free) continue;
        const auto rank = [&](const ReferenceJob& of) { return std::pair(held[of.user], of.id); };
        if (next == nullptr || rank(*job) < rank(*next)) next = job;
      }
      if (next == nullptr) return;
      start(*next);
    }
  }

  void schedule() {
    if (rule_.by_share) return schedule_by_share();
    sort();
    std::int64_t free = gpus_;
    if (!rule_.preempts) {
      for (const ReferenceJob* job : list_) free -= job->running ? job->gpus : 0;
    }
    std::vector<ReferenceJob*> chosen;
    for (ReferenceJob* job : list_) {
      if (job->running && !rule_.preempts) continue;
      if (job->gpus <= free) {
        free -= job->gpus;
        chosen.push_back(job);
      } else if (!rule_.skips) {
        break;
      }
    }
    if (rule_.preempts) {
      const std::vector<ReferenceJob*> before = list_;
      for (ReferenceJob* job : before) {
        if (job->running && std::find(chosen.begin(), chosen.end(), job) == chosen.end()) stop(*job);
      }
    }
    for (ReferenceJob* job : chosen) {
      if (!job->running) start(*job);
    }
    sort();  // preemption costs changed keys
  }

  void start(ReferenceJob& job) {
    if (job.start < 0) job.start = now_;
    if (job.must_restart) prolong(job, costs_.restart);
    job.must_restart = false;
    job.running = true;
    job.ran_this_run = 0;
    job.start_number = ++starts_;
  }

  void stop(ReferenceJob& job) {
    job.running = false;
    job.must_restart = true;
    if (costs_.checkpoint_interval > 0) prolong(job, job.ran_this_run % costs_.checkpoint_interval);
  }

  // A job that a cost prolonged lines up behind those that had its new key before.
  void prolong(ReferenceJob& job, std::int64_t cost) {
    if (cost == 0) return;
    job.remaining += cost;
    list_.erase(std::find(list_.begin(), list_.end(), &job));
    list_.push_back(&job);
  }

  std::vector<ReferenceJob> jobs_;
  std::int64_t gpus_;
  ReferenceRule rule_;
  ReferenceCosts costs_;
  std::vector<ReferenceJob*> list_;  // waiting and running, in the order of the last sort
  std::size_t ended_ = 0;
  std::int64_t now_ = 0;
  std::int64_t starts_ = 0;
};

}  // namespace gpusched::test
