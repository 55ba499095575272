// SPDX-License-Identifier: Apache-2.0
#include "src/base/text_table.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "src/base/visible_text.hpp"

namespace gpusched {
namespace {

constexpr std::size_t gap = 2;  // blanks between columns

std::size_t width_of(const std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns) {
  std::size_t width = gap * (columns.size() - 1);
  for (const std::size_t column : columns) width += widths[column];
  return width;
}

// In lines of at most `columns`, the later ones indented: broken behind a comma where one is near.
std::string broken_name(std::string_view name, std::size_t columns) {
  std::string text;
  std::size_t room = columns;
  while (text_columns(name) > room) {
    std::size_t end = 0;  // bytes of the first `room` characters
    for (std::size_t seen = 0; end < name.size(); ++end) {
      if ((static_cast<unsigned char>(name[end]) & 0xC0u) != 0x80u && seen++ == room) break;
    }
    const std::size_t comma = name.substr(0, end).rfind(',');
    if (comma != std::string_view::npos && comma > end / 2) end = comma + 1;
    text += std::string(name.substr(0, end)) + "\n  ";
    name.remove_prefix(end);
    room = columns > 2 * gap ? columns - gap : columns;
  }
  return text + std::string(name) + "\n";
}

}  // namespace

void TextTable::rate(std::size_t column, Best best, const std::vector<Rated>& rated) {
  const double sign = best == Best::least ? 1 : -1;
  std::optional<std::size_t> first, last;  // rows of the best and the worst
  const auto lies_before = [&](std::size_t a, std::size_t b) {
    return sign * *rated[a].value < sign * *rated[b].value;
  };
  for (std::size_t row = 0; row < rated.size(); ++row) {
    if (!rated[row].value) continue;
    if (rated[row].may_be_best && (!first || lies_before(row, *first))) first = row;
    if (!last || lies_before(*last, row)) last = row;
  }
  if (!first) return;
  const auto cell = [&](std::size_t row) -> const std::string& { return rows_[row + 1][column]; };
  if (cell(*first) == cell(*last)) return;
  std::vector<Mark> marks(rows_.size() - 1, Mark::none);
  for (std::size_t row = 0; row < rated.size(); ++row) {
    if (!rated[row].value) continue;
    if (rated[row].may_be_best && cell(row) == cell(*first)) marks[row] = Mark::best;
    if (cell(row) == cell(*last)) marks[row] = Mark::worst;
  }
  marks_.emplace_back(column, std::move(marks));
}

TextTable::Mark TextTable::mark_of(std::size_t row, std::size_t column) const {
  for (const auto& [marked, marks] : marks_) {
    if (marked == column && row > 0) return marks[row - 1];
  }
  return Mark::none;
}

TextTable::Layout TextTable::layout(const TextStyle& style, std::size_t longest_key) const {
  Layout layout{.widths = std::vector<std::size_t>(rows_.front().size(), 0),
                .own_line = {},
                .colours = style.colours,
                .columns = style.columns};
  for (const auto& row : rows_) {
    const bool is_header = &row == rows_.data();
    const bool own_line = !is_header && std::any_of(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(keys_),
                                                    [&](const std::string& key) {
                                                      return text_columns(visible_line(key)) > longest_key;
                                                    });
    layout.own_line.push_back(own_line);
    for (std::size_t c = own_line ? keys_ : 0; c < row.size(); ++c) {
      layout.widths[c] = std::max(layout.widths[c], text_columns(visible_line(row[c])));
    }
  }
  return layout;
}

std::vector<TextTable::Columns> TextTable::parts(const Layout& layout) const {
  Columns keys(keys_), left = important_;
  std::iota(keys.begin(), keys.end(), 0);
  for (std::size_t c = keys_; c < rows_.front().size(); ++c) {
    if (std::find(left.begin(), left.end(), c) == left.end()) left.push_back(c);
  }
  Columns all = keys;
  all.insert(all.end(), left.begin(), left.end());
  std::vector<Columns> parts;
  if (width_of(layout.widths, all) <= layout.columns) {
    parts.push_back(std::move(all));
    left.clear();
  }
  while (!left.empty()) {
    Columns part = keys, later;
    std::size_t width = width_of(layout.widths, keys);
    for (const std::size_t column : left) {
      const std::size_t more = gap + layout.widths[column];
      const bool fits = width + more <= layout.columns || part.size() == keys_;
      (fits ? part : later).push_back(column);
      width += fits ? more : 0;
    }
    parts.push_back(std::move(part));
    left = std::move(later);
  }
  for (Columns& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

std::string TextTable::line(std::size_t row, const Columns& part, const Layout& layout) const {
  std::string text;
  for (const std::size_t c : part) {
    const std::string cell = layout.own_line[row] && c < keys_ ? "" : visible_line(rows_[row][c]);
    const std::string blanks(layout.widths[c] - text_columns(cell), ' ');
    const Mark mark = layout.colours ? mark_of(row, c) : Mark::none;
    std::string marked = cell;
    if (mark != Mark::none) marked.insert(0, mark == Mark::best ? best_mark : worst_mark).append(end_mark);
    if (c != part.front()) text.append(gap, ' ');
    text += c == 0 ? marked + blanks : blanks + marked;
  }
  return text.erase(text.find_last_not_of(' ') + 1) + "\n";
}

std::string TextTable::keys_line(std::size_t row, std::size_t columns) const {
  std::string text;
  for (std::size_t c = 0; c < keys_; ++c) text += (c == 0 ? "" : std::string(gap, ' ')) + visible_line(rows_[row][c]);
  return broken_name(text, columns);
}

std::string TextTable::part_text(const Columns& part, const Layout& layout) const {
  const std::string header = line(0, part, layout);
  std::string text = header + std::string(text_columns(header) - 1, '-') + "\n";
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    if (layout.own_line[row]) text += keys_line(row, layout.columns);
    text += line(row, part, layout);
  }
  return text;
}

std::string TextTable::text(const TextStyle& style) const {
  Columns every(rows_.front().size());
  std::iota(every.begin(), every.end(), 0);
  Layout shared = layout(style, std::numeric_limits<std::size_t>::max());
  if (width_of(shared.widths, every) > style.columns) {
    constexpr std::size_t least_key = 16;
    shared = layout(style, std::max(least_key, style.columns / 3));
  }
  const std::vector<Columns> all = parts(shared);
  std::string text;
  for (const Columns& part : all) text += (text.empty() ? "" : "\n") + part_text(part, shared);
  return text;
}

}  // namespace gpusched
