// SPDX-License-Identifier: Apache-2.0
/// Text for a terminal of few columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

inline constexpr std::size_t terminal_columns = 80;

/// `text` in lines of `width` columns as far as its words are that short, each but the first behind `indent` blanks.
/// Lists like a|b|c may be broken behind a bar. Precondition: `width` > 0.
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
