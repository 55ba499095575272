// SPDX-License-Identifier: Apache-2.0
#include "src/world/cluster_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "gpusched/engine/capacity.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "traces/core/cluster_units.hpp"
#include "src/world/slurm_nodes.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_nodes = 10'000'000;
constexpr std::int64_t most_gpus_in_all = 1'000'000'000;  // each node keeps an index of its GPUs: half a gigabyte

struct VcNodes {
  std::string_view name;
  std::uint32_t nodes;
};

// Virtual clusters of Philly and their 8-GPU nodes as the authors of Helios set them to replay Philly
// (S-Lab-System-Group/HeliosArtifact, SC'21). They add up to 352 nodes, 2,816 GPUs.
constexpr VcNodes philly_vcs[] = {{"6214e9", 64}, {"7f04ca", 32}, {"11cb48", 16}, {"b436b2", 64},
                                  {"ee9e8c", 64}, {"e13805", 16}, {"6c71a0", 32}, {"2869ce", 16},
                                  {"ed69ec", 8},  {"103959", 8},  {"0e4a51", 32}};
constexpr std::uint32_t philly_gpus_per_node = 8;

Cluster philly_vc() {
  Cluster cluster{.name = "philly-vc"};
  for (const VcNodes& vc : philly_vcs) {
    const auto number = static_cast<std::uint32_t>(cluster.vcs.size());
    cluster.vcs.push_back({.name = std::string(vc.name)});
    cluster.nodes.insert(cluster.nodes.end(), vc.nodes, Node{.gpus = philly_gpus_per_node, .vc = number, .name = {}});
  }
  return cluster;
}

Cluster philly() {
  std::uint32_t nodes = 0;
  for (const VcNodes& vc : philly_vcs) nodes += vc.nodes;
  Cluster cluster = Cluster::homogeneous(nodes, philly_gpus_per_node);
  cluster.name = "philly";
  return cluster;
}

