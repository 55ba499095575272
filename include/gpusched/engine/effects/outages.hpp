// SPDX-License-Identifier: Apache-2.0
/// Outages: the changing part of NodeFailures: what is down now, and what changes next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/event_queue.hpp"

namespace gpusched::detail {

/// An effect: nodes go out of service and come back; what runs there stops, or stands still until somebody notices.
/// Draws are a pure function of (seed, unit, number of the draw), so a failure comes at the same time whatever the
/// policy does.
class Outages {
 public:
  static constexpr bool keeps_seats = true, is_endless = true;
  static constexpr bool counts_costs() { return true; }

  /// What happens to nodes.
  enum class Kind : std::uint8_t {
    fault,  ///< they do no more work, which nobody has noticed yet
    drain,  ///< they go out of service, and what runs there runs on
    down,   ///< they go out of service
    stop,   ///< they were drained, and what still runs there stops
    up,     ///< they come back, as far as this cause is concerned
  };
  /// Several nodes to which the same happens at one instant.
  struct Change {
    std::span<const NodeId> nodes;  ///< borrowed from the NodeFailures
    Kind kind = Kind::down;         ///< what
    bool was_fault = false;         ///< down: of a fault that is noticed now
  };

  /// Nothing ever fails.
  Outages() = default;
  explicit Outages(const EffectWorld& world) {
    const NodeFailures* const failures = world.inputs.failures;
    if (failures == nullptr || failures->is_empty()) return;
    const Time start = world.jobs.size() > 0 ? world.jobs.submit(JobId{0}) : Time{};
    *this = Outages(*failures, static_cast<std::uint32_t>(world.cluster.nodes.size()), start,
                    Rng(world.options.seed).split("failures"));
  }
  /// `failures` must outlive this; `nodes` is how many the cluster has. Laws begin at `start`.
  Outages(const NodeFailures& failures, std::uint32_t nodes, Time start, Rng rng)
      : failures_(failures.is_empty() ? nullptr : &failures), rng_(rng) {
    if (failures_ == nullptr) return;
    causes_.resize(nodes);
    faults_.resize(nodes);
    absence_.resize(nodes);
    begin_recorded(start);
    draws_.resize(failures.units().size());
    for (std::uint32_t unit = 0; unit < draws_.size(); ++unit) plan(unit, start);
  }

  // What is down at the start is withheld; spares come for it, which nobody sees.
  template <class Kernel>
  void open(Kernel& kernel) {
    auto& cluster = kernel.state.cluster;
    if (failures_->spares() > 0) {
      std::vector<std::uint32_t> kinds;
      for (std::uint32_t i = 0; i < cluster.node_count(); ++i) kinds.push_back(cluster.node(NodeId{i}).node_class);
      keep_spares(std::move(kinds));
    }
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
      if (is_down(NodeId{i})) cluster.withhold(NodeId{i});
    }
    for (NodeId node = call_spare(); node != no_node; node = call_spare()) cluster.reinstate(node);
  }

  template <class Kernel>
  void happen(Kernel& kernel) {
    const Change change = pop();
    for (const NodeId node : change.nodes) {
      if (change.kind == Kind::fault) {
        count_fault(node, false);
        for (const JobId job : kernel.state.occupancy.jobs_on(node)) kernel.adapt_rate(job);
        continue;
      }
      const bool up = change.kind == Kind::up;
      if (change.was_fault) count_fault(node, true);
      if (change.kind == Kind::down || change.kind == Kind::stop) kernel.lose_node(node);
      if (change.kind == Kind::stop || !count_cause(node, up)) continue;
      if (up && rests(node)) continue;
      set_in_service(kernel, node, up);
    }
    for (NodeId node = call_spare(); node != no_node; node = call_spare()) set_in_service(kernel, node, true);
  }

