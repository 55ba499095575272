// SPDX-License-Identifier: Apache-2.0
/// The command line as data: every command with its options and arguments, read off the parser. Completion scripts and
/// the man page are made from it, so that they know what --help knows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// What a value is.
namespace value_kind {
inline constexpr std::string_view trace = "TRACE";               ///< a trace file, "-", or synthetic:NAME
inline constexpr std::string_view policy = "POLICY";             ///< the name of one policy
inline constexpr std::string_view policies = "POLICIES";         ///< a list of them, with parameters and backfilling
inline constexpr std::string_view compared = "POLICY_OR_GROUP";  ///< one entry of such a list, or a group's name
inline constexpr std::string_view group = "NAME=POLICIES";       ///< such a list under a name
inline constexpr std::string_view backfill = "BACKFILL";         ///< a way of backfilling, or none
inline constexpr std::string_view cluster = "CLUSTER";           ///< NAME, FILE, NODESxGPUS or GPUS
inline constexpr std::string_view format = "FORMAT";             ///< a trace format, or auto
inline constexpr std::string_view profile = "PROFILE";           ///< a device profile: FILE or NAME
inline constexpr std::string_view profiles = "PROFILES";         ///< a list of them, each behind TYPE= or alone
inline constexpr std::string_view model = "MODEL";               ///< of synthetic traces: NAME or FILE
inline constexpr std::string_view file = "FILE";
inline constexpr std::string_view folder = "FOLDER";
inline constexpr std::string_view command = "COMMAND";  ///< a command of this program
}  // namespace value_kind

/// An option, flag or argument.
struct OptionInfo {
  std::vector<std::string> names;  ///< "--policy"; empty: an argument only
  std::string argument;            ///< the name of an argument: "TRACE"; empty: an option only
  std::string meaning;
  std::string fallback;            ///< the default as help shows it; empty: the meaning says it
  std::string kind;                ///< value_kind, or another word for the value; empty: a flag
  std::vector<std::string> words;  ///< what may follow; empty: anything of that kind
  bool required = false;
  bool repeated = false;  ///< of an argument: several may follow each other
};

/// A command with those below it.
struct CommandInfo {
  std::string name;     ///< "info"
  std::string path;     ///< "trace info"; of the program, ""
  std::string summary;  ///< one line
  std::string footer;   ///< names and examples under the help
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

/// Texts of the command and those below it get the words of value_kind, which help and completion show.
void name_values(CLI::App& command);

/// The command with what help shows of it. Options in no group (hidden aliases) are left out.
CommandInfo command_tree(const CLI::App& command);

/// The names that values of `kind` may have; empty where there is no such list.
std::vector<std::string> words_of_kind(std::string_view kind);

/// Policies that the same ways of backfilling go with.
struct BackfillChoice {
  std::vector<std::string> policies;  ///< with their aliases
  std::vector<std::string> ways;      ///< what may stand behind their '+'
};
std::vector<BackfillChoice> backfill_choices();

/// The command and those below it, outermost first.
std::vector<const CommandInfo*> all_commands(const CommandInfo& command);

}  // namespace gpusched
