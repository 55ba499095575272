// SPDX-License-Identifier: Apache-2.0
/// Cluster: the machines of a run. Immutable during a run; what is free at an instant is
/// ClusterState (cluster_state.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/limit_rules.hpp"
#include "gpusched/data/mig.hpp"
#include "gpusched/data/span_model.hpp"

namespace gpusched {

/// How jobs with shares of the same GPU get along.
enum class SharingMode : std::uint8_t {
  mps,           ///< they run at once (NVIDIA MPS), and slow each other as the runtime model says
  time_slicing,  ///< they take equal turns: each of k tasks on a card runs at 1/k of its speed
};

/// One machine. CPU and memory are unlimited unless the cluster file gives them.
struct Node {
  std::uint32_t gpus = 0;       ///< GPUs of the node; 0 = CPU only
  std::uint32_t gpu_type = 0;   ///< index into Cluster::gpu_types
  std::uint32_t vc = no_index;  ///< virtual cluster that owns the node (index into Cluster::vcs); no_index = anyone
  /// Virtual clusters that own the node together (index into Cluster::vc_groups); no_index = what `vc` says. Nodes with
  /// such owners leave `vc` at no_index.
  std::uint32_t vc_group = no_index;
  std::int64_t cpu_milli = unlimited;   ///< thousandths of a core
  std::int64_t memory_mib = unlimited;  ///< MiB
  std::uint32_t rack = 0;               ///< nodes of equal numbers share a rack
  /// GPUs of an island: neighbours, counted from the node's first GPU, that a fast link such as NVLink joins; 0 = the
  /// node is one island. A divisor of `gpus`.
  std::uint32_t island_gpus = 0;
  std::uint32_t mig = no_index;            ///< how its GPUs are cut (index into Cluster::migs); no_index = they are not
  SharingMode sharing = SharingMode::mps;  ///< of jobs that share a GPU which is not cut
  bool counts_only = false;                ///< a pool: GPUs are a number, not devices (always so above 64 GPUs)
  std::string name = {};                   ///< for reports; may be empty
};

/// A virtual cluster: a part of the machines with a queue of its own.
struct VirtualCluster {
  std::string name;            ///< as jobs name it (JobRecord::vc)
  MilliGpu quota = unlimited;  ///< most GPU thousandths its jobs may hold at once
};

/// What GPUs talk over at one level of the cluster (Span). A message of B bytes takes latency + B / bandwidth.
struct LinkClass {
  std::string name = {};          ///< "NVLink 4"; for reports, may be empty
  double latency_us = 0;          ///< microseconds, 0 or more
  double bandwidth_gb_per_s = 0;  ///< 1e9 bytes a second that one GPU gets in one direction; above 0
};

/// The GPU type of machines that were not described further; it meets every job's demand.
inline constexpr std::string_view any_gpu_type = "GPU";

/// The kind of devices that a job asks for which names none. Other kinds (cpu, fpga, npu, ...) are any other word.
inline constexpr std::string_view gpu_kind = "gpu";

/// What the devices of one type are ("GPU" stands for all of them in names).
struct DeviceType {
  std::string kind = std::string(gpu_kind);  ///< gpu, fpga, npu, ...: jobs that name no type or kind get GPUs
  std::int64_t memory_mib = unlimited;       ///< of one device, MiB; a job that needs more cannot run there
  friend bool operator==(const DeviceType&, const DeviceType&) = default;  ///< field by field
};

/// The whole cluster, a plain value.
struct Cluster {
  std::string name = {};                                             ///< of the cluster, for reports
  std::vector<Node> nodes = {};                                      ///< indexed by NodeId
  std::vector<std::string> gpu_types = {std::string(any_gpu_type)};  ///< distinct names, indexed by Node::gpu_type
  std::vector<DeviceType> devices = {};                              ///< by type, like gpu_types; empty: plain GPUs
  std::vector<VirtualCluster> vcs = {};                              ///< empty: one queue, no quotas
  /// Sets of virtual clusters (indices into `vcs`, rising) that own nodes together: Slurm partitions that overlap.
  std::vector<std::vector<std::uint32_t>> vc_groups = {};
  std::vector<std::uint32_t> rack_sites = {};  ///< the site of each rack, by number (Node::rack); empty: one site
  /// By number, the names that a cluster file gives racks, each empty where it gives none; may be shorter than there
  /// are racks. Empty: none has a name.
  std::vector<std::string> rack_names = {};
  /// The link of each Span; no name and no bandwidth where the cluster has no such level. Empty: not known.
  std::vector<LinkClass> links = {};
  std::vector<LimitRule> limits = {};  ///< what users, accounts, queues and QOS may hold at once
  std::vector<MigNode> migs = {};      ///< the ways in which GPUs of nodes are cut; empty: none is

