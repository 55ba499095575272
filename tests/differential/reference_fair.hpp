// SPDX-License-Identifier: Apache-2.0
/// Fair-share policies as rules of the reference World, from their definitions: everything is summed up anew from the
/// jobs whenever it is needed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

/// Whose shares are kept: the users or the virtual clusters of the jobs, in order of their first job, with weights in
/// that order (then 1).
struct WorldOwners {
  bool by_user = true;
  std::vector<std::int64_t> weights = {};

  [[nodiscard]] const std::string& of(const WorldJob& job) const { return by_user ? job.user : job.vc; }
  [[nodiscard]] std::vector<std::string> all(const World& world) const {
    std::vector<std::string> names;
    for (const WorldJob& job : world.jobs) {
      if (std::find(names.begin(), names.end(), of(job)) == names.end()) names.push_back(of(job));
    }
    return names;
  }
  [[nodiscard]] std::int64_t place(const World& world, const std::string& owner) const {
    const auto names = all(world);
    return std::find(names.begin(), names.end(), owner) - names.begin();
  }
  [[nodiscard]] std::int64_t weight(const World& world, const std::string& owner) const {
    const auto at = static_cast<std::size_t>(place(world, owner));
    return at < weights.size() ? weights[at] : 1;
  }
};

/// GPU thousandths that the jobs for which `whose` holds have now.
template <class Whose>
std::int64_t held_milli(const World& world, Whose whose) {
  std::int64_t sum = 0;
  for (const WorldJob& job : world.jobs) {
    if (job.running && !job.freed && whose(job)) sum += job.gpus_milli();
  }
  return sum;
}

/// What decides who goes next: smaller first, then the lower id.
using WorldKey = std::function<std::vector<std::int64_t>(const WorldJob&)>;
using WorldStarter = std::function<bool(WorldJob&)>;

/// Again and again the first waiting job that can start. Without `skip` a job that cannot ends its queue, or what
/// `queue` says.
inline void start_in_order(World& world, const WorldKey& key, const WorldStarter& start, bool skip = true,
                           const std::function<std::string(const WorldJob&)>& queue = {}) {
  const auto queue_of = [&](const WorldJob& job) { return queue ? queue(job) : world.queue_of(job); };
  for (bool again = true; again;) {
    again = false;
    std::vector<WorldJob*> list = world.waiting();
    std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(*a) < key(*b); });
    std::set<std::string> blocked;
    for (WorldJob* const job : list) {
      if (blocked.contains(queue_of(*job))) continue;
      again = start(*job);
      if (again) break;
      if (!skip) blocked.insert(queue_of(*job));
    }
  }
}
inline void start_in_order(World& world, const WorldKey& key, bool skip = true) {
  start_in_order(
      world, key, [&](WorldJob& job) { return world.start(job); }, skip);
}

// ---- dominant resource fairness ----

/// What all nodes together have of GPUs, CPU and memory; 0 = without bound or none.
inline std::vector<std::int64_t> world_capacity(const Cluster& cluster) {
  std::vector<std::int64_t> sums(3, 0);
  for (const Node& node : cluster.nodes) {
    sums[0] += std::int64_t{node.gpus} * 1000;
    sums[1] = node.cpu_milli == unlimited ? unlimited : std::min(unlimited, sums[1] + node.cpu_milli);
    sums[2] = node.memory_mib == unlimited ? unlimited : std::min(unlimited, sums[2] + node.memory_mib);
  }
  for (std::int64_t& sum : sums) sum = sum == unlimited ? 0 : sum;
  return sums;
}

/// The dominant share of the jobs for which `whose` holds, in parts of the product of all capacities: exact.
template <class Whose>
std::int64_t dominant_parts(const World& world, const std::vector<std::int64_t>& capacity, Whose whose) {
  std::int64_t whole = 1;
  for (const std::int64_t of : capacity) whole *= std::max<std::int64_t>(of, 1);
  std::vector<std::int64_t> held(3, 0);
  for (const WorldJob& job : world.jobs) {
    if (!job.running || job.freed || !whose(job)) continue;
    held[0] += job.tasks * job.gpu;
    held[1] += job.tasks * job.cpu;
    held[2] += job.tasks * job.memory;
  }
  std::int64_t most = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    if (capacity[r] > 0) most = std::max(most, held[r] * (whole / capacity[r]));
  }
  return most;
}

