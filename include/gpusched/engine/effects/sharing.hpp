// SPDX-License-Identifier: Apache-2.0
/// Sharing: how fast jobs run that share a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/capacity.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/occupancy.hpp"

namespace gpusched::detail {

/// What the other tasks on a card do to one.
enum class CardCompany : std::uint8_t {
  at_once,   ///< they run at once: each adds to its time what the runtime model says
  in_turns,  ///< equal turns: each of k tasks has 1/k of the card's time
  apart,     ///< nothing: it has a MIG instance of its own
};

/// An effect: the rate of a run depends on who shares its cards (interference or time slicing). Each task that holds a
/// share of a card has a seat there (Occupancy). What the other tasks on a card add to a task's time is kept as a sum,
/// so that joining and leaving cost one step per other task. Whole GPUs, and nodes that only count theirs, have no
/// company.
class Sharing {
 public:
  static constexpr bool keeps_seats = true;

  /// Rates do not depend on company.
  Sharing() = default;
  explicit Sharing(const EffectWorld& world) {
    const bool turns = std::any_of(world.cluster.nodes.begin(), world.cluster.nodes.end(), [](const Node& node) {
      return node.sharing == SharingMode::time_slicing && node.gpus > 0;
    });
    const RuntimeModel* const model = world.inputs.runtime;
    static const RuntimeModel at_reference_rate;
    if (turns || (model != nullptr && model->has_interference()))
      model_ = model == nullptr ? &at_reference_rate : model;
  }

  /// True when rates depend on who shares a card.
  [[nodiscard]] bool active() const { return model_ != nullptr; }

  template <class Kernel>
  void seated(Kernel& kernel, std::uint32_t at) {
    const Seat& seat = kernel.state.occupancy.seat(at);
    if (seat.card == no_index) return;
    if (at >= tasks_.size()) tasks_.resize(at + 1);
    tasks_[at] = task_in(kernel.state, seat);
    for_each_other(kernel.state.occupancy, at, [this, &at](std::uint32_t other) {
      tasks_[at].extra += extra(tasks_[at], tasks_[other]);
      tasks_[other].extra += extra(tasks_[other], tasks_[at]);
    });
    changed_.push_back(seat.card);
  }

  template <class Kernel>
  void unseated(Kernel& kernel, std::uint32_t at) {
    const Seat& seat = kernel.state.occupancy.seat(at);
    if (seat.card == no_index) return;
    for_each_other(kernel.state.occupancy, at,
                   [this, &at](std::uint32_t other) { tasks_[other].extra -= extra(tasks_[other], tasks_[at]); });
    changed_.push_back(seat.card);
  }

  // Updates the rates of all jobs on cards that a task joined or left at this instant.
  template <class Kernel>
  void react(Kernel& kernel) {
    if (changed_.empty()) return;
    const Occupancy& occupancy = kernel.state.occupancy;
    for (const std::uint32_t card : changed_) {
      for (std::uint32_t at = occupancy.first_on_card(card); at != no_index; at = occupancy.seat(at).next_on_card) {
        kernel.adapt_rate(occupancy.seat(at).job);
      }
    }
    changed_.clear();
  }

  // The rate of a job that holds shares of cards: that of its slowest task, each slowed by its company. A task on a
  // node that only counts its GPUs has none.
  template <class State>
  [[nodiscard]] std::optional<RatePpm> rate(const State& state, JobId job) const {
    const Occupancy& occupancy = state.occupancy;
    if (!has_cards(occupancy, job)) return std::nullopt;
    const SpanFactor span = state.span_factor(job);
    RatePpm slowest = ~RatePpm{0};
    for (std::uint32_t at = occupancy.first_of_job(job); at != no_index; at = occupancy.seat(at).next_of_job) {
      const Task task = occupancy.seat(at).card == no_index ? task_in(state, occupancy.seat(at)) : tasks_[at];
      const RatePpm own = task.profile == no_index ? model_->rate(task.family, task.gpu_type)
                                                   : model_->slice_rate(task.family, task.gpu_type, task.profile);
      const std::int64_t alone = scaled_rate(own, span.on(task.gpu_type));
      const std::int64_t slowed = mul_div(alone, reference_rate, reference_rate + task.extra);
      slowest = std::min(slowest, static_cast<RatePpm>(std::max<std::int64_t>(slowed, 1)));
    }
    return slowest;
  }

  // A kept sum is what the other tasks on the card add.
  template <class State>
  [[nodiscard]] bool audit(const State& state, JobId job) const {
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      if (state.occupancy.seat(at).card == no_index) continue;
      std::int64_t sum = 0;
      for_each_other(state.occupancy, at,
                     [this, &sum, &at](std::uint32_t other) { sum += extra(tasks_[at], tasks_[other]); });
      if (sum != tasks_[at].extra) return false;
    }
    return true;
  }

 private:
  // What the task in a seat is.
  struct Task {
    std::uint32_t family = 0;
    std::uint32_t gpu_type = 0;
    std::uint32_t profile = no_index;            // of its MIG instance; no_index: none
    CardCompany company = CardCompany::at_once;  // the same for all on the card
    std::int64_t extra = 0;  // what the others add to the task's time, in millionths of its time alone
  };

  [[nodiscard]] static bool has_cards(const Occupancy& occupancy, JobId job) {
    for (std::uint32_t at = occupancy.first_of_job(job); at != no_index; at = occupancy.seat(at).next_of_job) {
      if (occupancy.seat(at).card != no_index) return true;
    }
    return false;
  }

  template <class State>
  [[nodiscard]] static Task task_in(const State& state, const Seat& seat) {
    const NodeState& node = state.cluster.node(seat.node);
    Task task{.family = state.jobs->family(seat.job), .gpu_type = node.gpu_type};
    if (node.sharing == SharingMode::time_slicing) task.company = CardCompany::in_turns;
    if (seat.slice != 0) {
      task.company = CardCompany::apart;
      task.profile = mig_instance(seat.slice).profile;
    }
    return task;
  }

  // What `other` adds to the time of `task`, in millionths. In turns each of the others adds the task's own time once
  // more: k tasks take k times as long.
  [[nodiscard]] std::int64_t extra(const Task& task, const Task& other) const {
    switch (task.company) {
      case CardCompany::in_turns: return reference_rate;
      case CardCompany::apart: return 0;
      case CardCompany::at_once: break;
    }
    return model_->extra(task.family, other.family, task.gpu_type);
  }

  template <class Visit>
  static void for_each_other(const Occupancy& occupancy, std::uint32_t seat, Visit visit) {
    for (std::uint32_t at = occupancy.first_on_card(occupancy.seat(seat).card); at != no_index;
         at = occupancy.seat(at).next_on_card) {
      if (at != seat) visit(at);
    }
  }

  const RuntimeModel* model_ = nullptr;  // borrowed; null = rates do not depend on company
  std::vector<Task> tasks_;              // by seat
  std::vector<std::uint32_t> changed_;   // cards
};

}  // namespace gpusched::detail
