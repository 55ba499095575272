// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/seed_folders.hpp"

#include <gtest/gtest.h>

#include <string>

#include "src/policies/learned/trained_model.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

TEST(Seeds, AreListsOfNumbersAndRanges) {
  EXPECT_EQ(*parse_seeds("7"), (Seeds{7}));
  EXPECT_EQ(*parse_seeds("1..4"), (Seeds{1, 2, 3, 4}));
  EXPECT_EQ(*parse_seeds("5,1,2"), (Seeds{5, 1, 2}));
  EXPECT_EQ(*parse_seeds("3..4,9,0..0"), (Seeds{3, 4, 9, 0}));
  EXPECT_EQ(parse_seeds("1..1000")->size(), 1000u);
  EXPECT_EQ(parse_seeds("9007199254740992..9007199254740992")->front(), 9007199254740992u);
}

TEST(Seeds, RefuseWhatIsNoListOfThem) {
  for (const std::string text : {"", ",", "1,", ",1", "1..", "..3", "1...3", "1..2..3", "-1", "1-3", "1 ,2", "x", "1.5",
                                 "9007199254740993", "18446744073709551616"}) {
    const auto seeds = parse_seeds(text);
    ASSERT_FALSE(seeds) << text;
    EXPECT_EQ(seeds.error().message.find("expected seeds as in 1..10 or 1,2,5"), 0u) << text;
  }
  EXPECT_EQ(parse_seeds("4..2").error().message, "the range 4..2 goes down");
  EXPECT_EQ(parse_seeds("1..3,2").error().message, "seed 2 is given twice");
  EXPECT_EQ(parse_seeds("1..1001").error().message, "more than 1,000 seeds");
  EXPECT_EQ(parse_seeds("1..500,1001..1501").error().message, "more than 1,000 seeds");
  EXPECT_EQ(parse_seeds("0..9007199254740992").error().message, "more than 1,000 seeds");
}

TEST(Seeds, AreWrittenAsTheyAreRead) {
  for (const std::string text : {"7", "1..4", "5,1,2", "3,4,9", "2..4,6..8,1"}) {
    EXPECT_EQ(seeds_text(*parse_seeds(text)), text);
  }
}

TEST(SeedFolders, KeepTheirSeedsAndAreNoModel) {
  const test::TempFolder temporary;
  const std::string folder = temporary.path();
  EXPECT_FALSE(holds_seeds(folder));
  ASSERT_TRUE(write_seeds(folder, Seeds{1, 2, 3, 8}));
  EXPECT_TRUE(holds_seeds(folder));
  EXPECT_EQ(*read_seeds(folder), (Seeds{1, 2, 3, 8}));
  EXPECT_EQ(load_model(folder).error().to_string(),
            folder + ": holds the runs of training seeds 1..3,8: give one, rl:" + folder +
                "/seed-1, or to evaluate all as one, --group 'NAME=rl:" + folder + "/seed-1,rl:" + folder +
                "/seed-2,rl:" + folder + "/seed-3,rl:" + folder + "/seed-8'");
  for (const std::string text : {"{}", "[]", R"({"seeds": 3})", R"({"seeds": "3..1"})", "{"}) {
    temporary.write("seeds.json", text);
    EXPECT_FALSE(read_seeds(folder)) << text;
  }
}

}  // namespace
}  // namespace gpusched
