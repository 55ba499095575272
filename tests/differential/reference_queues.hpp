// SPDX-License-Identifier: Apache-2.0
/// Queues with shares and preemption (YARN, Volcano), and Kubernetes' pods, as rules of the reference World.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "tests/differential/reference_fair.hpp"
#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

// ---- shares of queues ----

/// A party that takes part in a division: its weight, what it wants, and what it got.
struct Divided {
  std::string name = {};
  std::int64_t weight = 1;
  std::int64_t demand = 0;
  std::int64_t part = 0;
};

/// Weighted max-min by filling: parties in order of demand over weight get what they want as long as that is no more
/// than their part of what is left by weight; all others get just that part, rounded down.
inline void divide(std::int64_t total, std::vector<Divided>& parties) {
  std::int64_t weights = 0;
  for (Divided& party : parties) {
    weights += party.weight;
    party.demand = std::min(party.demand, total);
  }
  std::stable_sort(parties.begin(), parties.end(),
                   [](auto& a, auto& b) { return a.demand * b.weight < b.demand * a.weight; });
  bool enough = true;
  for (Divided& party : parties) {
    party.part = total * party.weight / weights;
    enough = enough && party.demand <= party.part;
    if (!enough) continue;
    party.part = party.demand;
    total -= party.demand;
    weights -= party.weight;
  }
}

