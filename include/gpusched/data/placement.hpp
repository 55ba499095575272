// SPDX-License-Identifier: Apache-2.0
/// Placement: the names of the rules that choose nodes for a gang. The rules themselves are in node_search.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusched {

/// Where the tasks of a gang go. The fullest node has the fewest idle GPUs or, for tasks that share GPUs, the least GPU
/// capacity left; ties go to the lowest node id. All rules fill a chosen node with as many tasks as fit, except
/// worst_fit, which places task by task. Only yarn and helios may refuse a gang of one-GPU tasks although that many
/// GPUs are idle: they wait for whole nodes instead of using remnants.
enum class Placement : std::uint8_t {
  consolidate,  ///< fewest nodes: the fullest node that holds all the rest, else the emptiest node; as `rack` where a
                ///< SpanModel makes gangs slower that are apart
  first_fit,    ///< nodes in id order
  best_fit,     ///< pack: the fullest node that holds all the rest, else the fullest node that holds a task
  worst_fit,    ///< spread: each task to the emptiest node
  random,       ///< a node drawn uniformly among those that hold a task (seeded)
  rack,         ///< as consolidate, but within one site and the fewest racks (Node::rack) when no node holds all
  /// Muri's and the Tiresias simulator's `yarn`: a gang that an empty node could hold goes to the first node that holds
  /// it; a larger one takes completely idle nodes whole, in id order, and the first other node that holds the rest.
  yarn,
  /// HeliosArtifact's `consolidate` (SC'21): as yarn, but the fullest node that holds a small gang, and the emptiest
  /// for the rest of a large one.
  helios,
  /// The GPU types on which the gang is fastest: as few of the slower types as hold it now, because it runs at the
  /// speed of its slowest task; among the nodes of these types as consolidate. As consolidate where all types are
  /// equally fast for the job.
  fastest,
  /// As Tiresias (NSDI'19, section 3.3): jobs of families whose models have a few very large tensors
  /// (SpanModel::is_skewed) as consolidate, all others as best_fit.
  skew,
};

/// True where a gang of one-GPU tasks is never refused while that many GPUs are idle.
constexpr bool uses_remnants(Placement rule) { return rule != Placement::yarn && rule != Placement::helios; }

/// A row of placement_names.
struct PlacementName {
  std::string_view name;     ///< as given to --placement
  Placement placement;       ///< the rule
  std::string_view summary;  ///< one line for help texts
};

/// Every placement rule by its command-line name. "count" is not here: it merges the nodes (Cluster::pooled).
inline constexpr std::array<PlacementName, 10> placement_names{{
    {"consolidate", Placement::consolidate, "few nodes: best fit on one node, else the emptiest nodes first"},
    {"first-fit", Placement::first_fit, "nodes in id order"},
    {"best-fit", Placement::best_fit, "pack: the fullest nodes that fit"},
    {"worst-fit", Placement::worst_fit, "spread: each task to the emptiest node"},
    {"random", Placement::random, "uniformly random nodes that fit (seeded)"},
    {"rack", Placement::rack, "as consolidate, in few racks"},
    {"yarn", Placement::yarn, "first node that fits, else idle nodes whole (Muri, Tiresias simulator)"},
    {"consolidate@helios", Placement::helios, "best fit on one node, else idle nodes whole (HeliosArtifact)"},
    {"fastest", Placement::fastest, "the GPU types on which the job is fastest; among their nodes as consolidate"},
    {"skew", Placement::skew, "families marked skewed (--communication) as consolidate, others as best-fit (Tiresias)"},
}};

/// The rule called `name`, if any.
constexpr std::optional<Placement> placement_from_name(std::string_view name) {
  for (const PlacementName& entry : placement_names) {
    if (entry.name == name) return entry.placement;
  }
  return std::nullopt;
}

}  // namespace gpusched
