// SPDX-License-Identifier: Apache-2.0
/// HierarchicalShares: the dominant shares of a tree of queues, as H-DRF computes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// The share of a leaf is its dominant share (Ghodsi et al., NSDI'11). That of an inner node is computed from below
/// (Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC'13; the rules are
/// repeated in volcano-sh/volcano, docs/design/hdrf.md):
///
/// 1. A leaf is blocked unless it has a waiting job of which no resource is saturated, that is, all held. An inner node
///    is blocked if all its children are.
/// 2. What each child that is not blocked holds is rescaled, so that all of them have the least share among them; what
///    blocked children hold counts in full. The sum is what the node holds.
/// 3. Its share is the dominant share of that, saturated resources left out.
///
/// Every share is divided by the node's weight. GPUs, CPU and memory count as far as the cluster bounds them. Sums are
/// exact in units of 1e-12, so that the order of changes does not matter; shares that are compared are rounded to 1e-9.
class HierarchicalShares {
 public:
  struct Options {
    bool rescale = true;     ///< false: the naive form, in which a node holds the plain sum, and nothing is left out
    bool skip_empty = true;  ///< children that hold nothing do not count for the least share
  };
  static constexpr std::uint32_t root = 0;

  HierarchicalShares(const Cluster& cluster, Options options);

  /// A new node below `parent`, without jobs. Only a node without children has jobs.
  std::uint32_t add(std::uint32_t parent, std::int64_t weight_milli);

  /// What a job of the leaf did. \{
  void submitted(std::uint32_t leaf, const Shape& shape);
  void withdrawn(std::uint32_t leaf, const Shape& shape);  ///< before it started
  void started(std::uint32_t leaf, const Shape& shape);
  void left(std::uint32_t leaf, const Shape& shape);
  /// \}
  /// Brings all shares up to date with what is saturated now: true if that changed any. Comes before shares are
  /// compared. O(log n), and O(inner nodes x log n) when another resource is saturated than before.
  bool refresh();

  /// The node's share by weight, to be compared with those of its siblings.
  [[nodiscard]] std::int64_t share(std::uint32_t node) const { return nodes_[node].share; }
  /// Whether the share of any inner node has fallen since this was last asked.
  bool has_fallen();
  /// The nodes below the root whose share has changed since this was last asked; some may be there twice.
  std::vector<std::uint32_t> take_changed();

 private:
  __extension__ using Wide = __int128;
  static constexpr std::int64_t whole = 1'000'000'000'000;
  using Resources = std::array<std::int64_t, 3>;  // GPU, CPU, memory
  using Sums = std::array<Wide, 3>;
  // A set of resources is a number below 8; a set of such sets has a bit for each.
  using Wants = std::uint8_t;

  // Children that are blocked by the same saturated resources.
  struct Group {
    std::multiset<std::int64_t> exact_shares = {};  // of those that count for the least
    Sums held = {};                                 // in full
    Sums by_share = {};                             // of each child, over its share
  };
  struct Node {
    std::uint32_t parent = no_index;
    std::int64_t weight_milli = 1000;
    Resources amount = {};                        // of a leaf: thousandths and MiB
    Resources held = {};                          // parts of the cluster; of an inner node, as of rule 2
    std::int64_t exact_share = 0;                 // by weight
    std::int64_t share = 0;                       // rounded, by weight
    Wants wants = 0;                              // sets of resources that jobs below wait for
    std::array<std::uint32_t, 8> wanted_by = {};  // for each set: waiting jobs of a leaf, else children
    std::map<Wants, Group> groups = {};           // of an inner node
  };

  [[nodiscard]] std::uint8_t resources_of(const Shape& shape) const;
  [[nodiscard]] bool is_blocked(Wants wants) const;
  void wait(std::uint32_t leaf, const Shape& shape, int sign);
  void hold(std::uint32_t leaf, const Shape& shape, int sign);
  void leaf_changed(std::uint32_t number, Wants wants);
  void sum_up(const Node& node, Resources& held) const;
  static void set_share(Node& node, std::uint8_t left_out);
  void count_in_parent(const Node& node, int sign);
  bool update(std::uint32_t number);

  Options options_;
  std::vector<Node> nodes_;  // parents before children
  Resources total_ = {};     // 0 = not bounded
  Resources held_ = {};
  std::uint8_t saturated_ = 0;  // set of resources, as of the last refresh()
  bool has_fallen_ = false;
  std::vector<std::uint32_t> changed_;
};

}  // namespace gpusched