/// Of all owners with a job that fits, the one whose dominant share over weight is lowest. `weight_product`: a multiple
/// of every weight.
inline World::Rule drf_rule(const Cluster& cluster, const WorldOwners& owners, std::int64_t weight_product) {
  return [=, capacity = world_capacity(cluster)](World& world) {
    start_in_order(world, [&](const WorldJob& job) -> std::vector<std::int64_t> {
      const auto share =
          dominant_parts(world, capacity, [&](auto& other) { return owners.of(other) == owners.of(job); });
      return {share * (weight_product / owners.weight(world, owners.of(job)))};
    });
  };
}

/// Hierarchical DRF: what a user or a queue of users has of each resource, whether it is blocked, and its share.
struct HdrfNode {
  std::vector<double> parts = {0, 0, 0};
  bool blocked = true;
  double share = 0;  ///< by weight
  [[nodiscard]] std::int64_t key() const { return std::llround(share * 1e9); }
};
struct HdrfNumbers {
  bool rescale = true;
  bool skip_empty = false;
};

/// From the definition, for one queue (virtual cluster) at a time.
class HdrfReference {
 public:
  HdrfReference(const World& world, const std::vector<std::int64_t>& capacity, HdrfNumbers numbers)
      : world_(world), capacity_(capacity), numbers_(numbers) {
    const std::vector<std::int64_t> all = held([](const WorldJob&) { return true; });
    for (std::size_t r = 0; r < 3; ++r) {
      saturated_.push_back(numbers.rescale && capacity[r] > 0 && all[r] >= capacity[r]);
    }
  }

  [[nodiscard]] HdrfNode user(const std::string& vc, const std::string& name) const {
    const auto mine = [&](const WorldJob& job) { return job.vc == vc && job.user == name; };
    HdrfNode node;
    const std::vector<std::int64_t> amounts = held(mine);
    for (std::size_t r = 0; r < 3; ++r) {
      if (capacity_[r] > 0) node.parts[r] = static_cast<double>(amounts[r]) / static_cast<double>(capacity_[r]);
      node.share = std::max(node.share, node.parts[r]);
    }
    for (const WorldJob& job : world_.jobs) {
      if (!job.waiting || !mine(job)) continue;
      const std::int64_t wanted[] = {job.gpu, job.cpu, job.memory};
      bool waits_for_saturated = false;
      for (std::size_t r = 0; r < 3; ++r) waits_for_saturated = waits_for_saturated || (wanted[r] > 0 && saturated_[r]);
      node.blocked = node.blocked && waits_for_saturated;
    }
    return node;
  }

  [[nodiscard]] HdrfNode queue(const std::string& vc, std::int64_t weight) const {
    std::set<std::string> names;
    for (const WorldJob& job : world_.jobs) {
      if (job.vc == vc && job.submit <= world_.now) names.insert(job.user);
    }
    std::vector<HdrfNode> users;
    for (const std::string& name : names) users.push_back(user(vc, name));
    double least = 2;
    for (const HdrfNode& child : users) {
      if (!child.blocked && (child.share > 0 || !numbers_.skip_empty)) least = std::min(least, child.share);
    }
    HdrfNode node;
    for (const HdrfNode& child : users) {
      const bool in_full = !numbers_.rescale || child.blocked;
      for (std::size_t r = 0; r < 3 && child.share > 0; ++r) {
        node.parts[r] += in_full ? child.parts[r] : child.parts[r] * least / child.share;
      }
    }
    for (std::size_t r = 0; r < 3; ++r) {
      if (!saturated_[r]) node.share = std::max(node.share, node.parts[r]);
    }
    node.share /= static_cast<double>(weight);
    return node;
  }

 private:
  template <class Whose>
  [[nodiscard]] std::vector<std::int64_t> held(Whose whose) const {
    std::vector<std::int64_t> sum(3, 0);
    for (const WorldJob& job : world_.jobs) {
      if (!job.running || job.freed || !whose(job)) continue;
      sum[0] += job.tasks * job.gpu;
      sum[1] += job.tasks * job.cpu;
      sum[2] += job.tasks * job.memory;
    }
    return sum;
  }

  const World& world_;
  const std::vector<std::int64_t>& capacity_;
  HdrfNumbers numbers_;
  std::vector<bool> saturated_ = {};
};

