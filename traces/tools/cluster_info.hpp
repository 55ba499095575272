// SPDX-License-Identifier: Apache-2.0
/// What a cluster holds, for people: `gpusched cluster show`.
#pragma once

#include <string>

#include "gpusched/data/cluster.hpp"
#include "src/base/text_style.hpp"

namespace gpusched {

/// "lab: 12 nodes, 64 GPUs (A100 48, V100 16), queues gpu, cpu".
std::string cluster_line(const Cluster& cluster);

/// The same line, then a row for each kind of node: how many, GPUs, type, cores, memory and owners.
std::string cluster_text(const Cluster& cluster, const TextStyle& style = {});

}  // namespace gpusched
