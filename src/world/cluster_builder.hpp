// SPDX-License-Identifier: Apache-2.0
/// ClusterBuilder: a cluster as its readers put it together, node by node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"

namespace gpusched {

/// Limits that keep memory and indexes from overflowing: each node keeps an index of its GPUs, half a gigabyte in all.
/// \{
inline constexpr std::int64_t most_cluster_nodes = 10'000'000, most_cluster_gpus = 1'000'000'000;
inline constexpr const char* too_large_text = "at most 10,000,000 nodes and 1,000,000,000 GPUs in all";
/// \}

/// True when jobs can name a GPU type of that name: GpuDemand takes no part of it for something else.
constexpr bool is_type_name(std::string_view name) {
  return name.find_first_of("|@") == std::string_view::npos && !name.starts_with("kind:");
}
inline constexpr const char* type_name_text = "a GPU type that jobs can name: without | and @, and not kind: in front";

/// Names numbered by first appearance.
class Numbers {
 public:
  std::uint32_t of(std::string_view name) {
    return numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  /// no_index for a name that has none.
  [[nodiscard]] std::uint32_t find(const std::string& name) const {
    const auto place = numbers_.find(name);
    return place == numbers_.end() ? no_index : place->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
};

/// Nodes as a reader finds them, with GPU types and virtual clusters numbered by first appearance.
class ClusterBuilder {
 public:
  ClusterBuilder() { cluster_.gpu_types.clear(); }

  /// False, and nothing added, when another node has that name.
  [[nodiscard]] bool add(Node node, std::string_view gpu_type) {
    if (!node.name.empty() && !names_.insert(node.name).second) return false;
    const std::string_view type = gpu_type.empty() ? any_gpu_type : gpu_type;
    node.gpu_type = types_.of(type);
    if (node.gpu_type == cluster_.gpu_types.size()) cluster_.gpu_types.emplace_back(type);
    gpus_ += node.gpus;
    cluster_.nodes.push_back(std::move(node));
    return true;
  }
  /// Reports call a node without name by its number, counted from 0, which no other node may bear as its name.
  [[nodiscard]] Result<void> check_numbers(const std::string& file) const {
    for (std::size_t i = 0; i < cluster_.nodes.size() && !names_.empty(); ++i) {
      if (!cluster_.nodes[i].name.empty() || !names_.contains(std::to_string(i))) continue;
      return Unexpected{Error{.message = "a node is named '" + std::to_string(i) + "', as reports call node " +
                                         std::to_string(i) + ", counted from 0, which has no name; name that one too",
                              .file = file}};
    }
    return {};
  }
  /// Above the limits.
  [[nodiscard]] bool too_large() const {
    return static_cast<std::int64_t>(cluster_.nodes.size()) > most_cluster_nodes || gpus_ > most_cluster_gpus;
  }
  std::uint32_t vc(std::string_view name) {
    const std::uint32_t number = vcs_.of(name);
    if (number == cluster_.vcs.size()) cluster_.vcs.push_back({.name = std::string(name)});
    return number;
  }
  /// Describes the devices of a type that some node has; the types of all others are plain GPUs.
  [[nodiscard]] bool describe(const std::string& gpu_type, DeviceType device) {
    const std::uint32_t type = types_.find(gpu_type);
    if (type == no_index) return false;
    cluster_.devices.resize(cluster_.gpu_types.size());
    cluster_.devices[type] = std::move(device);
    return true;
  }
  /// The number of a way in which cards are cut.
  std::uint32_t mig(MigNode mig) {
    std::vector<MigNode>& migs = cluster_.migs;
    const auto place = std::find(migs.begin(), migs.end(), mig);
    const auto number = static_cast<std::uint32_t>(place - migs.begin());
    if (place == migs.end()) migs.push_back(std::move(mig));
    return number;
  }
  /// no_index where there is none of that name.
  [[nodiscard]] std::uint32_t find_vc(const std::string& name) const { return vcs_.find(name); }
  /// The number of a set of virtual clusters that own nodes together. Precondition: rising.
  std::uint32_t vc_group(const std::vector<std::uint32_t>& owners) {
    const auto [place, added] = groups_.try_emplace(owners, static_cast<std::uint32_t>(groups_.size()));
    if (added) cluster_.vc_groups.push_back(owners);
    return place->second;
  }
  /// Nodes that name no rack stand in one, of their site. no_index for a rack that stands in another site already.
  std::uint32_t rack(const std::string& name, std::string_view site) {
    const std::uint32_t site_number = sites_.of(site);
    const std::uint32_t number = racks_.of(name.empty() ? unnamed_rack_of(site) : name);
    std::vector<std::uint32_t>& rack_sites = cluster_.rack_sites;
    if (number == rack_sites.size()) {
      rack_sites.push_back(site_number);
      if (!name.empty()) cluster_.rack_names.resize(rack_sites.size());
      if (!name.empty()) cluster_.rack_names.back() = name;
    }
    return rack_sites[number] == site_number ? number : no_index;
  }
  /// More than one.
  [[nodiscard]] bool has_sites() const { return sites_.size() > 1; }
  [[nodiscard]] Cluster& cluster() { return cluster_; }

 private:
  Cluster cluster_;
  std::int64_t gpus_ = 0;
  // A text that no name is (name_text()).
  static std::string unnamed_rack_of(std::string_view site) { return "\n" + std::string(site); }

  std::unordered_set<std::string> names_;  // looked up, never iterated
  Numbers types_, vcs_, racks_, sites_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> groups_;
};

}  // namespace gpusched