// Names numbered by first appearance.
class Numbers {
 public:
  std::uint32_t of(std::string_view name) {
    return numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  // no_index for a name that has none.
  [[nodiscard]] std::uint32_t find(const std::string& name) const {
    const auto place = numbers_.find(name);
    return place == numbers_.end() ? no_index : place->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
};

// Nodes as a reader finds them, with GPU types and virtual clusters numbered by first appearance.
class ClusterBuilder {
 public:
  ClusterBuilder() { cluster_.gpu_types.clear(); }

  // False, and nothing added, when another node has that name.
  [[nodiscard]] bool add(Node node, std::string_view gpu_type) {
    if (!node.name.empty() && !names_.insert(node.name).second) return false;
    const std::string_view type = gpu_type.empty() ? any_gpu_type : gpu_type;
    node.gpu_type = types_.of(type);
    if (node.gpu_type == cluster_.gpu_types.size()) cluster_.gpu_types.emplace_back(type);
    gpus_ += node.gpus;
    cluster_.nodes.push_back(std::move(node));
    return true;
  }
  // Reports call a node without name by its number, counted from 0, which no other node may bear as its name.
  [[nodiscard]] Result<void> check_numbers(const std::string& file) const {
    for (std::size_t i = 0; i < cluster_.nodes.size() && !names_.empty(); ++i) {
      if (!cluster_.nodes[i].name.empty() || !names_.contains(std::to_string(i))) continue;
      return Unexpected{Error{.message = "a node is named '" + std::to_string(i) + "', as reports call node " +
                                         std::to_string(i) + ", counted from 0, which has no name; name that one too",
                              .file = file}};
    }
    return {};
  }
  // Limits that keep memory and indexes from overflowing.
  [[nodiscard]] bool too_large() const {
    return static_cast<std::int64_t>(cluster_.nodes.size()) > most_nodes || gpus_ > most_gpus_in_all;
  }
  std::uint32_t vc(std::string_view name) {
    const std::uint32_t number = vcs_.of(name);
    if (number == cluster_.vcs.size()) cluster_.vcs.push_back({.name = std::string(name)});
    return number;
  }
  // Describes the devices of a type that some node has; the types of all others are plain GPUs.
  [[nodiscard]] bool describe(const std::string& gpu_type, DeviceType device) {
    const std::uint32_t type = types_.find(gpu_type);
    if (type == no_index) return false;
    cluster_.devices.resize(cluster_.gpu_types.size());
    cluster_.devices[type] = std::move(device);
    return true;
  }
  // The number of a way in which cards are cut.
  std::uint32_t mig(MigNode mig) {
    std::vector<MigNode>& migs = cluster_.migs;
    const auto place = std::find(migs.begin(), migs.end(), mig);
    const auto number = static_cast<std::uint32_t>(place - migs.begin());
    if (place == migs.end()) migs.push_back(std::move(mig));
    return number;
  }
  // no_index where there is none of that name.
  [[nodiscard]] std::uint32_t find_vc(const std::string& name) const { return vcs_.find(name); }
  // The number of a set of virtual clusters that own nodes together. Precondition: rising.
  std::uint32_t vc_group(const std::vector<std::uint32_t>& owners) {
    const auto [place, added] = groups_.try_emplace(owners, static_cast<std::uint32_t>(groups_.size()));
    if (added) cluster_.vc_groups.push_back(owners);
    return place->second;
  }
  // Nodes that name no rack stand in one, of their site. no_index for a rack that stands in another site already.
  std::uint32_t rack(const std::string& name, std::string_view site) {
    const std::uint32_t site_number = sites_.of(site);
    const std::uint32_t number = racks_.of(name.empty() ? unnamed_rack_of(site) : name);
    std::vector<std::uint32_t>& rack_sites = cluster_.rack_sites;
    if (number == rack_sites.size()) rack_sites.push_back(site_number);
    return rack_sites[number] == site_number ? number : no_index;
  }
  // More than one.
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

constexpr const char* too_large_text = "at most 10,000,000 nodes and 1,000,000,000 GPUs in all";

std::uint32_t gpus_of(RowReader& row, Column column) {
  const std::int64_t gpus = row.integer(column);
  if (gpus > most_gpus_of_a_node) row.expect(column, "at most " + std::to_string(most_gpus_of_a_node) + " GPUs");
  return static_cast<std::uint32_t>(gpus);
}

// Cores or gibibytes, possibly a fraction, in thousandths or mebibytes.
std::int64_t scaled(RowReader& row, Column column, std::int64_t scale) {
  constexpr double most = 1e12;  // as in JSON
  if (!column || row.is_blank(column)) return unlimited;
  return std::llround(row.number(column, most) * static_cast<double>(scale));
}

// A node list: how to recognise it and which columns say what. `cpu_scale` and `memory_scale` turn the file's units
// into thousandths of a core and mebibytes.
struct NodeListFormat {
  std::vector<std::string> header;  // of a file without header line; empty: the file has one
  std::string_view name, gpus, gpu_type, cpu, memory;
  std::int64_t cpu_scale = 1;
  std::int64_t memory_scale = 1;
};

const NodeListFormat& openb_nodes() {
  static const NodeListFormat format{
      .header = {}, .name = "sn", .gpus = "gpu", .gpu_type = "model", .cpu = "cpu_milli", .memory = "memory_mib"};
  return format;
}
// cap_cpu counts cores; cap_mem is in units of 1024 MiB (the tables' plan_mem values are whole MiB / 1024).
const NodeListFormat& pai_nodes() {
  static const NodeListFormat format{.header = {},
                                     .name = "machine",
                                     .gpus = "cap_gpu",
                                     .gpu_type = "gpu_type",
                                     .cpu = "cap_cpu",
                                     .memory = "cap_mem",
                                     .cpu_scale = milli_per_core,
                                     .memory_scale = mib_per_gib};
  return format;
}
const NodeListFormat& headerless_pai_nodes() {
  static const NodeListFormat format = [] {
    NodeListFormat without = pai_nodes();
    without.header = {"machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"};
    return without;
  }();
  return format;
}
const NodeListFormat& spot_nodes() {
  static const NodeListFormat format{.header = {},
                                     .name = "node_name",
                                     .gpus = "gpu_capacity_num",
                                     .gpu_type = "gpu_model",
                                     .cpu = "cpu_num",
                                     .memory = "",
                                     .cpu_scale = milli_per_core};
  return format;
}
// github.com/msr-fiddle/philly-traces, cluster_machine_list; the GPU's memory ("24GB") tells its type.
const NodeListFormat& philly_nodes() {
  static const NodeListFormat format{.header = {},
                                     .name = "machineId",
                                     .gpus = "number of GPUs",
                                     .gpu_type = "single GPU mem",
                                     .cpu = "",
                                     .memory = ""};
  return format;
}

bool is_headerless_pai(std::string_view head) {
  CsvSplitter splitter;
  if (!splitter.split(first_line(head)) || splitter.fields().size() != 5) return false;
  const auto& fields = splitter.fields();
  return std::all_of(fields.begin() + 2, fields.end(), [](std::string_view text) { return parse_number(text); });
}

Result<void> read_node_list(RowReader& rows, ReadContext& context, const NodeListFormat& format,
                            ClusterBuilder& cluster) {
  if (!format.header.empty()) {
    rows.set_header(format.header);
  } else if (auto header = rows.read_header(); !header) {
    return header;
  }
  const Column gpus = rows.require({format.gpus});
  const auto find = [&](std::string_view column) { return column.empty() ? Column{} : rows.find({column}); };
  const Column name = find(format.name);
  const Column type = find(format.gpu_type);
  const Column cpu = find(format.cpu);
  const Column memory = find(format.memory);
  return for_each_row(rows, context, [&](RowReader& row) {
    Node node{.gpus = gpus_of(row, gpus), .name = name_text(row.text(name))};
    node.cpu_milli = scaled(row, cpu, format.cpu_scale);
    node.memory_mib = scaled(row, memory, format.memory_scale);
    const std::string gpu_type = node.gpus == 0 ? std::string() : name_text(row.text(type));
    if (row.bad()) return;
    if (!cluster.add(std::move(node), gpu_type)) row.expect(name, "a name that no other node has");
    if (cluster.too_large()) row.expect(gpus, too_large_text);
  });
}

Result<void> read_vc_nodes(RowReader& rows, ReadContext& context, ClusterBuilder& cluster) {
  if (auto header = rows.read_header(); !header) return header;
  const Column vc = rows.find({"vc"});
  const Column count = rows.find({"node num"});
  return for_each_row(rows, context, [&](RowReader& row) {
    const std::int64_t nodes = row.integer(count);
    if (nodes > most_nodes) row.expect(count, "at most " + std::to_string(most_nodes) + " nodes");
    const std::string name = name_text(row.text(vc));
    if (name.empty()) row.expect(vc, "the name of a virtual cluster");
    if (row.bad()) return;
    const std::uint32_t owner = cluster.vc(name);
    for (std::int64_t i = 0; i < nodes; ++i) {
      (void)cluster.add({.gpus = philly_gpus_per_node, .vc = owner, .name = {}}, {});
    }
    if (cluster.too_large()) row.expect(count, too_large_text);
  });
}

// The members of one JSON object, checked as they are read; the first error is kept.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string path, std::optional<Error>& error)
      : object_(object), path_(std::move(path)), error_(error) {
    if (!object_.is_object()) fail("", "expected an object, found " + std::string(object_.type_name()));
  }

  // A name; empty when it is absent.
  std::string name(const char* key) {
    const Json* value = take(key, false);
    if (value == nullptr) return {};
    if (value->is_string()) return name_text(value->get<std::string>());
    fail(key, "expected text, found " + value->dump());
    return {};
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most, std::optional<std::int64_t> fallback) {
    const Json* value = take(key, !fallback);
    if (value == nullptr) return fallback.value_or(least);
    // A larger unsigned value does not fit 64 signed bits; it is refused with the rest.
    const bool fits =
        value->is_number_integer() && !(value->is_number_unsigned() && value->get<std::uint64_t>() > 1ull << 62);
    if (fits && value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most) {
      return value->get<std::int64_t>();
    }
    fail(key, "expected an integer from " + std::to_string(least) + " to " + std::to_string(most) + ", found " +
                  value->dump());
    return least;
  }
  // A quantity in thousandths (or other parts) of the file's unit; unlimited when it is not given.
  std::int64_t quantity(const char* key, std::int64_t parts) {
    const Json* value = take(key, false);
    if (value == nullptr) return unlimited;
    if (value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1e12) {
      return std::llround(value->get<double>() * static_cast<double>(parts));
    }
    fail(key, "expected a number from 0 to 1e12, found " + value->dump());
    return unlimited;
  }
  // The members of an object that may be absent.
  const Json& object(const char* key) {
    static const Json none = Json::object();
    const Json* value = take(key, false);
    if (value == nullptr || value->is_object()) return value == nullptr ? none : *value;
    fail(key, "expected an object, found " + std::string(value->type_name()));
    return none;
  }
  // A number; `least` itself is allowed where `with_least`.
  double number(const char* key, double least, double most, bool with_least) {
    const Json* value = take(key, true);
    if (value == nullptr) return least;
    const double given = value->is_number() ? value->get<double>() : least - 1;
    if (given <= most && (with_least ? given >= least : given > least)) return given;
    fail(key, std::string("expected a number ") + (with_least ? "from " : "above ") + exact_number(least) +
                  (with_least ? " to " : " and at most ") + exact_number(most) + ", found " + value->dump());
    return least;
  }
  // The value of a key that may be absent; nullptr then.
  const Json* optional(const char* key) { return take(key, false); }
  // The entries of an array that may be absent.
  const Json& array(const char* key, bool required) {
    static const Json none = Json::array();
    const Json* value = take(key, required);
    if (value == nullptr) return none;
    if (value->is_array()) return *value;
    fail(key, "expected an array, found " + std::string(value->type_name()));
    return none;
  }
  // One name or an array of them; none when it is absent.
  std::vector<std::string> names(const char* key) {
    const Json* value = take(key, false);
    if (value == nullptr) return {};
    if (value->is_string()) return {name_text(value->get<std::string>())};
    std::vector<std::string> list;
    if (value->is_array()) {
      for (const Json& entry : *value) {
        if (entry.is_string()) list.push_back(name_text(entry.get<std::string>()));
      }
    }
    if (list.empty() || list.size() != value->size()) {
      fail(key, "expected text or an array of texts, found " + value->dump());
      list.clear();
    }
    return list;
  }
  // Call last: every key that was not asked for is unknown.
  void refuse_others() {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        fail(key, "unknown key" + suggest_nearest(key, known_));
      }
    }
  }
  void fail(const std::string& key, const std::string& message) {
    if (!error_) error_ = Error{.message = message, .field = path_ + (key.empty() ? "" : "/" + key)};
  }

