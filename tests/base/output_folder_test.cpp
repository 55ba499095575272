// SPDX-License-Identifier: Apache-2.0
#include "src/base/output_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::size_t entries(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

// Two files and a seal, all of `content`.
Result<void> publish(const std::string& path, const std::string& content) {
  auto folder = OutputFolder::open(path, "seal");
  if (!folder) return Unexpected{folder.error()};
  for (const char* name : {"seal", "a/one", "b/two"}) {
    if (auto done = folder->write(name, content); !done) return done;
  }
  return folder->publish();
}

TEST(OutputFolder, FilesAppearTogetherOrNotAtAll) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/new/out";
  {
    auto folder = OutputFolder::open(path, "seal");
    ASSERT_TRUE(folder);
    ASSERT_TRUE(folder->write("a/one", "1"));
    EXPECT_FALSE(fs::exists(path + "/a"));
  }
  EXPECT_FALSE(fs::exists(temporary.path() + "/new"));
  ASSERT_TRUE(publish(path, "1"));
  EXPECT_EQ(bytes_of(path + "/a/one"), "1");
  EXPECT_EQ(entries(path), 3u);
}

// An interrupted program once left the temporary file of a write.
TEST(AtomicFile, NoReplacementBeginsWhileTheyAreHeld) {
  const TempFolder temporary;
  std::thread writer;
  {
    const auto held = hold_replacements();
    writer = std::thread([&temporary] { EXPECT_TRUE(replace_file(temporary.path() + "/file", "text")); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(entries(temporary.path()), 0u);
  }
  writer.join();
  EXPECT_EQ(bytes_of(temporary.path() + "/file"), "text");
}

TEST(OutputFolder, OtherFilesStayAndOldOnesAreReplaced) {
  const TempFolder temporary;
  temporary.write("out/a/notes", "mine");
  temporary.write("out/seal", "old");
  ASSERT_TRUE(publish(temporary.path() + "/out", "new"));
  EXPECT_EQ(bytes_of(temporary.path() + "/out/a/notes"), "mine");
  EXPECT_EQ(bytes_of(temporary.path() + "/out/seal"), "new");
}

TEST(OutputFolder, WhatIsLeftOutGoesWithItsFolderWhereNothingElseIsInIt) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out";
  ASSERT_TRUE(publish(path, "old"));
  temporary.write("out/b/notes", "mine");
  {
    auto folder = OutputFolder::open(path, "seal");
    ASSERT_TRUE(folder);
    for (const char* name : {"a/one", "b/two", "c/none"}) folder->leave_out(name);
  }
  EXPECT_EQ(bytes_of(path + "/a/one"), "old");  // nothing was published
  auto folder = OutputFolder::open(path, "seal");
  ASSERT_TRUE(folder);
  for (const char* name : {"a/one", "b/two", "c/none"}) folder->leave_out(name);
  ASSERT_TRUE(folder->write("b/two", "new"));
  ASSERT_TRUE(folder->publish());
  EXPECT_FALSE(fs::exists(path + "/a"));
  EXPECT_EQ(bytes_of(path + "/b/two"), "new");
  EXPECT_EQ(bytes_of(path + "/b/notes"), "mine");
}

TEST(OutputFolder, AFolderOrFileInTheWayLeavesEverythingAsItWas) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out";
  ASSERT_TRUE(publish(path, "old"));
  fs::remove(path + "/b/two");
  fs::create_directories(path + "/b/two");
  const auto folder_there = publish(path, "new");
  ASSERT_FALSE(folder_there);
  EXPECT_THAT(folder_there.error().to_string(), HasSubstr("b/two: is a folder; expected a file here"));
  fs::remove_all(path + "/b");
  temporary.write("out/b", "a file");
  const auto file_there = publish(path, "new");
  ASSERT_FALSE(file_there);
  EXPECT_THAT(file_there.error().to_string(), HasSubstr("/b: is in the way; expected a folder here"));
  EXPECT_EQ(bytes_of(path + "/a/one"), "old");
  EXPECT_EQ(bytes_of(path + "/seal"), "old");
  EXPECT_EQ(entries(path), 3u);
  const auto no_folder = OutputFolder::open(path + "/seal", "seal");
  ASSERT_FALSE(no_folder);
  EXPECT_THAT(no_folder.error().to_string(), HasSubstr("seal: is not a folder"));
}

TEST(OutputFolder, FollowsNoLinkThatSomebodyPlanted) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out", victim = temporary.write("victim", "precious");
  fs::create_directories(path + "/b");
  fs::create_symlink(victim, path + "/seal");
  fs::create_symlink(victim, path + "/seal.partial");
  fs::create_symlink(victim, path + "/b/two");
  ASSERT_TRUE(publish(path, "new"));
  EXPECT_EQ(bytes_of(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(path + "/seal"));
  EXPECT_EQ(bytes_of(path + "/b/two"), "new");
  // A link in the place of a folder would lead out of the output.
  const std::string elsewhere = temporary.path() + "/elsewhere";
  fs::create_directory(elsewhere);
  fs::remove_all(path + "/a");
  fs::create_directory_symlink(elsewhere, path + "/a");
  const auto refused = publish(path, "newer");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("/a: is in the way"));
  EXPECT_EQ(entries(elsewhere), 0u);
}

TEST(OutputFolder, PartsMayBePublishedOneAfterTheOther) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out";
  ASSERT_TRUE(publish(path, "old"));
  auto folder = OutputFolder::open(path, "seal");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->write("a/one", "new"));
  EXPECT_EQ(bytes_of(path + "/seal"), "old");
  ASSERT_TRUE(folder->publish());
  EXPECT_EQ(bytes_of(path + "/a/one"), "new");
  EXPECT_FALSE(fs::exists(path + "/seal"));  // of a mixture
  ASSERT_TRUE(folder->write("b/two", "new"));
  ASSERT_TRUE(folder->write("seal", "new"));
  ASSERT_TRUE(folder->publish());
  EXPECT_EQ(bytes_of(path + "/seal"), "new");
  EXPECT_EQ(entries(path), 3u);
}

TEST(OutputFolder, ASecondWriterIsTold) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out";
  {
    auto first = OutputFolder::open(path, "seal");
    ASSERT_TRUE(first);
    const auto second = OutputFolder::open(path, "seal");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().to_string(), path + ": another gpusched is writing into this folder");
  }
  EXPECT_TRUE(publish(path, "1"));
}

TEST(OutputFolder, WhatAKilledWriterStagedGoesWithTheNext) {
  const TempFolder temporary;
  temporary.write("out/.gpusched-Abc123/a/one", "left");
  ASSERT_TRUE(publish(temporary.path() + "/out", "1"));
  EXPECT_EQ(entries(temporary.path() + "/out"), 3u);
}

// Who finds the seal finds the files that belong to it, whenever the writer is killed.
TEST(OutputFolder, AWriterKilledAtAnyMomentLeavesNoMixture) {
  const TempFolder temporary;
  const std::string path = temporary.path() + "/out";
  std::uint32_t sealed = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int run = 0;; ++run) {
        if (!publish(path, std::string(20'000, static_cast<char>('a' + run % 26)))) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + 977 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed";
    if (!fs::exists(path + "/seal")) continue;
    ++sealed;
    const std::string content = bytes_of(path + "/seal");
    ASSERT_EQ(content.size(), 20'000u);
    ASSERT_EQ(bytes_of(path + "/a/one"), content) << round;
    ASSERT_EQ(bytes_of(path + "/b/two"), content) << round;
  }
  EXPECT_GT(sealed, 0u);
}

}  // namespace
}  // namespace gpusched::test
