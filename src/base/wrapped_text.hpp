// SPDX-License-Identifier: Apache-2.0
/// Text wrapped for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

inline constexpr std::size_t terminal_columns = 80;

/// `text` in lines of at most `width` columns, except where one word is longer; each line but the first begins with
/// `indent` blanks. Lists like a|b|c may be broken after a bar. Precondition: `width` > 0.
inline std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0) {
  std::string lines;
  while (text.size() > width) {
    std::size_t stop = text.find_last_of(" |", width);
    if (stop == std::string_view::npos) stop = text.find_first_of(" |", width);
    if (stop == std::string_view::npos) break;
    lines += text.substr(0, text[stop] == '|' ? stop + 1 : stop);
    lines += "\n" + std::string(indent, ' ');
    text.remove_prefix(stop + 1);
  }
  return lines + std::string(text);
}

}  // namespace gpusched