 private:
  const Json* take(const char* key, bool required) {
    known_.emplace_back(key);
    if (!object_.is_object()) return nullptr;
    const auto place = object_.find(key);
    if (place != object_.end()) return &*place;
    if (required) fail(key, "missing");
    return nullptr;
  }

  const Json& object_;
  std::string path_;
  std::optional<Error>& error_;
  std::vector<std::string> known_;
};

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

// The instances of one card, of a list of profiles; the first error is kept.
std::vector<MigInstance> read_mig_card(const Json& list, const MigModel& model, const std::string& path,
                                       std::optional<Error>& error) {
  std::vector<std::uint32_t> profiles;
  std::string names;
  const auto fail = [&](const std::string& message, const std::string& where) {
    if (!error) error = Error{.message = message, .field = where};
  };
  for (std::size_t i = 0; i < list.size() && !error; ++i) {
    const std::string place = path + "/" + std::to_string(i);
    if (!list[i].is_string()) fail("expected the name of a MIG profile, found " + list[i].dump(), place);
    if (error) break;
    const std::string name = list[i].get<std::string>();
    const std::uint32_t profile = mig_name(name).card.empty() ? model.find(mig_name(name).profile) : no_index;
    if (profile == no_index) fail("'" + name_text(name) + "' is no MIG profile; " + profiles_text(model), place);
    profiles.push_back(profile);
    names += (names.empty() ? "" : " + ") + name_text(name);
  }
  if (error) return {};
  std::vector<MigInstance> placed = place_mig_instances(model, profiles);
  if (placed.size() != profiles.size()) {
    fail(names + " do not fit on one " + std::string(model.name) + ": instances need slices of memory of their own",
         path);
  }
  return placed;
}

