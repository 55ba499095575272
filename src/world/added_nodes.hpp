// SPDX-License-Identifier: Apache-2.0
/// Nodes added to a cluster by a word: "+8x8:H100" behind what --cluster takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"

namespace gpusched {

/// "NODESxGPUS[:TYPE]", or "GPUS" for a pool.
struct AddedNodes {
  std::uint32_t nodes = 0;  ///< 0: `gpus` more GPUs of the pool that the cluster is
  std::uint32_t gpus = 0;   ///< of each node
  std::string type = {};    ///< of its GPUs; empty: the cluster's only one
};

/// What stands behind the last plus of `spec`. Error, which names `spec`: it is something else or more than a cluster
/// may have.
Result<AddedNodes> parse_added_nodes(std::string_view text, const std::string& spec);

/// The cluster with these nodes behind its own, and "+TEXT" behind its name. A new node is a copy of the cluster's
/// first node of that GPU type and number of GPUs, or of that type (CPU, memory, islands, how its GPUs are cut and
/// shared), has no owner, and a name ("added1") only where the others have names: jobs of every virtual cluster may run
/// there. Of a type that the cluster does not have, CPU and memory are unlimited. Where the cluster has several racks,
/// new nodes stand in a new one. Errors: several GPU types and none named, nodes for a pool or GPUs for nodes, more
/// nodes than a cluster may have.
Result<Cluster> with_added_nodes(Cluster cluster, const AddedNodes& added, std::string_view text);

/// The cluster with what "+8x8+2x4:H100" adds, or as it is where that is empty. Errors: as of with_added_nodes().
Result<Cluster> add_nodes(Cluster cluster, std::string_view text);

}  // namespace gpusched
