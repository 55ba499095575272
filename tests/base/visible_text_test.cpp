// SPDX-License-Identifier: Apache-2.0
#include "src/base/visible_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpusched {
namespace {

TEST(VisibleText, EscapesWhatMovesACursor) {
  EXPECT_EQ(visible("a\x1b[31mb\x07\x7f\tc"), "a\\x1b[31mb\\x07\\x7f\\x09c");
  EXPECT_EQ(visible("CSI in UTF-8: \xc2\x9b"
                    "31m"),
            "CSI in UTF-8: \\xc2\\x9b31m");
  EXPECT_EQ(visible("two\nlines"), "two\nlines");
  EXPECT_EQ(visible_line("two\nlines\r"), "two\\x0alines\\x0d");
}

TEST(VisibleText, KeepsNamesOfAllLanguages) {
  for (const std::string text : {"Grüße", "漢字", "\xf0\x9f\x98\x80", "é\xc2\xa0"}) EXPECT_EQ(visible(text), text);
  // No UTF-8: a stray continuation, a cut character, Latin-1, beyond U+10FFFF.
  EXPECT_EQ(visible("\x80"), "\\x80");
  EXPECT_EQ(visible("\xe6\xbc"), "\\xe6\\xbc");
  EXPECT_EQ(visible("caf\xe9!"), "caf\\xe9!");
  EXPECT_EQ(visible("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  // A longer form than needed, and half of a surrogate pair.
  EXPECT_EQ(visible("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(visible("\xf0\x82\x82\xac"), "\\xf0\\x82\\x82\\xac");
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(visible("\xed\x9f\xbf\xee\x80\x80"), "\xed\x9f\xbf\xee\x80\x80");  // U+D7FF, U+E000
}

TEST(VisibleText, ExcerptsSayHowLongTheTextWas) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(1'000'000, 'x'), 3), "xxx... (1,000,000 characters)");
  EXPECT_EQ(excerpt("aéé", 2), "a... (5 characters)");
}

}  // namespace
}  // namespace gpusched
