// SPDX-License-Identifier: Apache-2.0
/// Slurm's multifactor priority with preemption by partition as a rule of the reference World: all is computed anew
/// from the jobs, and each preemption is tried on a copy of the world.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/reference_fair.hpp"

namespace gpusched::test {

/// Who may stop whom, by partition, and for how long those that have to go run on, and runs are exempt.
struct SlurmRights {
  std::set<std::pair<std::string, std::string>> over = {};
  std::map<std::string, std::int64_t> grace = {}, exempt = {};
  std::set<std::string> cancelled = {}, suspended = {};
  bool youngest_first = false;

  /// The longest chain of partitions below that one.
  [[nodiscard]] std::int64_t tier(const std::string& partition) const {
    std::int64_t longest = 0;
    for (const auto& [above, below] : over) {
      if (above == partition) longest = std::max(longest, 1 + tier(below));
    }
    return longest;
  }
  [[nodiscard]] std::int64_t grace_of(const WorldJob& job) const {
    return grace.contains(job.vc) ? grace.at(job.vc) : 0;
  }
};

struct SlurmNumbers {
  std::int64_t weight_age = 0, weight_fair_share = 0, weight_size = 0, weight_partition = 0, weight_qos = 0;
  std::int64_t max_age_s = 1, half_life_s = 1;
  std::vector<double> partition_factors = {};
  std::vector<std::int64_t> partition_tiers = {};
  bool skip = true;
  SlurmRights rights = {};
};

/// Jobs that were told to go: the end of their grace, and the start of the run that it is of.
struct ToldToGo {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> jobs;