// "dynamic", "dynamic-first-fit", a list of profiles for every GPU, or a list of such lists, one for each GPU.
void read_mig_layout(const Json& layout, const Node& node, const std::string& path, MigNode& mig,
                     std::optional<Error>& error) {
  const auto fail = [&](const std::string& message) {
    if (!error) error = Error{.message = message, .field = path};
  };
  const MigModel& model = mig_models[mig.model];
  if (layout.is_string()) {
    mig.layout = layout.get<std::string>() == "dynamic-first-fit" ? MigLayout::first_fit : MigLayout::dynamic;
    if (layout == "dynamic" || layout == "dynamic-first-fit") return;
    return fail("expected dynamic, dynamic-first-fit or a list of MIG profiles, found " + layout.dump());
  }
  if (!layout.is_array() || layout.empty()) {
    return fail("expected dynamic, dynamic-first-fit or a list of MIG profiles, found " + layout.dump());
  }
  if (!layout.front().is_array()) {
    mig.cards.assign(node.gpus, read_mig_card(layout, model, path, error));
    return;
  }
  if (layout.size() != node.gpus) {
    return fail("expected a list for each of the node's " + std::to_string(node.gpus) + " GPUs, found " +
                std::to_string(layout.size()));
  }
  for (std::size_t d = 0; d < layout.size() && !error; ++d) {
    const std::string card = path + "/" + std::to_string(d);
    if (!layout[d].is_array()) {
      error = Error{.message = "expected a list of MIG profiles, found " + layout[d].dump(), .field = card};
      return;
    }
    mig.cards.push_back(read_mig_card(layout[d], model, card, error));
  }
}

