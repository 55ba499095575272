// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "src/base/strict_json.hpp"
#include "src/world/cluster_fields.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/limit_json.hpp"
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

struct Levels {
  bool racks = false, sites = false;  // there is more than one
};

Json mig_card_json(const MigModel& model, const std::vector<MigInstance>& instances) {
  Json list = Json::array();
  for (const MigInstance& instance : instances) list.push_back(model.profiles()[instance.profile].name);
  return list;
}

Json mig_layout_json(const MigNode& mig) {
  if (mig.layout == MigLayout::dynamic) return "dynamic";
  if (mig.layout == MigLayout::first_fit) return "dynamic-first-fit";
  const MigModel& model = mig_models[mig.model];
  const auto is_first = [&](const std::vector<MigInstance>& card) { return card == mig.cards.front(); };
  if (!mig.cards.front().empty() && std::all_of(mig.cards.begin(), mig.cards.end(), is_first)) {
    return mig_card_json(model, mig.cards.front());
  }
  Json cards = Json::array();
  for (const std::vector<MigInstance>& card : mig.cards) cards.push_back(mig_card_json(model, card));
  return cards;
}

// A layout alone where the GPU type tells the rest.
Json mig_json(const MigNode& mig, const std::string& gpu_type) {
  const bool is_named = mig_models[mig.model].name == gpu_type;
  if (is_named && mig.reconfigure == MigNode{}.reconfigure) return mig_layout_json(mig);
  Json entry = {{"layout", mig_layout_json(mig)}};
  if (!is_named) entry["model"] = mig_models[mig.model].name;
  if (mig.reconfigure != MigNode{}.reconfigure) {
    entry["reconfigure_s"] = quantity_json(mig.reconfigure.us, double{microseconds_per_second});
  }
  return entry;
}

Json node_json(const Cluster& cluster, const Node& node, Levels levels) {
  Json entry = Json::object();
  if (!node.name.empty()) entry["name"] = node.name;
  entry["gpus"] = node.gpus;
  const std::string& type = cluster.gpu_types[node.gpu_type];
  if (type != any_gpu_type) entry["gpu_type"] = type;
  if (node.cpu_milli < unlimited) entry["cpus"] = quantity_json(node.cpu_milli, milli_per_core);
  if (node.memory_mib < unlimited) entry["memory_gib"] = quantity_json(node.memory_mib, mib_per_gib);
  if (node.vc != no_index || node.vc_group != no_index) entry["vc"] = owners_of(cluster, node);
  if (node.island_gpus > 0) entry["island_gpus"] = node.island_gpus;
  if (levels.racks) entry["rack"] = "r" + std::to_string(node.rack);
  if (node.mig != no_index) entry["mig"] = mig_json(cluster.migs[node.mig], type);
  if (node.sharing == SharingMode::time_slicing) entry["sharing"] = "time-slicing";
  if (levels.sites) entry["site"] = "s" + std::to_string(cluster.site_of(node.rack));
  return entry;
}

Json device_json(const DeviceType& device) {
  Json entry = Json::object();
  if (device.kind != gpu_kind) entry["kind"] = device.kind;
  if (device.memory_mib < unlimited) entry["memory_gib"] = quantity_json(device.memory_mib, mib_per_gib);
  return entry;
}

std::string devices_text(const Cluster& cluster) {
  std::string text;
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) {
    const DeviceType device = cluster.device(type);
    if (device == DeviceType{}) continue;
    text += (text.empty() ? "" : ",\n               ") + line_of(Json(cluster.gpu_types[type])) + ": " +
            line_of(device_json(device));
  }
  return text.empty() ? "" : " \"gpu_types\": {" + text + "},\n";
}

// Without those of levels that have none.
Json links_json(const Cluster& cluster) {
  Json links = Json::object();
  for (const NamedValue<Span>& span : span_names) {
    const LinkClass& link = cluster.links[static_cast<std::size_t>(span.value)];
    if (link.bandwidth_gb_per_s <= 0) continue;
    Json& entry = links[std::string(span.name)] = Json::object();
    if (!link.name.empty()) entry["name"] = link.name;
    entry["latency_us"] = link.latency_us;
    entry["bandwidth_gb_per_s"] = link.bandwidth_gb_per_s;
  }
  return links;
}

}  // namespace

std::string cluster_file_text(const Cluster& cluster) {
  Levels levels;
  for (const Node& node : cluster.nodes) {
    const std::uint32_t first = cluster.nodes.front().rack;
    levels.racks = levels.racks || node.rack != first;
    levels.sites = levels.sites || cluster.site_of(node.rack) != cluster.site_of(first);
  }
  std::string text = "{\"name\": " + line_of(Json(cluster.name)) + ",\n";
  if (!cluster.vcs.empty()) {
    text += " \"vcs\": [";
    for (std::size_t i = 0; i < cluster.vcs.size(); ++i) {
      Json vc = {{"name", cluster.vcs[i].name}};
      if (cluster.vcs[i].quota < unlimited) vc["quota_gpus"] = quantity_json(cluster.vcs[i].quota, double{whole_gpu});
      text += (i == 0 ? "" : ",\n         ") + line_of(vc);
    }
    text += "],\n";
  }
  if (!cluster.limits.empty()) {
    text += " \"limits\": [";
    for (std::size_t i = 0; i < cluster.limits.size(); ++i) {
      text += (i == 0 ? "" : ",\n            ") + line_of(limit_json(cluster.limits[i]));
    }
    text += "],\n";
  }
  text += devices_text(cluster);
  text += " \"nodes\": [";
  for (std::size_t i = 0; i < cluster.nodes.size();) {
    Json entry = node_json(cluster, cluster.nodes[i], levels);
    std::size_t next = i + 1;
    while (next < cluster.nodes.size() && node_json(cluster, cluster.nodes[next], levels) == entry) ++next;
    if (next > i + 1) entry["count"] = next - i;
    text += (i == 0 ? "" : ",\n           ") + line_of(entry);
    i = next;
  }
  text += "]";
  if (!cluster.links.empty()) text += ",\n \"links\": " + line_of(links_json(cluster));
  return text + "}\n";
}

}  // namespace gpusched
