// SPDX-License-Identifier: Apache-2.0
/// Policies that share in time, Gandiva and Themis, as rules of the reference World.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

/// Wakes the rule at the next multiple of `span` seconds while any job waits.
inline void wake_at_multiple(World& world, std::int64_t span) {
  if (!world.waiting().empty()) world.timers.insert((world.now / span + 1) * span);
}

struct ThemisNumbers {
  std::int64_t lease = 1;
  std::int64_t second = 1;  ///< ticks of the world in a second; the lease too is in ticks
  bool auction = false;
  double filter = 0.8;                       ///< the part of the jobs, of best rho, that make no bid
  std::vector<std::int64_t> estimates = {};  ///< by job; empty: run times are known
};

/// Leases GPUs in falling order of rho = (time in the system + work left) / (work alone on 1/N of the GPUs), N the jobs
/// in the system when it came; ties go to the lower id. Believed work is left as long as the job ran less.
class ThemisRule {
 public:
  explicit ThemisRule(ThemisNumbers numbers) : numbers_(std::move(numbers)) {}

  void operator()(World& world) {
    note_arrivals(world);
    std::erase_if(lease_end_, [&](const auto& lease) {  // who found no place, or ended an attempt
      return !world.jobs[static_cast<std::size_t>(lease.first)].running;
    });
    if (world.waiting().empty()) return;
    if (world.now % numbers_.lease == 0) {
      std::vector<WorldJob*> order = by_rho(world, true);
      if (numbers_.auction) order = auctioned(world, order);
      end_leases(world, order);
      place(world, order);
    } else {
      place(world, by_rho(world, false));
      if (numbers_.auction) replace_expired(world);
    }
    wake_at_multiple(world, numbers_.lease);
    for (const auto& [job, end] : lease_end_) {
      if (end > world.now) world.timers.insert(end);
    }
  }

 private:
  void note_arrivals(const World& world) {
    std::int64_t in_system = 0;
    for (const WorldJob& job : world.jobs) in_system += job.submit <= world.now && job.end < 0 ? 1 : 0;
    for (const WorldJob& job : world.jobs) {
      if (job.submit > world.now || ideal_s_.contains(job.id)) continue;
      std::int64_t work = 0;
      for (const std::int64_t attempt : job.attempts) work += attempt;
      if (!numbers_.estimates.empty()) work = believed(job);
      const double part = static_cast<double>(world.total_gpus() * 1000) / static_cast<double>(in_system);
      const double slowdown = std::max(1.0, static_cast<double>(job.gpus_milli()) / part);
      ideal_s_[job.id] = std::max(seconds(work), 1e-6) * slowdown;
    }
  }

  [[nodiscard]] double seconds(std::int64_t ticks) const {
    return static_cast<double>(ticks) / static_cast<double>(numbers_.second);
  }
  [[nodiscard]] std::int64_t believed(const WorldJob& job) const {
    return numbers_.estimates[static_cast<std::size_t>(job.id)];
  }
  [[nodiscard]] double shared_s(const World& world, const WorldJob& job) const {
    const std::int64_t left =
        numbers_.estimates.empty() ? job.remaining : std::max<std::int64_t>(believed(job) - std::ssize(job.seconds), 0);
    return seconds(world.now - job.submit + left);
  }
  [[nodiscard]] double rho(const World& world, const WorldJob& job) const {
    return shared_s(world, job) / ideal_s_.at(job.id);
  }

  // Waiting jobs, or all of them, in falling order.
  [[nodiscard]] std::vector<WorldJob*> by_rho(World& world, bool all) const {
    std::vector<WorldJob*> order = world.waiting();
    if (all) {
      for (WorldJob* const job : world.running()) order.push_back(job);
    }
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
      const double rho_a = rho(world, *a), rho_b = rho(world, *b);
      return rho_a != rho_b ? rho_a > rho_b : a->id < b->id;
    });
    return order;
  }

  static void place(World& world, const std::vector<WorldJob*>& order) {
    for (WorldJob* const job : order) {
      if (job->running && !job->freed) continue;
      if (job->freed && world.resume(*job)) continue;
      if (job->freed) world.stop(*job);
      world.start(*job);
    }
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

  // ---- the auction ----

  struct Bid {
    WorldJob* job = nullptr;
    double gain = 0;  // log(1/rho now) - log(1/rho a lease later), as if it worked on alone from either time
  };

  // Jobs of worst rho bid; the greatest gain a GPU wins first, by count. Winners in that order, then all others.
  [[nodiscard]] std::vector<WorldJob*> auctioned(World& world, const std::vector<WorldJob*>& order) {
    lease_end_.clear();
    const double count = std::ceil((1 - numbers_.filter) * static_cast<double>(order.size()) - 1e-9);
    const auto bidders = std::max<std::size_t>(static_cast<std::size_t>(count), 1);
    std::vector<Bid> bids, winners, losers;
    for (std::size_t i = 0; i < std::min(bidders, order.size()); ++i) {
      if (order[i]->gpu == 0) continue;
      bids.push_back({order[i], std::log1p(seconds(numbers_.lease) / std::max(shared_s(world, *order[i]), 1e-6))});
    }
    const auto a_gpu = [](const Bid& bid) { return bid.gain / static_cast<double>(bid.job->gpus_milli()); };
    std::stable_sort(bids.begin(), bids.end(), [&](const Bid& a, const Bid& b) { return a_gpu(a) > a_gpu(b); });
    std::int64_t left = world.total_gpus() * 1000;
    for (const Bid& bid : bids) {
      const bool wins = bid.job->gpus_milli() <= left;
      if (wins) left -= bid.job->gpus_milli();
      (wins ? winners : losers).push_back(bid);
    }
    std::vector<WorldJob*> result;
    for (const Bid& winner : winners) {
      result.push_back(winner.job);
      lease_end_[winner.job->id] = world.now + paid_lease(left + winner.job->gpus_milli(), losers);
    }
    for (WorldJob* const job : order) {
      if (!lease_end_.contains(job->id)) result.push_back(job);
    }
    return result;
  }

  // What is left of a lease for whose absence there would be so much room.
  [[nodiscard]] std::int64_t paid_lease(std::int64_t room, const std::vector<Bid>& losers) const {
    double kept_out = 0;
    for (const Bid& loser : losers) {
      if (loser.job->gpus_milli() > room) continue;
      room -= loser.job->gpus_milli();
      kept_out += loser.gain;
    }
    const double kept = seconds(numbers_.lease) * std::exp(-kept_out) * static_cast<double>(numbers_.second);
    return std::max<std::int64_t>(std::llround(kept), 1);
  }

  // Waiting jobs, in falling order of rho, may stop jobs whose lease is over, in rising order.
  void replace_expired(World& world) {
    for (WorldJob* const job : by_rho(world, false)) {
      std::vector<WorldJob*> expired = world.running();
      std::erase_if(expired, [&](const WorldJob* other) {
        const auto end = lease_end_.find(other->id);
        return end == lease_end_.end() || end->second > world.now;
      });
      std::sort(expired.begin(), expired.end(), [&](auto* a, auto* b) {
        const double rho_a = rho(world, *a), rho_b = rho(world, *b);
        return rho_a != rho_b ? rho_a < rho_b : a->id > b->id;
      });
      world.start_by_force(*job, expired);
      for (const WorldJob* other : expired) {
        if (!other->running) lease_end_.erase(other->id);
      }
    }
  }

  ThemisNumbers numbers_;
  std::map<std::int64_t, double> ideal_s_;
  std::map<std::int64_t, std::int64_t> lease_end_;  // of winners, by job
};

