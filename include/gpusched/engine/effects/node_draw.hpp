// SPDX-License-Identifier: Apache-2.0
/// NodeDraws: what a node draws with given runs on it, and which part of that is whose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/engine/capacity.hpp"
#include "gpusched/engine/effects/power_table.hpp"
#include "gpusched/engine/occupancy.hpp"

namespace gpusched::detail {

/// Whether a node works.
enum class NodePhase : std::uint8_t { on, asleep, waking };

/// Tasks of one run on a node, and how its GPUs are set.
struct Occupant {
  JobId job = no_job;
  std::uint32_t tasks = 0;
  std::uint32_t card = no_index;  ///< as Seat::card
  std::uint8_t level = 0;         ///< of DrawTable
  std::uint32_t seat = no_index;  ///< of the Occupancy; no_index: not yet

  friend bool operator<(const Occupant& a, const Occupant& b) {
    return std::tie(a.job, a.card, a.tasks) < std::tie(b.job, b.card, b.tasks);
  }
};

/// What an occupant draws of its node, and pays for its GPUs.
struct OccupantDraw {
  std::int64_t mw = 0;       ///< idle_mw included
  std::int64_t idle_mw = 0;  ///< its part of what the node draws idle
  std::int64_t rent = 0;     ///< millionths of USD an hour
};

/// What a node draws as a whole, and the parts of it that are nobody's.
struct NodeDraw {
  std::int64_t mw = 0, idle_mw = 0, waking_mw = 0;
  std::int64_t rent = 0, idle_rent = 0;  ///< millionths of USD an hour

  friend bool operator==(const NodeDraw&, const NodeDraw&) = default;
};

/// A job has the idle watts of the GPUs that it holds, by its share of them, what keeping them busy adds, and what its
/// cores add to the processors. Whole milliwatts; parts add up to the node. Occupants are given in the order of
/// operator< below, so that the same is said whoever asks: for the present, or for what a decision would make of it.
class NodeDraws {
 public:
  NodeDraws() = default;
  /// `model` must outlive this.
  NodeDraws(const PowerModel& model, std::uint32_t families) : model_(&model), table_(model, families) {
    for (const NodePower& kind : model.kinds) {
      const double idle_w = DrawTable::cpus_w(kind, 0, 0);
      unused_kinds_.push_back({.idle_cpus_w = idle_w,
                               .idle_cpus_mw = DrawTable::milliwatts(idle_w),
                               .base_mw = DrawTable::milliwatts(kind.base_w)});
    }
  }

  [[nodiscard]] const DrawTable& table() const { return table_; }
  [[nodiscard]] const NodePower& kind(NodeId node) const { return model_->kinds[model_->kind_of[index(node)]]; }

  /// The draw of the node; `parts`, one for each occupant, are filled in.
  template <class State>
  NodeDraw measure(const State& state, NodeId at, NodePhase phase, std::span<const Occupant> occupants,
                   std::span<OccupantDraw> parts) {
    return measure(state, at, phase, occupants, parts, false);
  }

  /// The most that it draws with these occupants, or after some of them have left, in milliwatts. That may be more: the
  /// mean of those who stay on a GPU, or a processor that draws more idle than touched.
  template <class State>
  std::int64_t bound_mw(const State& state, NodeId at, NodePhase phase, std::span<const Occupant> occupants) {
    if (unused_.size() < occupants.size()) unused_.resize(occupants.size());
    return measure(state, at, phase, occupants, std::span(unused_).first(occupants.size()), true).mw;
  }

  /// The most that the node draws if nobody uses it, awake.
  template <class State>
  [[nodiscard]] std::int64_t awake_mw(const State& state, NodeId at) const {
    const std::uint32_t gpus = state.cluster.node_gpus(at);
    const std::int64_t idle_gpus = gpus == 0 ? 0 : gpus * table_.idle_mw(state.cluster.node_gpu_type(at));
    return unused_kind(at).base_mw + unused_kind(at).idle_cpus_mw + idle_gpus;
  }

 private:
  // What nodes of a kind draw beside their GPUs when nobody uses them.
  struct UnusedKind {
    double idle_cpus_w = 0;
    std::int64_t idle_cpus_mw = 0, base_mw = 0;
  };
  [[nodiscard]] const UnusedKind& unused_kind(NodeId node) const { return unused_kinds_[model_->kind_of[index(node)]]; }

