// SPDX-License-Identifier: Apache-2.0
#include "src/program/command_tree.hpp"

#include <algorithm>

#include "src/calibration/profile/device_profile.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/program/help_formatter.hpp"
#include "src/world/cluster_reader.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/trace_model.hpp"

namespace gpusched {
namespace {

// Words stand in the type, "auto|native", or CLI11 joins type and check: "TEXT:{cuda,cpu,analytic}".
std::vector<std::string> checked_words(const std::string& type) {
  if (type.find('|') != std::string::npos) return CLI::detail::split(type, '|');
  const std::size_t begin = type.find(":{");
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

// What options of these names take, wherever they stand, unless their command says otherwise.
struct KnownKind {
  std::string_view command;  // "": any
  std::string_view option;
  std::string_view kind;
};
constexpr KnownKind known_kinds[] = {
    {"", "trace", value_kind::trace},
    {"", "--trace", value_kind::trace},
    {"", "--like", value_kind::trace},
    {"", "--policy", value_kind::policies},
    {"policies", "name", value_kind::policy},
    {"", "--backfill", value_kind::backfill},
    {"evaluate", "--group", value_kind::group},
    {"evaluate", "--against", value_kind::compared},
    {"", "--cluster", value_kind::cluster},
    {"cluster show", "cluster", value_kind::cluster},
    {"cluster import", "nodes", value_kind::file},
    {"", "--format", value_kind::format},
    {"", "--profile", value_kind::profiles},
    {"", "--reference-profile", value_kind::profile},
    {"profile show", "profile", value_kind::profile},
    {"profile validate", "profile", value_kind::profile},
    {"profile compare", "a", value_kind::profile},
    {"profile compare", "b", value_kind::profile},
    {"help", "command", value_kind::command},
    {"replay", "--out", value_kind::folder},
    {"evaluate", "--out", value_kind::folder},
    {"compare", "--out", value_kind::folder},
    {"train", "--out", value_kind::folder},
    {"explain", "folder", value_kind::folder},
    {"explain", "--policy", value_kind::policies},
    {"report", "folders", value_kind::folder},
    {"report", "--csv", value_kind::folder},
    {"sweep", "--out", value_kind::folder},
    {"sweep", "file", value_kind::file},
    {"", "--out", value_kind::file},
    {"", "--model-out", value_kind::file},
    {"", "--model", value_kind::model},
    {"", "--config", value_kind::file},
    {"", "--failures", value_kind::file},
    {"", "--stages", value_kind::file},
    {"", "--elastic", value_kind::file},
    {"", "--changes", value_kind::file},
    {"", "--power", value_kind::file},
    {"", "--services", value_kind::file},
    {"", "--trials", value_kind::file},
    {"", "--sites", value_kind::file},
    {"", "--throughputs", value_kind::file},
    {"", "--slurm-conf", value_kind::file},
    {"", "--slurm-qos", value_kind::file},
    {"", "--resume", value_kind::folder},
    {"", "--checkpoint-folder", value_kind::folder},
};

std::string kind_of(const std::string& command, const CLI::Option& option) {
  for (const KnownKind& known : known_kinds) {
    if (!known.command.empty() && known.command != command) continue;
    if (option.check_name(std::string(known.option))) return std::string(known.kind);
  }
  return "TEXT";
}

// "trace info" of the command; "" of the program.
std::string path_of(const CLI::App& command) {
  std::string path;
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent()) {
    path = at->get_name() + (path.empty() ? "" : " " + path);
  }
  return path;
}

OptionInfo option_info(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  OptionInfo info{.names = {},
                  .argument = {},
                  .meaning = option.get_description(),
                  .fallback = shown_default(option),
                  .kind = type.substr(0, type.find(':')),
                  .words = checked_words(type),
                  .required = option.get_required(),
                  .repeated = option.get_items_expected_max() > 1};
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (option.get_positional()) info.argument = argument_name(option);
  if (option.get_items_expected_max() == 0) info.kind.clear();
  if (info.words.empty()) info.words = words_of_kind(info.kind);
  return info;
}

}  // namespace

void name_values(CLI::App& command) {
  const std::string path = path_of(command);
  for (CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const bool has_words = !checked_words(type).empty();
    if (type.substr(0, type.find(':')) == "TEXT" && !has_words) option->type_name(kind_of(path, *option));
  }
  for (CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) name_values(*below);
}

CommandInfo command_tree(const CLI::App& command) {
  CommandInfo info{.name = command.get_name(),
                   .path = path_of(command),
                   .summary = command.get_description(),
                   .footer = command.get_footer(),
                   .options = {},
                   .commands = {}};
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty()) info.options.push_back(option_info(*option));
  }
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(command_tree(*below));
  }
  return info;
}

std::vector<std::string> words_of_kind(std::string_view kind) {
  std::vector<std::string> words;
  constexpr std::string_view of_policies[] = {value_kind::policy, value_kind::policies, value_kind::compared,
                                              value_kind::group};
  if (std::find(std::begin(of_policies), std::end(of_policies), kind) != std::end(of_policies)) {
    const PolicyRegistry registry = PolicyRegistry::standard();
    for (const PolicyInfo& policy : registry.rows()) words.push_back(policy.name);
    if (kind == value_kind::policy) {
      for (const BackfillInfo& way : backfill_infos()) words.push_back(way.name);
    }
  } else if (kind == value_kind::backfill) {
    words.emplace_back("none");
    for (const auto& way : backfill_infos()) words.push_back(way.name);
  } else if (kind == value_kind::cluster) {
    for (const BuiltinCluster& cluster : builtin_clusters()) words.push_back(cluster.name);
  } else if (kind == value_kind::format) {
    words.emplace_back("auto");
    for (const TraceFormatInfo& format : trace_formats()) words.push_back(format.name);
  } else if (kind == value_kind::profile || kind == value_kind::profiles) {
    words = shipped_profile_names();
  } else if (kind == value_kind::model) {
    words = trace_model_names();
  } else if (kind == value_kind::trace) {
    for (const std::string& model : trace_model_names()) words.push_back("synthetic:" + model);
  }
  return words;
}

std::vector<BackfillChoice> backfill_choices() {
  std::vector<BackfillChoice> choices;
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& policy : registry.rows()) {
    const std::vector<std::string> ways = backfills_of(policy);
    auto choice = std::find_if(choices.begin(), choices.end(), [&](const auto& known) { return known.ways == ways; });
    if (choice == choices.end()) choice = choices.insert(choice, {.policies = {}, .ways = ways});
    choice->policies.push_back(policy.name);
    choice->policies.insert(choice->policies.end(), policy.aliases.begin(), policy.aliases.end());
  }
  return choices;
}

std::vector<const CommandInfo*> all_commands(const CommandInfo& command) {
  std::vector<const CommandInfo*> commands{&command};
  for (const CommandInfo& below : command.commands) {
    const auto more = all_commands(below);
    commands.insert(commands.end(), more.begin(), more.end());
  }
  return commands;
}

}  // namespace gpusched
