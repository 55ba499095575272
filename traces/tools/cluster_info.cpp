// SPDX-License-Identifier: Apache-2.0
#include "traces/tools/cluster_info.hpp"

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/base/text_table.hpp"
#include "traces/core/cluster_units.hpp"

namespace gpusched {
namespace {

std::string queues_of(const Cluster& cluster, std::uint32_t vc, std::uint32_t vc_group) {
  if (vc_group == no_index) return vc == no_index ? "all" : cluster.vcs[vc].name;
  std::string names;
  for (const std::uint32_t number : cluster.vc_groups[vc_group]) {
    names += (names.empty() ? "" : ", ") + cluster.vcs[number].name;
  }
  return names;
}

std::string amount(std::int64_t parts, double scale) {
  return parts >= unlimited ? "unlimited" : formatted("%.0f", static_cast<double>(parts) / scale);
}

std::string profiles_text(const MigModel& model, const std::vector<MigInstance>& card) {
  std::string text;
  for (const MigInstance& one : card) text += (text.empty() ? "" : " + ") + std::string(model.all[one.profile].name);
  return text.empty() ? "not in MIG mode" : text;
}

// How the GPUs of such nodes are cut.
std::string mig_text(const MigNode& mig) {
  const MigModel& model = mig_models[mig.model];
  if (mig.layout != MigLayout::fixed) {
    return "cut as jobs come" + std::string(mig.layout == MigLayout::first_fit ? ", at the first start" : "") +
           ", in " + exact_number(to_seconds(mig.reconfigure)) + " s a change (" + std::string(model.name) + ")";
  }
  std::map<std::string, std::uint64_t> layouts;
  for (const std::vector<MigInstance>& card : mig.cards) ++layouts[profiles_text(model, card)];
  std::string text;
  for (const auto& [layout, gpus] : layouts) text += (text.empty() ? "" : "; ") + counted(gpus, "GPU") + ": " + layout;
  return text;
}

// How GPUs are shared, where the cluster says it; a line for each way.
std::string sharing_text(const Cluster& cluster) {
  std::vector<std::uint64_t> cut(cluster.migs.size());
  std::uint64_t sliced = 0;
  for (const Node& node : cluster.nodes) {
    if (node.mig != no_index) ++cut[node.mig];
    sliced += node.sharing == SharingMode::time_slicing ? 1 : 0;
  }
  std::string text;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    text += counted(cut[i], "node") + " with MIG: " + mig_text(cluster.migs[i]) + "\n";
  }
  if (sliced > 0) text += counted(sliced, "node") + " with time slicing\n";
  return text;
}

// Racks, sites and islands, where there are several, and links, where they are known; a line each.
std::string topology_text(const Cluster& cluster, const TextStyle& style) {
  std::set<std::uint32_t> racks, sites;
  std::map<std::uint32_t, std::uint64_t> islands;
  for (const Node& node : cluster.nodes) {
    racks.insert(node.rack);
    sites.insert(cluster.site_of(node.rack));
    if (node.island_gpus > 0) ++islands[node.island_gpus];
  }
  std::string text;
  if (racks.size() > 1) text += counted(racks.size(), "rack") + " in " + counted(sites.size(), "site") + "\n";
  for (const auto& [gpus, nodes] : islands) {
    text += counted(nodes, "node") + " with islands of " + counted(gpus, "GPU") + "\n";
  }
  text += sharing_text(cluster);
  if (cluster.links.empty()) return text;
  TextTable table({"link within or between", "name", "latency us", "GB/s"});
  for (const NamedValue<Span>& span : span_names) {
    const LinkClass& link = cluster.links[static_cast<std::size_t>(span.value)];
    if (link.bandwidth_gb_per_s <= 0) continue;
    table.add(
        {std::string(span.name), link.name, exact_number(link.latency_us), exact_number(link.bandwidth_gb_per_s)});
  }
  return text + (text.empty() ? "" : "\n") + table.text(style);
}

}  // namespace

std::string cluster_line(const Cluster& cluster) {
  std::map<std::string, std::uint64_t> gpus;
  for (const Node& node : cluster.nodes) {
    if (node.gpus > 0) gpus[cluster.gpu_types[node.gpu_type]] += node.gpus;
  }
  std::string types;
  for (const auto& [type, count] : gpus) types += (types.empty() ? "" : ", ") + type + " " + human_count(count);
  std::string text =
      counted(cluster.nodes.size(), "node") + ", " + counted(static_cast<std::uint64_t>(cluster.total_gpus()), "GPU");
  if (gpus.size() > 1 || (gpus.size() == 1 && gpus.begin()->first != any_gpu_type)) text += " (" + types + ")";
  if (!cluster.vcs.empty()) {
    text += ", queues";
    for (std::size_t i = 0; i < cluster.vcs.size(); ++i) text += (i == 0 ? " " : ", ") + cluster.vcs[i].name;
  }
  return text;
}

std::string cluster_text(const Cluster& cluster, const TextStyle& style) {
  using Kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;
  std::map<Kind, std::uint64_t> kinds;
  for (const Node& node : cluster.nodes) {
    ++kinds[{node.vc, node.vc_group, node.gpu_type, node.gpus, node.cpu_milli, node.memory_mib}];
  }
  const bool described = !cluster.devices.empty();
  std::vector<std::string> header = {"type", "nodes", "GPUs", "cores", "memory GiB", "queues"};
  if (described) header.insert(header.begin() + 1, {"kind", "GiB each"});
  TextTable table(header);
  for (const auto& [kind, count] : kinds) {
    const auto& [vc, vc_group, type, gpus, cpu, memory] = kind;
    std::vector<std::string> row = {gpus == 0 ? "CPU" : cluster.gpu_types[type],
                                    human_count(count),
                                    human_count(gpus),
                                    amount(cpu, milli_per_core),
                                    amount(memory, mib_per_gib),
                                    queues_of(cluster, vc, vc_group)};
    if (described) {
      const DeviceType device = cluster.device(type);
      row.insert(row.begin() + 1,
                 {gpus == 0 ? "" : device.kind, gpus == 0 ? "" : amount(device.memory_mib, mib_per_gib)});
    }
    table.add(row);
  }
  const std::string topology = topology_text(cluster, style);
  return (cluster.name.empty() ? "" : cluster.name + ": ") + cluster_line(cluster) + "\n\n" + table.text(style) +
         (topology.empty() ? "" : "\n" + topology);
}

}  // namespace gpusched
