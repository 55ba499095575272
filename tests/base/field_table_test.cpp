// SPDX-License-Identifier: Apache-2.0
#include "src/base/field_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

enum class Fruit { apple, pear };
constexpr std::array<NamedValue<Fruit>, 2> fruit_names{{{"apple", Fruit::apple}, {"pear", Fruit::pear}}};

// A field of every kind.
struct Options {
  std::string trace = {}, folder = {};
  bool on = false;
  std::uint32_t small = 3;
  std::uint64_t seed = 0;
  double share = 0.5;
  Time span{}, limit = Time::max();
  std::vector<double> scales{1};
  std::vector<std::string> names = {};
  Fruit fruit = Fruit::apple;
};

FieldTable fields_of(Options& o) {
  return {{"trace.path", "--trace", "a file", &o.trace},
          {"trace.folder", "", "a folder", &o.folder},
          {"on", "--on", "a switch", &o.on},
          {.path = "small", .flag = "--small-one", .meaning = "", .target = &o.small, .range = Field::Range{1, 9}},
          {"seed", "--seed", "", &o.seed},
          {.path = "share", .flag = "--share", .meaning = "", .target = &o.share, .range = Field::Range{0, 1}},
          {"times.span_s", "--span", "", &o.span},
          {.path = "times.limit_s",
           .flag = "",
           .meaning = "",
           .target = LimitTarget{&o.limit},
           .range = Field::Range{0, 60}},
          {.path = "scales", .flag = "", .meaning = "", .target = &o.scales, .range = Field::Range{0.5, 2}},
          {"names", "--name", "", &o.names},
          word_field("fruit", "--fruit", "", o.fruit, fruit_names)};
}

std::string table_error(const std::string& text, const std::vector<MovedKey>& moved = {}) {
  Options options;
  const auto read = read_fields(fields_of(options), text, "f.json", moved);
  return read ? "none" : read.error().to_string();
}

TEST(FieldTable, ComesBackFromItsOwnJson) {
  Options options{.trace = "a.csv",
                  .folder = "b",
                  .on = true,
                  .small = 9,
                  .seed = 1ull << 60,
                  .share = 0.25,
                  .span = Time{1'500'000},
                  .limit = whole_seconds(60),
                  .scales = {0.5, 2},
                  .names = {"x", "y"},
                  .fruit = Fruit::pear};
  const std::string text = fields_json(fields_of(options), true);
  Options again;
  ASSERT_TRUE(read_fields(fields_of(again), text, "f"));
  EXPECT_EQ(fields_json(fields_of(again), true), text);
  EXPECT_EQ(again.limit, whole_seconds(60));
  EXPECT_EQ(again.fruit, Fruit::pear);
  // And from texts, one by one.
  Options typed;
  const FieldTable from = fields_of(options), to = fields_of(typed);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].path == "names") continue;
    const std::string value = from[i].path == "on" ? "true" : field_text(from[i]);
    EXPECT_TRUE(set_field(to[i], from[i].path == "seed" ? "1152921504606846976" : value)) << from[i].path;
  }
  typed.names = options.names;
  EXPECT_EQ(fields_json(to, true), text);
}

TEST(FieldTable, ALimitOfZeroIsNone) {
  Options options{.limit = whole_seconds(5)};
  ASSERT_TRUE(read_fields(fields_of(options), R"({"times": {"limit_s": 0}})", "f"));
  EXPECT_EQ(options.limit, Time::max());
  EXPECT_EQ(field_json(*find_field(fields_of(options), "times.limit_s")), 0);
}

TEST(FieldTable, TakesOneNumberForAListOfNumbers) {
  Options options;
  ASSERT_TRUE(read_fields(fields_of(options), R"({"scales": 2})", "f"));
  EXPECT_EQ(options.scales, std::vector<double>{2});
  ASSERT_TRUE(apply_setting(fields_of(options), "scales=0.5,1"));
  EXPECT_EQ(options.scales, (std::vector<double>{0.5, 1}));
  ASSERT_TRUE(apply_setting(fields_of(options), "scales=[1, 2]"));  // as in a file
  EXPECT_EQ(options.scales, (std::vector<double>{1, 2}));
  for (const char* wrong : {"scales=[]", "scales=[1,", "scales=[1,7]", "scales=[\"1\"]"}) {
    EXPECT_FALSE(apply_setting(fields_of(options), wrong)) << wrong;
  }
}

TEST(FieldTable, TakesAGroupAsThePathThatItHas) {
  Options options;
  ASSERT_TRUE(read_fields(fields_of(options), R"({"trace": "a.csv"})", "f"));
  EXPECT_EQ(options.trace, "a.csv");
  ASSERT_TRUE(read_fields(fields_of(options), R"({"trace": {"path": "b.csv", "folder": "c"}})", "f"));
  EXPECT_EQ(options.trace, "b.csv");
  EXPECT_EQ(table_error(R"({"trace": 3})"), "f.json: /trace: expected a text, not 3");
  EXPECT_EQ(table_error(R"({"times": 3})"), "f.json: /times: expected an object, not 3");
}