/// The virtual cluster of the lowest share first, and in it the user of the lowest share.
inline World::Rule hdrf_rule(const Cluster& cluster, const WorldOwners& vcs, HdrfNumbers numbers) {
  return [=, capacity = world_capacity(cluster)](World& world) {
    start_in_order(world, [&](const WorldJob& job) -> std::vector<std::int64_t> {
      const HdrfReference reference(world, capacity, numbers);
      return {reference.queue(job.vc, vcs.weight(world, job.vc)).key(), reference.user(job.vc, job.user).key()};
    });
  };
}

/// Whoever holds the fewest GPUs, ties to the one named first.
inline World::Rule max_min_rule(const WorldOwners& owners) {
  return [=](World& world) {
    start_in_order(world, [&](const WorldJob& job) -> std::vector<std::int64_t> {
      return {held_milli(world, [&](auto& other) { return owners.of(other) == owners.of(job); }),
              owners.place(world, owners.of(job))};
    });
  };
}

/// Who goes, and in which order, for a job that cannot start: jobs of those who hold more than its party then would, of
/// the richest first and the newest of them, as long as each keeps that much.
inline std::vector<WorldJob*> max_min_victims(World& world, const WorldOwners& owners, const WorldJob& taker) {
  std::map<std::string, std::int64_t> left;
  for (const std::string& owner : owners.all(world)) {
    left[owner] = held_milli(world, [&](auto& job) { return owners.of(job) == owner; });
  }
  const std::int64_t then = left[owners.of(taker)] + taker.gpus_milli();
  std::vector<WorldJob*> list = world.running(), victims;
  const auto key = [&](const WorldJob* job) {
    return std::tuple(left[owners.of(*job)], world.just_started(*job), job->first_start, job->id);
  };
  std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(a) > key(b); });
  for (WorldJob* const job : list) {
    const std::string& owner = owners.of(*job);
    if (owner == owners.of(taker) || job->gpu == 0 || left[owner] - job->gpus_milli() < then) continue;
    left[owner] -= job->gpus_milli();
    victims.push_back(job);
  }
  return victims;
}

inline World::Rule max_min_preempting_rule(const WorldOwners& owners) {
  return [=](World& world) {
    const auto key = [&](const WorldJob& job) -> std::vector<std::int64_t> {
      return {held_milli(world, [&](auto& other) { return owners.of(other) == owners.of(job); }),
              owners.place(world, owners.of(job))};
    };
    start_in_order(world, key,
                   [&](WorldJob& job) { return world.start_by_force(job, max_min_victims(world, owners, job)); });
  };
}

// ---- LSF ----

/// GPU-seconds that jobs for which `whose` holds have used, each second weighed by the half-life: the integral of
/// 2^(-age / half_life) over it.
template <class Whose>
double decayed_usage(const World& world, double half_life_s, Whose whose) {
  const double one_second = half_life_s / std::log(2.0) * -std::expm1(-std::log(2.0) / half_life_s);
  double sum = 0;
  for (const WorldJob& job : world.jobs) {
    if (!whose(job)) continue;
    for (const std::int64_t second : job.seconds) {
      const double age = static_cast<double>(world.now - second - 1) / half_life_s;
      sum += static_cast<double>(job.gpus_milli()) / 1000 * one_second * std::pow(2.0, -age);
    }
  }
  return sum;
}

struct LsfNumbers {
  double used_factor = 0.7, run_time_factor = 0.7, run_job_factor = 3, history_hours = 5;
};

/// The owner of the highest dynamic priority first, to nine digits after the point: shares / (decayed GPU hours x
/// used_factor + hours of running jobs x run_time_factor + (1 + GPUs held) x run_job_factor). Of past usage a tenth is
/// left after history_hours.
inline World::Rule lsf_rule(const WorldOwners& owners, const LsfNumbers& numbers) {
  return [=](World& world) {
    const double half_life = numbers.history_hours * 3600 * std::log(2.0) / std::log(10.0);
    std::map<std::string, double> used_hours;
    for (const std::string& owner : owners.all(world)) {
      used_hours[owner] = decayed_usage(world, half_life, [&](auto& job) { return owners.of(job) == owner; }) / 3600;
    }
    start_in_order(world, [&](const WorldJob& job) -> std::vector<std::int64_t> {
      const std::string& owner = owners.of(job);
      std::int64_t run_s = 0;
      for (const WorldJob& other : world.jobs) {
        if (other.running && owners.of(other) == owner) run_s += world.now - other.started;
      }
      const auto gpus =
          static_cast<double>(held_milli(world, [&](auto& other) { return owners.of(other) == owner; })) / 1000;
      const double priority =
          static_cast<double>(owners.weight(world, owner)) /
          (used_hours.at(owner) * numbers.used_factor + static_cast<double>(run_s) / 3600 * numbers.run_time_factor +
           (1 + gpus) * numbers.run_job_factor);
      return {-std::llround(priority * 1e9)};
    });
  };
}

