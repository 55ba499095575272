// SPDX-License-Identifier: Apache-2.0
/// Clusters by name, by size or from a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"

namespace gpusched {

class InputFile;

/// What `--cluster` takes: a built-in name, "NODESxGPUS[:TYPE]" ("75x8": 75 nodes of 8 GPUs; "75x8:V100": of that GPU
/// type), "RACKSxNODESxGPUS[:TYPE]" ("10x8x8": 10 racks of 8 such nodes), "GPUS" ("600": one pool that only counts), or
/// the path of a file that read_cluster() reads; behind each may stand "+NODESxGPUS[:TYPE]", once or several times:
/// "lab.json+8x8:H100" (added_nodes.hpp). A file whose name has a plus or a colon is that file. The error names what is
/// known.
Result<Cluster> parse_cluster(const std::string& spec);

/// The same text without what is added behind it: the name, size or file.
std::string cluster_without_added(const std::string& spec);

/// Reads a cluster from a file, plain or compressed: the node list of openb (sn,cpu_milli,memory_mib,gpu,model), of
/// PAI-2020 (pai_machine_spec, with or without a header line) or of the 2026 spot trace
/// (gpu_model,gpu_capacity_num,cpu_num,node_name), Philly's cluster_machine_list, virtual clusters of 8-GPU nodes
/// (vc,node num), Slurm's nodes (slurm_nodes.hpp), or gpusched's own JSON (cluster_from_json()). Errors carry file,
/// line and field.
Result<Cluster> read_cluster(const std::string& path);
/// The same from an open file; `path` is for its name and for messages.
Result<Cluster> read_cluster(InputFile& file, const std::string& path);

/// Reads gpusched's JSON form, strictly:
///   {"name": "lab", "vcs": [{"name": "a", "quota_gpus": 32}], "limits": [{"per": "user", "gpus": 8}],
///    "nodes": [{"count": 4, "gpus": 8, "gpu_type": "V100", "cpus": 96, "memory_gib": 512, "vc": "a",
///               "island_gpus": 4, "rack": "r1", "site": "s1", "name": "n", "mig": "dynamic", "sharing": "mps"}],
///    "links": {"node": {"name": "NVLink", "latency_us": 8, "bandwidth_gb_per_s": 358}, "islands": ..., "nodes": ...,
///              "racks": ..., "sites": ...}}
/// Only `nodes` and its `gpus` are needed; CPU and memory are unlimited where they are not given, a node without `vc`
/// serves everyone, one with an array of names all of these, nodes without `island_gpus` are one island, nodes without
/// `rack` stand in one, that of their site, and nodes without `site` in one site. `limits`: read_limit()
/// (limit_json.hpp). `links` gives the link class of each Span that the cluster has. `mig` cuts the node's GPUs
/// (gpusched/data/mig.hpp): "dynamic", "dynamic-first-fit", a list of profiles for every GPU, a list of such lists by
/// GPU, or {"layout": one of these, "model": "A100-40GB", "reconfigure_s": 10}. `sharing` is mps or time-slicing
/// (SharingMode). `file` is for messages only. Errors carry the JSON path; a rack in two sites is one.
Result<Cluster> cluster_from_json(std::string_view text, const std::string& file);

/// The cluster in that form, a line a node, or a line for neighbours that differ in nothing. cluster_from_json() gives
/// the same cluster back, but pools (Node::counts_only) become nodes.
std::string cluster_file_text(const Cluster& cluster);

/// A cluster that needs no file.
struct BuiltinCluster {
  std::string name;
  std::string summary;
  std::string source;
};
std::vector<BuiltinCluster> builtin_clusters();

}  // namespace gpusched
