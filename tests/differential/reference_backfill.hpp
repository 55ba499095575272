// SPDX-License-Identifier: Apache-2.0
/// Rules of the reference simulator that backfill around an order. Run times of reservations are whole seconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/reference_estimates.hpp"
#include "tests/differential/reference_orders.hpp"
#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// An order, where its run times come from, and where those of reservations do.
struct ReferenceBackfill {
  ReferenceOrder before;
  ReferenceEstimator order_estimator = {};
  ReferenceEstimator estimator = ReferenceEstimator("exact", &ReferenceJob::planned_us);
  std::string overrun = "double";

  /// Waiting jobs in order.
  [[nodiscard]] std::vector<ReferenceJob*> waiting(const ReferenceSimulator& world) const {
    auto jobs = world.waiting();
    std::sort(jobs.begin(), jobs.end(), [&](auto* a, auto* b) { return before(*a, *b, world.now()); });
    return jobs;
  }
  void observe(ReferenceSimulator& world) {
    order_estimator.observe(world);
    estimator.observe(world);
  }
};

inline std::int64_t planned_s(const ReferenceJob& job) { return job.planned_us / 1'000'000; }

inline void start_as_planned(ReferenceSimulator& world, ReferenceJob& job) {
  world.start(job);
  job.planned_end = world.now() + planned_s(job);
  job.corrections = 0;
}

/// Jobs that outlived their estimate are believed to end in a second ("now"), to need twice what they have had
/// ("double") or ever longer increments ("increments"), or to have ended ("kill"). True when some end was moved.
inline bool correct_planned_ends(const ReferenceSimulator& world, const std::string& rule) {
  constexpr std::int64_t minutes[] = {1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000};
  bool any = false;
  for (ReferenceJob* job : world.running()) {
    if (job->planned_end > world.now() || rule == "kill") continue;
    any = true;
    if (rule == "now") job->planned_end = world.now() + 1;
    if (rule == "double") job->planned_end = world.now() + std::max<std::int64_t>(job->ran_this_run, 1);
    while (job->planned_end <= world.now()) {
      job->planned_end += 60 * minutes[std::min(job->corrections++, std::size(minutes) - 1)];
    }
  }
  return any;
}

/// The rule of what plans by a profile, which has no past.
inline std::string without_past(const std::string& rule) { return rule == "kill" ? "now" : rule; }

/// The second at which `gpus` are free if running jobs end as planned, and how many are then.
inline std::pair<std::int64_t, std::int64_t> planned_room(const ReferenceSimulator& world, std::int64_t gpus) {
  std::int64_t least = -1;
  const auto free_at = [&](std::int64_t second) {
    std::int64_t free = world.free();
    for (const ReferenceJob* job : world.running()) free += job->planned_end <= second ? job->gpus : 0;
    return free;
  };
  for (const ReferenceJob* job : world.running()) {
    const std::int64_t end = job->planned_end;
    if (free_at(end) >= gpus && (least < 0 || end < least)) least = end;
  }
  return {least, free_at(least)};
}

/// The first waiting job that does not fit has a reservation, made anew at every event; others start, in order, where
/// they should end by then or leave room for it.
struct ReferenceEasy {
  ReferenceBackfill how;

  void operator()(ReferenceSimulator& world) {
    how.observe(world);
    correct_planned_ends(world, how.overrun);
    for (;;) {
      const auto waiting = how.waiting(world);
      if (waiting.empty()) return;
      if (waiting.front()->gpus > world.free()) break;
      start_as_planned(world, *waiting.front());
    }
    const auto waiting = how.waiting(world);
    const auto [reserved, room] = planned_room(world, waiting.front()->gpus);
    std::int64_t beside = room - waiting.front()->gpus;
    for (ReferenceJob* job : waiting) {
      if (job->gpus > world.free()) continue;
      const bool in_time = world.now() + planned_s(*job) <= reserved;
      if (!in_time && job->gpus > beside) continue;
      if (!in_time) beside -= job->gpus;
      start_as_planned(world, *job);
    }
  }
};

/// The chosen job stays chosen until it fits; its reservation is made once.
/// Meanwhile others start, in order of submission, that fit and should end strictly before it.
struct ReferenceSc20 {
  ReferenceBackfill how;
  ReferenceJob* chosen = nullptr;
  std::int64_t reserved = 0;

  void operator()(ReferenceSimulator& world) {
    how.observe(world);
    correct_planned_ends(world, how.overrun);
    for (;;) {
      const bool fresh = chosen == nullptr;
      if (fresh) {
        const auto waiting = how.waiting(world);
        if (waiting.empty()) return;
        chosen = waiting.front();
      }
      if (chosen->gpus > world.free()) {
        if (fresh) reserved = planned_room(world, chosen->gpus).first;
        break;
      }
      start_as_planned(world, *std::exchange(chosen, nullptr));
    }
    auto waiting = world.waiting();
    std::sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->id < b->id; });
    for (ReferenceJob* job : waiting) {
      if (job == chosen || job->gpus > world.free() || world.now() + planned_s(*job) >= reserved) continue;
      start_as_planned(world, *job);
    }
  }
};

