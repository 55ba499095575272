// SPDX-License-Identifier: Apache-2.0
/// WithheldCapacity: what is free on nodes that are out of service.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/mig.hpp"

namespace gpusched::detail {

/// A value; its lists are empty until a node goes out of service.
struct WithheldCapacity {
  /// Of one node.
  struct OfNode {
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    MilliGpu milli = 0;
  };
  std::vector<OfNode> nodes = {};
  std::vector<std::int16_t> devices = {};  ///< by card: thousandths
  std::vector<std::int64_t> memory = {};   ///< by card: MiB of device memory, where that counts
  std::vector<MigSlices> slices = {};      ///< by card: memory slices of MIG, where cards are cut
  MilliGpu milli = 0;                      ///< of all nodes
  std::int64_t gpus = 0;                   ///< of the nodes out of service, held or not
  std::uint32_t node_count = 0;            ///< nodes out of service

  /// Makes room for a cluster of that size, the first time. Policies place gangs on copies, so no more than it needs.
  void make_room(std::size_t all_nodes, std::size_t cards, bool counts_memory, bool has_mig) {
    if (!nodes.empty()) return;
    nodes.resize(all_nodes);
    devices.resize(cards);
    if (counts_memory) memory.resize(cards);
    if (has_mig) slices.resize(cards);
  }

  /// Makes the account of a node, whose cards are those from `first` on, as it is in another state of the cluster;
  /// nothing is withheld there while its lists are empty. Precondition: there is room.
  void copy_node(const WithheldCapacity& other, std::uint32_t id, std::uint32_t first, std::uint32_t cards) {
    const auto copy = [](auto& own, const auto& others, std::uint32_t from, std::uint32_t count) {
      if (own.empty()) return;
      for (std::uint32_t at = from; at < from + count; ++at) own[at] = others.empty() ? 0 : others[at];
    };
    nodes[id] = other.nodes.empty() ? OfNode{} : other.nodes[id];
    copy(devices, other.devices, first, cards);
    copy(memory, other.memory, first, cards);
    copy(slices, other.slices, first, cards);
  }
  /// The same for what is told of all nodes.
  void copy_sums(const WithheldCapacity& other) {
    milli = other.milli;
    gpus = other.gpus;
    node_count = other.node_count;
  }
};

}  // namespace gpusched::detail
