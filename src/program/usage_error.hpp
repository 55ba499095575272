// SPDX-License-Identifier: Apache-2.0
/// A command line that cannot be read, in one line: which option, what was expected, what was given.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/nearest_name.hpp"
#include "src/program/commands.hpp"
#include "src/program/help_formatter.hpp"

namespace gpusched {

/// A command's name with those above it: "gpusched trace info".
inline std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

/// The innermost command that was chosen.
inline const CLI::App& chosen_command(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : chosen_command(*chosen.back());
}

/// What is said of the first word that `command` did not expect, or "".
inline std::string unexpected_word(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty()) return "";
  const std::string word = words.front().substr(0, words.front().find('='));
  if (!word.starts_with('-')) return "unexpected argument '" + words.front() + "'";
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  return "unknown option '" + word + "'" + suggest_nearest(word, options);
}

/// What an option of CLI11's type word takes.
inline std::string expected_value(const std::string& type) {
  if (type.starts_with("UINT")) return "a whole number, 0 or more";
  if (type.starts_with("INT")) return "a whole number";
  if (type.starts_with("FLOAT")) return "a number";
  return "another value";
}

/// What CLI11's exception means. Its texts begin with the option's name, but for conversions.
inline std::string usage_message(const CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  const auto option = [&] {
    const std::string name = text.substr(0, text.find(':'));
    if (!name.empty()) return name;
    for (const CLI::Option* hidden : command.get_options()) {  // which CLI11 does not name
      if (hidden->get_group().empty() && !hidden->get_lnames().empty()) return "--" + hidden->get_lnames().front();
    }
    return name;
  };
  if (const std::string unexpected = unexpected_word(command); !unexpected.empty()) return unexpected;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && text.starts_with("A subcommand")) {
    std::vector<std::string> names;
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(below->get_name());
    }
    return "expected a command: " + joined(names, "|");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const CLI::Option* known = command.get_option_no_throw(text.substr(0, text.find(' ')));
    if (known != nullptr && known->get_positional()) return argument_name(*known) + " is required";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (text.find("At Most") != std::string::npos) return option() + ": given more than once";
    if (text.find("missing") != std::string::npos) return option() + ": expected a value behind it";
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    constexpr std::string_view before = "Could not convert: ";
    const std::size_t equals = text.find(" = ");
    if (text.starts_with(before) && equals != std::string::npos) {
      const std::string name = text.substr(before.size(), equals - before.size());
      const CLI::Option* known = command.get_option_no_throw(name);
      return name + ": expected " + expected_value(known == nullptr ? "" : known->get_type_name()) + ", not '" +
             text.substr(equals + 3) + "'";
    }
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    const std::size_t words = text.find(" not in {");
    const std::size_t value = text.find(": ") + 2;
    if (words != std::string::npos && value <= words) {
      std::vector<std::string> known = CLI::detail::split(text.substr(words + 9, text.rfind('}') - words - 9), ',');
      const std::string given = text.substr(value, words - value);
      return option() + ": expected one of " + joined(known, "|") + ", not '" + given + "'" +
             suggest_nearest(given, known);
    }
  }
  if (const std::size_t flag = text.find(" was given a disallowed flag override"); flag != std::string::npos) {
    return "--" + text.substr(0, flag) + " takes no value";
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::size_t between = text.find(" excludes ");
    // What may be given without its option is called as in the line that shows how to call the command.
    const auto called = [&](const std::string& name) {
      const CLI::Option* known = command.get_option_no_throw(name);
      return known != nullptr && known->get_positional() ? argument_name(*known) : name;
    };
    if (between != std::string::npos)
      return called(text.substr(0, between)) + " and " + called(text.substr(between + 10)) + " exclude each other";
  }
  return text;
}

/// What is wrong with `words` behind `command` where an option stands in place of another's value, which CLI11 would
/// take for it; or "".
inline std::string missing_value(const CLI::App& command, std::span<char* const> words) {
  const auto option_of = [&](std::string_view word) -> const CLI::Option* {
    if (word.size() < 2 || word.front() != '-') return nullptr;
    return command.get_option_no_throw(std::string(word.substr(0, word.find('='))));
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
      if (below->get_name() == word) return missing_value(*below, words.subspan(i + 1));
    }
    const CLI::Option* option = option_of(word);
    if (option == nullptr || option->get_items_expected_max() == 0 || word.find('=') != std::string_view::npos)
      continue;
    if (++i == words.size() || option_of(words[i]) == nullptr) continue;
    return std::string(word) + ": expected a value behind it, not the option " + words[i] + " (see `" +
           full_name(command) + " --help`)";
  }
  return "";
}

/// CLI11 reports --help as an error with code 0; every real one is bad usage.
inline int report_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);
  const CLI::App& command = chosen_command(program);
  return complain(usage_message(command, error) + " (see `" + full_name(command) + " --help`)");
}

}  // namespace gpusched
