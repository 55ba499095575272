// SPDX-License-Identifier: Apache-2.0
/// TextTable: aligned columns for a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// The first column holds names, aligned left; the others hold numbers, aligned right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

  /// Precondition: as many cells as the header has.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// Lines without trailing blanks, two blanks between columns, a rule under the header.
  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns(row[c]));
    }
    std::string text;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      text += line(rows_[r], widths);
      if (r == 0) text += std::string(line(rows_[0], widths).size() - 1, '-') + "\n";
    }
    return text;
  }

 private:
  // Characters of UTF-8 text: bytes that are not continuation bytes.
  static std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
  }

  static std::string line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - columns(row[c]), ' ');
      if (c > 0) text += "  ";
      text += c == 0 ? row[c] + blanks : blanks + row[c];
    }
    return text.erase(text.find_last_not_of(' ') + 1) + "\n";
  }

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpusched
