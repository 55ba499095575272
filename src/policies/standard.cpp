// SPDX-License-Identifier: Apache-2.0
// The one table of policies. A new policy is a file of its own and a line here.
#include "src/policies/fair/drf.hpp"
#include "src/policies/fair/lsf.hpp"
#include "src/policies/fair/max_min.hpp"
#include "src/policies/fair/share_queues.hpp"
#include "src/policies/fair/slurm.hpp"
#include "src/policies/fair/static_partition.hpp"
#include "src/policies/fair/themis.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/orders/edf.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/ljf.hpp"
#include "src/policies/orders/qssf.hpp"
#include "src/policies/orders/regression_scores.hpp"
#include "src/policies/orders/saf.hpp"
#include "src/policies/orders/sjf.hpp"
#include "src/policies/orders/unicep.hpp"
#include "src/policies/orders/wfp3.hpp"
#include "src/policies/packing/k8s.hpp"
#include "src/policies/packing/packing.hpp"
#include "src/policies/preemptive/attained_service.hpp"
#include "src/policies/preemptive/gandiva.hpp"
#include "src/policies/preemptive/priority_classes.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "src/policies/published/helios.hpp"
#include "src/policies/published/las_queues.hpp"
#include "src/policies/published/muri.hpp"
#include "src/policies/published/tiresias_rounds.hpp"
#include "src/policies/seam/priority_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

PolicyRegistry PolicyRegistry::standard() {
  PolicyRegistry registry;
  registry.add(fifo_info());
  registry.add(fifo_skip_info());
  registry.add(sjf_info());
  registry.add(saf_info());
  registry.add(ljf_info());
  registry.add(lpjf_info());
  registry.add(f1_info());
  registry.add(f2_info());
  registry.add(f3_info());
  registry.add(f4_info());
  registry.add(wfp3_info());
  registry.add(wfp3_sc20_info());
  registry.add(unicep_info());
  registry.add(unicep_sc20_info());
  registry.add(qssf_info());
  registry.add(fifo_helios_info());
  registry.add(sjf_helios_info());
  registry.add(qssf_helios_info());
  registry.add(srtf_helios_info());
  registry.add(edf_info());
  registry.add(priority_info());
  registry.add(srtf_info());
  registry.add(srsf_info());
  registry.add(las_info());
  registry.add(tiresias_info());
  registry.add(tiresias_gittins_info());
  registry.add(tiresias_code_info());
  registry.add(srtf_muri_info());
  registry.add(srsf_muri_info());
  registry.add(tiresias_muri_info());
  registry.add(tiresias_pollux_info());
  registry.add(tiresias_lucid_info());
  registry.add(gandiva_info());
  registry.add(max_min_info());
  registry.add(themis_info());
  registry.add(fgd_info());
  registry.add(best_fit_info());
  registry.add(dot_prod_info());
  registry.add(gpu_packing_info());
  registry.add(gpu_clustering_info());
  registry.add(random_node_info());
  registry.add(agenda_info());
  registry.add_prefix(rl_policy_info());
  registry.add(drf_info());
  registry.add(hdrf_info());
  registry.add(static_partition_info());
  registry.add(slurm_info());
  registry.add(lsf_info());
  registry.add(yarn_capacity_info());
  registry.add(yarn_fair_info());
  registry.add(volcano_info());
  registry.add(k8s_info());
  return registry;
}

}  // namespace gpusched