  // A share of a card, until all shares of the card are known.
  struct Shared {
    std::size_t occupant = 0;
    std::uint32_t card = 0;
    std::uint32_t family = 0;
    double busy = 0;
    std::uint8_t level = 0;
  };

  [[nodiscard]] std::int64_t rent_of(NodeId node) const {
    return model_->rents.empty() ? 0 : Signal::to_micro(model_->rents[index(node)].usd_per_gpu_h);
  }
  [[nodiscard]] bool is_paid_idle(NodeId node) const {
    return !model_->rents.empty() && model_->rents[index(node)].when_idle;
  }

  template <class State>
  [[nodiscard]] NodeDraw unoccupied(const State& state, NodeId at, NodePhase phase) const {
    NodeDraw node;
    if (phase == NodePhase::asleep) {
      node.mw = node.idle_mw = DrawTable::milliwatts(kind(at).sleep.asleep_w);
    } else {
      node.idle_mw = awake_mw(state, at);
      node.waking_mw = phase == NodePhase::waking ? waking_mw(kind(at)) : 0;
      node.mw = node.idle_mw + node.waking_mw;
    }
    if (is_paid_idle(at)) node.rent = node.idle_rent = rent_of(at) * state.cluster.node_gpus(at);
    return node;
  }

  [[nodiscard]] static std::int64_t waking_mw(const NodePower& kind) {
    return kind.sleep.wake.us == 0 ? 0 : DrawTable::milliwatts(kind.sleep.wake_j / to_seconds(kind.sleep.wake));
  }

  template <class State>
  NodeDraw measure(const State& state, NodeId at, NodePhase phase, std::span<const Occupant> occupants,
                   std::span<OccupantDraw> parts, bool is_bound) {
    NodeDraw node = unoccupied(state, at, phase);
    if (occupants.empty()) return node;
    std::fill(parts.begin(), parts.end(), OccupantDraw{});
    shared_.clear();
    for (std::size_t i = 0; i < occupants.size(); ++i) add_gpus(state, at, occupants, i, parts[i], node);
    if (!shared_.empty()) add_cards(state.cluster.node_gpu_type(at), parts, is_bound);
    add_cpus(state, at, occupants, parts, is_bound);
    for (const OccupantDraw& part : parts) {
      node.mw += part.mw - part.idle_mw;
      node.idle_mw -= part.idle_mw;
    }
    return node;
  }

  template <class State>
  void add_gpus(const State& state, NodeId at, std::span<const Occupant> occupants, std::size_t number,
                OccupantDraw& part, NodeDraw& node) {
    const Occupant& occupant = occupants[number];
    const MilliGpu milli = occupant.tasks * state.held_shape(occupant.job).gpu_milli_per_task;
    if (milli == 0) return;
    const std::uint32_t type = state.cluster.node_gpu_type(at), family = state.jobs->family(occupant.job);
    part.mw = part.idle_mw = table_.idle_mw(type) * milli / whole_gpu;
    part.rent = rent_of(at) * milli / whole_gpu;
    (is_paid_idle(at) ? node.idle_rent : node.rent) += is_paid_idle(at) ? -part.rent : part.rent;
    if (occupant.card == no_index) {
      part.mw += table_.busy_mw(family, type, occupant.level) * milli / whole_gpu;
      return;
    }
    shared_.push_back({.occupant = number,
                       .card = occupant.card,
                       .family = family,
                       .busy = model_->busy_share(family, type) * static_cast<double>(milli) / whole_gpu,
                       .level = occupant.level});
  }

  // Jobs that share a card add up to one load, at the lowest of their levels. Its draw when busy, and what the level
  // does to that, is the mean of theirs, weighted by what each adds to the load, and is divided in that proportion.
  void add_cards(std::uint32_t type, std::span<OccupantDraw> parts, bool is_bound) {
    std::stable_sort(shared_.begin(), shared_.end(), [](const Shared& a, const Shared& b) { return a.card < b.card; });
    for (std::size_t begin = 0, end = 0; begin < shared_.size(); begin = end) {
      for (end = begin; end < shared_.size() && shared_[end].card == shared_[begin].card;) ++end;
      const std::span<const Shared> card = std::span(shared_).subspan(begin, end - begin);
      double busy = 0;
      for (const Shared& shared : card) busy += shared.busy;
      const double watts = is_bound ? most_w(type, card, busy) : card_w(type, card, busy);
      divide(
          DrawTable::milliwatts(watts), busy, card.size(), [&](std::size_t i) { return card[i].busy; },
          [&](std::size_t i) -> OccupantDraw& { return parts[card[i].occupant]; });
    }
  }

