// SPDX-License-Identifier: Apache-2.0
/// Names of a table: their numbers and their order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Distinct names, numbered in order of first appearance.
class NameTable {
 public:
  /// The number of `name`, adding it when new.
  std::uint32_t intern(std::string_view name) {
    if (!names_.empty() && names_[last_] == name) return last_;
    const auto [place, added] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return last_ = place->second;
  }
  /// The number of `name`, or no_index.
  [[nodiscard]] std::uint32_t find(std::string_view name) const {
    const auto place = numbers_.find(std::string(name));
    return place == numbers_.end() ? no_index : place->second;
  }
  /// The name of that number. Precondition: number < size().
  [[nodiscard]] const std::string& operator[](std::uint32_t number) const { return names_[number]; }
  /// How many distinct names there are.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }
  /// All names, in the order of their numbers.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::uint32_t last_ = 0;
};

/// Text order in which runs of digits count as numbers: "job9" comes before "job10".
inline bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number_at = [&is_digit](std::string_view text, std::size_t& at) {
    while (at < text.size() && text[at] == '0') ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = number_at(a, i), y = number_at(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  const std::size_t left_a = a.size() - i, left_b = b.size() - j;
  return left_a != left_b ? left_a < left_b : a < b;
}

}  // namespace gpusched
