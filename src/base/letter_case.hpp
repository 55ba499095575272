// SPDX-License-Identifier: Apache-2.0
/// The case of ASCII letters, whatever the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gpusched {

/// `text` with A-Z as a-z; other bytes stay.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

}  // namespace gpusched
