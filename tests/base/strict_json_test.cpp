// SPDX-License-Identifier: Apache-2.0
#include "src/base/strict_json.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace gpusched {
namespace {

std::string json_error(const std::string& text) {
  const auto json = parse_json_strictly(text, "f.json");
  return json ? "none" : json.error().to_string();
}

TEST(StrictJson, GivesTheValueThatTheTextSays) {
  const std::string text = R"({"b":[1,-2,0.5,true,null,"\u00e9",{}],"a":{"x":[[]]},"":18446744073709551615})";
  const auto json = parse_json_strictly(text, "f.json");
  ASSERT_TRUE(json) << json.error().to_string();
  EXPECT_EQ(*json, Json::parse(text));
  EXPECT_EQ(json->dump(), Json::parse(text).dump());  // the order of keys too
  EXPECT_TRUE((*json)[""].is_number_unsigned());
}

TEST(StrictJson, NamesTheObjectInWhichAKeyAppearsTwice) {
  EXPECT_EQ(json_error(R"({"a": 1, "a": 2})"), "f.json: key 'a' appears twice");
  EXPECT_EQ(json_error(R"({"": 1, "": 2})"), "f.json: key '' appears twice");
  EXPECT_EQ(json_error(R"({"x": 1, "nodes": [{}, {"gpus": {"n": 1, "n": 2}}]})"),
            "f.json: /nodes/1/gpus: key 'n' appears twice");
  EXPECT_EQ(json_error(R"({"a": {"a": 1}, "b": {"a": 1}})"), "none");
}

TEST(StrictJson, FindsAKeyThatAppearsTwiceAmongMany) {
  for (const int twin : {0, 15, 16, 17, 500}) {
    std::string text = "{";
    for (int i = 0; i < 600; ++i) text += "\"k" + std::to_string(i) + "\": 1, ";
    EXPECT_EQ(json_error(text + "\"last\": 1}"), "none");
    EXPECT_EQ(json_error(text + "\"k" + std::to_string(twin) + "\": 1}"),
              "f.json: key 'k" + std::to_string(twin) + "' appears twice");
  }
}

TEST(StrictJson, SaysWhatIsNoJsonAndWhere) {
  EXPECT_EQ(json_error(""), "f.json:1: empty; expected JSON");
  EXPECT_EQ(json_error("{\n\"a\": oops}"), "f.json:2: expected well-formed JSON here");
  EXPECT_EQ(json_error("{} {}"), "f.json:1: expected well-formed JSON here");
  EXPECT_EQ(json_error("{\"a\": 1e999}"),
            "f.json: holds a number too large for JSON readers; expected at most 1.8e308");
  EXPECT_EQ(json_error(std::string(300, '[')), "f.json:1: expected at most 200 levels of lists and objects");
}

// Eight times the text took 64 times as long: seven seconds for a cluster of 200,000 nodes.
TEST(StrictJson, TakesTimeInProportionToTheText) {
  const auto seconds = [](int nodes, int keys) {
    std::string text = "[";
    for (int i = 0; i < nodes; ++i) {
      text += i == 0 ? "{" : ",{";
      for (int k = 0; k < keys; ++k) text += (k == 0 ? "\"k" : ",\"k") + std::to_string(k) + "\":1";
      text += "}";
    }
    text += "]";
    const std::clock_t begin = std::clock();
    EXPECT_TRUE(parse_json_strictly(text, "f"));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  EXPECT_LT(seconds(40'000, 3), 24 * seconds(5'000, 3) + 0.05);
  EXPECT_LT(seconds(1, 40'000), 24 * seconds(1, 5'000) + 0.05);
}

TEST(JsonExcerpt, ShowsShortValuesAndTellsOfLongOnes) {
  EXPECT_EQ(json_excerpt(Json::parse(R"({"a": [1, 2]})")), R"({"a":[1,2]})");
  EXPECT_EQ(json_excerpt("8x8"), "\"8x8\"");
  EXPECT_EQ(json_excerpt(nullptr), "null");
  EXPECT_EQ(json_excerpt(Json(std::vector<int>(1000, 5))), "a list of 1,000 values");
  EXPECT_EQ(json_excerpt({{"name", std::string(100, 'x')}}), "an object of 1 key");
  EXPECT_EQ(json_excerpt(std::string(100, 'x')), "\"" + std::string(59, 'x') + "...");
  const std::string cut = json_excerpt(std::string(58, 'x') + "\u00e9\u00e9\u00e9");
  EXPECT_EQ(cut, "\"" + std::string(58, 'x') + "...") << "not within a character";
}

}  // namespace
}  // namespace gpusched
