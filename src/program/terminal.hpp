// SPDX-License-Identifier: Apache-2.0
/// How results for people look where standard output is a terminal, and where it is not.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/text_style.hpp"
#include "src/base/wrapped_text.hpp"

namespace gpusched {

/// What standard output and the environment say of the terminal.
struct TerminalFacts {
  bool is_terminal = false;
  std::size_t columns = 0;                           ///< as the terminal says; 0: it does not
  std::optional<std::string> columns_variable = {};  ///< COLUMNS, which is a user's wish (POSIX, XBD 8.3)
  std::optional<std::string> no_color = {};          ///< NO_COLOR: anything but nothing forbids colours (no-color.org)
  std::optional<std::string> term = {};              ///< TERM: "dumb" knows no colours
};

/// A number of columns in digits alone, 1 to 9999; 0 where `text` is something else.
inline std::size_t columns_in(std::string_view text) {
  std::size_t columns = 0;
  if (text.empty() || text.size() > 4) return 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return 0;
    columns = 10 * columns + static_cast<std::size_t>(digit - '0');
  }
  return columns;
}

/// A file or pipe gets the fixed style, whatever the environment says: its bytes depend on the input alone. A terminal
/// is as wide as COLUMNS says, else as it says itself, else 80, and never less than 40.
inline TextStyle style_for(const TerminalFacts& facts) {
  if (!facts.is_terminal) return {};
  constexpr std::size_t least = 40;
  std::size_t columns = columns_in(facts.columns_variable.value_or(""));
  if (columns == 0) columns = facts.columns;
  if (columns == 0) columns = terminal_columns;
  const bool colours = facts.no_color.value_or("").empty() && !facts.term.value_or("").empty() && facts.term != "dumb";
  return {.columns = columns < least ? least : columns, .colours = colours, .wraps = true};
}

/// The style of standard output.
inline TextStyle result_style() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  winsize size{};
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const bool tells = is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return style_for({.is_terminal = is_terminal,
                    .columns = tells ? size.ws_col : std::size_t{0},
                    .columns_variable = variable("COLUMNS"),
                    .no_color = variable("NO_COLOR"),
                    .term = variable("TERM")});
}

}  // namespace gpusched
