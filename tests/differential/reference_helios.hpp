// SPDX-License-Identifier: Apache-2.0
/// The simulator of HeliosArtifact (Hu et al., SC'21) as rules of the reference World, which they ask to be called at
/// every second. Virtual clusters know nothing of each other; jobs are gangs of one-GPU tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

/// A (node, card) for each task, the card left open; nothing where the gang has to wait. One that an empty node could
/// hold goes to the fullest node that holds it. A larger one takes idle nodes that it fills, in order, and the emptiest
/// other node for the rest.
inline std::vector<std::pair<std::size_t, std::int64_t>> helios_places(const World& world, const WorldJob& job) {
  std::int64_t largest = 0;
  for (const WorldNode& node : world.nodes) largest = std::max(largest, world.may_use(node, job) ? node.size : 0);
  const bool small = job.tasks <= largest;
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  std::set<std::size_t> used;
  const std::size_t none = world.nodes.size();
  for (std::int64_t left = job.tasks; left > 0;) {
    std::size_t whole = none, rest = none;
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      const WorldNode& node = world.nodes[i];
      const std::int64_t idle = node.idle_cards();
      if (used.contains(i) || !world.may_use(node, job)) continue;
      if (whole == none && !small && idle == node.size && idle <= left) whole = i;
      if (idle < left) continue;
      const std::int64_t best = rest == none ? -1 : world.nodes[rest].idle_cards();
      if (rest == none || (small ? idle < best : idle > best)) rest = i;
    }
    const std::size_t chosen = whole == none ? rest : whole;
    if (chosen == none) return {};
    const std::int64_t here = std::min(left, world.nodes[chosen].idle_cards());
    places.insert(places.end(), static_cast<std::size_t>(here), {chosen, -1});
    used.insert(chosen);
    left -= here;
  }
  return places;
}

inline bool helios_start(World& world, WorldJob& job) {
  const auto places = helios_places(world, job);
  if (places.empty() || !world.within_quota(job)) return false;
  world.start_on(job, places);
  return true;
}

inline void wake_next_second(World& world) {
  const auto unfinished = [](const WorldJob& job) { return job.end < 0; };
  if (std::any_of(world.jobs.begin(), world.jobs.end(), unfinished)) world.timers.insert(world.now + 1);
}

/// Where the run time of a job comes from, in microseconds.
using HeliosEstimate = std::function<std::int64_t(const World&, const WorldJob&)>;

/// The mean over the user's finished jobs, else over all, else an hour.
inline std::int64_t user_mean_us(const World& world, const WorldJob& job) {
  std::int64_t own = 0, own_count = 0, all = 0, all_count = 0;
  for (const WorldJob& other : world.jobs) {
    if (other.end < 0) continue;
    const std::int64_t us = std::ssize(other.seconds) * 1'000'000;
    all += us;
    ++all_count;
    if (other.user != job.user) continue;
    own += us;
    ++own_count;
  }
  if (all_count == 0) return std::int64_t{3600} * 1'000'000;
  return own_count > 0 ? own / own_count : all / all_count;
}

/// Jobs in order of `score` as it is when they begin to wait, then of submission; the first that finds no place ends
/// its virtual cluster. `queues`: the virtual clusters in order, or "".
class HeliosOrderRule {
 public:
  HeliosOrderRule(std::vector<std::string> queues, HeliosEstimate score)
      : queues_(std::move(queues)), score_(std::move(score)) {}

  void operator()(World& world) {
    for (WorldJob* const job : world.waiting()) scores_.try_emplace(job->id, score_(world, *job));
    for (const std::string& queue : queues_) {
      std::vector<WorldJob*> list = world.waiting();
      std::erase_if(list, [&](const WorldJob* job) { return world.queue_of(*job) != queue; });
      std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return scores_[a->id] < scores_[b->id]; });
      for (WorldJob* const job : list) {
        if (!helios_start(world, *job)) break;
      }
    }
    wake_next_second(world);
  }

 private:
  std::vector<std::string> queues_;
  HeliosEstimate score_;
  std::map<std::int64_t, std::int64_t> scores_;
};

