// SPDX-License-Identifier: Apache-2.0
/// CapPlan: what nodes would draw if the open decision were carried out as it is so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/engine/effects/node_draw.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// A value, of the nodes that the decision touched. Each command costs O(runs on the job's nodes).
class CapPlan {
 public:
  using Change = std::pair<NodeId, std::int64_t>;  ///< of what a node draws, in milliwatts

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// A decision begins; nothing differs from the present yet.
  void open(std::uint32_t nodes, std::uint32_t jobs) {
    plan_of_.resize(nodes, no_index);
    number_of_.resize(jobs, no_index);
    is_open_ = true;
  }
  /// The decision was carried out.
  void close() {
    if (!is_open_) return;
    for (const NodePlan& plan : plans_) plan_of_[index(plan.node)] = no_index;
    for (const auto& [job, grants] : jobs_) number_of_[index(job)] = no_index;
    plans_.clear();
    jobs_.clear();
    is_open_ = false;
  }

  /// Puts the job on these grants (no_index: nowhere) instead of where it is. level_of(occupant): at which level that
  /// is counted; drawn(node): what is drawn now, so counted. Until keep() or take_back(), changes() tells what follows.
  template <class State, class LevelOf, class Drawn, class Power>
  void put(const State& state, JobId job, std::uint32_t grants, LevelOf level_of, Drawn drawn, Power& power) {
    before_.clear();
    changes_.clear();
    job_ = job;
    grants_ = grants;
    for (const NodeId node : nodes_of(state, job)) {
      std::vector<Occupant>& occupants = touch(state, node, level_of, drawn).occupants;
      std::erase_if(occupants, [job](const Occupant& occupant) { return occupant.job == job; });
    }
    for (std::uint32_t at = grants; at != no_index; at = state.cluster.grant(at).next) {
      const Grant& grant = state.cluster.grant(at);
      Occupant occupant{.job = job, .tasks = grant.tasks, .card = state.card_of(job, grant)};
      occupant.level = level_of(occupant);
      touch(state, grant.node, level_of, drawn).occupants.push_back(occupant);
    }
    for (const auto& [at, plan] : before_) {
      NodePlan& now = plans_[at];
      now.mw = power.bound_mw(state, now.node, now.occupants);
      changes_.emplace_back(now.node, now.mw - plan.mw);
    }
  }
  /// What the last put() changed, each node once.
  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
  void keep() {
    std::uint32_t& at = number_of_[index(job_)];
    if (at == no_index) {
      at = static_cast<std::uint32_t>(jobs_.size());
      jobs_.emplace_back(job_, grants_);
    }
    jobs_[at].second = grants_;
  }
  void take_back() {
    for (auto& [at, plan] : before_) std::swap(plans_[at], plan);
  }

 private:
  struct NodePlan {
    NodeId node = no_node;
    std::vector<Occupant> occupants;
    std::int64_t mw = 0;
  };

  template <class State>
  [[nodiscard]] std::vector<NodeId> nodes_of(const State& state, JobId job) const {
    const std::uint32_t planned = number_of_[index(job)];
    if (planned == no_index) return state.occupancy.nodes_of(job);
    std::vector<NodeId> nodes;
    for (std::uint32_t at = jobs_[planned].second; at != no_index; at = state.cluster.grant(at).next) {
      nodes.push_back(state.cluster.grant(at).node);
    }
    return nodes;
  }

  // The plan of a node, remembered as it was before this put().
  template <class State, class LevelOf, class Drawn>
  NodePlan& touch(const State& state, NodeId node, LevelOf level_of, Drawn drawn) {
    std::uint32_t& at = plan_of_[index(node)];
    if (at == no_index) {
      at = static_cast<std::uint32_t>(plans_.size());
      NodePlan plan{.node = node, .occupants = {}, .mw = drawn(node)};
      for (std::uint32_t seat = state.occupancy.first_on_node(node); seat != no_index;
           seat = state.occupancy.seat(seat).next_on_node) {
        const Seat& taken = state.occupancy.seat(seat);
        plan.occupants.push_back({.job = taken.job, .tasks = taken.tasks, .card = taken.card, .seat = seat});
        plan.occupants.back().level = level_of(plan.occupants.back());
      }
      plans_.push_back(std::move(plan));
    }
    const bool is_known =
        std::any_of(before_.begin(), before_.end(), [&](const auto& known) { return known.first == at; });
    if (!is_known) before_.emplace_back(at, plans_[at]);
    return plans_[at];
  }

  bool is_open_ = false;
  std::vector<std::uint32_t> plan_of_;    // by node: in plans_, or no_index
  std::vector<std::uint32_t> number_of_;  // by job: in jobs_, or no_index
  std::vector<NodePlan> plans_;
  std::vector<std::pair<JobId, std::uint32_t>> jobs_;  // that the decision put elsewhere, and their grants
  JobId job_ = no_job;                                 // of put()
  std::uint32_t grants_ = no_index;
  std::vector<std::pair<std::uint32_t, NodePlan>> before_;
  std::vector<Change> changes_;
};

}  // namespace gpusched::detail
