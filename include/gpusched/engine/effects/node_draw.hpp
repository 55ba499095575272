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

/// Tasks of one run on a node, how its GPUs are set, and what does not change while it is there.
struct Occupant {
  JobId job = no_job;
  std::uint32_t tasks = 0;
  std::uint32_t card = no_index;  ///< as Seat::card
  std::uint32_t family = 0;
  MilliGpu milli = 0;        ///< GPUs that it holds here
  std::int64_t idle_mw = 0;  ///< its part of what the node draws idle
  std::int64_t rent = 0;     ///< of its GPUs, millionths of USD an hour
  double cpu_load = 0;       ///< the part of the node's processors on which it works
  std::uint8_t level = 0;    ///< of DrawTable: NodeDraws::set_level()
  std::int64_t busy_mw = 0;  ///< what keeping its GPUs busy adds at that level, where it shares none

  friend bool operator<(const Occupant& a, const Occupant& b) {
    return std::tie(a.job, a.card, a.tasks) < std::tie(b.job, b.card, b.tasks);
  }
};
/// Occupants of one node, by operator<. Borrowed.
using Occupants = std::span<const Occupant* const>;

/// What a node draws as a whole, and the parts of it that are nobody's.
struct NodeDraw {
  std::int64_t mw = 0, idle_mw = 0, waking_mw = 0;
  std::int64_t rent = 0, idle_rent = 0;  ///< millionths of USD an hour

  friend bool operator==(const NodeDraw&, const NodeDraw&) = default;
};

