// SPDX-License-Identifier: Apache-2.0
/// HelpFormatter: --help that fits a terminal of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gpusched {

/// Breaks what an option means into lines beside the option names and adds its default, and leaves out the type words:
/// the meaning says what a value is.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(28); }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_required() ? " (required)" : "";
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    constexpr std::size_t columns = 80;
    const std::size_t width = columns - get_column_width() - 1;
    std::string text = CLI::Formatter::make_option_desc(option) + default_note(option->get_default_str());
    std::size_t begin = 0;
    while (text.size() - begin > width) {
      // Long lists of words are broken at their bars.
      const std::size_t stop = text.find_last_of(" |", begin + width);
      if (stop == std::string::npos || stop <= begin) break;
      if (text[stop] == ' ') {
        text[stop] = '\n';
      } else {
        text.insert(stop + 1, 1, '\n');
      }
      begin = text.find('\n', begin) + 1;
    }
    return text;
  }

 private:
  // Of nothing, an empty list or 0 the meaning says what it stands for.
  static std::string default_note(const std::string& value) {
    return value.empty() || value == "0" || value == "[]" ? "" : " (default " + value + ")";
  }
};

}  // namespace gpusched