/// What each owner is due, level by level from the root: "a.b" lies in the queue "a", which has a weight of its own if
/// it has jobs of its own, else 1; in it, its own jobs compete with the queues below as one of weight 1.
inline void divide_tree(const World& world, const WorldOwners& owners,
                        const std::map<std::string, std::int64_t>& wanted, const std::string& queue, std::int64_t total,
                        std::map<std::string, std::int64_t>& due) {
  const std::string prefix = queue.empty() ? "" : queue + ".";
  std::vector<Divided> parties;
  for (const auto& [owner, demand] : wanted) {
    if (!prefix.empty() && owner == queue) parties.push_back({.name = "", .demand = demand});
    if (owner.size() <= prefix.size() || owner.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string child = owner.substr(0, owner.find('.', prefix.size()));
    const auto known = std::find_if(parties.begin(), parties.end(), [&](auto& party) { return party.name == child; });
    if (known != parties.end()) {
      known->demand += demand;
    } else {
      parties.push_back(
          {.name = child, .weight = wanted.contains(child) ? owners.weight(world, child) : 1, .demand = demand});
    }
  }
  divide(total, parties);
  for (const Divided& party : parties) {
    if (party.name.empty()) {
      due[queue] = party.part;
    } else {
      divide_tree(world, owners, wanted, party.name, party.part, due);
    }
  }
  if (parties.empty()) due[queue] = total;
}

struct QueueNumbers {
  std::int64_t interval_s = 15;
  bool among_active = false;  ///< due: a part of what active queues want
  bool reclaim = true;
};

/// What Volcano adds, with YARN's values.
struct VolcanoNumbers {
  bool proportion = true;  ///< the queue that holds least of its due goes first; else all queues are one
  bool priority = false;   ///< within a queue, higher priority first
  bool binpack = false;    ///< every start is packed
  bool preempt = false;    ///< from lower priorities of the queue and, with drf, from richer users of it
  bool drf = false;        ///< within a queue and priority, the user of the lowest dominant share first
};

/// The rule and its memory: since when each queue has waited for what it is due.
class QueueRule {
 public:
  QueueRule(WorldOwners owners, QueueNumbers numbers) : owners_(std::move(owners)), numbers_(numbers) {}
  /// Volcano.
  QueueRule(WorldOwners owners, QueueNumbers numbers, VolcanoNumbers volcano, const Cluster& cluster)
      : owners_(std::move(owners)), numbers_(numbers), volcano_(volcano), capacity_(world_capacity(cluster)) {}

  void operator()(World& world) {
    find_dues(world);
    start_waiting(world);
    if (volcano_.preempt && preempt(world)) start_waiting(world);
    if (numbers_.reclaim) reclaim(world);
  }

 private:
  [[nodiscard]] std::int64_t held(const World& world, const std::string& owner) const {
    return held_milli(world, [&](auto& job) { return owners_.of(job) == owner; });
  }

  // Thousandths of a GPU. Fixed: as if every queue wanted everything.
  void find_dues(const World& world) {
    std::map<std::string, std::int64_t> wanted;
    const std::int64_t total = world.total_gpus() * 1000;
    for (const WorldJob& job : world.jobs) {
      const bool active = job.waiting || job.running;
      wanted[owners_.of(job)] += numbers_.among_active ? (active ? job.gpus_milli() : 0) : total;
    }
    due_.clear();
    divide_tree(world, owners_, wanted, "", total, due_);
  }

  // The queue that holds least of what it is due, in millionths; one that holds something and is due nothing is the
  // last.
  void start_waiting(World& world) {
    const auto key = [&](const WorldJob& job) -> std::vector<std::int64_t> {
      const std::int64_t due = due_.at(owners_.of(job));
      const std::int64_t holds = held(world, owners_.of(job)), part = due == 0 ? 0 : holds * 1'000'000 / due;
      return {volcano_.proportion && due == 0 && holds > 0 ? 1 : 0, volcano_.proportion ? part : 0,
              volcano_.priority ? -job.priority : 0, volcano_.drf ? share_parts(world, job.user) : 0};
    };
    start_in_order(world, key, [&](WorldJob& job) { return world.start(job, volcano_.binpack); });
  }

  // ---- Volcano's action preempt ----

  [[nodiscard]] std::int64_t share_parts(const World& world, const std::string& user) const {
    return dominant_parts(world, capacity_, [&](auto& job) { return job.user == user; });
  }

  // The dominant share of `user` if `more` ran and those of `gone` did not.
  [[nodiscard]] double share_without(const World& world, const std::string& user, const WorldJob* more,
                                     const std::set<std::int64_t>& gone) const {
    World then = world;
    for (WorldJob& job : then.jobs) {
      if (more != nullptr && job.id == more->id) job.running = true;
      if (gone.contains(job.id)) job.running = false;
    }
    double whole = 1;
    for (const std::int64_t of : capacity_) whole *= static_cast<double>(std::max<std::int64_t>(of, 1));
    return static_cast<double>(share_parts(then, user)) / whole;
  }

  // Again and again the first waiting job, by priority, then its user's share, that can start with someone stopped.
  bool preempt(World& world) const {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      std::vector<WorldJob*> list = world.waiting();
      const auto key = [&](const WorldJob* job) {
        return std::pair(-job->priority, volcano_.drf ? share_parts(world, job->user) : 0);
      };
      std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
      for (WorldJob* const job : list) {
        std::vector<WorldJob*> from = lower_priorities(world, *job);
        if (from.empty() && volcano_.drf) from = richer_users(world, *job);
        again = !from.empty() && world.start_by_force(*job, from, volcano_.binpack);
        any = any || again;
        if (again) break;
      }
    }
    return any;
  }

  // The least priority first, and of it the last submitted.
  [[nodiscard]] std::vector<WorldJob*> lower_priorities(World& world, const WorldJob& taker) const {
    std::vector<WorldJob*> list = world.running();
    std::erase_if(list, [&](const WorldJob* job) {
      return owners_.of(*job) != owners_.of(taker) || job->priority >= taker.priority;
    });
    std::sort(list.begin(), list.end(),
              [](auto* a, auto* b) { return std::pair(a->priority, -a->id) < std::pair(b->priority, -b->id); });
    return list;
  }

  // The richest user's first, and of them the last submitted; each only if its user would still have what the taker's
  // has then, to 1e-6. Who was started just now stays.
  [[nodiscard]] std::vector<WorldJob*> richer_users(World& world, const WorldJob& taker) const {
    constexpr double share_delta = 1e-6, rounding = 1e-9;
    const double then = share_without(world, taker.user, &taker, {});
    std::vector<WorldJob*> list = world.running(), gone;
    std::erase_if(list, [&](const WorldJob* job) {
      return owners_.of(*job) != owners_.of(taker) || job->priority > taker.priority || job->user == taker.user ||
             world.just_started(*job);
    });
    std::sort(list.begin(), list.end(), [&](auto* a, auto* b) {
      const auto share_a = share_parts(world, a->user), share_b = share_parts(world, b->user);
      return share_a != share_b ? share_a > share_b : a->id > b->id;
    });
    std::set<std::int64_t> without;
    for (WorldJob* const job : list) {
      without.insert(job->id);
      if (share_without(world, job->user, nullptr, without) >= then - share_delta - rounding) {
        gone.push_back(job);
      } else {
        without.erase(job->id);
      }
    }
    return gone;
  }

  // ---- reclaim ----

  [[nodiscard]] WorldJob* first_due(World& world, const std::string& owner) const {
    for (WorldJob* const job : world.waiting()) {
      if (owners_.of(*job) == owner && held(world, owner) + job->gpus_milli() <= due_.at(owner)) return job;
    }
    return nullptr;
  }

  // Who is short is judged before anyone takes something back. After that, whatever came of it, the wait begins anew
  // with the next event.
  void reclaim(World& world) {
    std::set<std::string> short_ones;
    for (const std::string& owner : owners_.all(world)) {
      if (first_due(world, owner) != nullptr) short_ones.insert(owner);
    }
    for (const std::string& owner : owners_.all(world)) {
      if (!short_ones.contains(owner)) {
        short_since_.erase(owner);
        continue;
      }
      if (!short_since_.contains(owner)) {
        short_since_[owner] = world.now;
        world.timers.insert(world.now + numbers_.interval_s);
      }
      if (world.now - short_since_[owner] < numbers_.interval_s) continue;
      short_since_.erase(owner);
      for (WorldJob* job = first_due(world, owner);
           job != nullptr && world.start_by_force(*job, victims(world), volcano_.binpack);) {
        job = first_due(world, owner);
      }
      start_waiting(world);
    }
  }

  // Running jobs, the last to have started first, each if its queue holds more than it is due before it goes.
  [[nodiscard]] std::vector<WorldJob*> victims(World& world) const {
    std::vector<WorldJob*> list = world.running();
    std::stable_sort(list.begin(), list.end(), [](auto* a, auto* b) {
      return std::pair(a->first_start, a->id) > std::pair(b->first_start, b->id);
    });
    std::map<std::string, std::int64_t> left;
    for (const std::string& owner : owners_.all(world)) left[owner] = held(world, owner);
    std::erase_if(list, [&](const WorldJob* job) {
      const std::string& owner = owners_.of(*job);
      if (left[owner] <= due_.at(owner)) return true;
      left[owner] -= job->gpus_milli();
      return false;
    });
    return list;
  }

  WorldOwners owners_;
  QueueNumbers numbers_;
  VolcanoNumbers volcano_ = {};
  std::vector<std::int64_t> capacity_ = {};  // with drf
  std::map<std::string, std::int64_t> due_;
  std::map<std::string, std::int64_t> short_since_;
};

