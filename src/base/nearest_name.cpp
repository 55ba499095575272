// SPDX-License-Identifier: Apache-2.0
#include "src/base/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace gpusched {
namespace {

bool alike(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Edits that turn `a` into `b`: inserting, deleting or replacing a letter, or swapping two neighbours (optimal string
// alignment). The case of a letter does not count. Only three rows of the table are kept.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (alike(a[i], b[j]) ? 0 : 1)});
      const bool swapped = i > 0 && j > 0 && alike(a[i], b[j - 1]) && alike(a[i - 1], b[j]);
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(above, std::move(row));
  }
  return above.back();
}

}  // namespace

std::string suggest_nearest(std::string_view name, std::span<const std::string> candidates) {
  std::size_t best = std::string_view::npos;
  std::string_view nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= std::max<std::size_t>(1, candidate.size() / 3) && distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)";
}

std::string joined(std::span<const std::string> names, std::string_view between) {
  std::string text;
  for (const std::string& name : names) {
    if (&name != names.data()) text += between;
    text += name;
  }
  return text;
}

std::vector<std::string> distinct(std::vector<std::string> names) {
  std::vector<std::string> seen;
  for (std::string& name : names) {
    if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(std::move(name));
  }
  return seen;
}

}  // namespace gpusched
