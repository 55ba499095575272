// SPDX-License-Identifier: Apache-2.0
#include "src/base/name_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

TEST(NameText, LeavesOutBlanksAround) {
  EXPECT_EQ(name_text("ann"), "ann");
  EXPECT_EQ(name_text(" \t train, v2\r\n\v\f"), "train, v2");
  EXPECT_EQ(name_text(" \n "), "");
  EXPECT_EQ(name_text(""), "");
}

TEST(NameText, KeepsNamesOfAllLanguages) { EXPECT_EQ(name_text(" Grüße 漢字 "), "Grüße 漢字"); }

TEST(NameText, TellsBytesApartThatAreNoText) {
  EXPECT_EQ(name_text("a\x01"), "a\\x01");
  EXPECT_EQ(name_text("two\nlines"), "two\\x0alines");
  EXPECT_EQ(name_text("j\xf6rg"), "j\\xf6rg");  // Latin-1
  EXPECT_NE(name_text("\xff"), name_text("\xfe"));
}

TEST(NameText, PlainNamesAreThoseThatItLeavesAlone) {
  EXPECT_TRUE(is_plain_name(""));
  EXPECT_TRUE(is_plain_name("train, v2"));
  for (const std::string text : {" a", "a ", "a\tb", "a\x7f", "é", "a\n"}) EXPECT_FALSE(is_plain_name(text)) << text;
}

TEST(NameText, FindsTheFirstThatIsRepeated) {
  const auto place = [](std::vector<std::string_view> names) { return first_repeated(names); };
  EXPECT_EQ(place({}), std::nullopt);
  EXPECT_EQ(place({"a", "", "b", ""}), std::nullopt);
  EXPECT_EQ(place({"c", "b", "a", "b", "a", "c"}), 3u);
}

// The header of a csv file may have 100,000 columns: each compared with each took seconds.
TEST(NameText, ComparesManyNamesWithFewOthers) {
  constexpr std::size_t count = 100'000;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back("column" + std::to_string(i));
  const std::vector<std::string_view> names(texts.begin(), texts.end());
  std::uint64_t compared = 0;
  const auto less = [&](std::string_view a, std::string_view b) {
    ++compared;
    return a < b;
  };
  EXPECT_EQ(first_repeated(names, less), std::nullopt);
  EXPECT_LT(compared, 100 * count);
}

// Any bytes become a name that JSON and a second reading leave as it is.
RC_GTEST_PROP(NameText, OfANameIsTheName, (const std::string& bytes)) {
  const std::string name = name_text(bytes);
  RC_ASSERT(name_text(name) == name);
  RC_ASSERT(!is_plain_name(bytes) || name == bytes);
  const auto json = parse_json_strictly(json_text(Json{{"name", name}}), "json");
  RC_ASSERT(json.has_value());
  RC_ASSERT((*json)["name"].get<std::string>() == name);
}

}  // namespace
}  // namespace gpusched