// ---- Kubernetes ----

struct K8sNumbers {
  bool least_allocated = true;
  bool gpus = false;       ///< scored alone, not CPU and memory
  std::uint64_t seed = 0;  ///< of the run
};

/// What a node of the world scores for a further pod of `job` beside `here` of them: from 0 to 200.
inline std::int64_t k8s_score(const World& world, std::size_t number, const WorldJob& job, std::int64_t here,
                              const Cluster& cluster, const K8sNumbers& numbers) {
  const auto fit = [&](std::int64_t requested, std::int64_t capacity) {
    requested = std::min(requested, capacity);
    return (numbers.least_allocated ? capacity - requested : requested) * 100 / capacity;
  };
  const WorldNode& node = world.nodes[number];
  const std::int64_t pods = here + 1;
  if (numbers.gpus) {
    const std::int64_t capacity = node.size * 1000;
    return job.gpu == 0 ? 0 : fit(capacity - node.free_milli() + pods * job.gpu, capacity);
  }
  const Node& given = cluster.nodes[number];
  if (given.cpu_milli == unlimited) return 0;  // random clusters bound both or neither
  std::int64_t cpu = pods * (job.cpu > 0 ? job.cpu : 100), memory = pods * (job.memory > 0 ? job.memory : 200);
  for (const WorldJob& other : world.jobs) {
    if (!other.running || other.freed) continue;
    const auto there = std::count_if(other.places.begin(), other.places.end(),
                                     [&](const WorldTask& task) { return task.node == number; });
    cpu += there * (other.cpu > 0 ? other.cpu : 100);
    memory += there * (other.memory > 0 ? other.memory : 200);
  }
  const std::int64_t score = (fit(cpu, given.cpu_milli) + fit(memory, given.memory_mib)) / 2;
  if (job.cpu == 0 && job.memory == 0) return score;
  const double of_cpu =
      static_cast<double>(given.cpu_milli - node.cpu + pods * job.cpu) / static_cast<double>(given.cpu_milli);
  const double of_memory =
      static_cast<double>(given.memory_mib - node.memory + pods * job.memory) / static_cast<double>(given.memory_mib);
  return score + static_cast<std::int64_t>((1 - std::abs((of_cpu - of_memory) / 2)) * 100);
}

