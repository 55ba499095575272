// SPDX-License-Identifier: Apache-2.0
#include "src/world/added_nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/cluster_builder.hpp"
#include "traces/core/cluster_units.hpp"

namespace gpusched {
namespace {

std::uint32_t count_of(std::string_view text, std::int64_t most) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return 0;
  const auto value = parse_exact<std::int64_t>(text);
  return value && *value <= most ? static_cast<std::uint32_t>(*value) : 0;
}

Unexpected cannot_add(const Cluster& cluster, std::string_view text, const std::string& why) {
  return unexpected("cluster '" + cluster.name + "+" + std::string(text) + "': " + why);
}

// The number of the added nodes' type.
Result<std::uint32_t> type_for(Cluster& cluster, const AddedNodes& added, std::string_view text) {
  std::vector<std::string>& types = cluster.gpu_types;
  if (added.type.empty()) {
    std::vector<bool> used(types.size());
    for (const Node& node : cluster.nodes) used[node.gpu_type] = used[node.gpu_type] || node.gpus > 0;
    const auto count = std::count(used.begin(), used.end(), true);
    if (count > 1) {
      return cannot_add(cluster, text,
                        "its nodes have the GPU types " + joined(types, ", ") + "; name one, as +" + std::string(text) +
                            ":" + types.front());
    }
    return static_cast<std::uint32_t>(count == 0 ? 0 : std::find(used.begin(), used.end(), true) - used.begin());
  }
  const auto known = std::find(types.begin(), types.end(), added.type);
  const auto number = static_cast<std::uint32_t>(known - types.begin());
  if (known == types.end()) {
    types.push_back(added.type);
    if (!cluster.devices.empty()) cluster.devices.resize(types.size());
  }
  return number;
}

// A node like the cluster's of that type.
Node model_node(const Cluster& cluster, std::uint32_t type, std::uint32_t gpus) {
  const auto find = [&](bool same_size) {
    return std::find_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const Node& node) {
      return node.gpu_type == type && node.gpus > 0 && (!same_size || node.gpus == gpus);
    });
  };
  auto like = find(true);
  const bool same_size = like != cluster.nodes.end();
  if (!same_size) like = find(false);
  Node node = like == cluster.nodes.end() ? Node{.name = {}} : *like;
  node.gpus = gpus;
  node.gpu_type = type;
  node.vc = no_index;
  node.vc_group = no_index;
  node.name.clear();
  if (same_size) return node;
  node.mig = no_index;  // a layout by GPU is of another number of them
  if (node.island_gpus > 0 && gpus % node.island_gpus != 0) node.island_gpus = 0;
  return node;
}

// Names for `count` more nodes where the others have names; else none.
std::vector<std::string> names_for(const Cluster& cluster, std::uint32_t count) {
  std::set<std::string_view> taken;
  for (const Node& node : cluster.nodes) {
    if (!node.name.empty()) taken.insert(node.name);
  }
  std::vector<std::string> names(count);
  if (taken.empty()) return names;
  std::uint64_t number = 0;
  for (std::string& name : names) {
    do {
      name = "added" + std::to_string(++number);
    } while (taken.contains(name));
  }
  return names;
}

// A new one where the cluster has several, at the site of its last node.
std::uint32_t rack_for(Cluster& cluster) {
  std::uint32_t last = cluster.nodes.back().rack, most = last;
  bool several = false;
  for (const Node& node : cluster.nodes) {
    several = several || node.rack != last;
    most = std::max(most, node.rack);
  }
  if (!several) return last;
  const std::uint32_t site = cluster.site_of(last);
  const std::uint32_t rack = std::max(most + 1, static_cast<std::uint32_t>(cluster.rack_sites.size()));
  if (!cluster.rack_sites.empty()) cluster.rack_sites.resize(rack + 1, site);
  return rack;
}

std::optional<AddedNodes> added_nodes_of(std::string_view text) {
  AddedNodes added;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    added.type = name_text(text.substr(colon + 1));
    if (added.type.empty()) return std::nullopt;
  }
  const std::string_view size = text.substr(0, colon);
  const std::size_t cross = size.find('x');
  if (cross == std::string_view::npos) {
    added.gpus = count_of(size, most_cluster_nodes);
    return added.gpus > 0 && added.type.empty() ? std::optional(added) : std::nullopt;
  }
  added.nodes = count_of(size.substr(0, cross), most_cluster_nodes);
  added.gpus = count_of(size.substr(cross + 1), most_gpus_of_a_node);
  return added.nodes > 0 && added.gpus > 0 ? std::optional(added) : std::nullopt;
}

}  // namespace

Result<AddedNodes> parse_added_nodes(std::string_view text, const std::string& spec) {
  const auto added = added_nodes_of(text);
  if (added && is_type_name(added->type)) return *added;
  if (added) return unexpected("cluster '" + spec + "': expected " + type_name_text);
  return unexpected("cluster '" + spec + "': expected NODESxGPUS[:TYPE] behind the plus, as 8x8 or 8x8:H100, not '" +
                    std::string(text) + "'");
}

Result<Cluster> with_added_nodes(Cluster cluster, const AddedNodes& added, std::string_view text) {
  const bool is_pool = cluster.nodes.size() == 1 && cluster.nodes.front().counts_only;
  if (is_pool != (added.nodes == 0)) {
    return cannot_add(cluster, text,
                      is_pool ? "the cluster is a pool that only counts GPUs: add GPUs (+64), not nodes"
                              : "expected NODESxGPUS[:TYPE] behind the plus, as 8x8 or 8x8:H100");
  }
  const std::int64_t more = std::int64_t{std::max(added.nodes, 1u)} * added.gpus;
  const auto nodes = static_cast<std::int64_t>(cluster.nodes.size()) + added.nodes;
  if (is_pool ? more + cluster.total_gpus() > most_cluster_nodes
              : nodes > most_cluster_nodes || more + cluster.total_gpus() > most_cluster_gpus) {
    return cannot_add(cluster, text, std::string("expected ") + too_large_text);
  }
  if (is_pool) {
    cluster.nodes.front().gpus += added.gpus;
  } else {
    const auto type = type_for(cluster, added, text);
    if (!type) return Unexpected{type.error()};
    Node node = model_node(cluster, *type, added.gpus);
    node.rack = rack_for(cluster);
    for (std::string& name : names_for(cluster, added.nodes)) {
      node.name = std::move(name);
      cluster.nodes.push_back(node);
    }
  }
  cluster.name += "+" + std::string(text);
  return cluster;
}

Result<Cluster> add_nodes(Cluster cluster, std::string_view text) {
  while (text.starts_with('+')) {
    text.remove_prefix(1);
    const std::string_view one = text.substr(0, text.find('+'));
    const auto added = parse_added_nodes(one, cluster.name + "+" + std::string(one));
    if (!added) return Unexpected{added.error()};
    auto more = with_added_nodes(std::move(cluster), *added, one);
    if (!more) return more;
    cluster = *std::move(more);
    text.remove_prefix(one.size());
  }
  return cluster;
}

}  // namespace gpusched
