// SPDX-License-Identifier: Apache-2.0
// Every fuzz target over its whole corpus, without libFuzzer: an input that once crashed is a test from then on.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_targets.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"

namespace gpusched::test {
namespace {

std::vector<std::string> corpus_of(std::string_view target) {
  std::vector<std::string> files;
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / "tests/fuzz/corpus" / target;
  std::error_code missing;
  for (const auto& file : std::filesystem::directory_iterator(folder, missing)) files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

class FuzzCorpus : public testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpus, every_file_is_read) {
  const std::vector<std::string> files = corpus_of(GetParam().name);
  ASSERT_FALSE(files.empty()) << "tests/fuzz/corpus/" << GetParam().name << " has no file";
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    GetParam().run(bytes_of(file));
  }
}

INSTANTIATE_TEST_SUITE_P(, FuzzCorpus, testing::ValuesIn(fuzz_targets()), [](const auto& target) {
  std::string name(target.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(FuzzTargets, every_trace_format_has_one) {
  for (const TraceFormatInfo& format : trace_formats()) {
    const bool found = std::any_of(fuzz_targets().begin(), fuzz_targets().end(),
                                   [&](const FuzzTarget& target) { return target.name == format.name; });
    EXPECT_TRUE(found) << format.name;
  }
}

TEST(FuzzTargets, every_folder_of_the_corpus_belongs_to_one) {
  for (const auto& folder : std::filesystem::directory_iterator(source_dir() + "/tests/fuzz/corpus")) {
    const bool found = std::any_of(fuzz_targets().begin(), fuzz_targets().end(), [&](const FuzzTarget& target) {
      return target.name == folder.path().filename().string();
    });
    EXPECT_TRUE(found) << folder.path();
  }
}

}  // namespace
}  // namespace gpusched::test
