// SPDX-License-Identifier: Apache-2.0
// gpusched's own JSON form of a cluster.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/capacity.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/cluster_builder.hpp"
#include "src/world/cluster_fields.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/limit_json.hpp"
#include "traces/core/cluster_units.hpp"

namespace gpusched {
namespace {

std::string nearest_vc(const Cluster& cluster, const std::string& name) {
  std::vector<std::string> known;
  known.reserve(cluster.vcs.size());
  for (const VirtualCluster& vc : cluster.vcs) known.push_back(vc.name);
  return suggest_nearest(name, known);
}

// ---- how cards are cut ----

std::vector<std::string> names_of_mig_models() {
  std::vector<std::string> names;
  for (const MigModel& model : mig_models) names.emplace_back(model.name);
  return names;
}

std::string profiles_text(const MigModel& model) {
  std::vector<std::string> names;
  for (const MigProfile& profile : model.profiles()) names.emplace_back(profile.name);
  return std::string(model.name) + " has " + joined(names, ", ");
}

// The instances of one card, of a list of profiles, which stands at `path` below `fields`.
std::vector<MigInstance> read_mig_card(JsonFields& fields, const Json& list, const MigModel& model,
                                       const std::string& path) {
  std::vector<std::uint32_t> profiles;
  std::string names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = path + "/" + std::to_string(i);
    if (!list[i].is_string()) {
      fields.refuse(place, "the name of a MIG profile");
      return {};
    }
    const std::string name = list[i].get<std::string>();
    const std::uint32_t profile = mig_name(name).card.empty() ? model.find(mig_name(name).profile) : no_index;
    if (profile == no_index) {
      fields.fail(place, "'" + name_text(name) + "' is no MIG profile; " + profiles_text(model));
      return {};
    }
    profiles.push_back(profile);
    names += (names.empty() ? "" : " + ") + name_text(name);
  }
  std::vector<MigInstance> placed = place_mig_instances(model, profiles);
  if (placed.size() != profiles.size()) {
    fields.fail(path, names + " do not fit on one " + std::string(model.name) +
                          ": instances need slices of memory of their own");
  }
  return placed;
}

// "dynamic", "dynamic-first-fit", a list of profiles for every GPU, or a list of such lists, one for each GPU.
void read_mig_layout(JsonFields& fields, const Json& layout, const std::string& path, const Node& node, MigNode& mig) {
  if (layout == "dynamic-first-fit") mig.layout = MigLayout::first_fit;
  if (layout == "dynamic") mig.layout = MigLayout::dynamic;
  if (layout == "dynamic-first-fit" || layout == "dynamic") return;
  if (!layout.is_array() || layout.empty()) {
    return fields.refuse(path, "dynamic, dynamic-first-fit or a list of MIG profiles");
  }
  const MigModel& model = mig_models[mig.model];
  if (!layout.front().is_array()) {
    mig.cards.assign(node.gpus, read_mig_card(fields, layout, model, path));
    return;
  }
  if (layout.size() != node.gpus) {
    return fields.fail(path, "expected a list for each of the node's " + std::to_string(node.gpus) + " GPUs, not " +
                                 std::to_string(layout.size()));
  }
  for (std::size_t d = 0; d < layout.size() && fields.good(); ++d) {
    const std::string card = path + "/" + std::to_string(d);
    if (!layout[d].is_array()) return fields.refuse(card, "a list of MIG profiles");
    mig.cards.push_back(read_mig_card(fields, layout[d], model, card));
  }
}

// What "mig" of a node holds besides the layout itself.
struct MigEntry {
  const Json* layout = nullptr;
  std::string path = "mig";  // of the layout
  std::string model;         // empty: the node's GPU type
};

// A layout alone, or an object with it.
MigEntry read_mig_entry(JsonFields& fields, const Json& entry, MigNode& mig) {
  MigEntry found{.layout = &entry, .model = {}};
  if (!entry.is_object()) return found;
  fields.read_nested("mig", entry, [&](JsonFields& own) {
    found.model = read_name(own, "model");
    const std::int64_t wait = read_quantity(own, "reconfigure_s", microseconds_per_second);
    if (wait < unlimited) mig.reconfigure = {wait};
    if (wait < unlimited && wait > 86'400 * microseconds_per_second) {
      own.refuse("reconfigure_s", "at most a day, 86400");
    }
    own.require("layout");
    found.layout = own.find("layout");
    found.path = "mig/layout";
  });
  return found;
}

std::uint32_t read_mig(JsonFields& fields, const Json& entry, const Node& node, const std::string& gpu_type,
                       ClusterBuilder& cluster) {
  MigNode mig;
  const MigEntry given = read_mig_entry(fields, entry, mig);
  if (!fields.good()) return no_index;
  if (node.gpus == 0 || node.gpus > Capacity::max_devices_per_node) {
    fields.fail("mig", "a node with MIG has 1 to " + std::to_string(Capacity::max_devices_per_node) + " GPUs");
    return no_index;
  }
  const std::string& name = given.model.empty() ? gpu_type : given.model;
  mig.model = find_mig_model(name);
  if (mig.model == no_index) {
    fields.fail(given.model.empty() ? "mig" : "mig/model",
                "'" + name + "' is no card that can be cut" + suggest_nearest(name, names_of_mig_models()) +
                    "; expected the GPU type, or model, " + joined(names_of_mig_models(), "|"));
    return no_index;
  }
  read_mig_layout(fields, *given.layout, given.path, node, mig);
  return fields.good() ? cluster.mig(std::move(mig)) : no_index;
}

// ---- nodes ----

std::string not_told_apart() {
  return "the GPUs of a node of more than " + std::to_string(Capacity::max_devices_per_node) + " are not told apart";
}

void read_islands(JsonFields& fields, Node& node) {
  const std::uint32_t whole = std::max(node.gpus, 1u);
  node.island_gpus = whole;
  fields.read("island_gpus", node.island_gpus, 1, whole);
  if (node.gpus % node.island_gpus != 0) {
    fields.refuse("island_gpus", "a divisor of the node's " + std::to_string(node.gpus) + " GPUs");
  }
  if (node.island_gpus == whole) node.island_gpus = 0;  // the node is one island
  if (node.island_gpus > 0 && node.gpus > Capacity::max_devices_per_node) fields.fail("island_gpus", not_told_apart());
}

constexpr std::array<NamedValue<SharingMode>, 2> sharing_names{
    {{"mps", SharingMode::mps}, {"time-slicing", SharingMode::time_slicing}}};

void read_sharing(JsonFields& fields, Node& node) {
  fields.read_word("sharing", node.sharing, sharing_names);
  if (node.sharing == SharingMode::time_slicing && node.gpus > Capacity::max_devices_per_node) {
    fields.fail("sharing", not_told_apart());
  }
}

void read_owners(JsonFields& fields, Node& node, ClusterBuilder& cluster) {
  const std::vector<std::string> owners = read_names(fields, "vc");
  std::vector<std::uint32_t> numbers;
  for (const std::string& owner : owners) {
    if (owner.empty() && owners.size() == 1) break;  // "" serves everyone
    numbers.push_back(cluster.find_vc(owner));
    if (numbers.back() == no_index) {
      fields.fail("vc", "'" + owner + "' is not the name of an entry of /vcs" + nearest_vc(cluster.cluster(), owner));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() == 1) node.vc = numbers.front();
  if (numbers.size() > 1 && fields.good()) node.vc_group = cluster.vc_group(numbers);
}

void read_node(JsonFields& fields, ClusterBuilder& cluster) {
  std::uint32_t count = 1;
  Node node;
  fields.read("count", count, 1, static_cast<double>(most_cluster_nodes));
  fields.require("gpus");
  fields.read("gpus", node.gpus, 0, static_cast<double>(most_gpus_of_a_node));
  const std::string type = read_name(fields, "gpu_type");
  if (!is_type_name(type)) fields.refuse("gpu_type", type_name_text);
  node.cpu_milli = read_quantity(fields, "cpus", milli_per_core);
  node.memory_mib = read_quantity(fields, "memory_gib", mib_per_gib);
  node.name = read_name(fields, "name");
  read_islands(fields, node);
  const std::string rack = read_name(fields, "rack"), site = read_name(fields, "site");
  node.rack = cluster.rack(rack, site);
  if (node.rack == no_index) fields.fail("site", "rack '" + rack + "' stands in another site already");
  read_owners(fields, node, cluster);
  read_sharing(fields, node);
  const Json* const mig = fields.find("mig");
  if (mig != nullptr && fields.good()) node.mig = read_mig(fields, *mig, node, type, cluster);
  if (!fields.good()) return;
  const std::string stem = node.name;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (count > 1 && !stem.empty()) node.name = stem + "-" + std::to_string(i);
    if (!cluster.add(node, type)) return fields.fail("name", "another node is named '" + node.name + "'");
  }
  if (cluster.too_large()) fields.fail("", std::string("expected ") + too_large_text);
}

// ---- what stands beside the nodes ----

void read_vc(JsonFields& fields, std::size_t number, ClusterBuilder& cluster) {
  VirtualCluster vc{.name = read_name(fields, "name")};
  vc.quota = read_quantity(fields, "quota_gpus", whole_gpu);
  if (vc.name.empty()) fields.fail("name", "is missing");
  if (!fields.good()) return;
  if (cluster.vc(vc.name) != number) return fields.fail("name", "'" + vc.name + "' appears twice");
  cluster.cluster().vcs[number] = std::move(vc);
}

void read_device(JsonFields& fields, const std::string& type, ClusterBuilder& cluster) {
  DeviceType device;
  if (const std::string kind = read_name(fields, "kind"); !kind.empty()) device.kind = kind;
  device.memory_mib = read_quantity(fields, "memory_gib", mib_per_gib);
  if (device.kind.find_first_of("|@") != std::string::npos) fields.refuse("kind", "a word without | and @");
  if (fields.good() && !cluster.describe(name_text(type), std::move(device))) {
    fields.fail("", "no node has this GPU type" + suggest_nearest(type, cluster.cluster().gpu_types));
  }
}

// True at each span that tasks of a gang can have there.
std::array<bool, span_count> spans_of(const Cluster& cluster) {
  std::array<bool, span_count> there{};
  const auto has = [&](Span span) -> bool& { return there[static_cast<std::size_t>(span)]; };
  has(Span::node) = true;
  std::vector<bool> rack_seen(cluster.rack_sites.size()), site_seen(cluster.rack_sites.size());
  std::uint32_t sites = 0;
  for (const Node& node : cluster.nodes) {
    const std::uint32_t site = cluster.site_of(node.rack);
    if (node.island_gpus > 0) has(Span::islands) = true;
    if (rack_seen[node.rack]) {
      has(Span::nodes) = true;
    } else if (site_seen[site]) {
      has(Span::racks) = true;
    }
    sites += site_seen[site] ? 0 : 1;
    rack_seen[node.rack] = site_seen[site] = true;
  }
  has(Span::sites) = sites > 1;
  return there;
}

void read_link(JsonFields& fields, LinkClass& link) {
  constexpr double most = 1e9;
  link.name = read_name(fields, "name");
  fields.require("latency_us");
  fields.read("latency_us", link.latency_us, 0, most);
  fields.require("bandwidth_gb_per_s");
  fields.read_above_zero("bandwidth_gb_per_s", link.bandwidth_gb_per_s, most);
}

// The nodes are known: their levels need a link each.
void read_links(JsonFields& fields, Cluster& cluster) {
  const std::array<bool, span_count> there = spans_of(cluster);
  cluster.links.resize(span_count);
  for (const NamedValue<Span>& span : span_names) {
    const auto level = static_cast<std::size_t>(span.value);
    if (const Json* link = fields.find(span.name)) {
      fields.read_nested(span.name, *link, [&](JsonFields& own) { read_link(own, cluster.links[level]); });
    } else if (there[level]) {
      fields.fail(span.name, "is missing: tasks of a gang can span " +
                                 (span.value == Span::node ? "a node's GPUs" : std::string(span.name)));
    }
  }
}

}  // namespace

