// SPDX-License-Identifier: Apache-2.0
// Limits as an option gives them, and what is told of those that hold for nobody.
#include "src/world/limit_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/world/limit_json.hpp"

namespace gpusched {
namespace {

TEST(LimitText, GivesWhatAFileGives) {
  const auto read = parse_limits(
      " user{gpus=1.5, jobs=4}, all{qos=[low, 7],memory_gib=2,submitted=9},all{arrays=4711,jobs=0},"
      "job{vcs=[debug],wall_s=3600},all{vcs=lab,allow_qos=[low,high]}");
  ASSERT_TRUE(read) << read.error().to_string();
  const std::vector<LimitRule> expected = {{.per = LimitOwner::user, .most = {.gpu_milli = 1500, .jobs = 4}},
                                           {.qos = {"low", "7"}, .most = {.memory_mib = 2048}, .submitted = 9},
                                           {.arrays = {"4711"}, .most = {.jobs = 0}},
                                           {.per = LimitOwner::job, .vcs = {"debug"}, .wall = whole_seconds(3600)},
                                           {.vcs = {"lab"}, .allow_qos = {"low", "high"}}};
  EXPECT_EQ(*read, expected);
  EXPECT_TRUE(parse_limits(" ")->empty());
}

TEST(LimitText, NamesTheLimitThatCannotBeRead) {
  const auto error = [](const std::string& text) {
    const auto read = parse_limits(text);
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(error("user"),
            "'user': expected a limit: gpus, cpus, memory_gib, jobs, submitted, wall_s, allow_accounts or "
            "allow_qos");
  EXPECT_EQ(error("user{wall_s=60}"),
            "'user{wall_s=60}': /per: expected job with wall_s: the time that each job requests");
  EXPECT_EQ(error("all{jobs=9},user{gpus=1,job=2}"), "'user{gpus=1,job=2}': /job: unknown key (did you mean 'jobs'?)");
  EXPECT_EQ(error("usr{gpus=1}").substr(0, 22), "'usr{gpus=1}': /per: e");
  EXPECT_EQ(error("user{gpus=many}").substr(0, 27), "'user{gpus=many}': /gpus: e");
  for (const std::string text : {"user{gpus}", "user{gpus=1", "user{gpus=1}x", "user{gpus=1,gpus=2}", "user{}"}) {
    EXPECT_EQ(error(text), "expected a limit such as user{gpus=16,jobs=4}, each key once, not '" + text + "'");
  }
  EXPECT_NE(error("user{jobs=1},"), "");
}

// A job without the name that a limit asks for has no such limit.
TEST(AbsentInLimits, TellsWhichLimitsHoldForNobody) {
  const auto notes = [](const std::vector<LimitRule>& rules, const JobRecord& record) {
    JobTableBuilder builder;
    builder.add(record);
    const JobTable jobs = *std::move(builder).build();
    std::vector<std::string> lines = absent_in_limits(rules, jobs, "c.json");
    for (std::string& line : absent_owners(rules, jobs)) lines.push_back(std::move(line));
    return lines;
  };
  const JobRecord bare{.id = "a"};
  const JobRecord full{.id = "7_1", .user = "ann", .group = "physics", .vc = "gpu"};
  using Lines = std::vector<std::string>;
  std::vector<LimitRule> rules;
  for (const LimitOwner owner : {LimitOwner::user, LimitOwner::account, LimitOwner::vc, LimitOwner::array}) {
    rules.push_back({.per = owner, .most = {.jobs = 1}});
  }
  EXPECT_EQ(notes(rules, full), Lines{});
  EXPECT_EQ(notes(rules, bare),
            (Lines{"no job of the trace has a user, so that limits per user hold for none",
                   "no job of the trace has an account, so that limits per account hold for none",
                   "no job of the trace has a virtual cluster, so that limits per vc hold for none",
                   "no job of the trace is a task of an array (12_0), so that limits per array hold for none"}));
  EXPECT_EQ(notes({{.per = LimitOwner::job, .most = {.gpu_milli = 1}}, {.most = {.jobs = 1}}}, bare), Lines{});
  EXPECT_EQ(notes({{.arrays = {"7", "8"}, .most = {.jobs = 1}}}, full),
            Lines{"c.json: limits/arrays: no job has '8' (did you mean '7'?)"});
  EXPECT_EQ(notes({{.allow_accounts = {"physic"}}}, full),
            Lines{"c.json: limits/allow_accounts: no job has 'physic' (did you mean 'physics'?)"});
}

}  // namespace
}  // namespace gpusched