// A layout alone, or an object with it.
std::uint32_t read_json_mig(const Json& entry, const Node& node, const std::string& type, const std::string& path,
                            ClusterBuilder& cluster, std::optional<Error>& error) {
  const auto fail = [&](const std::string& message, const std::string& where) {
    if (!error) error = Error{.message = message, .field = where};
    return no_index;
  };
  MigNode mig;
  std::string name = type, place = path, layout_path = path;
  const Json* layout = &entry;
  if (entry.is_object()) {
    ObjectReader object(entry, path, error);
    const std::string model = object.name("model");
    if (!model.empty()) name = model;
    if (!model.empty()) place += "/model";
    const std::int64_t wait = object.quantity("reconfigure_s", microseconds_per_second);
    if (wait < unlimited) mig.reconfigure = {wait};
    if (wait < unlimited && wait > 86'400 * microseconds_per_second) {
      object.fail("reconfigure_s", "expected at most a day, 86400");
    }
    layout = object.optional("layout");
    layout_path += "/layout";
    object.refuse_others();
    if (layout == nullptr) return fail("missing", layout_path);
  }
  if (error) return no_index;
  if (node.gpus == 0 || node.gpus > Capacity::max_devices_per_node) {
    return fail("a node with MIG has 1 to " + std::to_string(Capacity::max_devices_per_node) + " GPUs", path);
  }
  mig.model = find_mig_model(name);
  if (mig.model == no_index) {
    return fail("'" + name + "' is no card that can be cut" + suggest_nearest(name, names_of_mig_models()) +
                    "; expected the GPU type, or model, " + joined(names_of_mig_models(), "|"),
                place);
  }
  read_mig_layout(*layout, node, layout_path, mig, error);
  return error ? no_index : cluster.mig(std::move(mig));
}

