// SPDX-License-Identifier: Apache-2.0
#include "traces/tools/cluster_info.hpp"

#include <map>
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

std::string cluster_text(const Cluster& cluster) {
  using Kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;
  std::map<Kind, std::uint64_t> kinds;
  for (const Node& node : cluster.nodes) {
    ++kinds[{node.vc, node.vc_group, node.gpu_type, node.gpus, node.cpu_milli, node.memory_mib}];
  }
  TextTable table({"type", "nodes", "GPUs", "cores", "memory GiB", "queues"});
  for (const auto& [kind, count] : kinds) {
    const auto& [vc, vc_group, type, gpus, cpu, memory] = kind;
    table.add({gpus == 0 ? "CPU" : cluster.gpu_types[type], human_count(count), human_count(gpus),
               amount(cpu, milli_per_core), amount(memory, mib_per_gib), queues_of(cluster, vc, vc_group)});
  }
  return (cluster.name.empty() ? "" : cluster.name + ": ") + cluster_line(cluster) + "\n\n" + table.text();
}

}  // namespace gpusched
