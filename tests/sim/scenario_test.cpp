// SPDX-License-Identifier: Apache-2.0
#include "src/sim/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& json) {
  Scenario scenario;
  const auto done = read_scenario_json(scenario, json, "run.json");
  return done ? "" : done.error().to_string();
}

std::string setting_error(const std::string& setting) {
  Scenario scenario;
  const auto done = apply_setting(scenario, setting);
  return done ? "" : done.error().to_string();
}

TEST(Scenario, ReadsAFile) {
  Scenario scenario;
  ASSERT_TRUE(read_scenario_json(scenario, R"({
    "$schema": "scenario.schema.json",
    "trace": {"path": "jobs.csv", "drop_bad_rows": true},
    "policies": ["fifo", "tiresias{queue_limits_gpu_s=[1,2]}"],
    "preemption": {"restart_s": 1.5},
    "measure": {"warmup_jobs": 10}
  })",
                                 "run.json"));
  EXPECT_EQ(scenario.trace, "jobs.csv");
  EXPECT_TRUE(scenario.drop_bad_rows);
  EXPECT_THAT(scenario.policies, ElementsAre("fifo", "tiresias{queue_limits_gpu_s=[1,2]}"));
  EXPECT_EQ(scenario.conditions.preemption.restart, Time{1'500'000});
  EXPECT_EQ(scenario.warmup_jobs, 10u);
  EXPECT_EQ(scenario.conditions.placement, "consolidate");
}

TEST(Scenario, NamesTheUnknownKeyAndTheNearestOne) {
  EXPECT_EQ(error_of(R"({"preemption": {"restart": 1}})"),
            "run.json: /preemption/restart: unknown key (did you mean 'restart_s'?)");
  EXPECT_EQ(error_of(R"({"polices": []})"), "run.json: /polices: unknown key (did you mean 'policies'?)");
  EXPECT_EQ(error_of(R"({"zzz": 1})"), "run.json: /zzz: unknown key");
}

TEST(Scenario, RefusesValuesOfAnotherKind) {
  EXPECT_EQ(error_of(R"({"seed": -1})"), "run.json: /seed: expected a whole number, 0 or more, not -1");
  EXPECT_EQ(error_of(R"({"seed": 1.5})"), "run.json: /seed: expected a whole number, 0 or more, not 1.5");
  EXPECT_EQ(error_of(R"({"cluster": 600})"), "run.json: /cluster: expected a text, not 600");
  EXPECT_EQ(error_of(R"({"policies": ["fifo", 3]})"),
            R"(run.json: /policies: expected a list of texts, not ["fifo",3])");
  EXPECT_EQ(error_of(R"({"measure": 3})"), "run.json: /measure: expected an object, not 3");
  EXPECT_EQ(error_of(R"({"preemption": {"restart_s": -2}})"),
            "run.json: /preemption/restart_s: expected seconds from 0 to 4.6e12, not -2");
  EXPECT_EQ(error_of(R"({"preemption": {"restart_s": 1e300}})"),
            "run.json: /preemption/restart_s: expected seconds from 0 to 4.6e12, not 1e+300");
  EXPECT_EQ(error_of(R"({"output": {"json": "yes"}})"), R"(run.json: /output/json: expected true or false, not "yes")");
  EXPECT_EQ(error_of(R"({"oversize": "drops"})"),
            "run.json: /oversize: expected one of error|drop|clamp, not 'drops' (did you mean 'drop'?)");
}

TEST(Scenario, RefusesWhatIsNotJson) {
  EXPECT_EQ(error_of("{\n\"seed\": 1,\n}"), "run.json:3: expected well-formed JSON here");
  EXPECT_EQ(error_of(""), "run.json:1: empty; expected JSON");
  EXPECT_EQ(error_of("[]"), "run.json: expected an object, not []");
  EXPECT_EQ(error_of(R"({"seed": 1, "seed": 2})"), "run.json: key 'seed' appears twice");
  EXPECT_EQ(error_of(R"({"fidelity": {"slowdown": 1e999}})"),
            "run.json: holds a number too large for JSON readers; expected at most 1.8e308");
}