/// A job has the idle watts of the GPUs that it holds, by its share of them, what keeping them busy adds, and what its
/// cores add to the processors. Whole milliwatts; parts add up to the node. Occupants are given in the order of
/// operator<, so that the same is said whoever asks: for the present, or for what a decision would make of it.
class NodeDraws {
 public:
  NodeDraws() = default;
  /// `model` must outlive this.
  NodeDraws(const PowerModel& model, const Cluster& cluster, std::uint32_t families)
      : model_(&model), table_(model, families) {
    for (const NodePower& kind : model.kinds) {
      kinds_.push_back({.idle_cpus_w = DrawTable::cpus_w(kind, 0, 0),
                        .waking_mw = kind.sleep.wake.us == 0
                                         ? 0
                                         : DrawTable::milliwatts(kind.sleep.wake_j / to_seconds(kind.sleep.wake)),
                        .asleep_mw = DrawTable::milliwatts(kind.sleep.asleep_w)});
    }
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) nodes_.push_back(unused(cluster.nodes[i], NodeId{i}));
  }

  [[nodiscard]] const DrawTable& table() const { return table_; }
  [[nodiscard]] const NodePower& kind(NodeId node) const { return model_->kinds[model_->kind_of[index(node)]]; }

  /// So many tasks of a job on the node.
  template <class State>
  [[nodiscard]] Occupant occupant(const State& state, NodeId at, JobId job, std::uint32_t tasks, std::uint32_t card,
                                  std::uint8_t level) const {
    const Shape& shape = state.held_shape(job);
    Occupant occupant{.job = job, .tasks = tasks, .card = card, .family = state.jobs->family(job)};
    occupant.milli = tasks * shape.gpu_milli_per_task;
    occupant.cpu_load = cpu_load(nodes_[index(at)], tasks, shape);
    if (occupant.milli == 0) return occupant;
    occupant.idle_mw = table_.idle_mw(nodes_[index(at)].type) * occupant.milli / whole_gpu;
    occupant.rent = nodes_[index(at)].rent * occupant.milli / whole_gpu;
    occupant.level = level;
    if (is_whole(occupant)) occupant.busy_mw = busy_mw(at, occupant);
    return occupant;
  }
  /// Its GPUs are set to another level.
  void set_level(NodeId at, Occupant& occupant, std::uint8_t level) const {
    if (occupant.level == level) return;
    occupant.level = level;
    if (is_whole(occupant)) occupant.busy_mw = busy_mw(at, occupant);
  }

  /// The draw of the node; `parts`, one for each occupant, are filled in with theirs, in milliwatts.
  NodeDraw measure(NodeId at, NodePhase phase, Occupants occupants, std::span<std::int64_t> parts) {
    const Unused& unused = nodes_[index(at)];
    NodeDraw node = unoccupied(at, phase);
    if (occupants.empty()) return node;
    shared_.clear();
    double load = 0;
    for (std::size_t i = 0; i < occupants.size(); ++i) {
      const Occupant& occupant = *occupants[i];
      parts[i] = occupant.idle_mw + occupant.busy_mw;
      node.mw -= occupant.idle_mw;
      node.idle_mw -= occupant.idle_mw;
      (unused.is_paid_idle ? node.idle_rent : node.rent) += unused.is_paid_idle ? -occupant.rent : occupant.rent;
      load += occupant.cpu_load;
      if (is_share(occupant)) share(unused.type, occupant, i, occupant.level);
    }
    for_each_card([this, &unused, &parts](std::span<const Shared> card, double busy) {
      divide(
          DrawTable::milliwatts(card_w(unused.type, card, busy)), busy, card.size(),
          [&card](std::size_t i) { return card[i].busy; },
          [&parts, &card](std::size_t i) -> std::int64_t& { return parts[card[i].occupant]; });
    });
    if (kind(at).cpus > 0 && load > 0) {
      divide(
          DrawTable::milliwatts(cpus_w(at, load)) - unused.idle_cpus_mw, load, occupants.size(),
          [&occupants](std::size_t i) { return occupants[i]->cpu_load; },
          [&parts](std::size_t i) -> std::int64_t& { return parts[i]; });
    }
    for (const std::int64_t part : parts) node.mw += part;
    return node;
  }

  /// The most that it draws with these occupants, or after some of them have left, in milliwatts. That may be more: the
  /// mean of those who stay on a GPU, or a processor that draws more idle than touched.
  std::int64_t bound_mw(NodeId at, NodePhase phase, Occupants occupants) {
    std::int64_t mw = bound_beside_gpus_mw(at, phase, occupants);
    for (const Occupant* const occupant : occupants) mw += occupant->busy_mw;
    return mw + bound_of_shares_mw(at, occupants, [](const Occupant& occupant) { return occupant.level; });
  }
  /// The same for each level if no occupant were above it, nor above limit(job).
  template <class Limit>
  void bound_at_levels_mw(NodeId at, NodePhase phase, Occupants occupants, Limit limit,
                          std::span<std::int64_t> bounds) {
    std::fill(bounds.begin(), bounds.end(), bound_beside_gpus_mw(at, phase, occupants));
    bool any_shares = false;
    for (const Occupant* const occupant : occupants) {
      any_shares = any_shares || is_share(*occupant);
      if (!is_whole(*occupant)) continue;
      const std::span<const std::int64_t> busy_mw = table_.busy_mw(occupant->family, nodes_[index(at)].type);
      const std::size_t highest = limit(occupant->job);
      for (std::size_t level = 0; level < bounds.size(); ++level) {
        bounds[level] += busy_mw[std::min(level, highest)] * occupant->milli / whole_gpu;
      }
    }
    for (std::size_t level = 0; any_shares && level < bounds.size(); ++level) {
      bounds[level] += bound_of_shares_mw(at, occupants, [&limit, &level](const Occupant& occupant) {
        return std::min(limit(occupant.job), static_cast<std::uint8_t>(level));
      });
    }
  }

 private:
  // What nodes of a kind draw beside their GPUs.
  struct Kind {
    double idle_cpus_w = 0;
    std::int64_t waking_mw = 0, asleep_mw = 0;
  };
  // A node that nobody uses.
  struct Unused {
    std::int64_t awake_mw = 0, idle_cpus_mw = 0;
    std::int64_t rent = 0;  // of a GPU, millionths of USD an hour
    bool is_paid_idle = false;
    std::uint32_t gpus = 0, type = 0;
    std::int64_t cpu_capacity = 0;
  };
  // A share of a card, until all shares of the card are known.
  struct Shared {
    std::size_t occupant = 0;
    std::uint32_t card = 0;
    std::uint32_t family = 0;
    double busy = 0;
    std::uint8_t level = 0;
  };

  [[nodiscard]] Unused unused(const Node& node, NodeId at) const {
    Unused unused{.gpus = node.gpus, .type = node.gpu_type, .cpu_capacity = node.cpu_milli};
    const std::int64_t idle_gpus_mw = node.gpus == 0 ? 0 : node.gpus * table_.idle_mw(node.gpu_type);
    unused.idle_cpus_mw = DrawTable::milliwatts(of_kind(at).idle_cpus_w);
    unused.awake_mw = DrawTable::milliwatts(kind(at).base_w) + unused.idle_cpus_mw + idle_gpus_mw;
    if (model_->rents.empty()) return unused;
    unused.rent = Signal::to_micro(model_->rents[index(at)].usd_per_gpu_h);
    unused.is_paid_idle = model_->rents[index(at)].when_idle;
    return unused;
  }
  [[nodiscard]] const Kind& of_kind(NodeId node) const { return kinds_[model_->kind_of[index(node)]]; }

  [[nodiscard]] NodeDraw unoccupied(NodeId at, NodePhase phase) const {
    const Unused& unused = nodes_[index(at)];
    NodeDraw node;
    node.idle_mw = phase == NodePhase::asleep ? of_kind(at).asleep_mw : unused.awake_mw;
    node.waking_mw = phase == NodePhase::waking ? of_kind(at).waking_mw : 0;
    node.mw = node.idle_mw + node.waking_mw;
    if (unused.is_paid_idle) node.rent = node.idle_rent = unused.rent * unused.gpus;
    return node;
  }

  // It has its GPUs for itself.
  [[nodiscard]] static bool is_whole(const Occupant& occupant) {
    return occupant.milli > 0 && occupant.card == no_index;
  }
  [[nodiscard]] static bool is_share(const Occupant& occupant) {
    return occupant.milli > 0 && occupant.card != no_index;
  }
  // Precondition: is_whole().
  [[nodiscard]] std::int64_t busy_mw(NodeId at, const Occupant& occupant) const {
    return table_.busy_mw(occupant.family, nodes_[index(at)].type, occupant.level) * occupant.milli / whole_gpu;
  }

  void share(std::uint32_t type, const Occupant& occupant, std::size_t number, std::uint8_t level) {
    shared_.push_back(
        {.occupant = number,
         .card = occupant.card,
         .family = occupant.family,
         .busy = model_->busy_share(occupant.family, type) * static_cast<double>(occupant.milli) / whole_gpu,
         .level = level});
  }

  // Jobs that share a card add up to one load.
  template <class Visit>
  void for_each_card(Visit visit) {
    if (shared_.empty()) return;
    std::stable_sort(shared_.begin(), shared_.end(), [](const Shared& a, const Shared& b) { return a.card < b.card; });
    for (std::size_t begin = 0, end = 0; begin < shared_.size(); begin = end) {
      double busy = 0;
      for (end = begin; end < shared_.size() && shared_[end].card == shared_[begin].card; ++end)
        busy += shared_[end].busy;
      visit(std::span<const Shared>(shared_).subspan(begin, end - begin), busy);
    }
  }

  template <class LevelOf>
  std::int64_t bound_of_shares_mw(NodeId at, Occupants occupants, LevelOf level_of) {
    const std::uint32_t type = nodes_[index(at)].type;
    shared_.clear();
    for (const Occupant* const occupant : occupants) {
      if (is_share(*occupant)) share(type, *occupant, 0, level_of(*occupant));
    }
    std::int64_t mw = 0;
    for_each_card([this, &mw, &type](std::span<const Shared> card, double busy) {
      mw += DrawTable::milliwatts(most_w(type, card, busy));
    });
    return mw;
  }
  [[nodiscard]] std::int64_t bound_beside_gpus_mw(NodeId at, NodePhase phase, Occupants occupants) const {
    const std::int64_t mw = unoccupied(at, phase).mw;
    double load = 0;
    for (const Occupant* const occupant : occupants) load += occupant->cpu_load;
    if (kind(at).cpus == 0 || load <= 0) return mw;
    return mw + DrawTable::milliwatts(std::max(cpus_w(at, load), of_kind(at).idle_cpus_w)) -
           nodes_[index(at)].idle_cpus_mw;
  }

  // At the lowest of their levels. Its draw when busy, and what the level does to that, is the mean of theirs, weighted
  // by what each adds to the load, and is divided in that proportion.
  [[nodiscard]] double card_w(std::uint32_t type, std::span<const Shared> card, double busy) const {
    auto level = static_cast<std::uint8_t>(table_.top());
    for (const Shared& shared : card) level = std::min(level, shared.level);
    double full_w = 0;
    bool alike = true;  // the mean may miss what is the same for all by its last bit
    PowerLimit mean{.draw = 0};
    for (const Shared& shared : card) {
      const PowerLimit limit = table_.limit(shared.family, type, level);
      const double own_w = model_->full_w(shared.family, type);
      alike = alike && own_w == model_->full_w(card.front().family, type);
      full_w += shared.busy / busy * own_w;
      mean.draw += shared.busy / busy * limit.draw;
      mean.limit_w = std::max(mean.limit_w, limit.limit_w);
    }
    if (alike) full_w = model_->full_w(card.front().family, type);
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

  // What all processors draw when so much of them works.
  [[nodiscard]] double cpus_w(NodeId at, double load) const {
    const NodePower& kind = this->kind(at);
    const std::int64_t capacity = nodes_[index(at)].cpu_capacity;
    const double all = capacity < unlimited ? static_cast<double>(capacity) / 1000 : kind.cpus * kind.cores_per_cpu;
    return DrawTable::cpus_w(kind, load, kind.cores_per_cpu > 0 ? load * all : 0);
  }

  // A job that asks for no cores, or of a node that does not count them, works on as large a part of them as it has of
  // the GPUs.
  [[nodiscard]] static double cpu_load(const Unused& node, std::uint32_t tasks, const Shape& shape) {
    const std::int64_t cores = shape.cpu_milli_per_task;
    if (cores > 0 && node.cpu_capacity < unlimited) {
      return static_cast<double>(tasks * cores) / static_cast<double>(node.cpu_capacity);
    }
    return node.gpus == 0 ? 0 : static_cast<double>(tasks * shape.gpu_milli_per_task) / (1e3 * node.gpus);
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
      part(i) += own;
      left -= own;
      last = i;
    }
    part(last) += left;
  }

  const PowerModel* model_ = nullptr;
  DrawTable table_;
  std::vector<Kind> kinds_;
  std::vector<Unused> nodes_;   // by node
  std::vector<Shared> shared_;  // of the node that is asked for
};

}  // namespace gpusched::detail
