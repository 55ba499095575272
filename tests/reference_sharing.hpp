// SPDX-License-Identifier: Apache-2.0
/// Policies that share in time, Gandiva and Themis, as rules of the reference World.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/reference_world.hpp"

namespace gpusched::test {

/// Wakes the rule at the next multiple of `span` seconds while any job waits.
inline void wake_at_multiple(World& world, std::int64_t span) {
  if (!world.waiting().empty()) world.timers.insert((world.now / span + 1) * span);
}

/// Leases GPUs in falling order of rho = (time in the system + work left) / (work alone on 1/N of the GPUs), N the jobs
/// in the system when it came; ties go to the lower id.
class ThemisRule {
 public:
  explicit ThemisRule(std::int64_t lease_s) : lease_s_(lease_s) {}

  void operator()(World& world) {
    note_arrivals(world);
    if (world.waiting().empty()) return;
    const bool leases = world.now % lease_s_ == 0;
    std::vector<WorldJob*> order = world.waiting();
    if (leases) {
      for (WorldJob* const job : world.running()) order.push_back(job);
    }
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
      const double rho_a = rho(world, *a), rho_b = rho(world, *b);
      return rho_a != rho_b ? rho_a > rho_b : a->id < b->id;
    });
    if (leases) end_leases(world, order);
    for (WorldJob* const job : order) {
      if (job->running && !job->freed) continue;
      if (job->freed && world.resume(*job)) continue;
      if (job->freed) world.stop(*job);
      world.start(*job);
    }
    wake_at_multiple(world, lease_s_);
  }

 private:
  void note_arrivals(const World& world) {
    std::int64_t in_system = 0;
    for (const WorldJob& job : world.jobs) in_system += job.submit <= world.now && job.end < 0 ? 1 : 0;
    for (const WorldJob& job : world.jobs) {
      if (job.submit > world.now || ideal_s_.count(job.id) > 0) continue;
      std::int64_t work = 0;
      for (const std::int64_t attempt : job.attempts) work += attempt;
      const double part = static_cast<double>(world.total_gpus() * 1000) / static_cast<double>(in_system);
      const double slowdown = std::max(1.0, static_cast<double>(job.gpus_milli()) / part);
      ideal_s_[job.id] = std::max(static_cast<double>(work), 1e-6) * slowdown;
    }
  }

  [[nodiscard]] double rho(const World& world, const WorldJob& job) const {
    return static_cast<double>(world.now - job.submit + job.remaining) / ideal_s_.at(job.id);
  }

  // By count: who comes too late for the GPUs that are left gives up what it holds.
  static void end_leases(World& world, const std::vector<WorldJob*>& order) {
    std::int64_t left = world.total_gpus() * 1000;
    for (WorldJob* const job : order) {
      if (job->gpus_milli() <= left) {
        left -= job->gpus_milli();
      } else if (job->running) {
        world.free(*job);
      }
    }
  }

  std::int64_t lease_s_;
  std::map<std::int64_t, double> ideal_s_;
};

/// Jobs in the order in which they began to wait; at a multiple of the slice one that has waited suspends jobs of its
/// queue that have run for a slice, the longest-running first, as many as it needs or none.
class GandivaRule {
 public:
  explicit GandivaRule(std::int64_t slice_s) : slice_s_(slice_s) {}

  void operator()(World& world) {
    for (WorldJob* const job : world.waiting()) waits_since_.try_emplace(job->id, world.now);
    for (bool again = true; again;) {
      again = false;
      for (WorldJob* const job : turns(world)) {
        again = take_turn(world, *job);
        if (again) break;
      }
    }
    for (WorldJob& job : world.jobs) {
      if (!job.freed || !job.running) continue;
      world.stop(job);
      waits_since_[job.id] = world.now;
    }
    wake_at_multiple(world, slice_s_);
  }

 private:
  [[nodiscard]] std::vector<WorldJob*> turns(World& world) const {
    std::vector<WorldJob*> list = world.waiting();
    for (WorldJob* const job : world.running()) {
      if (job->freed) list.push_back(job);
    }
    std::sort(list.begin(), list.end(), [&](auto* a, auto* b) {
      return std::pair(waits_since(world, *a), a->id) < std::pair(waits_since(world, *b), b->id);
    });
    return list;
  }
  [[nodiscard]] std::int64_t waits_since(const World& world, const WorldJob& job) const {
    return job.freed ? world.now : waits_since_.at(job.id);
  }

  bool take_turn(World& world, WorldJob& job) {
    if (job.freed) {
      if (!world.resume(job)) {
        World trial = world;
        if (!trial.start(trial.jobs[static_cast<std::size_t>(job.id)])) return false;
        world.stop(job);
        world.start(job);
      }
    } else {
      const bool waited = waits_since_.at(job.id) < world.now;
      if (!world.start(job) && !(waited && world.now % slice_s_ == 0 && suspend_others(world, job))) return false;
    }
    waits_since_.erase(job.id);
    runs_since_[job.id] = world.now;
    return true;
  }

  [[nodiscard]] bool suspend_others(World& world, WorldJob& job) const {
    std::vector<WorldJob*> list = world.running();
    std::erase_if(list, [&](const WorldJob* other) {
      return other->freed || runs_since_.at(other->id) + slice_s_ > world.now ||
             world.queue_of(*other) != world.queue_of(job);
    });
    std::stable_sort(list.begin(), list.end(),
                     [&](auto* a, auto* b) { return runs_since_.at(a->id) < runs_since_.at(b->id); });
    std::vector<WorldJob*> suspended;
    bool started = false;
    for (WorldJob* const other : list) {
      world.free(*other);
      suspended.push_back(other);
      started = world.start(job);
      if (started) break;
    }
    if (!started) {
      for (WorldJob* const other : suspended) world.resume(*other);
    }
    return started;
  }

  std::int64_t slice_s_;
  std::map<std::int64_t, std::int64_t> waits_since_, runs_since_;  // by job; the second since its last turn began
};

}  // namespace gpusched::test
