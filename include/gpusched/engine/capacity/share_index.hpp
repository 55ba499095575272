// SPDX-License-Identifier: Apache-2.0
/// ShareIndex: nodes by what a share of a GPU finds there, which answers "the fullest node with a card that has 0.3 of
/// a GPU left" without a look at every node.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// Of each class of nodes: by the most that one of a node's cards has left, then by what is free on the whole node. It
/// is made once searches have come often enough to pay for it, and then brought up to date by the nodes that changed
/// since. A copy begins without one, because most copies of a cluster place few jobs.
class ShareIndex {
 public:
  /// Nothing.
  ShareIndex() = default;
  ~ShareIndex() = default;
  /// Copies make their own index.
  ShareIndex(const ShareIndex&) {}
  /// \copydoc ShareIndex(const ShareIndex&)
  ShareIndex& operator=(const ShareIndex& other) {
    if (this != &other) *this = ShareIndex();
    return *this;
  }
  /// A moved index stays one.
  ShareIndex(ShareIndex&&) = default;
  /// \copydoc ShareIndex(ShareIndex&&)
  ShareIndex& operator=(ShareIndex&&) = default;

  /// A search is about to look at all nodes. Makes the index instead, or brings it up to date: true when it can be
  /// asked. `most_left(node)`: the thousandths of the card of it that has the most.
  template <class MostLeft>
  bool prepare(const std::vector<NodeState>& nodes, std::uint32_t classes, MostLeft most_left) {
    constexpr std::size_t few_nodes = 16;
    constexpr std::uint32_t few_searches = 8;
    if (nodes.size() < few_nodes) return false;
    if (listed_.empty()) {
      if (++searches_ < few_searches) return false;
      listed_.resize(nodes.size());
      classes_.resize(classes);
      for (std::uint32_t id = 0; id < nodes.size(); ++id) note(id);
    }
    for (const std::uint32_t id : stale_) relist(id, nodes[id], most_left(nodes[id]));
    stale_.clear();
    return true;
  }

  /// Something is held or free on node `id` that was not.
  void note(std::uint32_t id) {
    if (listed_.empty() || listed_[id].is_stale) return;
    listed_[id].is_stale = true;
    stale_.push_back(id);
  }

  /// The node of the least free thousandths, of equal ones the lowest id, in classes of those numbers with a card that
  /// has `share` thousandths left; no_node: there is none. Precondition: prepare() was true, and nothing changed since.
  [[nodiscard]] NodeId fullest_with(MilliGpu share, const std::vector<std::uint32_t>& classes) const {
    Place best{unlimited, no_index};
    for (const std::uint32_t number : classes) {
      const ByMostLeft& levels = classes_[number];
      for (auto level = levels.lower_bound(share); level != levels.end(); ++level) {
        best = std::min(best, *level->second.begin());
      }
    }
    return NodeId{best.second};
  }

 private:
  using Place = std::pair<MilliGpu, std::uint32_t>;  // free on the node, id
  using ByMostLeft = std::map<MilliGpu, std::set<Place>>;
  struct Listed {
    MilliGpu most_left = 0;  // 0: it is in no set
    MilliGpu free = 0;
    bool is_stale = false;
  };

  void relist(std::uint32_t id, const NodeState& node, MilliGpu most_left) {
    Listed& listed = listed_[id];
    ByMostLeft& levels = classes_[node.node_class];
    listed.is_stale = false;
    if (listed.most_left == most_left && listed.free == node.free_milli) return;
    if (const auto level = levels.find(listed.most_left); level != levels.end() && listed.most_left > 0) {
      level->second.erase({listed.free, id});
      if (level->second.empty()) levels.erase(level);
    }
    if (most_left > 0) levels[most_left].insert({node.free_milli, id});
    listed.most_left = most_left;
    listed.free = node.free_milli;
  }

  std::vector<ByMostLeft> classes_;
  std::vector<Listed> listed_;  // by node; empty: there is no index
  std::vector<std::uint32_t> stale_;
  std::uint32_t searches_ = 0;
};

}  // namespace gpusched::detail
