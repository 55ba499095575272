// SPDX-License-Identifier: Apache-2.0
#include "src/base/subprocess.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Subprocess, TakesBothOutputsWholeAndTheExitCode) {
  const auto done = run_program({"sh", "-c", "yes out | head -c 300000; yes err | head -c 300000 >&2; exit 3"});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_code, 3);
  EXPECT_EQ(done->out.size(), 300'000u);
  EXPECT_EQ(done->err.size(), 300'000u);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"})->exit_code, 137);
  EXPECT_EQ(run_program({"cat"})->out, "") << "standard input is empty";
  EXPECT_EQ(run_program({"printf", "%s|", "a b", "$HOME", "'"})->out, "a b|$HOME|'|") << "no shell";
}

TEST(Subprocess, AProgramThatIsNotThere) {
  const auto done = run_program({"no-such-program"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no-such-program: not installed, or not in PATH");
}

TEST(SplitWords, AsAShellDoes) {
  EXPECT_THAT(*split_words(""), IsEmpty());
  EXPECT_THAT(*split_words("  --a  b\t\nc "), ElementsAre("--a", "b", "c"));
  EXPECT_THAT(*split_words(R"(--x='a "b' "c 'd\"" e\ f '' g"h"'i')"),
              ElementsAre("--x=a \"b", "c 'd\"", "e f", "", "ghi"));
  EXPECT_THAT(*split_words(R"('a\' "\n" $HOME *)"), ElementsAre("a\\", "\\n", "$HOME", "*"));
  EXPECT_FALSE(split_words("--comment 'open"));
}

TEST(ShellQuoted, AShellReadsItBack) {
  EXPECT_EQ(shell_quoted("/a/b-c_1.json"), "/a/b-c_1.json");
  for (const std::string word : {"", "a b", "it's", "$HOME `x` \"y\" \\", "-n\nline", "50%;*?~#!"}) {
    EXPECT_THAT(*split_words(shell_quoted(word)), ElementsAre(word));
    EXPECT_EQ(run_program({"sh", "-c", "printf %s " + shell_quoted(word)})->out, word);
  }
}

}  // namespace
}  // namespace gpusched
