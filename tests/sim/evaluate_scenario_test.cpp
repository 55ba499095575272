// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluate_scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/sim/evaluate.hpp"
#include "src/sim/scenario.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EvaluateScenario, ItsJsonReadsBack) {
  EvaluateScenario scenario;
  scenario.traces = {"a.csv", "b.swf"};
  scenario.clusters = {"8x8", "256"};
  scenario.policies = {"fifo", "tiresias{queue_limits_gpu_s=[1,2]}"};
  scenario.groups = {"agent=rl:one,rl:two"};
  scenario.conditions.preemption.restart = Time{1'500'000};
  scenario.windows = 7;
  scenario.from = 0.25;
  scenario.figure = "gpu_utilization";
  scenario.beside = {"avg_wait_s", "worst_tenth:avg_jct_s"};
  scenario.threads = 3;
  EvaluateScenario again;
  ASSERT_TRUE(read_evaluate_json(again, evaluate_scenario_json(scenario, true), "x.json"));
  EXPECT_EQ(evaluate_scenario_json(again, true), evaluate_scenario_json(scenario, true));
  EXPECT_THAT(again.groups, ElementsAre("agent=rl:one,rl:two"));
  EXPECT_EQ(again.threads, 3u);
  EXPECT_THAT(evaluate_scenario_json(scenario, false), Not(HasSubstr("threads")));
}

// What both commands have stands under the same keys and flags, with the same words, in both.
TEST(EvaluateScenario, SharesItsRowsWithReplay) {
  EvaluateScenario evaluation;
  Scenario replay;
  const FieldTable ours = evaluate_fields(evaluation), theirs = scenario_fields(replay);
  for (const char* flag :
       {"--where", "--drop-bad-rows", "--backlog", "--qos", "--slurm-conf", "--slurm-qos", "--oversize", "--backfill",
        "--placement", "--checkpoint-cost", "--restart-cost", "--checkpoint-interval"}) {
    const auto has_flag = [&](const Field& field) { return field.flag == flag; };
    const auto own = std::find_if(ours.begin(), ours.end(), has_flag);
    const auto other = std::find_if(theirs.begin(), theirs.end(), has_flag);
    ASSERT_NE(own, ours.end()) << flag;
    ASSERT_NE(other, theirs.end()) << flag;
    EXPECT_EQ(own->path, other->path) << flag;
    EXPECT_EQ(own->words, other->words) << flag;
    EXPECT_EQ(own->meaning, other->meaning) << flag;
  }
}

TEST(EvaluateScenario, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const std::string& json) {
    EvaluateScenario scenario;
    const auto done = read_evaluate_json(scenario, json, "x.json");
    return done ? "" : done.error().to_string();
  };
  EXPECT_EQ(refusal(R"({"tarces": ["a"]})"), "x.json: /tarces: unknown key (did you mean 'traces'?)");
  EXPECT_EQ(refusal(R"({"trace": ["a"]})"), "x.json: /trace: expected an object, not [\"a\"]");
  EXPECT_EQ(refusal(R"({"where": "gpus>1"})"), "x.json: /where: unknown key");  // /trace/where, as of replay
  EXPECT_EQ(refusal(R"({"windows": {"jobs": 2000000000}})"),
            "x.json: /windows/jobs: expected a whole number, 0 to 1000000000, not 2000000000");
  EXPECT_EQ(refusal(R"({"windows": {"to": 1.5}})"), "x.json: /windows/to: expected a number from 0 to 1, not 1.5");
  EXPECT_THAT(refusal(R"({"figure": "avg_jtc_s"})"), HasSubstr("did you mean 'avg_jct_s'?"));
}

TEST(EvaluateScenario, APolicyCountsOnce) {
  const auto refusal = [](std::vector<std::string> policies, std::vector<std::string> groups) {
    EvaluateScenario scenario;
    scenario.policies = std::move(policies);
    scenario.groups = std::move(groups);
    const auto lineup = lineup_of(scenario, PolicyRegistry::standard());
    return lineup ? "" : lineup.error().to_string();
  };
  EXPECT_EQ(refusal({"fifo,sjf{estimate=history}"}, {"a=sjf,fifo"}), "");
  EXPECT_EQ(refusal({"fifo,fifo{}"}, {}), "policies: fifo{} is given twice, as fifo too");
  EXPECT_EQ(refusal({"fifo"}, {"a=sjf,sjf,sjf"}), "groups: sjf is given twice");
}

TEST(EvaluateScenario, WhatDoesNotGoTogetherIsRefused) {
  EvaluateScenario scenario;
  scenario.traces = {"synthetic:lublin:500"};
  scenario.policies = {"fifo"};
  scenario.mode = "windows";
  scenario.starts = {"0.2"};
  EXPECT_EQ(check_evaluate_scenario(scenario).error().to_string(),
            "starts: an option of logs; --mode windows has none");
  scenario.mode = "auto";
  EXPECT_TRUE(check_evaluate_scenario(scenario));
  scenario.protocol = "sc20";
  EXPECT_EQ(check_evaluate_scenario(scenario).error().to_string(),
            "protocol: expected a log in a file with sc20, which takes no drawn trace");
}

TEST(EvaluateScenario, TheShippedSchemaIsThatOfTheProgram) {
  EXPECT_EQ(bytes_of(source_dir() + "/docs/evaluate.schema.json"), evaluate_schema())
      << "write it anew: gpusched evaluate --print-schema > docs/evaluate.schema.json";
}

}  // namespace
}  // namespace gpusched::test
