// SPDX-License-Identifier: Apache-2.0
#include "src/program/terminal.hpp"

#include <gtest/gtest.h>

namespace gpusched::test {
namespace {

TerminalFacts terminal(std::size_t columns) {
  return {.is_terminal = true, .columns = columns, .term = "xterm-256color"};
}

TEST(Terminal, AFileOrPipeHasTheSameBytesWhateverTheEnvironmentSays) {
  const TextStyle style = style_for(
      {.is_terminal = false, .columns = 80, .columns_variable = "60", .no_color = std::nullopt, .term = "xterm"});
  EXPECT_EQ(style.columns, 160u);
  EXPECT_FALSE(style.colours);
  EXPECT_FALSE(style.wraps);
}

TEST(Terminal, WidthIsThatOfColumnsElseOfTheTerminalElse80) {
  TerminalFacts facts = terminal(97);
  EXPECT_EQ(style_for(facts).columns, 97u);
  facts.columns_variable = "111";
  EXPECT_EQ(style_for(facts).columns, 111u);
  for (const char* wrong : {"", "0", "-5", "8O", "99999", " 90"}) {
    facts.columns_variable = wrong;
    EXPECT_EQ(style_for(facts).columns, 97u) << wrong;
  }
  facts.columns = 0;
  EXPECT_EQ(style_for(facts).columns, 80u);
  facts.columns_variable = "7";
  EXPECT_EQ(style_for(facts).columns, 40u);
}

TEST(Terminal, NoColoursWhereTheUserOrTheTerminalWantsNone) {
  TerminalFacts facts = terminal(80);
  EXPECT_TRUE(style_for(facts).colours);
  facts.no_color = "";  // no-color.org: when present and not an empty string
  EXPECT_TRUE(style_for(facts).colours);
  facts.no_color = "1";
  EXPECT_FALSE(style_for(facts).colours);
  EXPECT_TRUE(style_for(facts).wraps);
  facts.no_color = std::nullopt;
  for (const char* term : {"dumb", ""}) {
    facts.term = term;
    EXPECT_FALSE(style_for(facts).colours);
  }
  facts.term = std::nullopt;
  EXPECT_FALSE(style_for(facts).colours);
}

}  // namespace
}  // namespace gpusched::test
