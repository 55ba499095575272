// SPDX-License-Identifier: Apache-2.0
#include "src/base/visible_text.hpp"

#include <cstdint>
#include <cstdio>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

// Bytes of the UTF-8 character at the beginning of `text`; 0 where there is none. As RFC 3629 has it: the shortest form
// of a character alone, no half of a surrogate pair, and nothing above U+10FFFF.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first >= 0xF5 || text.size() < length) return 0;
  std::uint32_t character = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  return character < least[length] || surrogate || character > 0x10FFFF ? 0 : length;
}

// U+0080 to U+009F are C2 80 to C2 9F.
bool is_control(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 1) return last < 0x20 || last == 0x7F;
  return character.size() == 2 && character.front() == '\xC2' && last < 0xA0;
}

void append_escaped(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += escaped;
  }
}

std::string without_controls(std::string_view text, bool keep_line_ends) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (character == "\n" && keep_line_ends) {
      result += '\n';
    } else if (length == 0 || is_control(character)) {
      append_escaped(result, character);
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace

std::string visible(std::string_view text) { return without_controls(text, true); }
std::string visible_line(std::string_view text) { return without_controls(text, false); }

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && continues(text[end])) --end;
  return std::string(text.substr(0, end)) + "... (" + human_count(text.size()) + " characters)";
}

}  // namespace gpusched
