// SPDX-License-Identifier: Apache-2.0
// gpusched cluster import|show|validate: make a cluster file of what Slurm prints, look at or check any cluster.
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/program/commands.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/kubernetes_nodes.hpp"
#include "src/world/slurm_nodes.hpp"
#include "traces/tools/cluster_info.hpp"

namespace gpusched {
namespace {

struct ClusterArguments {
  std::string cluster, name, out;
  bool group = false, with_down = false;
};

// Any cluster that --cluster takes, or - for standard input; nodes of Slurm and Kubernetes with what they leave open.
Result<SlurmCluster> find_cluster(const std::string& spec, bool with_down = false) {
  std::error_code ignored;
  if (spec == "-" || std::filesystem::exists(spec, ignored)) {
    auto file = InputFile::open(spec);
    if (!file) return Unexpected{file.error()};
    const bool of_slurm = looks_like_slurm_nodes(file->head());
    if (of_slurm || looks_like_kubernetes_nodes(file->head())) {
      auto listed = of_slurm ? read_slurm_nodes(*file, with_down) : read_kubernetes_nodes(*file, with_down);
      if (listed) listed->cluster.name = std::filesystem::path(spec).stem().string();
      return listed;
    }
    auto cluster = read_cluster(*file, spec);
    if (!cluster) return Unexpected{cluster.error()};
    return SlurmCluster{.cluster = *std::move(cluster), .notes = {}};
  }
  auto cluster = parse_cluster(spec);
  if (!cluster) return Unexpected{cluster.error()};
  return SlurmCluster{.cluster = *std::move(cluster), .notes = {}};
}

// Nodes without their names, equal ones side by side in order of the first of them, so that the file counts them.
void group_nodes(Cluster& cluster) {
  const auto kind = [](const Node& node) {
    return std::tuple(node.gpu_type, node.gpus, node.island_gpus, node.rack, node.vc, node.vc_group, node.cpu_milli,
                      node.memory_mib, node.mig, node.sharing);
  };
  std::map<decltype(kind(Node{})), std::size_t> numbers;
  std::vector<std::vector<Node>> groups;
  for (Node& node : cluster.nodes) {
    node.name.clear();
    const auto [place, is_new] = numbers.try_emplace(kind(node), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(std::move(node));
  }
  cluster.nodes.clear();
  for (std::vector<Node>& group : groups) std::move(group.begin(), group.end(), std::back_inserter(cluster.nodes));
}

int import(const ClusterArguments& arguments) {
  auto found = find_cluster(arguments.cluster, arguments.with_down);
  if (!found) return complain(found.error());
  if (!arguments.name.empty()) found->cluster.name = arguments.name;
  if (arguments.group) group_nodes(found->cluster);
  for (const std::string& line : found->notes) note(line);
  const std::string text = cluster_file_text(found->cluster);
  if (arguments.out.empty()) {
    print(text);
    return exit_done;
  }
  if (const auto written = replace_file(arguments.out, text); !written) {
    return complain(written.error(), exit_failed);
  }
  show(arguments.out + ": " + cluster_line(found->cluster) + "\n");
  return exit_done;
}

int show_cluster(const ClusterArguments& arguments) {
  const auto found = find_cluster(arguments.cluster);
  if (!found) return complain(found.error());
  for (const std::string& line : found->notes) note(line);
  show(cluster_text(found->cluster, result_style()));
  return exit_done;
}

int validate_cluster(const ClusterArguments& arguments) {
  const auto found = find_cluster(arguments.cluster);
  if (!found) return complain(found.error());
  for (const std::string& line : found->notes) note(line);
  show(arguments.cluster + ": valid: " + cluster_line(found->cluster) + "\n");
  return exit_done;
}

}  // namespace

void add_cluster_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("cluster", "Import a cluster from Slurm; show or check one");
  command->require_subcommand(1);
  const auto arguments = std::make_shared<ClusterArguments>();

  auto* import_command = command->add_subcommand(
      "import", "Write a cluster file from nodes as Slurm or Kubernetes prints them, or a list");
  import_command
      ->add_option(
          "nodes", arguments->cluster,
          "FILE of scontrol show nodes, sinfo -N or kubectl get nodes -o json, or a node list; - for standard input")
      ->required();
  import_command->add_option("--name", arguments->name, "name of the cluster; by default the file's");
  import_command->add_flag("--group", arguments->group, "leave names of nodes out and count equal nodes");
  import_command->add_flag("--with-down", arguments->with_down,
                           "count nodes that are down, drained or failing as if in service");
  import_command->add_option("--out", arguments->out, "the file to write; by default standard output");
  import_command->footer(
      "Example:\n"
      "  scontrol show nodes -o > nodes.txt\n"
      "  gpusched cluster import nodes.txt --out cluster.json\n");
  import_command->callback([arguments, &exit_code] { exit_code = import(*arguments); });

  auto* show_command = command->add_subcommand("show", "What a cluster holds; exit code 2 if it cannot be read");
  show_command
      ->add_option("cluster", arguments->cluster,
                   "NAME, FILE, NODESxGPUS[:TYPE], RACKSxNODESxGPUS[:TYPE], GPUS, or - for standard input")
      ->required();
  show_command->footer("Example:\n  gpusched cluster show philly\n");
  show_command->callback([arguments, &exit_code] { exit_code = show_cluster(*arguments); });

  auto* validate = command->add_subcommand("validate", "Check a cluster file; exit code 2 and one line on an error");
  validate->add_option("cluster", arguments->cluster, "FILE, or - for standard input")->required();
  validate->footer("Example:\n  gpusched cluster validate examples/clusters/edge.json\n");
  validate->callback([arguments, &exit_code] { exit_code = validate_cluster(*arguments); });

  command->footer(
      "Examples:\n"
      "  scontrol show nodes -o > nodes.txt\n"
      "  sinfo -N -o \"%N|%P|%c|%m|%G|%T\" > nodes.txt       (either will do)\n"
      "  kubectl get nodes -o json > nodes.json\n"
      "  gpusched cluster import nodes.txt --out cluster.json\n"
      "  gpusched cluster show cluster.json\n"
      "  gpusched cluster validate cluster.json\n");
}

}  // namespace gpusched