void read_json_node(const Json& entry, const std::string& path, ClusterBuilder& cluster, std::optional<Error>& error) {
  ObjectReader object(entry, path, error);
  const std::int64_t count = object.integer("count", 1, most_nodes, 1);
  Node node;
  node.gpus = static_cast<std::uint32_t>(object.integer("gpus", 0, most_gpus_of_a_node, std::nullopt));
  const std::string type = object.name("gpu_type");
  node.cpu_milli = object.quantity("cpus", milli_per_core);
  node.memory_mib = object.quantity("memory_gib", mib_per_gib);
  node.name = object.name("name");
  const auto most_island = static_cast<std::int64_t>(std::max(node.gpus, 1u));
  node.island_gpus = static_cast<std::uint32_t>(object.integer("island_gpus", 1, most_island, most_island));
  if (node.gpus % node.island_gpus != 0) {
    object.fail("island_gpus", "expected a divisor of the node's " + std::to_string(node.gpus) + " GPUs, found " +
                                   std::to_string(node.island_gpus));
  }
  if (node.island_gpus == most_island) node.island_gpus = 0;  // the node is one island
  if (node.island_gpus > 0 && node.gpus > Capacity::max_devices_per_node) {
    object.fail("island_gpus", "the GPUs of a node of more than " + std::to_string(Capacity::max_devices_per_node) +
                                   " are not told apart");
  }
  const std::string rack = object.name("rack"), site = object.name("site");
  node.rack = cluster.rack(rack, site);
  if (node.rack == no_index) object.fail("site", "rack '" + rack + "' stands in another site already");
  const std::vector<std::string> owners = object.names("vc");
  static const std::vector<std::string> sharing_words{"mps", "time-slicing"};
  const std::string sharing = object.name("sharing");
  if (sharing == "time-slicing") node.sharing = SharingMode::time_slicing;
  if (!sharing.empty() && sharing != "time-slicing" && sharing != "mps") {
    object.fail("sharing",
                "expected mps or time-slicing, not '" + sharing + "'" + suggest_nearest(sharing, sharing_words));
  }
  const Json* const mig = object.optional("mig");
  object.refuse_others();
  if (mig != nullptr && !error) node.mig = read_json_mig(*mig, node, type, path + "/mig", cluster, error);
  if (node.sharing == SharingMode::time_slicing && node.gpus > Capacity::max_devices_per_node) {
    object.fail("sharing", "the GPUs of a node of more than " + std::to_string(Capacity::max_devices_per_node) +
                               " are not told apart");
  }
  std::vector<std::uint32_t> numbers;
  for (const std::string& owner : owners) {
    if (owner.empty() && owners.size() == 1) break;  // "" serves everyone
    numbers.push_back(cluster.find_vc(owner));
    if (numbers.back() == no_index) {
      object.fail("vc", "'" + owner + "' is not the name of an entry of /vcs" + nearest_vc(cluster.cluster(), owner));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() == 1) node.vc = numbers.front();
  if (numbers.size() > 1 && !error) node.vc_group = cluster.vc_group(numbers);
  if (error) return;
  const std::string stem = node.name;
  for (std::int64_t i = 0; i < count; ++i) {
    if (count > 1 && !stem.empty()) node.name = stem + "-" + std::to_string(i);
    if (!cluster.add(node, type)) return object.fail("name", "another node is named '" + node.name + "'");
  }
}

void read_json_device(const std::string& type, const Json& entry, ClusterBuilder& cluster,
                      std::optional<Error>& error) {
  ObjectReader object(entry, "/gpu_types/" + type, error);
  DeviceType device;
  if (const std::string kind = object.name("kind"); !kind.empty()) device.kind = kind;
  device.memory_mib = object.quantity("memory_gib", mib_per_gib);
  object.refuse_others();
  if (device.kind.find_first_of("|@") != std::string::npos) object.fail("kind", "expected a word without | and @");
  if (!error && !cluster.describe(name_text(type), std::move(device))) {
    object.fail("", "no node has this GPU type" + suggest_nearest(type, cluster.cluster().gpu_types));
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

void read_json_link(const Json& entry, const std::string& path, LinkClass& link, std::optional<Error>& error) {
  constexpr double most = 1e9;
  ObjectReader object(entry, path, error);
  link.name = object.name("name");
  link.latency_us = object.number("latency_us", 0, most, true);
  link.bandwidth_gb_per_s = object.number("bandwidth_gb_per_s", 0, most, false);
  object.refuse_others();
}

// The nodes are known: their levels need a link each.
void read_json_links(const Json& links, Cluster& cluster, std::optional<Error>& error) {
  ObjectReader object(links, "/links", error);
  const std::array<bool, span_count> there = spans_of(cluster);
  cluster.links.resize(span_count);
  for (const NamedValue<Span>& span : span_names) {
    const std::string key(span.name);
    const Json* const link = object.optional(key.c_str());
    const auto level = static_cast<std::size_t>(span.value);
    if (link != nullptr) {
      read_json_link(*link, "/links/" + key, cluster.links[level], error);
    } else if (there[level]) {
      object.fail(key, "missing: tasks of a gang can span " + (span.value == Span::node ? "a node's GPUs" : key));
    }
  }
  object.refuse_others();
}

// What a cluster is called whose file says nothing of it.
std::string name_of_file(const std::string& path) { return name_text(std::filesystem::path(path).stem().string()); }

Result<std::string> read_all(InputFile& file) {
  std::string text;
  constexpr std::size_t most = std::size_t{256} << 20;
  for (std::string_view block = file.next_block(); !block.empty(); block = file.next_block()) {
    text += block;
    if (text.size() > most) {
      return Unexpected{Error{.message = "is larger than 256 MiB, which no cluster is", .file = file.path()}};
    }
  }
  if (file.failure()) return Unexpected{*file.failure()};
  return text;
}

const NodeListFormat* recognise_node_list(std::string_view head) {
  if (header_has(head, {"sn", "cpu_milli", "memory_mib", "gpu", "model"})) return &openb_nodes();
  if (header_has(head, {"machine", "gpu_type", "cap_gpu"})) return &pai_nodes();
  if (header_has(head, {"gpu_model", "gpu_capacity_num"})) return &spot_nodes();
  if (header_has(head, {"machineId", "number of GPUs"})) return &philly_nodes();
  if (is_headerless_pai(head)) return &headerless_pai_nodes();
  return nullptr;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The numbers of GPUS, NODESxGPUS or RACKSxNODESxGPUS; none where the text is something else.
std::vector<std::string_view> parts_of_size(std::string_view spec) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= spec.size();) {
    const std::size_t cross = std::min(spec.find('x', at), spec.size());
    parts.push_back(spec.substr(at, cross - at));
    at = cross + 1;
  }
  const bool is_size = parts.size() <= 3 && std::all_of(parts.begin(), parts.end(), is_number);
  return is_size ? parts : std::vector<std::string_view>{};
}

std::optional<Cluster> cluster_of_size(const std::vector<std::string_view>& parts) {
  const auto number = [](std::string_view text, std::int64_t most) {
    const auto value = parse_integer(text);
    return static_cast<std::uint32_t>(value && *value <= most ? *value : 0);
  };
  if (parts.size() == 1) {
    const std::uint32_t gpus = number(parts[0], most_nodes);
    return gpus > 0 ? std::optional(Cluster::pool(gpus)) : std::nullopt;
  }
  const std::uint32_t racks = parts.size() == 3 ? number(parts[0], most_nodes) : 1;
  const std::uint32_t in_rack = number(parts[parts.size() - 2], most_nodes);
  const std::uint32_t gpus = number(parts.back(), most_gpus_of_a_node);
  const std::int64_t nodes = std::int64_t{racks} * in_rack;
  const bool possible = nodes > 0 && nodes <= most_nodes && gpus > 0 && nodes * gpus <= most_gpus_in_all;
  if (!possible) return std::nullopt;
  Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(nodes), gpus);
  for (std::uint32_t i = 0; i < nodes; ++i) cluster.nodes[i].rack = i / in_rack;
  return cluster;
}

}  // namespace

