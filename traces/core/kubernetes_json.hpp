// SPDX-License-Identifier: Apache-2.0
/// What Kubernetes' objects in JSON say of resources, as pods and nodes have them.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/core/json_records.hpp"

namespace gpusched {

/// A quantity such as "500m", "2", "64Gi", "1e3" or a number, in thousandths of its unit, rounded up; nothing where it
/// is none. (kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity)
std::optional<std::int64_t> kubernetes_milli(const JsonRecord& value);

/// The resources that a map of them names. GPUs are "nvidia.com/gpu", "amd.com/gpu" and other names that end in "/gpu",
/// also what shares of them are called ("nvidia.com/gpu.shared"); slices are "nvidia.com/mig-1g.5gb".
struct KubernetesResources {
  std::int64_t cpu_milli = -1, memory_mib = -1;     ///< -1: not said
  std::int64_t gpus = 0;                            ///< whole cards
  std::int64_t shares = 0;                          ///< time-sliced or shared GPUs
  std::map<std::string, std::int64_t> slices = {};  ///< by MIG profile
  std::vector<std::string> unread = {};             ///< names of other devices ("habana.ai/gaudi")
};
/// Nothing where a quantity is none; `wrong` is then its name.
std::optional<KubernetesResources> kubernetes_resources(const JsonRecord* map, std::string& wrong);

/// The labels of nodes that name their GPU's product.
inline constexpr const char* kubernetes_products[] = {"nvidia.com/gpu.product", "amd.com/gpu.product-name",
                                                      "cloud.google.com/gke-accelerator"};
/// The product without what its name says of how GPUs are shared ("-SHARED") or cut ("-MIG-1g.5gb").
std::string kubernetes_product(std::string name);

/// True when the text begins like a list of objects of that kind, or one: "Pod", "Node".
bool is_kubernetes(std::string_view head, std::string_view kind);

}  // namespace gpusched