/// Jobs in the order in which they began to wait; at a multiple of the slice one that has waited suspends jobs of its
/// queue that have run for a slice, the longest-running first, as many as it needs or none. With `migration_s` >= 0 it
/// first looks for a node to be cleared, if it is a task of several whole GPUs and nothing else, and enough are idle.
class GandivaRule {
 public:
  explicit GandivaRule(std::int64_t slice_s, std::int64_t migration_s = -1)
      : slice_s_(slice_s), migration_s_(migration_s) {}

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
      const bool may_force = waited && world.now % slice_s_ == 0;
      if (!world.start(job) && !(may_force && (clear_a_node(world, job) || suspend_others(world, job)))) return false;
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

  static bool only_gpus(const WorldJob& job) {
    return !job.shares_card() && job.gpu > 0 && job.cpu == 0 && job.memory == 0;
  }

  // Moves jobs away from the node that needs the fewest GPUs more.
  bool clear_a_node(World& world, WorldJob& job) const {
    std::int64_t idle = 0;
    for (const WorldNode& node : world.nodes) idle += world.may_use(node, job) ? node.idle_cards() : 0;
    const bool one_task = job.tasks == 1 && job.gpu > 1000 && only_gpus(job);
    if (migration_s_ < 0 || !one_task || idle * 1000 < job.gpu || !world.within_quota(job)) return false;
    std::vector<std::size_t> nodes;
    for (std::size_t n = 0; n < world.nodes.size(); ++n) {
      if (world.may_use(world.nodes[n], job) && world.nodes[n].size * 1000 >= job.gpu) nodes.push_back(n);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
      return world.nodes[a].idle_cards() > world.nodes[b].idle_cards();
    });
    for (const std::size_t node : nodes) {
      World cleared = world;
      if (!clear(cleared, node, job.gpu / 1000)) continue;
      world = cleared;
      return world.start(job);
    }
    return false;
  }

  // Smallest jobs first, of those that lie on this node alone and did not start just now, each to the fullest other
  // node that holds it. One that finds none ends the attempt.
  bool clear(World& world, std::size_t node, std::int64_t wanted) const {
    std::vector<WorldJob*> list = world.running();
    std::erase_if(list, [&](const WorldJob* job) {
      const auto elsewhere = [&](const WorldTask& task) { return task.node != node; };
      return job->freed || !only_gpus(*job) || runs_since_.at(job->id) == world.now ||
             std::any_of(job->places.begin(), job->places.end(), elsewhere);
    });
    std::stable_sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->gpus_milli() < b->gpus_milli(); });
    for (WorldJob* const job : list) {
      if (world.nodes[node].idle_cards() >= wanted) break;
      std::size_t to = world.nodes.size();
      for (std::size_t n = 0; n < world.nodes.size(); ++n) {
        const std::int64_t idle = world.nodes[n].idle_cards();
        if (n == node || idle * 1000 < job->gpus_milli() || !world.may_use(world.nodes[n], *job)) continue;
        if (to == world.nodes.size() || idle < world.nodes[to].idle_cards()) to = n;
      }
      if (to == world.nodes.size()) return false;
      world.move(*job, to);
      job->remaining += migration_s_;
    }
    return world.nodes[node].idle_cards() >= wanted;
  }

  std::int64_t slice_s_;
  std::int64_t migration_s_;
  std::map<std::int64_t, std::int64_t> waits_since_, runs_since_;  // by job; the second since its last turn began
};

}  // namespace gpusched::test