std::vector<BuiltinCluster> builtin_clusters() {
  return {{"philly", "352 nodes of 8 GPUs", "HeliosArtifact (SC'21)"},
          {"philly-vc", "the same, each node owned by one of 11 virtual clusters", "HeliosArtifact (SC'21)"}};
}

Result<Cluster> parse_cluster(const std::string& spec) {
  if (spec == "philly") return philly();
  if (spec == "philly-vc") return philly_vc();
  if (const auto parts = parts_of_size(spec); !parts.empty()) {
    if (auto cluster = cluster_of_size(parts)) {
      if (parts.size() == 3) cluster->name = spec;
      return *std::move(cluster);
    }
    return unexpected("cluster '" + spec +
                      "': expected 1 to 10,000,000 nodes of 1 to 1,000,000 GPUs, 1,000,000,000 GPUs in all at most, "
                      "or a pool of 1 to 10,000,000");
  }
  std::error_code ignored;
  if (std::filesystem::exists(spec, ignored)) return read_cluster(spec);
  std::vector<std::string> known;
  for (const BuiltinCluster& cluster : builtin_clusters()) known.push_back(cluster.name);
  return unexpected(
      "cluster '" + spec + "' is no known name" + suggest_nearest(spec, known) +
      ", size or file; expected philly, philly-vc, NODESxGPUS (75x8), RACKSxNODESxGPUS (10x8x8), GPUS (600) or a "
      "path");
}

