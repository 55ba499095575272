// SPDX-License-Identifier: Apache-2.0
/// The options of a command whose configuration is a table of fields.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"

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

/// Adds an option for each row, with its default, and --config, --set, --print-config and --print-schema. `arguments`
/// must outlive the command. The field whose path is `positional` can be given without its flag too; where it
/// repeats(), several times.
void add_field_options(CLI::App& command, const FieldTable& defaults, FieldArguments& arguments,
                       const std::string& positional = {});

/// Sets what was given: flags, then --set. Errors name the flag, or --set.
Result<void> set_given_fields(const FieldTable& fields, const FieldArguments& arguments);

/// Standard input can be read once. Error: --config and the field that stands without its flag both name it.
Result<void> check_standard_input(const FieldTable& fields, const FieldArguments& arguments);

/// What the user asks for. Later wins: the file of --config, flags, --set. `fields` is the scenario's table, `read`
/// reads the file.
template <class Scenario>
Result<Scenario> scenario_from(const FieldArguments& arguments, FieldTable (*fields)(Scenario&),
                               Result<void> (*read)(Scenario&, const std::string& path)) {
  const auto set = [&](Scenario& scenario) -> Result<void> {
    if (auto done = set_given_fields(fields(scenario), arguments); !done) return done;
    return check_standard_input(fields(scenario), arguments);
  };
  Scenario scenario;
  if (auto done = set(scenario); !done) return Unexpected{done.error()};  // before standard input is read as the file
  if (arguments.config.empty()) return scenario;
  scenario = {};
  if (auto done = read(scenario, arguments.config); !done) return Unexpected{done.error()};
  if (auto done = set(scenario); !done) return Unexpected{done.error()};
  return scenario;
}

}  // namespace gpusched
