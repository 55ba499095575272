// SPDX-License-Identifier: Apache-2.0
/// LSF's user-based fair-share.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/fair/slurm.hpp"
#include "src/policies/queues/class_queues.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The owner with the highest dynamic priority starts its earliest job that fits. Dynamic priority = shares /
/// (past GPU hours, decayed x used_factor + hours of running jobs x run_time_factor + (1 + GPUs held) x
/// run_job_factor). Past hours include those of running jobs so far. Priorities that agree to nine decimals tie, and
/// the earliest job goes first.
class Lsf {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    OwnerWeights shares = {};
    double used_factor = 0.7;
    double run_time_factor = 0.7;
    double run_job_factor = 3;
    double history_hours = 5;  ///< after this long, a tenth of past usage is left
  };

  explicit Lsf(Options options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const { return "lsf"; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) hold(view, event.job, -1);
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        waiting_.push(view, event.job, owner_of(options_.column, view, event.job));
      }
    }
    const auto score = [&](const ClassQueues::Class& jobs) { return -priority_now(jobs.owner, view.now()); };
    const auto may_fit = [&](std::uint32_t queue, std::uint32_t shape) {
      return view.cluster().may_fit(view.shape_of_id(shape), queue);
    };
    waiting_.start_best(true, may_fit, score, [&](const ClassQueues::Class& jobs) {
      if (decision.start(jobs.first()) != Verdict::ok) return Attempt::no_room;
      hold(view, jobs.first(), +1);
      return Attempt::started;
    });
  }

  [[nodiscard]] double dynamic_priority(std::uint32_t owner, Time now) const {
    const double shares = static_cast<double>(options_.shares.milli(owner)) / 1000;
    const Account account = owner < accounts_.size() ? accounts_[owner] : Account(half_life_s());
    const double gpus = static_cast<double>(account.held) / static_cast<double>(whole_gpu);
    return shares / (account.past.at(now) / 3600 * options_.used_factor +
                     account.running_s(now) / 3600 * options_.run_time_factor + (1 + gpus) * options_.run_job_factor);
  }

 private:
  struct Account {
    explicit Account(double half_life) : past(half_life) {}
    DecayingUsage past;
    MilliGpu held = 0;
    std::int64_t jobs = 0;
    std::int64_t start_sum_us = 0;  // of running jobs, so that their run time so far is jobs x now - start_sum

    [[nodiscard]] double running_s(Time now) const {
      return static_cast<double>(jobs * now.us - start_sum_us) / static_cast<double>(microseconds_per_second);
    }
  };

  // In billionths, kept until the owner's holdings or the time change: an owner has many classes.
  std::int64_t priority_now(std::uint32_t owner, Time now) {
    if (owner >= priorities_.size()) priorities_.resize(owner + 1);
    PriorityNow& priority = priorities_[owner];
    if (priority.time != now) priority = {now, std::llround(dynamic_priority(owner, now) * 1e9)};
    return priority.value;
  }

  // "A tenth after history_hours" as a half-life.
  [[nodiscard]] double half_life_s() const { return options_.history_hours * 3600 * std::log10(2.0); }

  void hold(const View& view, JobId job, std::int64_t sign) {
    const std::uint32_t owner = owner_of(options_.column, view, job);
    if (owner >= accounts_.size()) accounts_.resize(owner + 1, Account(half_life_s()));
    Account& account = accounts_[owner];
    const MilliGpu change = sign * view.shape(job).gpu_milli();
    account.past.hold(view.now(), change);
    account.held += change;
    account.jobs += sign;
    if (started_.empty()) started_.resize(view.job_count());
    if (sign > 0) started_[index(job)] = view.now();
    account.start_sum_us += sign * started_[index(job)].us;
    if (owner < priorities_.size()) priorities_[owner].time = Time::max();
  }

  struct PriorityNow {
    Time time = Time::max();  // none is known
    std::int64_t value = 0;
  };

  Options options_;
  ClassQueues waiting_;
  std::vector<Account> accounts_;        // [owner]
  std::vector<PriorityNow> priorities_;  // [owner]
  std::vector<Time> started_;            // [job] its present run, which the view no longer knows when it ends
};

PolicyInfo lsf_info();

}  // namespace gpusched
