// SPDX-License-Identifier: Apache-2.0
// The one table of policies. A new policy is a file of its own and a line here.
#include "src/policies/fifo.hpp"
#include "src/policies/las_queues.hpp"
#include "src/policies/muri.hpp"
#include "src/policies/packing.hpp"
#include "src/policies/registry.hpp"
#include "src/policies/sjf.hpp"
#include "src/policies/srtf.hpp"

namespace gpusched {

PolicyRegistry PolicyRegistry::standard() {
  PolicyRegistry registry;
  registry.add(fifo_info());
  registry.add(fifo_skip_info());
  registry.add(sjf_info());
  registry.add(srtf_info());
  registry.add(srsf_info());
  registry.add(tiresias_code_info());
  registry.add(srtf_muri_info());
  registry.add(srsf_muri_info());
  registry.add(tiresias_muri_info());
  registry.add(fgd_info());
  registry.add(best_fit_info());
  registry.add(dot_prod_info());
  registry.add(gpu_packing_info());
  registry.add(gpu_clustering_info());
  registry.add(random_node_info());
  return registry;
}

}  // namespace gpusched
