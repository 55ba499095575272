// SPDX-License-Identifier: Apache-2.0
/// TextTable: aligned columns, folded where they are too wide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text_style.hpp"

namespace gpusched {

/// Which value of a column is the best one.
enum class Best : std::uint8_t { least, most };

/// A cell's value among those of its column.
struct Rated {
  std::optional<double> value;  ///< none: compared with no other
  bool may_be_best = true;      ///< false of a run that knows what no real scheduler does
};

/// The first column holds names, aligned left; the others hold numbers, aligned right. The first columns are keys,
/// which say what a row is of.
///
/// A table wider than its style allows is folded: first a long key gets a line of its own above its row; then the table
/// goes in parts below each other, each with the keys and as many of the other columns as fit, the important ones
/// first.
class TextTable {
 public:
  /// Precondition: 0 < `keys` <= columns of the header.
  explicit TextTable(std::vector<std::string> header, std::size_t keys = 1) : keys_(keys) {
    rows_.push_back(std::move(header));
  }

  /// Precondition: as many cells as the header has.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// The columns that a folded table shows first, the most important one before the others; those that are not named
  /// follow in their order.
  void set_important(std::vector<std::size_t> columns) { important_ = std::move(columns); }

  /// Marks the best and the worst cells of a column, with every cell that reads the same, where two cells differ.
  /// `rated`: one a row; rows beyond its end are compared with none.
  void rate(std::size_t column, Best best, const std::vector<Rated>& rated);

  /// rate() with what `rated` says of each of `items`, from which the rows were made.
  template <class Items, class Function>
  void rate(std::size_t column, Best best, const Items& items, Function rated) {
    std::vector<Rated> all;
    for (const auto& item : items) all.push_back(rated(item));
    rate(column, best, all);
  }

  /// Lines without trailing blanks, two blanks between columns, a rule under the header.
  [[nodiscard]] std::string text(const TextStyle& style = {}) const;

 private:
  enum class Mark : std::uint8_t { none, best, worst };
  using Columns = std::vector<std::size_t>;
  // What all parts of a table share.
  struct Layout {
    std::vector<std::size_t> widths;  // of columns
    std::vector<bool> own_line;       // of rows: the keys stand above the other cells
    bool colours = false;
    std::size_t columns = 0;  // of the style
  };

  [[nodiscard]] Layout layout(const TextStyle& style, std::size_t longest_key) const;
  [[nodiscard]] std::vector<Columns> parts(const Layout& layout) const;
  [[nodiscard]] std::string part_text(const Columns& part, const Layout& layout) const;
  [[nodiscard]] std::string line(std::size_t row, const Columns& part, const Layout& layout) const;
  [[nodiscard]] std::string keys_line(std::size_t row, std::size_t columns) const;
  [[nodiscard]] Mark mark_of(std::size_t row, std::size_t column) const;

  std::size_t keys_;
  std::vector<std::vector<std::string>> rows_;
  Columns important_;
  std::vector<std::pair<std::size_t, std::vector<Mark>>> marks_;  // columns, and of each its rows below the header
};

}  // namespace gpusched
