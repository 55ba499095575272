// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/gang_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/differential/check_many.hpp"

namespace gpusched {
namespace {

YarnPlacement on(const Cluster& cluster) { return YarnPlacement(ClusterState(cluster, NameTable{}, Rng{})); }

/// Tasks by node, or nothing when the gang does not fit.
using Tasks = std::optional<std::vector<std::uint32_t>>;

Tasks place(YarnPlacement& placement, std::uint32_t need, std::size_t nodes) {
  GangNodes parts;
  if (!placement.place(need, parts)) return {};
  std::vector<std::uint32_t> tasks(nodes, 0);
  for (const NodeTasks& part : parts) tasks[index(part.node)] += part.tasks;
  return tasks;
}

TEST(YarnPlacement, ALargeGangTakesIdleNodesAndTheRestElsewhere) {
  YarnPlacement placement = on(Cluster::homogeneous(3, 4));
  EXPECT_EQ(place(placement, 2, 3), (std::vector<std::uint32_t>{2, 0, 0}));
  EXPECT_EQ(place(placement, 6, 3), (std::vector<std::uint32_t>{2, 4, 0}))
      << "node 1 whole, and two of node 0, the first other node with two free";
  EXPECT_EQ(place(placement, 5, 3), Tasks{});
  EXPECT_EQ(place(placement, 4, 3), (std::vector<std::uint32_t>{0, 0, 4})) << "the refused gang gave its node back";
}

/// The rule from its definition: every question goes through all nodes.
class PlainYarn {
 public:
  explicit PlainYarn(std::vector<std::uint32_t> gpus) : size_(std::move(gpus)), free_(size_) {}

  void reset() { free_ = size_; }

  Tasks place(std::uint32_t need) {
    const std::uint32_t node_gpus = *std::max_element(size_.begin(), size_.end());
    std::vector<std::uint32_t> left = free_, tasks(free_.size(), 0);
    for (std::uint32_t whole = 0; whole <= need / node_gpus; ++whole) {
      const std::uint32_t wanted = whole < need / node_gpus ? node_gpus : need % node_gpus;
      const auto node = std::find_if(left.begin(), left.end(), [&](std::uint32_t free) { return free >= wanted; });
      if (wanted == 0) continue;
      if (node == left.end()) return {};
      *node -= wanted;
      tasks[static_cast<std::size_t>(node - left.begin())] += wanted;
    }
    free_ = left;
    return tasks;
  }

 private:
  std::vector<std::uint32_t> size_, free_;
};

// Gangs of any size onto nodes of any sizes, emptied now and then: the same nodes as by the definition. And what lets a
// walk pass over larger gangs: when one does not fit, no larger one does.
TEST(YarnPlacement, GoesByItsDefinitionAndRefusesWhateverIsLargerThanWhatItRefuses) {
  test::check_many(2000, [] {
    const auto gpus =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 5)));
    Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(gpus.size()), 1);
    std::uint32_t total = 0;
    for (std::size_t node = 0; node < gpus.size(); ++node) total += cluster.nodes[node].gpus = gpus[node];
    YarnPlacement placement = on(cluster);
    PlainYarn plain(gpus);
    for (const std::uint32_t need : *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0u, 12u))) {
      if (need == 0) {
        placement.reset();
        plain.reset();
        continue;
      }
      bool refused = false;
      for (std::uint32_t other = 1; other <= total + 1; ++other) {
        YarnPlacement copy = placement;
        const bool fits = place(copy, other, gpus.size()).has_value();
        RC_ASSERT(!(refused && fits));
        refused = !fits;
      }
      RC_ASSERT(refused);
      RC_ASSERT(place(placement, need, gpus.size()) == plain.place(need));
    }
  });
}

}  // namespace
}  // namespace gpusched
