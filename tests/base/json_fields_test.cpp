// SPDX-License-Identifier: Apache-2.0
#include "src/base/json_fields.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpusched {
namespace {

// What a reader of nodes says of a text.
std::string reading_error(const std::string& text) {
  const Json json = Json::parse(text);
  JsonFields fields(json, "f.json");
  std::string name, kind = "a";
  fields.read("name", name);
  fields.read_word("kind", kind, std::vector<std::string>{"apple", "pear"});
  fields.require("nodes");
  fields.read_objects("nodes", [](JsonFields& node, std::size_t) {
    std::uint32_t gpus = 0;
    double speed = 1;
    std::vector<double> shares;
    node.require("gpus");
    node.read("gpus", gpus, 0, 16);
    node.read_above_zero("speed", speed, 10);
    node.read("shares", shares, 2);
    node.read_object("place", [&](JsonFields& place) { place.read("rack", gpus); });
  });
  fields.read_members("types", [](JsonFields& types, const std::string& type, const Json& entry) {
    types.read_nested(type, entry, [](JsonFields& own) {
      bool cut = false;
      own.read("cut", cut);
    });
  });
  const auto done = fields.finish();
  return done ? "none" : done.error().to_string();
}

TEST(JsonFields, TakesWhatIsRight) {
  EXPECT_EQ(reading_error(R"({"$schema": "x", "name": "lab", "kind": "pear", "nodes": [{"gpus": 8, "speed": 0.5,
                         "shares": [1, 2], "place": {"rack": 1}}], "types": {"any": {"cut": true}, "other": {}}})"),
            "none");
}

TEST(JsonFields, SaysWhereWhatWasExpectedAndWhatIsThere) {
  EXPECT_EQ(reading_error("[1]"), "f.json: expected an object, not [1]");
  EXPECT_EQ(reading_error(R"({"nodes": [], "name": 7})"), "f.json: /name: expected a text, not 7");
  EXPECT_EQ(reading_error(R"({"nodes": [], "kind": "aple"})"),
            "f.json: /kind: expected one of apple|pear, not \"aple\" (did you mean 'apple'?)");
  EXPECT_EQ(reading_error(R"({"nodes": {}})"), "f.json: /nodes: expected a list, not {}");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 1}, 3]})"), "f.json: /nodes/1: expected an object, not 3");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 17}]})"),
            "f.json: /nodes/0/gpus: expected an integer from 0 to 16, not 17");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 1.5}]})"),
            "f.json: /nodes/0/gpus: expected an integer from 0 to 16, not 1.5");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 1, "speed": 0}]})"),
            "f.json: /nodes/0/speed: expected a number above 0 and at most 10, not 0");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 1, "shares": [1]}]})"),
            "f.json: /nodes/0/shares: expected a list of 2 numbers, not [1]");
  EXPECT_EQ(reading_error(R"({"nodes": [], "types": {"any": {"cut": "yes"}}})"),
            "f.json: /types/any/cut: expected true or false, not \"yes\"");
}

TEST(JsonFields, AnUnknownKeyIsToldWithTheNearestOrAll) {
  EXPECT_EQ(reading_error(R"({"nodes": [], "nam": 1})"), "f.json: /nam: unknown key (did you mean 'name'?)");
  EXPECT_EQ(reading_error(R"({"nodes": [], "zzz": 1})"),
            "f.json: /zzz: unknown key; expected one of name|kind|nodes|types");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpus": 1, "place": {"$schema": 1}}]})"),
            "f.json: /nodes/0/place/$schema: unknown key; expected rack");
}

// A mistyped key is what is wrong, not the key that it stands for.
TEST(JsonFields, AMissingKeyThatWasMistypedIsToldAsSuch) {
  EXPECT_EQ(reading_error(R"({"nodes": [{}]})"), "f.json: /nodes/0/gpus: is missing");
  EXPECT_EQ(reading_error(R"({"nodes": [{"gpu": 8}]})"), "f.json: /nodes/0/gpu: unknown key (did you mean 'gpus'?)");
  EXPECT_EQ(reading_error(R"({"nodes": [{"colour": 8}]})"), "f.json: /nodes/0/gpus: is missing");
  EXPECT_EQ(reading_error(R"({"node": []})"), "f.json: /node: unknown key (did you mean 'nodes'?)");
}

TEST(JsonFields, KeepsTheFirstError) {
  EXPECT_EQ(reading_error(R"({"name": 1, "nodes": [{"gpus": "x"}], "zzz": 1})"),
            "f.json: /name: expected a text, not 1");
}

TEST(JsonFields, FindsWhatStandsAtAPathBelowAKey) {
  const Json json = Json::parse(R"({"table": [[1, 2], ["x", 3]]})");
  JsonFields fields(json, "");
  (void)fields.read_array("table");
  fields.refuse("table/1/0", "a number");
  EXPECT_EQ(fields.finish().error().to_string(), "/table/1/0: expected a number, not \"x\"");
}

}  // namespace
}  // namespace gpusched