Result<Cluster> cluster_from_json(std::string_view text, const std::string& file) {
  const auto parsed = parse_json_strictly(text, file);
  if (!parsed) return Unexpected{parsed.error()};
  const Json& json = *parsed;
  std::optional<Error> error;

  ClusterBuilder cluster;
  ObjectReader object(json, "", error);
  (void)object.name("$schema");  // editors look for it
  cluster.cluster().name = object.name("name");
  const Json& vcs = object.array("vcs", false);
  const Json& nodes = object.array("nodes", true);
  const Json& types = object.object("gpu_types");
  const Json* const links = object.optional("links");
  object.refuse_others();
  for (std::size_t i = 0; i < vcs.size(); ++i) {
    ObjectReader entry(vcs[i], "/vcs/" + std::to_string(i), error);
    VirtualCluster vc{.name = entry.name("name"), .quota = entry.quantity("quota_gpus", whole_gpu)};
    entry.refuse_others();
    if (vc.name.empty()) entry.fail("name", "missing");
    if (!error && cluster.vc(vc.name) != i) entry.fail("name", "'" + vc.name + "' appears twice");
    if (!error) cluster.cluster().vcs[i] = std::move(vc);
  }
  for (std::size_t i = 0; i < nodes.size() && !error; ++i) {
    const std::string place = "/nodes/" + std::to_string(i);
    read_json_node(nodes[i], place, cluster, error);
    if (!error && cluster.too_large())
      error = Error{.message = std::string("expected ") + too_large_text, .field = place};
  }
  if (!error) {
    for (const auto& [type, device] : types.items()) read_json_device(type, device, cluster, error);
  }
  if (!error && cluster.cluster().nodes.empty()) object.fail("nodes", "expected at least one node");
  if (!error && links != nullptr) read_json_links(*links, cluster.cluster(), error);
  if (!cluster.has_sites()) cluster.cluster().rack_sites.clear();
  if (error) {
    error->file = file;
    return Unexpected{*std::move(error)};
  }
  if (auto numbers = cluster.check_numbers(file); !numbers) return Unexpected{numbers.error()};
  return std::move(cluster.cluster());
}

Result<Cluster> read_cluster(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  return read_cluster(*file, path);
}

Result<Cluster> read_cluster(InputFile& file, const std::string& path) {
  const std::string_view head = file.head();
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && (head[start] == '{' || head[start] == '[')) {
    const auto text = read_all(file);
    if (!text) return Unexpected{text.error()};
    auto cluster = cluster_from_json(*text, path);
    if (cluster && cluster->name.empty()) cluster->name = name_of_file(path);
    return cluster;
  }

  if (looks_like_slurm_nodes(head)) {
    auto slurm = read_slurm_nodes(file);
    if (!slurm) return Unexpected{slurm.error()};
    slurm->cluster.name = name_of_file(path);
    return std::move(slurm->cluster);
  }

  const ReadOptions options;
  JobTableBuilder no_jobs;
  TraceReport report;
  ReadContext context{file, options, no_jobs, report};
  RowReader rows(context);
  ClusterBuilder cluster;
  Result<void> outcome;
  if (header_has(head, {"vc", "node num"})) {
    outcome = read_vc_nodes(rows, context, cluster);
  } else if (const NodeListFormat* format = recognise_node_list(head)) {
    outcome = read_node_list(rows, context, *format, cluster);
  } else {
    return Unexpected{Error{.message =
                                "not a cluster: expected JSON, the node list of openb, PAI, the 2026 spot trace or "
                                "Philly, or what scontrol show nodes or sinfo -N prints",
                            .file = path,
                            .line = 1}};
  }
  if (!outcome) return Unexpected{outcome.error()};
  if (cluster.cluster().nodes.empty()) return Unexpected{Error{.message = "lists no node", .file = path}};
  if (auto numbers = cluster.check_numbers(path); !numbers) return Unexpected{numbers.error()};
  cluster.cluster().name = name_of_file(path);
  return std::move(cluster.cluster());
}

}  // namespace gpusched
