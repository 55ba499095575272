// SPDX-License-Identifier: Apache-2.0
/// Names from files: job ids, users, queues, nodes, GPU types. Every reader takes them by this one rule.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// The name that stands in `text`: without blanks and line ends around it; a control character, and a byte that is not
/// UTF-8, as \xNN (visible_line). What is written to csv or JSON is therefore the same name when it is read again, and
/// names that differ stay different, unless one is the escape of the other letter by letter. Of a name it gives the
/// same name.
std::string name_text(std::string_view text);

/// True when `text` is a name as it stands; of plain ASCII alone, so that name_text() may still change nothing.
constexpr bool is_plain_name(std::string_view text) {
  bool printable = true;
  for (const char c : text) printable = printable && c >= ' ' && c <= '~';
  return printable && (text.empty() || (text.front() != ' ' && text.back() != ' '));
}

/// Place of the first name that also stands before it; empty names do not count. O(n log n) calls of `less`.
template <class Less = std::less<>>
std::optional<std::size_t> first_repeated(const std::vector<std::string_view>& names, Less less = {}) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(names[a], names[b])) return true;
    return !less(names[b], names[a]) && a < b;
  });
  std::optional<std::size_t> first;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (names[order[i]].empty() || less(names[order[i - 1]], names[order[i]])) continue;
    first = std::min(first.value_or(order[i]), order[i]);
  }
  return first;
}

}  // namespace gpusched
