// SPDX-License-Identifier: Apache-2.0
/// LengthTree: the first of a set of waiting jobs among those believed to be short enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/core/config.hpp"
#include "gpusched/core/rng.hpp"
#include "src/policies/queues/kinetic_tournament.hpp"

namespace gpusched {

/// A search tree over claims by length (believed run time), in which every node knows the first of its subtree in a
/// ClaimOrder: those up to a length are a few whole subtrees, whose firsts are compared. As in a KineticTournament,
/// what a node knows holds until a computed instant. The tree is a treap: nodes that draw a higher rank stand above,
/// which keeps it about 2 log2 n deep whatever comes in which order. push, erase, first: O(log n) in a fixed order; in
/// an ageing one O(log^2 n) amortised.
class LengthTree {
 public:
  explicit LengthTree(ClaimOrder order) : order_(order) {}

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size() - free_.size()); }

  /// Nodes on the longest way down. O(n).
  [[nodiscard]] std::uint32_t height() const { return height(root_); }

  /// One job and its length.
  struct Entry {
    Claim claim;
    Time length{};
  };

  /// Takes in all of these at once, in the time that sorting them takes. Precondition: it is empty.
  void fill(const std::vector<Entry>& entries, Time now) {
    nodes_.clear();
    free_.clear();
    for (const Entry& entry : entries) nodes_.push_back(new_node(entry));
    std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.key() < b.key(); });
    // The longest so far of each rank that none after it exceeds, from the root to the right.
    std::vector<std::uint32_t> spine;
    for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
      nodes_[at].left = pop_below(nodes_[at].rank, spine, now);
      if (!spine.empty()) nodes_[spine.back()].right = at;
      spine.push_back(at);
    }
    root_ = pop_below(~std::uint64_t{0}, spine, now);
  }

  /// Preconditions: the job is not in here; no call went before with a later `now`.
  void push(const Entry& entry, Time now) {
    catch_up(root_, now);
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    const std::uint32_t added = free_.back();
    free_.pop_back();
    nodes_[added] = new_node(entry);
    root_ = insert(root_, added, now);
  }

  /// Preconditions: the entry is in here; as push().
  void erase(const Entry& entry, Time now) {
    catch_up(root_, now);
    root_ = remove(root_, Node{.entry = entry}.key(), now);
  }

  /// The first at `now` of the jobs no longer than `limit`, or no_job.
  [[nodiscard]] JobId first(Time limit, Time now) {
    catch_up(root_, now);
    std::uint32_t best = no_index;
    for (std::uint32_t at = root_; at != no_index;) {
      const Node& node = nodes_[at];
      if (node.entry.length > limit) {
        at = node.left;
        continue;
      }
      best = better(better(best, at, now), winner(node.left), now);
      at = node.right;
    }
    return best == no_index ? no_job : nodes_[best].entry.claim.job;
  }

 private:
  using Key = std::pair<Time, std::uint32_t>;
  struct Node {
    Entry entry;
    std::uint32_t rank = 0;
    std::uint32_t left = no_index, right = no_index;  // shorter; longer
    std::uint32_t first = no_index;                   // of the subtree
    Time holds_until = Time::max();                   // of `first` and all below; from then on to be found again

    [[nodiscard]] Key key() const { return {entry.length, index(entry.claim.job)}; }
  };

  [[nodiscard]] Node new_node(const Entry& entry) {
    return {.entry = entry, .rank = static_cast<std::uint32_t>(ranks_.next())};
  }

  [[nodiscard]] std::uint32_t winner(std::uint32_t at) const { return at == no_index ? no_index : nodes_[at].first; }

  [[nodiscard]] GPUSCHED_HOT std::uint32_t better(std::uint32_t a, std::uint32_t b, Time now) const {
    if (a == no_index || b == no_index) return a == no_index ? b : a;
    return order_.before(nodes_[a].entry.claim, nodes_[b].entry.claim, now) ? a : b;
  }

  [[nodiscard]] std::uint32_t height(std::uint32_t at) const {
    return at == no_index ? 0 : 1 + std::max(height(nodes_[at].left), height(nodes_[at].right));
  }

  // Finds the first of a subtree from the firsts below it.
  void play(std::uint32_t at, Time now) {
    Node& node = nodes_[at];
    const std::uint32_t below[] = {at, winner(node.left), winner(node.right)};
    node.first = better(better(below[0], below[1], now), below[2], now);
    if (!order_.ages) return;
    node.holds_until = Time::max();
    for (const std::uint32_t child : {node.left, node.right}) {
      if (child != no_index) node.holds_until = std::min(node.holds_until, nodes_[child].holds_until);
    }
    for (const std::uint32_t other : below) {
      if (other == no_index || other == node.first) continue;
      node.holds_until =
          std::min(node.holds_until, order_.overtaking(nodes_[node.first].entry.claim, nodes_[other].entry.claim, now));
    }
  }

  void catch_up(std::uint32_t at, Time now) {
    if (at == no_index || nodes_[at].holds_until > now) return;
    catch_up(nodes_[at].left, now);
    catch_up(nodes_[at].right, now);
    play(at, now);
  }

  // Takes what ranks below `rank` off the end of the spine, finds its firsts, and gives the topmost of it.
  std::uint32_t pop_below(std::uint64_t rank, std::vector<std::uint32_t>& spine, Time now) {
    std::uint32_t top = no_index;
    while (!spine.empty() && nodes_[spine.back()].rank < rank) {
      top = spine.back();
      spine.pop_back();
      play(top, now);
    }
    return top;
  }

  // Each of these gives the root of what it made.

  std::uint32_t insert(std::uint32_t at, std::uint32_t added, Time now) {
    if (at == no_index || nodes_[added].rank > nodes_[at].rank) {
      std::tie(nodes_[added].left, nodes_[added].right) = split(at, nodes_[added].key(), now);
      at = added;
    } else {
      std::uint32_t& side = nodes_[added].key() < nodes_[at].key() ? nodes_[at].left : nodes_[at].right;
      side = insert(side, added, now);
    }
    play(at, now);
    return at;
  }

  std::uint32_t remove(std::uint32_t at, const Key& gone, Time now) {
    GPUSCHED_ASSERT(at != no_index, "a job that is in the tree");
    if (nodes_[at].key() == gone) {
      free_.push_back(at);
      return merge(nodes_[at].left, nodes_[at].right, now);
    }
    std::uint32_t& side = gone < nodes_[at].key() ? nodes_[at].left : nodes_[at].right;
    side = remove(side, gone, now);
    play(at, now);
    return at;
  }

  // What is below `bound`, and the rest.
  std::pair<std::uint32_t, std::uint32_t> split(std::uint32_t at, const Key& bound, Time now) {
    if (at == no_index) return {no_index, no_index};
    const bool below = nodes_[at].key() < bound;
    std::uint32_t& inner = below ? nodes_[at].right : nodes_[at].left;
    auto [lower, upper] = split(inner, bound, now);
    inner = below ? lower : upper;
    play(at, now);
    return below ? std::pair{at, upper} : std::pair{lower, at};
  }

  // Precondition: every key of `lower` is below every key of `upper`.
  std::uint32_t merge(std::uint32_t lower, std::uint32_t upper, Time now) {
    if (lower == no_index || upper == no_index) return lower == no_index ? upper : lower;
    const bool lower_above = nodes_[lower].rank > nodes_[upper].rank;
    const std::uint32_t top = lower_above ? lower : upper;
    if (lower_above) {
      nodes_[top].right = merge(nodes_[top].right, upper, now);
    } else {
      nodes_[top].left = merge(lower, nodes_[top].left, now);
    }
    play(top, now);
    return top;
  }

  ClaimOrder order_;
  std::uint32_t root_ = no_index;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  Rng ranks_;
};

}  // namespace gpusched
