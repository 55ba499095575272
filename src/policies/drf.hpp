// SPDX-License-Identifier: Apache-2.0
/// Dominant resource fairness.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/class_queues.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Of all owners that have a job that fits, the one with the lowest weighted dominant share gets its earliest such job,
/// again and again (Ghodsi et al., "Dominant Resource Fairness", NSDI'11, Algorithm 1). A dominant share is the largest
/// of an owner's shares of GPUs, CPU and memory; a resource that the cluster does not bound does not count. In the
/// hierarchical form the virtual cluster with the lowest weighted share comes first, then its user with the lowest
/// share (of what it holds in that virtual cluster); users weigh the same. Ties go to the earliest job.
class Drf {
 public:
  struct Options {
    OwnerColumn column = OwnerColumn::user;
    bool hierarchical = false;  ///< virtual clusters, and users within them
    OwnerWeights weights = {};
  };

  Drf(const Cluster& cluster, Options options) : options_(std::move(options)) {
    for (const Node& node : cluster.nodes) {
      capacity_[0] += node.gpus * whole_gpu;
      capacity_[1] = std::min(unlimited, capacity_[1] + node.cpu_milli);
      capacity_[2] = std::min(unlimited, capacity_[2] + node.memory_mib);
    }
  }

  [[nodiscard]] std::string_view name() const { return options_.hierarchical ? "hdrf" : "drf"; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::finish || event.kind == EventKind::retry) hold(view, event.job, -1);
      if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
        waiting_.push(view, event.job, owner(view, event.job));
      }
    }
    const auto score = [this](const ClassQueues::Class& jobs) {
      const std::uint32_t parent = options_.hierarchical ? users_[jobs.owner].vc : jobs.owner;
      return std::pair(share(owners_, parent), options_.hierarchical ? share(members_, jobs.owner) : 0);
    };
    const auto may_fit = [&](std::uint32_t queue, std::uint32_t shape) {
      return view.cluster().may_fit(view.shape_of_id(shape), queue);
    };
    waiting_.start_best(true, may_fit, score, [&](const ClassQueues::Class& jobs) {
      if (decision.start(jobs.first()) != Verdict::ok) return Attempt::no_room;
      hold(view, jobs.first(), +1);
      return Attempt::started;
    });
  }

  /// The weighted dominant share of an owner (user or virtual cluster number) now, in millionths of a millionth.
  [[nodiscard]] std::int64_t dominant_share(std::uint32_t owner) const { return share(owners_, owner); }

 private:
  using Resources = std::array<std::int64_t, 3>;  // GPU thousandths, CPU thousandths, MiB
  struct Account {
    Resources held{};
    std::int64_t share = 0;  // the weighted dominant share of it
  };
  struct UserOfVc {
    std::uint32_t vc = 0;
    std::uint32_t user = 0;
  };
  static constexpr std::int64_t whole = 1'000'000'000'000;

  std::uint32_t owner(const View& view, JobId job) {
    if (!options_.hierarchical) return owner_of(options_.column, view, job);
    const auto [place, added] =
        numbers_.try_emplace(std::pair(view.vc(job), view.user(job)), static_cast<std::uint32_t>(users_.size()));
    if (added) users_.push_back({view.vc(job), view.user(job)});
    return place->second;
  }

  void hold(const View& view, JobId job, std::int64_t sign) {
    const std::uint32_t who = owner(view, job);
    const std::uint32_t weighted = options_.hierarchical ? users_[who].vc : who;
    add(owners_, weighted, view.shape(job), sign, options_.weights.milli(weighted));
    // Users of one virtual cluster weigh the same.
    if (options_.hierarchical) add(members_, who, view.shape(job), sign, 1000);
  }

  void add(std::vector<Account>& accounts, std::uint32_t who, const Shape& shape, std::int64_t sign,
           std::int64_t weight_milli) const {
    if (who >= accounts.size()) accounts.resize(who + 1);
    Resources& held = accounts[who].held;
    held[0] += sign * shape.gpu_milli();
    held[1] += sign * shape.tasks * shape.cpu_milli_per_task;
    held[2] += sign * shape.tasks * shape.memory_mib_per_task;
    std::int64_t dominant = 0;
    for (std::size_t r = 0; r < capacity_.size(); ++r) {
      if (capacity_[r] > 0 && capacity_[r] < unlimited) {
        dominant = std::max(dominant, mul_div(held[r], whole, capacity_[r]));
      }
    }
    accounts[who].share = mul_div(dominant, 1000, weight_milli);
  }

  [[nodiscard]] static std::int64_t share(const std::vector<Account>& accounts, std::uint32_t who) {
    return who < accounts.size() ? accounts[who].share : 0;
  }

  Options options_;
  Resources capacity_{};
  ClassQueues waiting_;
  std::vector<Account> owners_;   // of each owner, or by each virtual cluster in the hierarchical form
  std::vector<Account> members_;  // of each (virtual cluster, user), hierarchical form only
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::vector<UserOfVc> users_;
};

PolicyInfo drf_info();
PolicyInfo hdrf_info();

}  // namespace gpusched
