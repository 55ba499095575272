// SPDX-License-Identifier: Apache-2.0
/// Which GPUs of a node a job gets, where some are linked more closely than others ("islands").
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/data/span_model.hpp"
#include "gpusched/engine/capacity/node_state.hpp"

namespace gpusched::detail {

/// How far apart GPUs of one node are.
[[nodiscard]] inline Span span_within(const NodeState& node, std::uint64_t devices) {
  if (node.island_gpus == 0 || devices == 0) return Span::node;
  const auto lowest = static_cast<std::uint32_t>(std::countr_zero(devices));
  const auto highest = static_cast<std::uint32_t>(std::bit_width(devices) - 1);
  return lowest / node.island_gpus == highest / node.island_gpus ? Span::node : Span::islands;
}

/// The lowest-numbered `gpus` of a set of GPUs that has as many.
[[nodiscard]] inline std::uint64_t lowest_of(std::uint64_t devices, std::int64_t gpus) {
  std::uint64_t rest = devices;
  for (; gpus > 0; --gpus) rest &= rest - 1;
  return devices & ~rest;
}

/// Those of `idle`, GPUs of the node, that stand on the island which has the fewest of at least `gpus`, or else the
/// most. Precondition: the node has islands.
[[nodiscard]] inline std::uint64_t best_island(const NodeState& node, std::uint64_t idle, std::int64_t gpus) {
  const std::uint64_t island = ~std::uint64_t{0} >> (64 - node.island_gpus);
  std::uint64_t best = 0;
  for (std::uint32_t first = 0; first < node.gpus; first += node.island_gpus) {
    const std::uint64_t here = idle & island << first;
    const std::int64_t count = std::popcount(here), most = std::popcount(best);
    const bool better = count >= gpus ? most < gpus || count < most : most < gpus && count > most;
    if (better) best = here;
  }
  return best;
}

/// The lowest-numbered idle GPUs of the node; where it has islands, of the fullest island that holds all, else of the
/// emptiest one after another. None on a node that does not tell its GPUs apart. Precondition: so many are idle.
[[nodiscard]] inline std::uint64_t pick_gpus(const NodeState& node, std::int64_t gpus) {
  if (!node.has_devices) return 0;
  if (node.island_gpus == 0) return lowest_of(node.idle_devices, gpus);
  std::uint64_t picked = 0;
  while (gpus > 0) {
    const std::uint64_t idle = best_island(node, node.idle_devices & ~picked, gpus);
    const std::int64_t here = std::min<std::int64_t>(gpus, std::popcount(idle));
    picked |= lowest_of(idle, here);
    gpus -= here;
  }
  return picked;
}

}  // namespace gpusched::detail
