// SPDX-License-Identifier: Apache-2.0
#include "src/world/absent_names.hpp"

#include <algorithm>

#include "src/base/nearest_name.hpp"

namespace gpusched {

std::vector<std::string> absent_names_note(const std::string& file, const std::string& field,
                                           std::span<const std::string> absent, std::span<const std::string> known,
                                           const std::string& who) {
  constexpr std::size_t most = 3;
  if (absent.empty()) return {};
  std::string line = file + ": " + field + ": no " + who + " has";
  for (std::size_t i = 0; i < std::min(most, absent.size()); ++i) {
    line += (i == 0 ? " '" : ", '") + absent[i] + "'" + suggest_nearest(absent[i], known);
  }
  if (absent.size() > most) line += " and " + std::to_string(absent.size() - most) + " more of its names";
  return {line};
}

}  // namespace gpusched