Result<Cluster> cluster_from_json(std::string_view text, const std::string& file) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  ClusterBuilder cluster;
  JsonFields fields(*json, file);
  cluster.cluster().name = read_name(fields, "name");
  fields.read_objects("vcs", [&](JsonFields& vc, std::size_t number) { read_vc(vc, number, cluster); });
  fields.read_objects("limits",
                      [&](JsonFields& own, std::size_t) { cluster.cluster().limits.push_back(read_limit(own)); });
  fields.require("nodes");
  fields.read_objects("nodes", [&](JsonFields& node, std::size_t) { read_node(node, cluster); });
  fields.read_members("gpu_types", [&](JsonFields& types, const std::string& type, const Json& device) {
    types.read_nested(type, device, [&](JsonFields& own) { read_device(own, type, cluster); });
  });
  const Json* const links = fields.find("links");
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (cluster.cluster().nodes.empty()) fields.fail("nodes", "expected at least one node");
  if (links != nullptr && fields.good()) {
    fields.read_nested("links", *links, [&](JsonFields& own) { read_links(own, cluster.cluster()); });
  }
  if (!cluster.has_sites()) cluster.cluster().rack_sites.clear();
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (auto numbers = cluster.check_numbers(file); !numbers) return Unexpected{numbers.error()};
  return std::move(cluster.cluster());
}

}  // namespace gpusched