TEST(Scenario, RefusesAFolderAndAMissingFile) {
  const TempFolder folder;
  Scenario scenario;
  EXPECT_THAT(read_scenario_file(scenario, folder.path()).error().to_string(), HasSubstr("expected a file"));
  EXPECT_THAT(read_scenario_file(scenario, folder.path() + "/none.json").error().to_string(),
              HasSubstr("cannot be opened"));
}

TEST(Scenario, TakesSettingsByPath) {
  Scenario scenario;
  ASSERT_TRUE(apply_setting(scenario, "preemption.checkpoint_s=2.5"));
  ASSERT_TRUE(apply_setting(scenario, "policies=fifo,tiresias{queue_limits_gpu_s=[1,2]},srtf"));
  ASSERT_TRUE(apply_setting(scenario, "trace.columns=submit=a,gpus=b"));
  EXPECT_EQ(scenario.conditions.preemption.checkpoint, Time{2'500'000});
  EXPECT_THAT(scenario.policies, ElementsAre("fifo", "tiresias{queue_limits_gpu_s=[1,2]}", "srtf"));
  EXPECT_EQ(scenario.columns, "submit=a,gpus=b");
}

TEST(Scenario, RefusesBadSettings) {
  EXPECT_EQ(setting_error("sed=1"), "unknown key 'sed' (did you mean 'seed'?)");
  EXPECT_EQ(setting_error("seed"), "expected path.to.key=value, not 'seed'");
  EXPECT_EQ(setting_error("seed=x"), "seed: expected a whole number, 0 or more, not 'x'");
  EXPECT_EQ(setting_error("preemption.restart_s=nan"),
            "preemption.restart_s: expected seconds from 0 to 4.6e12, not 'nan'");
  EXPECT_EQ(setting_error("placement=pack"),
            "placement: expected one of count|consolidate|first-fit|best-fit|worst-fit|random|rack|yarn|"
            "consolidate@helios|fastest|skew, not 'pack' (did you mean 'rack'?)");
}

TEST(Scenario, ChecksWhatBelongsTogether) {
  Scenario scenario;
  EXPECT_THAT(check_scenario(scenario).error().to_string(), HasSubstr("no trace"));
  scenario.trace = "jobs.csv";
  EXPECT_THAT(check_scenario(scenario).error().to_string(), HasSubstr("no policy"));
  scenario.policies = {"fifo"};
  EXPECT_TRUE(check_scenario(scenario));
  scenario.warmup_jobs = 1;
  scenario.measure = whole_seconds(1);
  EXPECT_THAT(check_scenario(scenario).error().to_string(), HasSubstr("by jobs or by time"));
  scenario.measure = {};
  EXPECT_TRUE(check_scenario(scenario));
}

TEST(Scenario, ItsJsonReadsBack) {
  Scenario scenario;
  scenario.trace = "a.csv";
  scenario.policies = {"fifo", "srtf"};
  scenario.conditions.preemption.restart = Time{1'234'567};
  scenario.measure_jobs = 5;
  scenario.out = "results";
  Scenario again;
  ASSERT_TRUE(read_scenario_json(again, scenario_json(scenario, true), "x.json"));
  EXPECT_EQ(scenario_json(again, true), scenario_json(scenario, true));
  EXPECT_EQ(again.conditions.preemption.restart, scenario.conditions.preemption.restart);
  EXPECT_THAT(scenario_json(scenario, false), Not(HasSubstr("results")));
}

TEST(Scenario, TheShippedSchemaIsThatOfTheProgram) {
  EXPECT_EQ(bytes_of(test::source_dir() + "/docs/scenario.schema.json"), scenario_schema())
      << "write it anew: gpusched replay --print-schema > docs/scenario.schema.json";
}

}  // namespace
}  // namespace gpusched::test