  [[nodiscard]] bool has(const WorldJob& job) const {
    return jobs.contains(job.id) && job.running && jobs.at(job.id).second == job.started;
  }
};

/// The running jobs that this one may stop now, in order.
inline std::vector<std::int64_t> victims_of(World& world, const WorldJob& job, const SlurmRights& rights,
                                            const ToldToGo& told) {
  std::vector<std::tuple<bool, std::int64_t, std::int64_t, std::int64_t>> ranked;
  for (const WorldJob* const other : world.running()) {
    if (!rights.over.contains({job.vc, other->vc})) continue;
    if (rights.suspended.contains(other->vc) && other->gpu > 0) continue;
    const std::int64_t exempt = rights.exempt.contains(other->vc) ? rights.exempt.at(other->vc) : 0;
    if (other->started + exempt > world.now) {
      world.timers.insert(other->started + exempt);
      continue;
    }
    std::set<std::size_t> nodes;
    for (const WorldTask& task : other->places) nodes.insert(task.node);
    if (rights.youngest_first) {
      ranked.emplace_back(!told.has(*other), -other->started, 0, -other->id);
    } else {
      ranked.emplace_back(!told.has(*other), rights.tier(other->vc), nodes.size(), -other->id);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::int64_t> ids;
  for (const auto& entry : ranked) ids.push_back(-std::get<3>(entry));
  return ids;
}

inline std::vector<WorldJob*> jobs_of(World& world, const std::vector<std::int64_t>& ids) {
  std::vector<WorldJob*> jobs;
  for (const std::int64_t id : ids) jobs.push_back(&world.jobs[static_cast<std::size_t>(id)]);
  return jobs;
}

/// Those of the victims that have to go for the job to start, in their order; none: it cannot start so.
inline std::vector<std::int64_t> who_goes(World trial, const WorldJob& job, const std::vector<std::int64_t>& victims) {
  if (!trial.start_by_force(trial.jobs[static_cast<std::size_t>(job.id)], jobs_of(trial, victims))) return {};
  std::vector<std::int64_t> gone;
  for (const std::int64_t id : victims) {
    if (!trial.jobs[static_cast<std::size_t>(id)].running) gone.push_back(id);
  }
  return gone;
}

/// True when it started. `has_stopped` becomes true when that stopped others.
inline bool start_or_preempt(World& world, WorldJob& job, const SlurmRights& rights, ToldToGo& told,
                             bool& has_stopped) {
  if (world.start(job)) return true;
  std::vector<std::int64_t> victims = victims_of(world, job, rights, told);
  std::vector<std::int64_t> gone = who_goes(world, job, victims);
  if (gone.size() > 1) {
    const std::int64_t last = gone.back();
    std::erase(victims, last);
    victims.insert(victims.begin(), last);
    gone = who_goes(world, job, victims);
  }
  if (gone.empty()) return false;
  bool waits = false;
  for (const WorldJob* const other : jobs_of(world, gone)) {
    if (rights.grace_of(*other) == 0) continue;
    waits = true;
    if (told.has(*other)) continue;
    told.jobs[other->id] = {world.now + rights.grace_of(*other), other->started};
    world.timers.insert(world.now + rights.grace_of(*other));
  }
  if (waits) return false;
  has_stopped = true;
  const bool started = world.start_by_force(job, jobs_of(world, victims));
  for (WorldJob* const other : jobs_of(world, gone)) {
    if (rights.cancelled.contains(other->vc)) world.give_up(*other);
  }
  return started;
}

/// Jobs whose grace is over stop, and wait again once all others were tried. Pass by pass as long as one stops others,
/// each waiting job is tried once, in order; in a pass one that cannot start keeps back its partition or, with `skip`,
/// those of its owner, partition and priority that ask for the same.
template <class Key, class Owner>
void start_by_rights(World& world, Key key, const SlurmNumbers& numbers, Owner owner_of, ToldToGo& told) {
  std::set<std::int64_t> stopped;
  for (WorldJob* const job : world.running()) {
    if (!told.has(*job) || told.jobs.at(job->id).first > world.now) continue;
    world.free(*job);
    world.stop(*job);
    if (numbers.rights.cancelled.contains(job->vc)) {
      world.give_up(*job);
    } else {
      stopped.insert(job->id);
    }
  }
  const auto alike = [&](const WorldJob& job) {
    using Alike = std::tuple<std::string, std::string, std::int64_t, std::vector<std::int64_t>>;
    if (!numbers.skip) return Alike{"", job.vc, 0, {}};
    return Alike{owner_of(job), job.vc, job.priority, {job.tasks, job.gpu, job.cpu, job.memory}};
  };
  for (bool again = true; again;) {
    again = false;
    std::vector<WorldJob*> list = world.waiting();
    std::erase_if(list, [&](const WorldJob* job) { return stopped.contains(job->id); });
    std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(*a) < key(*b); });
    std::set<decltype(alike(*list.front()))> blocked;
    for (WorldJob* const job : list) {
      if (blocked.contains(alike(*job))) continue;
      if (!start_or_preempt(world, *job, numbers.rights, told, again)) blocked.insert(alike(*job));
    }
    if (!again && !stopped.empty()) {
      stopped.clear();
      again = true;
    }
  }
}

/// Of the longest chain of rights, then of the highest tier of partitions, the highest sum of weight x factor, each
/// rounded, goes first. Factors: waiting
/// time over max_age, at most 1; 2^-(U/S), U the owner's part of all decayed usage and S its part of the weights of all
/// owners; GPUs over the cluster's GPUs; that of the partition; the job's priority over the trace's greatest. Without
/// `skip`, a job that cannot start keeps back its partition.
inline World::Rule slurm_rule(const WorldOwners& owners, const SlurmNumbers& numbers) {
  const auto told = std::make_shared<ToldToGo>();
  return [=](World& world) {
    const auto half_life = static_cast<double>(numbers.half_life_s);
    const double all = decayed_usage(world, half_life, [](auto&) { return true; });
    std::int64_t most = 0, weight_sum = 0;
    for (const WorldJob& job : world.jobs) most = std::max(most, job.priority);
    std::map<std::string, double> fair_share;
    for (const std::string& owner : owners.all(world)) weight_sum += owners.weight(world, owner);
    for (const std::string& owner : owners.all(world)) {
      const double used = decayed_usage(world, half_life, [&](auto& job) { return owners.of(job) == owner; });
      const double part = static_cast<double>(owners.weight(world, owner)) / static_cast<double>(weight_sum);
      fair_share[owner] = all == 0 ? 1 : std::pow(2.0, -used / all / part);
    }
    const WorldOwners partitions{.by_user = false};
    const auto term = [](std::int64_t weight, double factor) {
      return std::llround(static_cast<double>(weight) * factor);
    };
    const auto priority = [&](const WorldJob& job) {
      const auto waited = static_cast<double>(world.now - job.submit);
      const auto partition = static_cast<std::size_t>(partitions.place(world, job.vc));
      const bool listed = partition < numbers.partition_factors.size();
      const double qos =
          most == 0 ? 0 : static_cast<double>(std::max<std::int64_t>(job.priority, 0)) / static_cast<double>(most);
      return term(numbers.weight_age, std::min(1.0, waited / static_cast<double>(numbers.max_age_s))) +
             term(numbers.weight_fair_share, fair_share.at(owners.of(job))) +
             term(numbers.weight_size,
                  static_cast<double>(job.gpus_milli()) / static_cast<double>(world.total_gpus() * 1000)) +
             term(numbers.weight_partition, listed ? numbers.partition_factors[partition] : 1.0) +
             term(numbers.weight_qos, qos);
    };
    const auto tier = [&](const WorldJob& job) -> std::int64_t {
      const auto partition = static_cast<std::size_t>(partitions.place(world, job.vc));
      return partition < numbers.partition_tiers.size() ? numbers.partition_tiers[partition] : 1;
    };
    start_by_rights(
        world,
        [&](const WorldJob& job) -> std::vector<std::int64_t> {
          return {-numbers.rights.tier(job.vc), -tier(job), -priority(job)};
        },
        numbers, [&](const WorldJob& job) { return owners.of(job); }, *told);
  };
}

}  // namespace gpusched::test
