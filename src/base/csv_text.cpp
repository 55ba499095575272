// SPDX-License-Identifier: Apache-2.0
#include "src/base/csv_text.hpp"

namespace gpusched {

void append_csv_field(std::string& text, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += field;
    return;
  }
  text += '"';
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

}  // namespace gpusched
