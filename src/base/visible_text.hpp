// SPDX-License-Identifier: Apache-2.0
/// Text from files on a terminal: nothing in it moves the cursor, and none of it fills the screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

/// The text with every control character but the line end as \xNN: those of ASCII and of UTF-8 (U+0080 to U+009F), and
/// bytes that are no UTF-8.
std::string visible(std::string_view text);

/// The text as visible() gives it, in one line: line ends are control characters too.
std::string visible_line(std::string_view text);

/// At most `most` bytes of the text, and how much was left out: "aaaa... (1,000,000 characters)". UTF-8 is not cut.
std::string excerpt(std::string_view text, std::size_t most = 80);

}  // namespace gpusched