/// By run time x GPUs, then GPUs, then submission. Jobs get that priority, once, at the first second at which an older
/// job waits in their virtual cluster; where none does, they are tried in order of GPUs.
class HeliosQssfRule {
 public:
  HeliosQssfRule(std::vector<std::string> queues, HeliosEstimate estimate)
      : queues_(std::move(queues)), estimate_(std::move(estimate)) {}

  void operator()(World& world) {
    for (const std::string& queue : queues_) {
      std::vector<WorldJob*> list = world.waiting();
      std::erase_if(list, [&](const WorldJob* job) { return world.queue_of(*job) != queue; });
      const bool older = std::any_of(list.begin(), list.end(), [&](auto* job) { return job->submit < world.now; });
      if (older) rate(world, list);
      std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) {
        const std::int64_t of_a = older ? priorities_.at(a->id) : 0, of_b = older ? priorities_.at(b->id) : 0;
        return std::pair(of_a, a->tasks) < std::pair(of_b, b->tasks);
      });
      for (WorldJob* const job : list) {
        if (!helios_start(world, *job)) break;
      }
    }
    wake_next_second(world);
  }

 private:
  void rate(const World& world, const std::vector<WorldJob*>& list) {
    for (const WorldJob* job : list) {
      if (!priorities_.contains(job->id)) priorities_[job->id] = estimate_(world, *job) * job->tasks;
    }
  }

  std::vector<std::string> queues_;
  HeliosEstimate estimate_;
  std::map<std::int64_t, std::int64_t> priorities_;
};

/// Waiting jobs, then running ones, each in order of joining, sorted by remaining time, share the GPUs of the virtual
/// cluster by count. Who runs and is left out is stopped, for 7 s (one GPU), 30 s (up to 8) or 60 s more; then those
/// chosen are placed, or wait. Every job runs a second longer than its remaining time says.
class HeliosSrtfRule {
 public:
  explicit HeliosSrtfRule(std::vector<std::string> queues) : queues_(std::move(queues)) {}

  void operator()(World& world) {
    for (WorldJob* const job : world.waiting()) {
      if (!known_.insert(job->id).second) continue;
      job->remaining += late_second;
      waiting_.push_back(job->id);
    }
    std::erase_if(running_, [&](std::int64_t id) { return !job_of(world, id).running; });
    for (const std::string& queue : queues_) schedule(world, queue);
    wake_next_second(world);
  }

 private:
  static constexpr std::int64_t late_second = 1;
  static WorldJob& job_of(World& world, std::int64_t id) { return world.jobs[static_cast<std::size_t>(id)]; }

  void schedule(World& world, const std::string& queue) {
    std::vector<std::int64_t> list = waiting_;
    list.insert(list.end(), running_.begin(), running_.end());
    std::erase_if(list, [&](std::int64_t id) { return world.queue_of(job_of(world, id)) != queue; });
    std::stable_sort(list.begin(), list.end(), [&](std::int64_t a, std::int64_t b) {
      return job_of(world, a).remaining < job_of(world, b).remaining;
    });
    std::int64_t quota = 0;
    for (const WorldNode& node : world.nodes) quota += node.owner.empty() || node.owner == queue ? node.size : 0;
    std::vector<std::int64_t> chosen;
    for (const std::int64_t id : list) {
      WorldJob& job = job_of(world, id);
      if (job.tasks > quota) {
        if (job.running) stop(world, job);
        continue;
      }
      quota -= job.tasks;
      if (!job.running) chosen.push_back(id);
    }
    for (const std::int64_t id : chosen) {
      if (!helios_start(world, job_of(world, id))) continue;
      std::erase(waiting_, id);
      running_.push_back(id);
    }
  }

  void stop(World& world, WorldJob& job) {
    world.free(job);
    world.stop(job);
    job.remaining += job.tasks == 1 ? 7 : job.tasks <= 8 ? 30 : 60;
    std::erase(running_, job.id);
    waiting_.push_back(job.id);
  }

  std::vector<std::string> queues_;
  std::set<std::int64_t> known_;
  std::vector<std::int64_t> waiting_, running_;  // in order of joining
};

}  // namespace gpusched::test
