// SPDX-License-Identifier: Apache-2.0
#include "src/sim/earlier_results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpusched::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

TEST(EarlierResults, AreThoseInTheFoldersThatTheManifestNames) {
  const auto files = files_of_run(R"({"program": "gpusched", "policies": [{"policy": "a", "folder": "a"}],
                                      "routers": [{"router": "local", "folder": "r0"}]})",
                                  "manifest.json");
  ASSERT_TRUE(files);
  for (const char* name : {"a/jobs.csv", "a/summary.json", "r0/sites.csv", "table.txt", "compare.json"}) {
    EXPECT_THAT(*files, Contains(name));
  }
}

TEST(EarlierResults, NeverLieOutsideTheFolder) {
  const auto files = files_of_run(
      R"({"program": "gpusched", "policies": [{"folder": ".."}, {"folder": "../x"}, {"folder": "/etc"}, {"folder": ""},
                                              {"folder": "."}, {"folder": 7}, "fifo", null]})",
      "manifest.json");
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, Each(Not(HasSubstr("/"))));
}

TEST(EarlierResults, AnotherProgramsManifestIsRefused) {
  for (const char* text : {"{}", "[]", "", "{\"program\": \"npm\"}", "{\"program\": \"gpusched\""}) {
    const auto files = files_of_run(text, "out/manifest.json");
    ASSERT_FALSE(files) << text;
    EXPECT_EQ(files.error().to_string(),
              "out/manifest.json: is no manifest of gpusched; expected a folder of its results, or another folder");
  }
}

}  // namespace
}  // namespace gpusched::test
