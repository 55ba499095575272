// SPDX-License-Identifier: Apache-2.0
/// TextStyle: how wide the text of a result may be, and whether it has colours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

/// Of a file or pipe as it stands here, so that equal runs give equal bytes; a terminal tells its own.
struct TextStyle {
  std::size_t columns = 160;  ///< wider tables are folded; > 0
  bool colours = false;       ///< the best and worst cell of a column of a table are marked
  bool wraps = false;         ///< sentences are wrapped too
};

/// What marks a cell on a terminal (ECMA-48, select graphic rendition).
inline constexpr std::string_view best_mark = "\x1b[1;32m";  ///< bold and green
inline constexpr std::string_view worst_mark = "\x1b[31m";   ///< red
inline constexpr std::string_view end_mark = "\x1b[0m";      ///< as before

/// `text` for a reader: control characters are shown as visible() shows them, all but line ends and, with colours, the
/// three marks; no mark outlasts its line. With `wraps`, sentences have at most `columns` columns.
std::string shown(std::string_view text, const TextStyle& style);

/// Columns of UTF-8 text: its characters.
std::size_t text_columns(std::string_view text);

}  // namespace gpusched
