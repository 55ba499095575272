// SPDX-License-Identifier: Apache-2.0
#include "src/world/cluster_reader.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/added_nodes.hpp"
#include "src/world/cluster_builder.hpp"
#include "src/world/kubernetes_nodes.hpp"
#include "src/world/slurm_nodes.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

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
    if (nodes > most_cluster_nodes) row.expect(count, "at most " + std::to_string(most_cluster_nodes) + " nodes");
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

// The numbers of GPUS, NODESxGPUS[:TYPE] or RACKSxNODESxGPUS[:TYPE]; none where the text is something else.
std::vector<std::string_view> parts_of_size(std::string_view spec) {
  spec = spec.substr(0, spec.find(':'));
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= spec.size();) {
    const std::size_t cross = std::min(spec.find('x', at), spec.size());
    parts.push_back(spec.substr(at, cross - at));
    at = cross + 1;
  }
  const bool is_size = parts.size() <= 3 && std::all_of(parts.begin(), parts.end(), is_number);
  return is_size ? parts : std::vector<std::string_view>{};
}

// Of plain GPUs.
std::optional<Cluster> cluster_of_size(const std::vector<std::string_view>& parts) {
  const auto number = [](std::string_view text, std::int64_t most) {
    const auto value = parse_integer(text);
    return static_cast<std::uint32_t>(value && *value <= most ? *value : 0);
  };
  if (parts.size() == 1) {
    const std::uint32_t gpus = number(parts[0], most_cluster_nodes);
    return gpus > 0 ? std::optional(Cluster::pool(gpus)) : std::nullopt;
  }
  const std::uint32_t racks = parts.size() == 3 ? number(parts[0], most_cluster_nodes) : 1;
  const std::uint32_t in_rack = number(parts[parts.size() - 2], most_cluster_nodes);
  const std::uint32_t gpus = number(parts.back(), most_gpus_of_a_node);
  const std::int64_t nodes = std::int64_t{racks} * in_rack;
  const bool possible = nodes > 0 && nodes <= most_cluster_nodes && gpus > 0 && nodes * gpus <= most_cluster_gpus;
  if (!possible) return std::nullopt;
  Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(nodes), gpus);
  for (std::uint32_t i = 0; i < nodes; ++i) cluster.nodes[i].rack = i / in_rack;
  return cluster;
}

Result<Cluster> sized_cluster(const std::string& spec, const std::vector<std::string_view>& parts) {
  auto cluster = cluster_of_size(parts);
  if (!cluster) {
    return unexpected("cluster '" + spec +
                      "': expected 1 to 10,000,000 nodes of 1 to 1,000,000 GPUs, 1,000,000,000 GPUs in all at most, "
                      "or a pool of 1 to 10,000,000");
  }
  if (parts.size() == 3) cluster->name = spec;
  const std::size_t colon = spec.find(':');
  if (colon == std::string::npos) return *std::move(cluster);
  const std::string type = name_text(std::string_view(spec).substr(colon + 1));
  if (parts.size() == 1 || type.empty()) {
    return unexpected("cluster '" + spec + "': expected NODESxGPUS[:TYPE] or RACKSxNODESxGPUS[:TYPE], as 8x8:H100");
  }
  if (!is_type_name(type)) return unexpected("cluster '" + spec + "': expected " + type_name_text);
  cluster->name = spec;
  cluster->gpu_types = {type};
  return *std::move(cluster);
}

}  // namespace

std::vector<BuiltinCluster> builtin_clusters() {
  return {{"philly", "352 nodes of 8 GPUs", "HeliosArtifact (SC'21)"},
          {"philly-vc", "the same, each node owned by one of 11 virtual clusters", "HeliosArtifact (SC'21)"}};
}

namespace {

// Place of the plus in front of what is added; npos where nothing is.
std::size_t place_of_added(const std::string& spec) {
  std::error_code ignored;
  return std::filesystem::exists(spec, ignored) ? std::string::npos : spec.rfind('+');
}

}  // namespace

std::string cluster_without_added(const std::string& spec) {
  const std::size_t plus = place_of_added(spec);
  return plus == std::string::npos ? spec : cluster_without_added(spec.substr(0, plus));
}

Result<Cluster> parse_cluster(const std::string& spec) {
  if (const std::size_t plus = place_of_added(spec); plus != std::string::npos) {
    const std::string text = spec.substr(plus + 1);
    const auto added = parse_added_nodes(text, spec);
    if (!added) return Unexpected{added.error()};
    auto cluster = parse_cluster(spec.substr(0, plus));
    if (!cluster) return cluster;
    return with_added_nodes(*std::move(cluster), *added, text);
  }
  if (spec == "philly") return philly();
  if (spec == "philly-vc") return philly_vc();
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(spec, ignored);
  if (const auto parts = parts_of_size(spec); !parts.empty() && !(is_file && spec.find(':') != std::string::npos)) {
    return sized_cluster(spec, parts);
  }
  if (is_file) return read_cluster(spec);
  std::vector<std::string> known;
  for (const BuiltinCluster& cluster : builtin_clusters()) known.push_back(cluster.name);
  return unexpected("cluster '" + spec + "' is no known name" + suggest_nearest(spec, known) +
                    ", size or file; expected philly, philly-vc, NODESxGPUS[:TYPE] (75x8), RACKSxNODESxGPUS[:TYPE] "
                    "(10x8x8:H100), GPUS (600) or a path, each with +NODESxGPUS[:TYPE] behind it for more nodes");
}

Result<Cluster> read_cluster(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  return read_cluster(*file, path);
}

namespace {

Result<Cluster> read_any_cluster(InputFile& file, const std::string& path) {
  const std::string_view head = file.head();
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (looks_like_kubernetes_nodes(head)) {
    auto listed = read_kubernetes_nodes(file);
    if (!listed) return Unexpected{listed.error()};
    listed->cluster.name = name_of_file(path);
    return std::move(listed->cluster);
  }
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
  ReadContext context(file, options, no_jobs, report);
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
                                "Philly, or what scontrol show nodes, sinfo -N or kubectl get nodes -o json prints",
                            .file = path,
                            .line = 1}};
  }
  if (outcome) outcome = context.outcome();
  if (!outcome) return Unexpected{outcome.error()};
  if (cluster.cluster().nodes.empty()) return Unexpected{Error{.message = "lists no node", .file = path}};
  if (auto numbers = cluster.check_numbers(path); !numbers) return Unexpected{numbers.error()};
  cluster.cluster().name = name_of_file(path);
  return std::move(cluster.cluster());
}

}  // namespace

Result<Cluster> read_cluster(InputFile& file, const std::string& path) {
  auto cluster = read_any_cluster(file, path);
  if (!cluster) return cluster;
  const std::vector<std::string>& types = cluster->gpu_types;
  const auto wrong = std::find_if_not(types.begin(), types.end(), is_type_name);
  if (wrong == types.end()) return cluster;
  return Unexpected{
      Error{.message = std::string("expected ") + type_name_text + ", found '" + *wrong + "'", .file = path}};
}

}  // namespace gpusched
