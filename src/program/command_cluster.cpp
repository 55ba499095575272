// SPDX-License-Identifier: Apache-2.0
// gpusched cluster import|show: make a cluster file of what Slurm prints, look at any cluster.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "src/base/atomic_file.hpp"
#include "src/program/commands.hpp"
#include "traces/core/cluster_reader.hpp"
#include "traces/core/slurm_nodes.hpp"
#include "traces/tools/cluster_info.hpp"

namespace gpusched {
namespace {

struct ClusterArguments {
  std::string cluster, name, out;
};

// Any cluster that --cluster takes, or - for standard input; Slurm's nodes with what they leave open.
Result<SlurmCluster> find_cluster(const std::string& spec) {
  std::error_code ignored;
  if (spec == "-" || std::filesystem::exists(spec, ignored)) {
    auto file = InputFile::open(spec);
    if (!file) return Unexpected{file.error()};
    if (looks_like_slurm_nodes(file->head())) {
      auto slurm = read_slurm_nodes(*file);
      if (slurm) slurm->cluster.name = std::filesystem::path(spec).stem().string();
      return slurm;
    }
    auto cluster = read_cluster(*file, spec);
    if (!cluster) return Unexpected{cluster.error()};
    return SlurmCluster{.cluster = *std::move(cluster), .notes = {}};
  }
  auto cluster = parse_cluster(spec);
  if (!cluster) return Unexpected{cluster.error()};
  return SlurmCluster{.cluster = *std::move(cluster), .notes = {}};
}

int import(const ClusterArguments& arguments) {
  auto found = find_cluster(arguments.cluster);
  if (!found) return complain(found.error());
  if (!arguments.name.empty()) found->cluster.name = arguments.name;
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
  show(cluster_text(found->cluster));
  return exit_done;
}

}  // namespace

void add_cluster_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("cluster", "Import a cluster from Slurm, or show one");
  command->require_subcommand(1);
  const auto arguments = std::make_shared<ClusterArguments>();

  auto* import_command = command->add_subcommand("import", "Write a cluster file from what Slurm prints of its nodes");
  import_command
      ->add_option("nodes", arguments->cluster, "FILE of scontrol show nodes, or of sinfo -N; - for standard input")
      ->required();
  import_command->add_option("--name", arguments->name, "name of the cluster; by default the file's");
  import_command->add_option("--out", arguments->out, "the file to write; by default standard output");
  import_command->footer(
      "Example:\n"
      "  scontrol show nodes -o > nodes.txt\n"
      "  gpusched cluster import nodes.txt --out cluster.json\n");
  import_command->callback([arguments, &exit_code] { exit_code = import(*arguments); });

  auto* show_command = command->add_subcommand("show", "What a cluster holds; exit code 2 if it cannot be read");
  show_command->add_option("cluster", arguments->cluster, "NAME, FILE, NODESxGPUS, GPUS, or - for standard input")
      ->required();
  show_command->footer("Example:\n  gpusched cluster show philly\n");
  show_command->callback([arguments, &exit_code] { exit_code = show_cluster(*arguments); });

  command->footer(
      "Examples:\n"
      "  scontrol show nodes -o > nodes.txt\n"
      "  sinfo -N -o \"%N|%P|%c|%m|%G|%T\" > nodes.txt       (either will do)\n"
      "  gpusched cluster import nodes.txt --out cluster.json\n"
      "  gpusched cluster show cluster.json\n");
}

}  // namespace gpusched
