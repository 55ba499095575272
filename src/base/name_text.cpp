// SPDX-License-Identifier: Apache-2.0
#include "src/base/name_text.hpp"

#include "src/base/visible_text.hpp"

namespace gpusched {

std::string name_text(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(blanks) + 1 - first);
  return is_plain_name(text) ? std::string(text) : visible_line(text);
}

}  // namespace gpusched
