// SPDX-License-Identifier: Apache-2.0
/// HelpFormatter: --help that fits a terminal of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/base/wrapped_text.hpp"

namespace gpusched {

/// An option's default, as help shows it. Of nothing, an empty list or 0 the meaning says what it stands for.
inline std::string shown_default(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return value == "0" || value == "[]" ? "" : value;
}

/// Breaks what an option means into lines beside the option names and adds its default, and leaves out the type words:
/// the meaning says what a value is.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(28); }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_required() ? " (required)" : "";
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::size_t width = terminal_columns - get_column_width() - 1;
    const std::string value = shown_default(*option);
    return wrapped(CLI::Formatter::make_option_desc(option) + (value.empty() ? "" : " (default " + value + ")"), width);
  }
};

}  // namespace gpusched