/// Slurm by age, size and priority, each rounded to its weight: jobs start in order until one does not fit, in each
/// partition. After events, at most once an interval, each of the first waiting jobs in order looks for the earliest
/// second from which it fits beside running jobs and those before it: it starts there, or keeps the place if it is in
/// the window.
struct ReferenceSlurmBackfill {
  std::int64_t weight_age = 0, weight_size = 0, weight_qos = 0, max_age_s = 1;
  std::int64_t window = 0, interval = 0;
  std::size_t most_jobs = 0;
  ReferenceEstimator estimator = ReferenceEstimator("exact", &ReferenceJob::planned_us);
  std::string overrun = "double";
  std::int64_t next_pass = 0;
  bool changed = false;

  void operator()(ReferenceSimulator& world) {
    estimator.observe(world);
    correct_planned_ends(world, without_past(overrun));
    changed = changed || !world.ended().empty() || !world.came().empty();
    std::vector<std::int64_t> blocked;  // partitions
    for (ReferenceJob* job : in_order(world)) {
      if (std::find(blocked.begin(), blocked.end(), job->vc) != blocked.end()) continue;
      if (job->gpus > world.free()) {
        blocked.push_back(job->vc);
      } else {
        start_as_planned(world, *job);
      }
    }
    if (!changed || world.waiting().empty()) return;
    if (world.now() < next_pass) return world.wake_at(next_pass);
    pass(world);
    changed = false;
    next_pass = world.now() + interval;
  }

 private:
  [[nodiscard]] std::int64_t priority(const ReferenceSimulator& world, const ReferenceJob& job) const {
    std::int64_t most = 0;
    for (const ReferenceJob& other : world.jobs()) most = std::max(most, other.priority);
    const auto term = [](std::int64_t weight, double factor) {
      return std::llround(static_cast<double>(weight) * factor);
    };
    const auto part = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    return term(weight_age, std::min(1.0, part(world.now() - job.submit, max_age_s))) +
           term(weight_size, part(job.gpus, world.gpus())) +
           term(weight_qos, most == 0 ? 0 : part(std::max<std::int64_t>(job.priority, 0), most));
  }

  [[nodiscard]] std::vector<ReferenceJob*> in_order(const ReferenceSimulator& world) const {
    auto jobs = world.waiting();
    std::sort(jobs.begin(), jobs.end(), [&](auto* a, auto* b) {
      return std::pair(-priority(world, *a), a->id) < std::pair(-priority(world, *b), b->id);
    });
    return jobs;
  }

  void pass(ReferenceSimulator& world) const {
    const std::int64_t now = world.now();
    std::vector<std::int64_t> free;  // of each second from now on; beyond it, all
    const auto take = [&](std::int64_t gpus, std::int64_t begin, std::int64_t end) {
      if (std::ssize(free) < end - now) free.resize(static_cast<std::size_t>(end - now), world.gpus());
      for (std::int64_t t = begin; t < end; ++t) free[static_cast<std::size_t>(t - now)] -= gpus;
    };
    for (const ReferenceJob* job : world.running()) take(job->gpus, now, job->planned_end);
    auto jobs = in_order(world);
    jobs.resize(std::min(jobs.size(), most_jobs));
    for (ReferenceJob* job : jobs) {
      std::int64_t start = 0;
      for (std::int64_t t = 0; t < std::min(start + planned_s(*job), std::ssize(free)); ++t) {
        if (free[static_cast<std::size_t>(t)] < job->gpus) start = t + 1;
      }
      if (start > window) continue;
      if (start == 0) start_as_planned(world, *job);
      take(job->gpus, now + start, now + start + planned_s(*job));
    }
  }
};

/// Every waiting job has a reservation, made when it comes: the earliest hole. After an end that was not expected,
/// reservations that no longer hold are made anew, in order, and then each job in order moves to its earliest hole. At
/// most `depth` jobs have reservations, in order of first arrival. A start that waits for a job to end "now" is nothing
/// to wake for.
class ReferenceConservative {
 public:
  ReferenceConservative(ReferenceBackfill how, std::size_t depth) : how_(std::move(how)), depth_(depth) {}

