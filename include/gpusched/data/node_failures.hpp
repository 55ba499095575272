// SPDX-License-Identifier: Apache-2.0
/// NodeFailures: when nodes fail and come back. Some of it is known beforehand (a log of outages, spot machines that
/// come and go), the rest is drawn from laws while a run lasts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// A node that goes out of service, or comes back.
struct NodeChange {
  Time time{};            ///< on the trace's clock
  NodeId node = no_node;  ///< which
  bool up = false;        ///< it comes back
  bool drain = false;     ///< unless up: nothing more is started there, but what runs there runs on
};

/// How often something fails and how long its repair takes.
struct FailureLaw {
  /// How long a repair takes.
  enum class Repair : std::uint8_t {
    fixed,        ///< the mean
    exponential,  ///< memoryless
    lognormal,    ///< with `repair_sigma`
  };

  /// Seconds from the start of the run, or the end of a repair, to the next failure, on average; infinity: never.
  double mean_up_s = std::numeric_limits<double>::infinity();
  /// Seconds until a failure is noticed. Until then what runs there stands still, and a scheduler may start jobs there.
  double detect_s = 0;
  double up_shape = 1;            ///< of the Weibull distribution: 1 exponential, below 1 failures come in bursts
  double mean_repair_s = 0;       ///< seconds on average
  double repair_sigma = 1;        ///< standard deviation of the logarithm of a log-normal repair time
  Repair repair = Repair::fixed;  ///< its distribution

  /// Seconds until the next failure.
  [[nodiscard]] double draw_up(Rng& rng) const {
    if (!std::isfinite(mean_up_s)) return mean_up_s;
    const double scale = mean_up_s / std::tgamma(1 + 1 / up_shape);
    return scale * std::pow(rng.exponential(1), 1 / up_shape);
  }

  /// Seconds until it is repaired.
  [[nodiscard]] double draw_repair(Rng& rng) const {
    switch (repair) {
      case Repair::exponential: return rng.exponential(mean_repair_s);
      case Repair::lognormal:
        return rng.lognormal(std::log(mean_repair_s) - repair_sigma * repair_sigma / 2, repair_sigma);
      case Repair::fixed: break;
    }
    return mean_repair_s;
  }
};

/// Immutable while a run lasts; the engine borrows it. A node is down while anything that it depends on is.
class NodeFailures {
 public:
  /// Something that fails as a whole and takes its nodes with it: a node, or the switch of a rack.
  struct Unit {
    std::uint32_t law = 0;    ///< in laws()
    std::uint32_t first = 0;  ///< its nodes: a range of members()
    std::uint32_t count = 0;  ///< of them
  };

  /// Adds a law; returns its number.
  std::uint32_t add_law(const FailureLaw& law) {
    laws_.push_back(law);
    return static_cast<std::uint32_t>(laws_.size() - 1);
  }

  /// Adds something that fails by the law of that number and takes these nodes with it.
  void add_unit(std::uint32_t law, std::span<const NodeId> nodes) {
    GPUSCHED_ASSERT(law < laws_.size(), "no such law");
    units_.push_back({law, static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(nodes.size())});
    members_.insert(members_.end(), nodes.begin(), nodes.end());
    const auto unit = static_cast<std::uint32_t>(units_.size() - 1);
    for (const NodeId node : nodes) {
      if (index(node) >= of_nodes_.size()) of_nodes_.resize(index(node) + 1);
      OfNode& of = of_nodes_[index(node)];
      if (nodes.size() == 1) of.rate_per_s += 1 / laws_[law].mean_up_s;
      if (nodes.size() > 1) of.shared.push_back(unit);
    }
  }

  /// Adds changes that are known beforehand, in any order. A node whose first change is that it comes up is down until
  /// then. A change to what the node already is does nothing.
  void add_changes(std::span<const NodeChange> changes) {
    changes_.insert(changes_.end(), changes.begin(), changes.end());
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const NodeChange& a, const NodeChange& b) { return a.time < b.time; });
  }

  /// Keeps the last `count` nodes of the cluster out of service as spares. Whenever more than the spares of a kind
  /// (owner, GPU type, GPUs, MIG layout) are out of service, the first sound spare of that kind comes into service; the
  /// node that it stands in for is a spare when it comes back.
  void keep_spares(std::uint32_t count) { spares_ = count; }
  /// How many nodes are spares.
  [[nodiscard]] std::uint32_t spares() const { return spares_; }

  /// True when nothing ever fails.
  [[nodiscard]] bool is_empty() const { return units_.empty() && changes_.empty(); }
  /// The changes known beforehand, by time.
  [[nodiscard]] std::span<const NodeChange> changes() const { return changes_; }
  /// What fails by a law.
  [[nodiscard]] std::span<const Unit> units() const { return units_; }
  /// Failures a second that take any of these nodes down while they are up, by the laws alone. What takes several of
  /// them with it fails once.
  [[nodiscard]] double rate_per_s(std::span<const NodeId> nodes) const {
    double sum = 0;
    std::vector<std::uint32_t> shared;
    for (const NodeId node : nodes) {
      if (index(node) >= of_nodes_.size()) continue;
      const OfNode& of = of_nodes_[index(node)];
      sum += of.rate_per_s;
      shared.insert(shared.end(), of.shared.begin(), of.shared.end());
    }
    std::sort(shared.begin(), shared.end());
    shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
    for (const std::uint32_t unit : shared) sum += 1 / laws_[units_[unit].law].mean_up_s;
    return sum;
  }
  /// The law of that number.
  [[nodiscard]] const FailureLaw& law(std::uint32_t number) const { return laws_[number]; }
  /// The nodes that a unit takes with it.
  [[nodiscard]] std::span<const NodeId> nodes(const Unit& unit) const {
    return std::span(members_).subspan(unit.first, unit.count);
  }

 private:
  struct OfNode {
    double rate_per_s = 0;                   // of what takes no other node with it
    std::vector<std::uint32_t> shared = {};  // the other units
  };

  std::vector<FailureLaw> laws_;
  std::vector<Unit> units_;
  std::vector<NodeId> members_;
  std::vector<NodeChange> changes_;
  std::vector<OfNode> of_nodes_;  // by node
  std::uint32_t spares_ = 0;
};

}  // namespace gpusched