// ---- fixed quotas ----

/// Whole GPUs by weight, what is left over one each to the first owners that weigh anything.
inline std::map<std::string, std::int64_t> whole_parts(const std::vector<std::string>& order,
                                                       const std::map<std::string, std::int64_t>& weights,
                                                       std::int64_t gpus) {
  std::int64_t weight_sum = 0, left = gpus;
  for (const auto& [owner, weight] : weights) weight_sum += weight;
  std::map<std::string, std::int64_t> parts;
  for (const auto& [owner, weight] : weights) left -= parts[owner] = weight == 0 ? 0 : gpus * weight / weight_sum;
  for (const std::string& owner : order) {
    if (weights.at(owner) > 0 && left-- > 0) ++parts[owner];
  }
  return parts;
}

/// Each owner's GPUs. By weight: owners that ask for no GPU weigh nothing. By demand: the weight is the GPU time of all
/// jobs, and an owner whose part would be too small for its largest job gets as many as that needs instead; the others
/// divide the rest. Nothing when the parts are more than there is, or a job is larger than its owner's part.
inline std::optional<std::map<std::string, std::int64_t>> fixed_parts(const World& world, const WorldOwners& owners,
                                                                      bool by_demand) {
  std::map<std::string, std::int64_t> weights, largest, parts;
  for (const std::string& owner : owners.all(world)) {
    std::int64_t gpu_seconds_milli = 0;
    for (const WorldJob& job : world.jobs) {
      if (owners.of(job) != owner) continue;
      const auto work = std::accumulate(job.attempts.begin(), job.attempts.end(), std::int64_t{0});
      gpu_seconds_milli += work * job.gpus_milli();
      largest[owner] = std::max(largest[owner], (job.gpus_milli() + 999) / 1000);
    }
    // Owners of jobs of no length weigh next to nothing.
    const std::int64_t demand = std::max<std::int64_t>(gpu_seconds_milli * 1000, 1);
    weights[owner] = largest[owner] == 0 ? 0 : by_demand ? demand : owners.weight(world, owner);
  }
  std::int64_t gpus = world.total_gpus();
  for (bool again = by_demand; again;) {
    again = false;
    const auto shares = whole_parts(owners.all(world), weights, gpus);
    for (const std::string& owner : owners.all(world)) {
      if (again || weights[owner] == 0 || shares.at(owner) >= largest[owner]) continue;
      again = true;
      weights[owner] = 0;
      parts[owner] = largest[owner];
      gpus = std::max<std::int64_t>(gpus - largest[owner], 0);
    }
  }
  for (const auto& [owner, part] : whole_parts(owners.all(world), weights, gpus)) parts[owner] += part;
  std::int64_t sum = 0;
  for (const auto& [owner, part] : parts) {
    sum += part;
    if (part < largest[owner]) return std::nullopt;
  }
  if (sum > world.total_gpus()) return std::nullopt;
  return parts;
}

/// Each owner's jobs in order of submission within its part; the first that cannot start stops the owner's others.
inline World::Rule static_partition_rule(const WorldOwners& owners, const std::map<std::string, std::int64_t>& parts) {
  return [=](World& world) {
    std::set<std::string> blocked;
    for (WorldJob* const job : world.waiting()) {
      const std::string& owner = owners.of(*job);
      const auto held = held_milli(world, [&](auto& other) { return owners.of(other) == owner; });
      if (blocked.contains(owner)) continue;
      if (held + job->gpus_milli() > parts.at(owner) * 1000 || !world.start(*job)) blocked.insert(owner);
    }
  };
}

}  // namespace gpusched::test