TEST(FieldTable, RefusesWhatIsOutOfRangeWithWhatIsThere) {
  EXPECT_EQ(table_error(R"({"small": 10})"), "f.json: /small: expected a whole number, 1 to 9, not 10");
  EXPECT_EQ(table_error(R"({"small": 4294967299})"), "f.json: /small: expected a whole number, 1 to 9, not 4294967299");
  EXPECT_EQ(table_error(R"({"seed": -1})"), "f.json: /seed: expected a whole number, 0 or more, not -1");
  EXPECT_EQ(table_error(R"({"share": 1.5})"), "f.json: /share: expected a number from 0 to 1, not 1.5");
  EXPECT_EQ(table_error(R"({"times": {"span_s": -1}})"),
            "f.json: /times/span_s: expected seconds from 0 to 4.6e12, not -1");
  EXPECT_EQ(table_error(R"({"times": {"limit_s": 61}})"),
            "f.json: /times/limit_s: expected seconds from 0 to 60, not 61");
  EXPECT_EQ(table_error(R"({"scales": [1, 3]})"),
            "f.json: /scales: expected a number from 0.5 to 2, or a list of such, not [1,3]");
  EXPECT_EQ(table_error(R"({"names": "x"})"), "f.json: /names: expected a list of texts, not \"x\"");
  EXPECT_EQ(table_error(R"({"fruit": "per"})"),
            "f.json: /fruit: expected one of apple|pear, not 'per' (did you mean 'pear'?)");
  EXPECT_EQ(table_error(R"({"times": {"spam_s": 1}})"), "f.json: /times/spam_s: unknown key (did you mean 'span_s'?)");
}

TEST(FieldTable, SaysWhereAKeyHasMoved) {
  const std::vector<MovedKey> moved{{"speed", "share"},
                                    {"old.seed", "seed"},
                                    {"old.deep.x", "on"},
                                    {"times.length_s", "times.span_s"},
                                    {"trace", "trace.path"}};
  EXPECT_EQ(table_error(R"({"speed": 1})", moved), "f.json: /speed: is called /share now");
  EXPECT_EQ(table_error(R"({"old": {"seed": 1}})", moved), "f.json: /old/seed: is called /seed now");
  EXPECT_EQ(table_error(R"({"times": {"length_s": 1}})", moved),
            "f.json: /times/length_s: is called /times/span_s now");
  EXPECT_EQ(table_error(R"({"trace": {"path": "a"}})", moved), "none") << "a group that came in its place";
  EXPECT_EQ(table_error(R"({"spead": 1})", moved).find("speed"), std::string::npos) << "nobody is led to an old key";
}

TEST(FieldTable, KnowsWhichPathsAFileGives) {
  Options options;
  const FieldTable fields = fields_of(options);
  const auto given = [&](const char* text) { return given_paths(fields, Json::parse(text)); };
  EXPECT_EQ(given(R"({"seed": 1, "times": {"span_s": 2}})"), (std::set<std::string>{"seed", "times.span_s"}));
  EXPECT_EQ(given(R"({"trace": "a"})"), (std::set<std::string>{"trace.path"}));
  EXPECT_EQ(given("{}"), std::set<std::string>{});
}

TEST(FieldTable, NamesAnErrorAsTheUserGaveTheOption) {
  Options options;
  const FieldTable fields = fields_of(options);
  const Error error{.message = "is bad", .field = "times.span_s"};
  EXPECT_EQ(named_error(error, fields).to_string(), "--span: is bad");
  EXPECT_EQ(named_error(error, fields, {.file = "f.json", .from_file = {"times.span_s"}}).to_string(),
            "f.json: /times/span_s: is bad");
  EXPECT_EQ(named_error({.message = "is bad", .field = "/times/span_s"}, fields).to_string(), "--span: is bad");
  EXPECT_EQ(named_error({.message = "is bad", .field = "--span"}, fields, {.file = "f", .from_file = {"times.span_s"}})
                .to_string(),
            "f: /times/span_s: is bad");
  EXPECT_EQ(named_error({.message = "is bad"}, fields).to_string(), "is bad");
  EXPECT_EQ(named_error({.message = "is bad", .file = "a.csv", .field = "seed"}, fields).to_string(),
            "a.csv: seed: is bad")
      << "of another file";
  EXPECT_EQ(in_option("seed", {.message = "no", .field = "policy x"}).to_string(), "seed: policy x: no");
  EXPECT_EQ(in_option("seed", {.message = "no", .field = "seed"}).to_string(), "seed: no");
  EXPECT_EQ(keyword_of(*find_field(fields, "small")), "small_one");
}

TEST(FieldTable, TheSchemaHasBoundsFlagsAndWhoLacksIt) {
  Options options;
  FieldTable fields = fields_of(options);
  fields[4].lacks = {{"serve", "the host draws"}};
  const Json schema = Json::parse(fields_schema(fields, "t", "d"));
  const Json& keys = schema["properties"];
  EXPECT_EQ(keys["small"]["minimum"], 1);
  EXPECT_EQ(keys["small"]["maximum"], 9);
  EXPECT_EQ(keys["small"]["x-flag"], "--small-one");
  EXPECT_EQ(keys["seed"]["x-lacking"]["serve"], "the host draws");
  EXPECT_EQ(keys["fruit"]["enum"], Json({"apple", "pear"}));
  EXPECT_EQ(keys["trace"]["anyOf"][0]["type"], "string");
  EXPECT_EQ(keys["trace"]["anyOf"][1]["properties"]["path"]["type"], "string");
}

}  // namespace
}  // namespace gpusched