  /// The site that the rack stands in.
  [[nodiscard]] std::uint32_t site_of(std::uint32_t rack) const {
    return rack < rack_sites.size() ? rack_sites[rack] : 0;
  }

  /// The widest span that the tasks of a gang can have here.
  [[nodiscard]] Span widest_span() const {
    Span widest = Span::node;
    for (const Node& node : nodes) {
      const Node& first = nodes.front();
      Span span = &node == &first ? Span::node : Span::nodes;
      if (node.rack != first.rack) span = Span::racks;
      if (site_of(node.rack) != site_of(first.rack)) span = Span::sites;
      if (span == Span::node && node.island_gpus > 0) span = Span::islands;
      widest = std::max(widest, span);
    }
    return widest;
  }

  /// True when jobs of virtual cluster `queue` may run on nodes of these owners (Node::vc, Node::vc_group).
  [[nodiscard]] bool owners_serve(std::uint32_t vc, std::uint32_t vc_group, std::uint32_t queue) const {
    if (vc_group == no_index) return vc == no_index || vc == queue;
    return std::binary_search(vc_groups[vc_group].begin(), vc_groups[vc_group].end(), queue);
  }

  /// What the devices of that type are. Precondition: gpu_type < gpu_types.size().
  [[nodiscard]] DeviceType device(std::uint32_t gpu_type) const {
    return gpu_type < devices.size() ? devices[gpu_type] : DeviceType{};
  }

  /// GPUs of all nodes.
  [[nodiscard]] std::int64_t total_gpus() const {
    std::int64_t sum = 0;
    for (const Node& node : nodes) sum += node.gpus;
    return sum;
  }

  /// `count` equal nodes of `gpus` each: what "--cluster 75x8" means.
  static Cluster homogeneous(std::uint32_t count, std::uint32_t gpus) {
    Cluster cluster{.name = std::to_string(count) + "x" + std::to_string(gpus)};
    cluster.nodes.assign(count, Node{.gpus = gpus, .name = {}});
    return cluster;
  }

  /// One pool that only counts GPUs: what "--cluster 600" means.
  static Cluster pool(std::uint32_t gpus) {
    Cluster cluster = homogeneous(1, gpus);
    cluster.name = std::to_string(gpus);
    cluster.nodes.front().counts_only = true;
    return cluster;
  }

  /// This cluster with its nodes merged into one pool for each (owners, GPU type): placement "count".
  [[nodiscard]] Cluster pooled() const {
    Cluster merged = *this;
    merged.nodes.clear();
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Node> pools;
    const auto sum = [](std::int64_t a, std::int64_t b) { return std::min(unlimited, a + b); };
    for (const Node& node : nodes) {
      Node& pool =
          pools.try_emplace({node.vc, node.vc_group, node.gpu_type}, Node{.cpu_milli = 0, .memory_mib = 0, .name = {}})
              .first->second;
      pool.gpus += node.gpus;
      pool.gpu_type = node.gpu_type;
      pool.vc = node.vc;
      pool.vc_group = node.vc_group;
      pool.counts_only = true;
      pool.cpu_milli = sum(pool.cpu_milli, node.cpu_milli);
      pool.memory_mib = sum(pool.memory_mib, node.memory_mib);
    }
    for (auto& [key, pool] : pools) merged.nodes.push_back(std::move(pool));
    return merged;
  }
};

}  // namespace gpusched
