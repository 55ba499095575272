// SPDX-License-Identifier: Apache-2.0
/// HelpFormatter: --help that fits a terminal of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>

#include "src/base/wrapped_text.hpp"

namespace gpusched {

/// An option's default, as help shows it. Of nothing or an empty list the meaning says what it stands for.
inline std::string shown_default(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return value == "[]" ? "" : value;
}

/// The name of an argument: "TRACE".
inline std::string argument_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

/// What help says of an option whose argument is described already.
inline std::string same_as(const std::string& argument) { return "the same as " + argument; }

/// The word for an option's value, as help and the manual page show it, of the type word of CLI11 or of a table of
/// fields: a list of words is WORD, a number by its type N or NUMBER; what CLI11 says of checks is left out.
inline std::string value_name(const std::string& kind) {
  if (kind.find('|') != std::string::npos || kind.find('{') != std::string::npos) return "WORD";
  if (kind.starts_with("UINT") || kind.starts_with("INT")) return "N";
  return kind.starts_with("FLOAT") ? "NUMBER" : kind.substr(0, kind.find(':'));
}

/// Breaks what an option means into lines beside the option names and adds its default, and shows one word for its
/// value. What may be given with and without its option is described as an argument.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(28); }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? argument_name(*option) : CLI::Formatter::make_option_name(option, false);
  }

  // The name of an argument stands for its value, and what may be given with and without its option is required once.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const bool is_twin = !is_positional && option->get_positional();
    const std::string name = make_option_name(option, is_positional);
    const std::string value = is_positional ? "" : shown_value(*option);
    const std::string required = option->get_required() && !is_twin ? " (required)" : "";
    const std::string meaning = is_twin ? same_as(argument_name(*option)) : make_option_desc(option);
    std::stringstream out;
    CLI::detail::format_help(out, name + value + required, meaning, get_column_width());
    return out.str();
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::size_t width = terminal_columns - get_column_width() - 1;
    const std::string value = shown_default(*option);
    return wrapped(CLI::Formatter::make_option_desc(option) + (value.empty() ? "" : " (default " + value + ")"), width);
  }

 private:
  // " FILE"; of a flag nothing.
  static std::string shown_value(const CLI::Option& option) {
    const std::string value = option.get_items_expected_max() > 0 ? value_name(option.get_type_name()) : "";
    return value.empty() ? "" : " " + value;
  }
};

}  // namespace gpusched
