// SPDX-License-Identifier: Apache-2.0
/// Why a waiting job does not run at an instant, as far as the state of the cluster tells.
#pragma once

#include <array>
#include <cstdint>

#include "gpusched/core/named_value.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// The first condition that keeps a job from its GPUs, from the whole cluster to single nodes: each holds where those
/// before it do not.
enum class WaitCause : std::uint8_t {
  no_gpus,        ///< the cluster has fewer free GPUs than the job asks for
  nodes_out,      ///< it would have enough with those of nodes out of service
  queue_nodes,    ///< enough are free, but not on nodes that the job's virtual cluster may use
  gpu_type,       ///< nor of the types that it may use
  quota,          ///< its virtual cluster's quota leaves fewer
  limit,          ///< a limit of its user, account, queue or QOS holds it back (Cluster::limits)
  cpu_memory,     ///< nodes with such GPUs lack CPU, memory, or the instances of cut GPUs
  fragmentation,  ///< enough GPUs are free, but not as many on each node as the job's tasks need
  placement,      ///< they are free on nodes, but the placement rule takes none of these
  power_cap,      ///< the job fits, but a cap on power refuses it
  policy,         ///< the job fits: the policy keeps the GPUs for others
};

/// The name of each in files.
inline constexpr std::array<NamedValue<WaitCause>, 11> wait_cause_names{{{"no_gpus", WaitCause::no_gpus},
                                                                         {"nodes_out", WaitCause::nodes_out},
                                                                         {"queue_nodes", WaitCause::queue_nodes},
                                                                         {"gpu_type", WaitCause::gpu_type},
                                                                         {"quota", WaitCause::quota},
                                                                         {"limit", WaitCause::limit},
                                                                         {"cpu_memory", WaitCause::cpu_memory},
                                                                         {"fragmentation", WaitCause::fragmentation},
                                                                         {"placement", WaitCause::placement},
                                                                         {"power_cap", WaitCause::power_cap},
                                                                         {"policy", WaitCause::policy}}};

/// What was seen.
struct WaitState {
  WaitCause cause = WaitCause::no_gpus;
  /// GPU thousandths that are free where the cause looks: in the cluster, on the nodes of the virtual cluster, of the
  /// types, or within the quota. Of a job of whole GPUs those of which no part is held.
  MilliGpu free_milli = 0;
};

/// Of a gang of `shape` that waits in `queue` (View::queue_of), with the rule by which its nodes are chosen. `cluster`
/// is that of the run. It does not look at power caps. O(nodes). Precondition: the decision of this instant was carried
/// out.
WaitState wait_state(const View& view, const Cluster& cluster, const Shape& shape, std::uint32_t queue, Placement rule);

/// Whether a power cap would refuse a waiting job on the nodes that its placement rule takes now; false where none are
/// found, or no caps are known. O(nodes + jobs) under caps. The same precondition.
bool power_cap_refuses(const View& view, JobId job);

}  // namespace gpusched
