// SPDX-License-Identifier: Apache-2.0
#include "src/base/text_style.hpp"

#include <algorithm>

#include "src/base/visible_text.hpp"
#include "src/base/wrapped_text.hpp"

namespace gpusched {
namespace {

// The mark at the beginning of `text`; empty where there is none.
std::string_view mark_at(std::string_view text) {
  for (const std::string_view mark : {best_mark, worst_mark, end_mark}) {
    if (text.starts_with(mark)) return mark;
  }
  return {};
}

// Marks in a name from a file cannot leave the rest of the screen coloured.
std::string with_marks(std::string_view line) {
  std::string text;
  bool marked = false;
  while (!line.empty()) {
    if (const std::string_view mark = mark_at(line); !mark.empty()) {
      text += mark;
      marked = mark != end_mark;
      line.remove_prefix(mark.size());
      continue;
    }
    const std::size_t next = std::min(line.find('\x1b', 1), line.size());
    text += visible(line.substr(0, next));
    line.remove_prefix(next);
  }
  return marked ? text.append(end_mark) : text;
}

// Rows of a table have gaps between their cells, and are folded already.
bool is_sentence(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin != std::string_view::npos && line.find("  ", begin) == std::string_view::npos &&
         line.find('\x1b') == std::string_view::npos;
}

}  // namespace

std::size_t text_columns(std::string_view text) {
  // Bytes that continue no character.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string shown(std::string_view text, const TextStyle& style) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    std::string seen = style.colours ? with_marks(line) : visible(line);
    if (style.wraps && text_columns(seen) > style.columns && is_sentence(seen)) seen = wrapped(seen, style.columns);
    result += seen;
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace gpusched
