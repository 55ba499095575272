// SPDX-License-Identifier: Apache-2.0
/// The options of a command whose configuration is a table of fields.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/program/commands.hpp"

namespace gpusched {

/// What the user wrote, until everything is known.
struct FieldArguments {
  std::string config;
  std::map<std::string, std::vector<std::string>> flags;  ///< by field path
  std::map<std::string, bool> switches;                   ///< by field path
  std::string positional_path;                            ///< of the field that may be given without its flag
  std::vector<std::string> positional;
  std::vector<std::string> settings;  ///< of --set
  bool print_config = false, print_schema = false;
};

/// Adds an option for each row that has a flag, with its default unless `show_defaults` is false: where another value
/// may stand when an option is not given. `arguments` must outlive the command.
void add_row_options(CLI::App& command, const FieldTable& defaults, FieldArguments& arguments,
                     bool show_defaults = true);

/// The same, and --config, --set, --print-config and --print-schema. The field whose path is `positional` can be given
/// without its flag too; where it repeats(), several times.
void add_field_options(CLI::App& command, const FieldTable& defaults, FieldArguments& arguments,
                       const std::string& positional = {}, bool show_defaults = true);

/// Sets what was given: flags, then --set. Errors name the flag, or --set.
Result<void> set_given_fields(const FieldTable& fields, const FieldArguments& arguments);

/// Standard input can be read once. Error: --config and the field that stands without its flag both name it.
Result<void> check_standard_input(const FieldTable& fields, const FieldArguments& arguments);

/// The paths of the fields that flags and --set give.
std::set<std::string> paths_given(const FieldTable& fields, const FieldArguments& arguments);

/// The same arguments as words of a command line.
std::vector<std::string> words_of(const FieldArguments& arguments, const FieldTable& fields);

/// What the user asks for, and where each value comes from.
template <class Scenario>
struct Asked {
  Scenario scenario = {};
  FieldSources sources = {};

  /// Says what is wrong, as the user knows the option, and gives the exit code. `fields` is the scenario's table.
  int complain_of(const Error& error, FieldTable (*fields)(Scenario&), int code = exit_bad_input) const {
    Scenario copy = scenario;
    return complain(named_error(error, fields(copy), sources), code);
  }
};

/// Later wins: the file of --config, flags, --set. `fields` is the scenario's table, `read` reads the file.
template <class Scenario>
Result<Asked<Scenario>> scenario_from(const FieldArguments& arguments, FieldTable (*fields)(Scenario&),
                                      Result<std::set<std::string>> (*read)(Scenario&, const std::string& path)) {
  const auto set = [&](Scenario& scenario) -> Result<void> {
    if (auto done = set_given_fields(fields(scenario), arguments); !done) return done;
    return check_standard_input(fields(scenario), arguments);
  };
  Asked<Scenario> asked;
  // Before standard input is read as the file.
  if (auto done = set(asked.scenario); !done) return Unexpected{done.error()};
  if (arguments.config.empty()) return asked;
  asked.scenario = {};
  auto given = read(asked.scenario, arguments.config);
  if (!given) return Unexpected{given.error()};
  if (auto done = set(asked.scenario); !done) return Unexpected{done.error()};
  asked.sources = {.file = arguments.config, .from_file = *std::move(given)};
  for (const std::string& path : paths_given(fields(asked.scenario), arguments)) asked.sources.from_file.erase(path);
  return asked;
}

}  // namespace gpusched