  [[nodiscard]] double card_w(std::uint32_t type, std::span<const Shared> card, double busy) const {
    auto level = static_cast<std::uint8_t>(table_.top());
    for (const Shared& shared : card) level = std::min(level, shared.level);
    double full_w = 0;
    PowerLimit mean{.draw = 0};
    for (const Shared& shared : card) {
      const PowerLimit limit = table_.limit(shared.family, type, level);
      full_w += shared.busy / busy * model_->full_w(shared.family, type);
      mean.draw += shared.busy / busy * limit.draw;
      mean.limit_w = std::max(mean.limit_w, limit.limit_w);
    }
    return table_.busy_w(type, busy, full_w, mean);
  }

  // No less than card_w() of any of them.
  [[nodiscard]] double most_w(std::uint32_t type, std::span<const Shared> card, double busy) const {
    double full_w = 0;
    PowerLimit most{.draw = 0};
    for (const Shared& shared : card) {
      const PowerLimit limit = table_.limit(shared.family, type, shared.level);
      full_w = std::max(full_w, model_->full_w(shared.family, type));
      most.draw = std::max(most.draw, limit.draw);
      most.limit_w = std::max(most.limit_w, limit.limit_w);
    }
    return table_.busy_w(type, busy, full_w, most);
  }

  // What working cores add to the processors, divided in proportion. A job that asks for no cores, or of a node that
  // does not count them, works on as large a part of them as it has of the GPUs.
  template <class State>
  void add_cpus(const State& state, NodeId at, std::span<const Occupant> occupants, std::span<OccupantDraw> parts,
                bool is_bound) {
    const NodePower& kind = this->kind(at);
    if (kind.cpus == 0) return;
    loads_.clear();
    double load = 0;
    for (const Occupant& occupant : occupants) {
      loads_.push_back(cpu_load(state, at, occupant));
      load += loads_.back();
    }
    if (load <= 0) return;
    const double cores = kind.cores_per_cpu > 0 ? load * cores_of(state, at, kind) : 0;
    double watts = DrawTable::cpus_w(kind, load, cores);
    if (is_bound) watts = std::max(watts, unused_kind(at).idle_cpus_w);
    divide(
        DrawTable::milliwatts(watts) - unused_kind(at).idle_cpus_mw, load, occupants.size(),
        [&](std::size_t i) { return loads_[i]; }, [&](std::size_t i) -> OccupantDraw& { return parts[i]; });
  }

  template <class State>
  [[nodiscard]] static double cores_of(const State& state, NodeId at, const NodePower& kind) {
    const std::int64_t capacity = state.cluster.node(at).cpu_capacity;
    return capacity < unlimited ? static_cast<double>(capacity) / 1000 : kind.cpus * kind.cores_per_cpu;
  }

  // The part of the node's processors on which the occupant works.
  template <class State>
  [[nodiscard]] static double cpu_load(const State& state, NodeId at, const Occupant& occupant) {
    const Shape& shape = state.held_shape(occupant.job);
    const std::int64_t capacity = state.cluster.node(at).cpu_capacity, cores = shape.cpu_milli_per_task;
    if (cores > 0 && capacity < unlimited)
      return static_cast<double>(occupant.tasks * cores) / static_cast<double>(capacity);
    const std::uint32_t gpus = state.cluster.node_gpus(at);
    return gpus == 0 ? 0 : static_cast<double>(occupant.tasks * shape.gpu_milli_per_task) / (1e3 * gpus);
  }

  // Gives each of `count` its part of `mw`, which may be negative, in proportion to its weight; the last one that has
  // any gets the rest.
  template <class Weight, class Part>
  static void divide(std::int64_t mw, double sum, std::size_t count, Weight weight, Part part) {
    std::int64_t left = mw;
    std::size_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (weight(i) <= 0) continue;
      const auto own = static_cast<std::int64_t>(static_cast<double>(mw) * (weight(i) / sum));
      part(i).mw += own;
      left -= own;
      last = i;
    }
    part(last).mw += left;
  }

  const PowerModel* model_ = nullptr;
  DrawTable table_;
  std::vector<UnusedKind> unused_kinds_;
  std::vector<Shared> shared_;        // of measure()
  std::vector<double> loads_;         // likewise
  std::vector<OccupantDraw> unused_;  // of bound_mw()
};

}  // namespace gpusched::detail
