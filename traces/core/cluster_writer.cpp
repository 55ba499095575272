// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "src/base/strict_json.hpp"
#include "traces/core/cluster_reader.hpp"
#include "traces/core/cluster_units.hpp"

namespace gpusched {
namespace {

// On one line, without its end.
std::string line_of(const Json& json) {
  std::string text = json_text(json, -1);
  text.pop_back();
  return text;
}

Json owners_of(const Cluster& cluster, const Node& node) {
  if (node.vc_group == no_index) return cluster.vcs[node.vc].name;
  Json names = Json::array();
  for (const std::uint32_t vc : cluster.vc_groups[node.vc_group]) names.push_back(cluster.vcs[vc].name);
  return names;
}

// A whole number is written without a fraction.
Json quantity(std::int64_t parts, double scale) {
  const double value = static_cast<double>(parts) / scale;
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json node_json(const Cluster& cluster, const Node& node, bool racks) {
  Json entry = Json::object();
  if (!node.name.empty()) entry["name"] = node.name;
  entry["gpus"] = node.gpus;
  const std::string& type = cluster.gpu_types[node.gpu_type];
  if (type != any_gpu_type) entry["gpu_type"] = type;
  if (node.cpu_milli < unlimited) entry["cpus"] = quantity(node.cpu_milli, milli_per_core);
  if (node.memory_mib < unlimited) entry["memory_gib"] = quantity(node.memory_mib, mib_per_gib);
  if (node.vc != no_index || node.vc_group != no_index) entry["vc"] = owners_of(cluster, node);
  if (racks) entry["rack"] = "r" + std::to_string(node.rack);
  return entry;
}

}  // namespace

std::string cluster_file_text(const Cluster& cluster) {
  bool racks = false;
  for (const Node& node : cluster.nodes) racks = racks || node.rack != cluster.nodes.front().rack;
  std::string text = "{\"name\": " + line_of(Json(cluster.name)) + ",\n";
  if (!cluster.vcs.empty()) {
    text += " \"vcs\": [";
    for (std::size_t i = 0; i < cluster.vcs.size(); ++i) {
      Json vc = {{"name", cluster.vcs[i].name}};
      if (cluster.vcs[i].quota < unlimited) vc["quota_gpus"] = quantity(cluster.vcs[i].quota, double{whole_gpu});
      text += (i == 0 ? "" : ",\n         ") + line_of(vc);
    }
    text += "],\n";
  }
  text += " \"nodes\": [";
  for (std::size_t i = 0; i < cluster.nodes.size();) {
    Json entry = node_json(cluster, cluster.nodes[i], racks);
    std::size_t next = i + 1;
    while (next < cluster.nodes.size() && node_json(cluster, cluster.nodes[next], racks) == entry) ++next;
    if (next > i + 1) entry["count"] = next - i;
    text += (i == 0 ? "" : ",\n           ") + line_of(entry);
    i = next;
  }
  return text + "]}\n";
}

}  // namespace gpusched