  // The nodes out of service are those that are withheld, and are put back to count what they hold.
  template <class State>
  [[nodiscard]] bool audit_nodes(State& cluster) const {
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
      if (cluster.is_up(NodeId{i}) == is_down(NodeId{i})) return false;
      if (is_down(NodeId{i})) cluster.reinstate(NodeId{i});
    }
    return true;
  }

  // Nodes stay as they are.
  void forget_future() {
    heap_.clear();
    if (failures_ != nullptr) cursor_ = static_cast<std::uint32_t>(failures_->changes().size());
  }

  // A task is on a node that does no work.
  template <class State>
  [[nodiscard]] bool stands_still(const State& state, JobId job) const {
    for (std::uint32_t at = state[job].grants; at != no_index; at = state.cluster.grant(at).next) {
      if (is_faulty(state.cluster.grant(at).node)) return true;
    }
    return false;
  }

  /// Makes the last nodes spares (NodeFailures::keep_spares), which are then down; `kinds`: of each node, the number of
  /// its kind. Only before the run.
  void keep_spares(std::vector<std::uint32_t> kinds) {
    if (failures_ == nullptr || failures_->spares() == 0) return;
    const auto nodes = static_cast<std::uint32_t>(kinds.size());
    GPUSCHED_ASSERT(failures_->spares() <= nodes, "more spares than nodes");
    kinds_ = std::move(kinds);
    const std::uint32_t count = nodes == 0 ? 0 : *std::max_element(kinds_.begin(), kinds_.end()) + 1;
    spare_.resize(nodes);
    out_.resize(count);
    spares_of_kind_.resize(count);
    for (std::uint32_t node = 0; node < nodes; ++node) out_[kinds_[node]] += causes_[node] > 0 ? 1 : 0;
    for (std::uint32_t node = nodes - failures_->spares(); node < nodes; ++node) {
      ++spares_of_kind_[kinds_[node]];
      make_spare(NodeId{node});
    }
  }
  /// The node just came back, and is not needed: it becomes a spare, and is down again. False: it is needed.
  bool rests(NodeId node) {
    if (spare_.empty() || out_[kinds_[index(node)]] >= spares_of_kind_[kinds_[index(node)]]) return false;
    make_spare(node);
    return true;
  }
  /// A sound spare that is needed, and is up from now on; no_node when there is none. O(nodes).
  NodeId call_spare() {
    for (std::uint32_t node = 0; node < spare_.size() && ready_ > 0; ++node) {
      if (!is_ready(NodeId{node}) || out_[kinds_[node]] <= spares_of_kind_[kinds_[node]]) continue;
      count_cause(NodeId{node}, true);
      spare_[node] = 0;
      return NodeId{node};
    }
    return no_node;
  }

  /// False when nothing can fail.
  [[nodiscard]] bool active() const { return failures_ != nullptr; }
  /// True while anything keeps the node out of service. Precondition: active().
  [[nodiscard]] bool is_down(NodeId node) const { return causes_[index(node)] > 0; }
  /// True while the node does no work although it is in service. Precondition: active().
  [[nodiscard]] bool is_faulty(NodeId node) const { return faults_[index(node)] > 0; }
  /// As NodeFailures::rate_per_s(). Precondition: active().
  [[nodiscard]] double rate_per_s(std::span<const NodeId> nodes) const { return failures_->rate_per_s(nodes); }
  /// True when every node is in service, or a sound spare, and does work.
  [[nodiscard]] bool all_work() const { return down_ == ready_ && faulty_ == 0; }

  /// When the next change comes; Time::max() = never.
  [[nodiscard]] Time next_time() const {
    const Time drawn = heap_.empty() ? Time::max() : heap_.front().time;
    if (failures_ == nullptr || cursor_ == failures_->changes().size()) return drawn;
    return std::min(drawn, failures_->changes()[cursor_].time);
  }

  /// Takes the next change off the list and plans what follows from it. Recorded changes come before drawn ones of the
  /// same instant. Precondition: next_time() is not Time::max().
  Change pop() {
    const std::span<const NodeChange> recorded = failures_->changes();
    if (cursor_ < recorded.size() && (heap_.empty() || recorded[cursor_].time <= heap_.front().time)) {
      const NodeChange& change = recorded[cursor_++];
      Absence& absence = absence_[index(change.node)];
      const Absence before = absence;
      const Absence after = absence_after(change);
      if (after == Absence::drained && before == Absence::down) return {{}, Kind::drain, false};
      absence = after;
      const bool stops = before == Absence::drained && after == Absence::down;
      const Kind out = stops ? Kind::stop : after == Absence::down ? Kind::down : Kind::drain;
      return {std::span(&change.node, before == after ? 0u : 1u), change.up ? Kind::up : out, false};
    }
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Planned due = heap_.back();
    heap_.pop_back();
    const NodeFailures::Unit& unit = failures_->units()[due.unit];
    const double detect_s = failures_->law(unit.law).detect_s;
    if (due.kind == Kind::fault) {
      push({later_by(due.time, from_seconds(detect_s)), due.unit, Kind::down});
    } else {
      plan(due.unit, due.time);
    }
    return {failures_->nodes(unit), due.kind, due.kind == Kind::down && detect_s > 0};
  }

  /// Adds or takes away a cause that keeps the node down; true when that changed whether it is down.
  bool count_cause(NodeId node, bool up) {
    std::uint32_t& causes = causes_[index(node)];
    if (!spare_.empty()) ready_ -= is_ready(node) ? 1 : 0;
    causes += up ? ~0u : 1u;
    const bool changed = causes == (up ? 0u : 1u);
    if (changed) down_ += up ? ~0u : 1u;
    if (spare_.empty()) return changed;
    if (changed) out_[kinds_[index(node)]] += up ? ~0u : 1u;
    ready_ += is_ready(node) ? 1 : 0;
    return changed;
  }

  /// Adds or takes away a fault of the node.
  void count_fault(NodeId node, bool ends) {
    faults_[index(node)] += ends ? ~0u : 1u;
    faulty_ += ends ? ~0u : 1u;
  }

  /// Changes are to come without which a run cannot go on: some node is not in service.
  [[nodiscard]] bool is_awaited() const { return !all_work(); }

 private:
  // What the recorded changes say of a node.
  enum class Absence : std::uint8_t { none, drained, down };

  static Absence absence_after(const NodeChange& change) {
    if (change.up) return Absence::none;
    return change.drain ? Absence::drained : Absence::down;
  }

  struct Planned {
    Time time;
    std::uint32_t unit = 0;
    Kind kind = Kind::down;
    friend bool operator>(const Planned& a, const Planned& b) {
      return a.time != b.time ? a.time > b.time : a.unit > b.unit;
    }
  };

  template <class Kernel>
  static void set_in_service(Kernel& kernel, NodeId node, bool up) {
    if (up) {
      kernel.state.cluster.reinstate(node);
    } else {
      kernel.state.cluster.withhold(node);
    }
    kernel.emit({up ? EventKind::node_up : EventKind::node_down, no_job, node});
  }

  // A spare that nothing else keeps down.
  [[nodiscard]] bool is_ready(NodeId node) const { return spare_[index(node)] != 0 && causes_[index(node)] == 1; }

  void make_spare(NodeId node) {
    count_cause(node, false);
    spare_[index(node)] = 1;
    ready_ += is_ready(node) ? 1 : 0;
  }

  // What is recorded up to the start has happened; a node that first comes up later is absent.
  void begin_recorded(Time start) {
    const std::span<const NodeChange> recorded = failures_->changes();
    std::vector<bool> seen(causes_.size());
    for (const NodeChange& change : recorded) {
      if (seen[index(change.node)]) continue;
      seen[index(change.node)] = true;
      absence_[index(change.node)] = change.up ? Absence::down : Absence::none;
    }
    for (; cursor_ < recorded.size() && recorded[cursor_].time <= start; ++cursor_) {
      absence_[index(recorded[cursor_].node)] = absence_after(recorded[cursor_]);
    }
    for (std::uint32_t node = 0; node < absence_.size(); ++node) {
      if (absence_[node] != Absence::none) count_cause(NodeId{node}, false);
    }
  }

  // The even draws of a unit are times until a failure, the odd ones repairs.
  void plan(std::uint32_t unit, Time from) {
    const FailureLaw& law = failures_->law(failures_->units()[unit].law);
    const std::uint32_t number = draws_[unit]++;
    Rng rng = rng_.split(unit).split(number);
    const bool up = number % 2 == 1;
    const double span_s = up ? law.draw_repair(rng) : law.draw_up(rng);
    if (!(span_s < to_seconds(end_of_time))) return;
    const Kind failure = law.detect_s > 0 ? Kind::fault : Kind::down;
    push({later_by(from, from_seconds(std::max(span_s, 0.0))), unit, up ? Kind::up : failure});
  }

  void push(const Planned& planned) {
    if (planned.time > end_of_time) return;
    heap_.push_back(planned);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const NodeFailures* failures_ = nullptr;  // borrowed; null = nothing fails
  Rng rng_;
  std::uint32_t cursor_ = 0;  // of the next recorded change
  std::uint32_t down_ = 0;
  std::uint32_t faulty_ = 0;           // faults of all nodes
  std::vector<Planned> heap_;          // one change a unit
  std::vector<std::uint32_t> draws_;   // by unit: drawn so far
  std::vector<std::uint32_t> causes_;  // by node: what keeps it down
  std::vector<std::uint32_t> faults_;  // by node: of which nobody knows
  std::vector<Absence> absence_;       // by node: a recorded change keeps it down
  // Empty, and 0, without spares.
  std::vector<std::uint8_t> spare_;                  // by node: a cause that keeps it down is that it is not needed
  std::vector<std::uint32_t> kinds_;                 // by node
  std::vector<std::uint32_t> out_, spares_of_kind_;  // by kind: nodes that are down, and how many may be
  std::uint32_t ready_ = 0;                          // spares that nothing else keeps down
};

}  // namespace gpusched::detail