/// Higher priority first, then by id; each task to a node of the best score, of equal ones the one drawn. `group_of`:
/// when the jobs are pods, the job that each is part of; a pod works when all of its group are bound. All nodes are
/// looked at, as they are fewer than a hundred.
inline World::Rule k8s_rule(const Cluster& cluster, const K8sNumbers& numbers,
                            const std::map<std::int64_t, std::string>& group_of = {}) {
  const auto bind = [=](World& world, WorldJob& job) {
    if (!world.within_quota(job)) return false;
    std::vector<std::pair<std::size_t, std::int64_t>> tasks;
    Rng rng = Rng(numbers.seed).split("k8s").split(static_cast<std::uint64_t>(job.id)).split(job.attempt);
    for (std::int64_t task = 0; task < job.tasks; ++task) {
      std::map<std::int64_t, std::vector<std::size_t>> by_score;
      for (std::size_t i = 0; i < world.nodes.size(); ++i) {
        const auto here = std::count(tasks.begin(), tasks.end(), std::pair(i, std::int64_t{-1}));
        if (world.fit(world.nodes[i], job) > here)
          by_score[k8s_score(world, i, job, here, cluster, numbers)].push_back(i);
      }
      if (by_score.empty()) return false;
      const std::vector<std::size_t>& best = by_score.rbegin()->second;
      tasks.push_back({best.size() == 1 ? best[0] : best[rng.below(best.size())], -1});
    }
    std::sort(tasks.begin(), tasks.end());
    world.start_on(job, tasks);
    if (group_of.empty()) return true;
    job.paused = true;
    const auto waits = [&](const WorldJob& pod) { return group_of.at(pod.id) == group_of.at(job.id) && !pod.running; };
    if (std::any_of(world.jobs.begin(), world.jobs.end(), waits)) return true;
    for (WorldJob& pod : world.jobs) {
      if (group_of.at(pod.id) == group_of.at(job.id)) pod.paused = false;
    }
    return true;
  };
  return [=](World& world) {
    start_in_order(
        world, [](const WorldJob& job) -> std::vector<std::int64_t> { return {-job.priority}; },
        [&](WorldJob& job) { return bind(world, job); });
  };
}

}  // namespace gpusched::test
