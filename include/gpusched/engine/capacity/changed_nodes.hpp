// SPDX-License-Identifier: Apache-2.0
/// ChangedNodes: which nodes of a cluster changed last, so that a copy is brought up to date without a look at all.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// A value. It remembers as many changes as it pays to follow one by one. Small clusters are copied in no time and
/// remember none.
class ChangedNodes {
 public:
  /// A point in the history of a cluster. Histories that differ have different ones: copies that went apart, and
  /// clusters that began apart.
  struct Mark {
    std::uint64_t changes = 0;      ///< so far
    std::uint64_t fingerprint = 0;  ///< of all of them
    /// Both are equal.
    friend bool operator==(const Mark&, const Mark&) = default;
  };

  /// Remembers nothing.
  ChangedNodes() = default;
  /// For a cluster of that size.
  explicit ChangedNodes(std::size_t nodes) : last_(nodes < few_nodes ? 0 : std::bit_floor(nodes / 4)) {}

  /// Number `id` is such a node now.
  void note(std::uint32_t id, const NodeState& node) {
    if (last_.empty()) return;
    // Changes of what is free on equal GPUs differ in CPU or memory alone.
    mix(id + node.idle_devices);
    mix(static_cast<std::uint64_t>(node.free_milli + node.cpu_milli));
    mix(static_cast<std::uint64_t>(node.memory_mib));
    last_[now_.changes & (last_.size() - 1)] = {id, now_.fingerprint};
    ++now_.changes;
  }

  /// This point.
  [[nodiscard]] Mark mark() const { return now_; }
  /// True when the changes after `mark`, a point of this history, are remembered.
  [[nodiscard]] bool remembers(const Mark& mark) const {
    if (now_.changes - mark.changes >= last_.size()) return false;
    if (mark.changes == 0 || mark == now_) return true;
    return last_[(mark.changes - 1) & (last_.size() - 1)].fingerprint == mark.fingerprint;
  }
  /// Calls visit(node) for each of them, for a node as often as it changed. Precondition: remembers(mark).
  template <class Visit>
  void for_each_since(const Mark& mark, Visit visit) const {
    const std::uint64_t end = now_.changes;
    for (std::uint64_t at = mark.changes; at < end; ++at) visit(last_[at & (last_.size() - 1)].node);
  }

 private:
  struct Change {
    std::uint32_t node = 0;
    std::uint64_t fingerprint = 0;
  };
  static constexpr std::size_t few_nodes = 64;

  void mix(std::uint64_t value) {
    now_.fingerprint = std::rotl((now_.fingerprint ^ value) * 0x9e3779b97f4a7c15u, 29);  // odd; 2^64 / the golden ratio
  }

  std::vector<Change> last_;  // a ring of 2^n
  Mark now_;
};

}  // namespace gpusched::detail
