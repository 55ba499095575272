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
    for (std::size_t i = 0; i < planned_; ++i) plan_of_[index(plans_[i].node)] = no_index;
    for (const auto& [job, grants] : jobs_) number_of_[index(job)] = no_index;
    planned_ = 0;
    jobs_.clear();
    is_open_ = false;
  }

  /// Puts the job on these grants (no_index: nowhere) instead of where it is. level_of(job): at which level that
  /// is counted; drawn(node): what is drawn now, so counted. Until keep() or take_back(), changes() tells what follows.
  template <class State, class LevelOf, class Drawn, class Power>
  void put(const State& state, JobId job, std::uint32_t grants, LevelOf level_of, Drawn drawn, Power& power) {
    changed_ = 0;
    changes_.clear();
    job_ = job;
    grants_ = grants;
    for_each_node(state, job, [this, &job, &level_of, &drawn, &power](NodeId node) {
      std::erase_if(touch(node, level_of, drawn, power).occupants,
                    [job](const Occupant& occupant) { return occupant.job == job; });
    });
    for (std::uint32_t at = grants; at != no_index; at = state.cluster.grant(at).next) {
      const Grant& grant = state.cluster.grant(at);
      const Occupant occupant =
          power.draws().occupant(state, grant.node, job, grant.tasks, state.card_of(job, grant), level_of(job));
      std::vector<Occupant>& occupants = touch(grant.node, level_of, drawn, power).occupants;
      occupants.insert(std::upper_bound(occupants.begin(), occupants.end(), occupant), occupant);
    }
    for (std::size_t i = 0; i < changed_; ++i) {
      NodePlan& now = plans_[before_[i].first];
      here_.clear();
      for (const Occupant& occupant : now.occupants) here_.push_back(&occupant);
      now.mw = power.draws().bound_mw(now.node, power.phase_with(now.node, here_), here_);
      changes_.emplace_back(now.node, now.mw - before_[i].second.mw);
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
    for (std::size_t i = 0; i < changed_; ++i) std::swap(plans_[before_[i].first], before_[i].second);
  }

 private:
  struct NodePlan {
    NodeId node = no_node;
    std::vector<Occupant> occupants;
    std::int64_t mw = 0;
  };

  // Where the job is, or is to be by the plan.
  template <class State, class Visit>
  void for_each_node(const State& state, JobId job, Visit visit) const {
    const std::uint32_t planned = number_of_[index(job)];
    if (planned == no_index) {
      for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
           at = state.occupancy.seat(at).next_of_job) {
        visit(state.occupancy.seat(at).node);
      }
      return;
    }
    for (std::uint32_t at = jobs_[planned].second; at != no_index; at = state.cluster.grant(at).next) {
      visit(state.cluster.grant(at).node);
    }
  }

  // The plan of a node, remembered as it was before this put().
  template <class LevelOf, class Drawn, class Power>
  NodePlan& touch(NodeId node, LevelOf level_of, Drawn drawn, const Power& power) {
    std::uint32_t& at = plan_of_[index(node)];
    if (at == no_index) {
      at = static_cast<std::uint32_t>(planned_);
      if (++planned_ > plans_.size()) plans_.emplace_back();
      NodePlan& plan = plans_[at];
      plan.node = node;
      plan.mw = drawn(node);
      plan.occupants.clear();
      power.for_each_occupant(node, [&plan, &power, &node, &level_of](const Occupant& occupant) {
        plan.occupants.push_back(occupant);
        power.draws().set_level(node, plan.occupants.back(), level_of(occupant.job));
      });
    }
    for (std::size_t i = 0; i < changed_; ++i) {
      if (before_[i].first == at) return plans_[at];
    }
    if (++changed_ > before_.size()) before_.emplace_back();
    before_[changed_ - 1].first = at;
    before_[changed_ - 1].second = plans_[at];
    return plans_[at];
  }

  bool is_open_ = false;
  std::vector<std::uint32_t> plan_of_;    // by node: in plans_, or no_index
  std::vector<std::uint32_t> number_of_;  // by job: in jobs_, or no_index
  // What was allocated once is used again: more of these lists than count.
  std::vector<NodePlan> plans_;
  std::size_t planned_ = 0;                            // of them
  std::vector<std::pair<JobId, std::uint32_t>> jobs_;  // that the decision put elsewhere, and their grants
  JobId job_ = no_job;                                 // of put()
  std::uint32_t grants_ = no_index;
  std::vector<std::pair<std::uint32_t, NodePlan>> before_;
  std::size_t changed_ = 0;  // of them
  std::vector<Change> changes_;
  std::vector<const Occupant*> here_;  // of put()
};

}  // namespace gpusched::detail