  void operator()(ReferenceSimulator& world) {
    how_.observe(world);
    const bool woken = world.ended().empty() && world.came().empty();
    if (woken && world.now() != next_wake_) return;
    bool surprised = false;
    for (const ReferenceJob* job : world.ended()) surprised = surprised || job->planned_end != world.now();
    const std::string rule = without_past(how_.overrun);
    const bool corrected = correct_planned_ends(world, rule);
    if (surprised || corrected) plan_anew(world);
    if (corrected && rule == "now") due_any_time_ = world.now() + 1;
    for (ReferenceJob* job : world.came()) wait_for_plan(job);
    for (bool started = true; started;) {
      take_in(world);
      started = start_due(world);
    }
    next_wake_ = -1;
    for (const Plan& plan : plans_) {
      if (plan.start > std::max(world.now(), due_any_time_) && (next_wake_ < 0 || plan.start < next_wake_)) {
        next_wake_ = plan.start;
      }
    }
    if (next_wake_ >= 0) world.wake_at(next_wake_);
  }

 private:
  struct Plan {
    ReferenceJob* job = nullptr;
    std::int64_t start = 0;
    [[nodiscard]] std::int64_t length() const { return planned_s(*job); }
  };

  // The earliest second from which the job fits for as long as planned, beside running jobs and `plans`.
  static std::int64_t hole(const ReferenceSimulator& world, const ReferenceJob& job, const std::vector<Plan>& plans) {
    const std::int64_t now = world.now();
    std::vector<std::int64_t> free;
    const auto take = [&](std::int64_t gpus, std::int64_t begin, std::int64_t end) {
      if (std::ssize(free) < end - now) free.resize(static_cast<std::size_t>(end - now), world.gpus());
      for (std::int64_t t = std::max(begin, now); t < end; ++t) free[static_cast<std::size_t>(t - now)] -= gpus;
    };
    for (const ReferenceJob* running : world.running()) take(running->gpus, now, running->planned_end);
    for (const Plan& plan : plans) take(plan.job->gpus, plan.start, plan.start + plan.length());
    std::int64_t start = 0;
    for (std::int64_t t = 0; t < std::min(start + planned_s(job), std::ssize(free)); ++t) {
      if (free[static_cast<std::size_t>(t)] < job.gpus) start = t + 1;
    }
    return now + start;
  }

  // Is there room for the plan beside running jobs and `plans`?
  static bool holds(const ReferenceSimulator& world, const Plan& plan, const std::vector<Plan>& plans) {
    if (plan.start < world.now()) return false;
    for (std::int64_t t = plan.start; t < plan.start + plan.length(); ++t) {
      std::int64_t free = world.gpus();
      for (const ReferenceJob* job : world.running()) free -= t < job->planned_end ? job->gpus : 0;
      for (const Plan& other : plans) {
        free -= other.start <= t && t < other.start + other.length() ? other.job->gpus : 0;
      }
      if (free < plan.job->gpus) return false;
    }
    return true;
  }

  void plan_anew(const ReferenceSimulator& world) {
    std::sort(plans_.begin(), plans_.end(),
              [&](const Plan& a, const Plan& b) { return how_.before(*a.job, *b.job, world.now()); });
    std::vector<Plan> kept, broken;
    for (const Plan& plan : plans_) (holds(world, plan, kept) ? kept : broken).push_back(plan);
    for (Plan& plan : broken) {
      plan.start = hole(world, *plan.job, kept);
      kept.push_back(plan);
    }
    for (Plan& plan : plans_) {
      const auto same = [&](const Plan& other) { return other.job == plan.job; };
      std::erase_if(kept, same);
      plan.start = hole(world, *plan.job, kept);
      kept.push_back(plan);
    }
  }

  // A job that failed keeps the place of its first arrival among those without a reservation.
  void wait_for_plan(ReferenceJob* job) {
    const auto place = [](const ReferenceJob* other) { return std::pair(other->submit, other->id); };
    const auto before = [&](const ReferenceJob* a, const ReferenceJob* b) { return place(a) < place(b); };
    unplanned_.insert(std::upper_bound(unplanned_.begin(), unplanned_.end(), job, before), job);
  }

  void take_in(const ReferenceSimulator& world) {
    while (!unplanned_.empty() && plans_.size() < depth_) {
      plans_.push_back({unplanned_.front(), hole(world, *unplanned_.front(), plans_)});
      unplanned_.erase(unplanned_.begin());
    }
  }

  bool start_due(ReferenceSimulator& world) {
    const auto starts = [&](const Plan& plan) {
      if (plan.start > world.now()) return false;
      start_as_planned(world, *plan.job);
      return true;
    };
    return std::erase_if(plans_, starts) > 0;
  }

  ReferenceBackfill how_;
  std::size_t depth_;
  std::vector<Plan> plans_;
  std::vector<ReferenceJob*> unplanned_;
  std::int64_t due_any_time_ = -1, next_wake_ = -1;
};

}  // namespace gpusched::test
