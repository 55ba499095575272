// SPDX-License-Identifier: Apache-2.0
/// A Kubernetes cluster as `kubectl get nodes -o json` prints it.
#pragma once

#include <string_view>

#include "gpusched/core/result.hpp"
#include "src/world/slurm_nodes.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {

/// True when the text begins like that output.
bool looks_like_kubernetes_nodes(std::string_view head);

/// Reads it: cores, memory and GPUs are what the nodes have for pods (status.allocatable, else capacity), GPU types
/// what the label of the GPU operator says (nvidia.com/gpu.product, amd.com/gpu.product-name,
/// cloud.google.com/gke-accelerator). MIG instances (nvidia.com/mig-1g.5gb, or a product that ends in MIG-1g.5gb)
/// become cards that are cut so, replicas of time slicing (nvidia.com/gpu.replicas) the cards that take turns. Nodes
/// that are cordoned or not ready are left out unless `with_down`; so are those of the control plane that take no other
/// pods. Errors carry file, line and field.
Result<SlurmCluster> read_kubernetes_nodes(InputFile& file, bool with_down = false);

}  // namespace gpusched
