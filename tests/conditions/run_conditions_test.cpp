// SPDX-License-Identifier: Apache-2.0
// What the files of conditions become, and which values do not go together.
#include "src/conditions/run_conditions.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

class Conditions : public testing::Test {
 protected:
  // The files of each kind.
  ConditionOptions files() const {
    ConditionOptions options;
    options.failures = folder_.write("f.json", R"({"node": {"mtbf_h": 100, "repair_h": 1}})");
    options.stages = folder_.write("s.json", R"({"provision_s": 20, "images": {"by": "user", "load_s": 3,
        "of": {"alice": {"load_s": 9}, "alcie": {"load_s": 1}, "x": {}, "y": {}, "z": {}}}})");
    options.elastic = folder_.write(
        "e.json", R"({"families": {"bert": {"speedup": [[1, 1], [8, 4]]}, "resnet": {"speedup": [[1, 1]]}}})");
    options.changes = folder_.write("c.csv", "time_s,job,change,value\n5,0,cancel,\n");
    options.power = folder_.write("p.json", R"({"gpus": {"any": {"full_w": 250}}})");
    return options;
  }

  Result<RunConditions> load(const ConditionOptions& options, const Cluster& cluster = Cluster::homogeneous(2, 8)) {
    return load_conditions(options, jobs_, cluster, 1);
  }
  std::string error_of(const ConditionOptions& options, const Cluster& cluster = Cluster::homogeneous(2, 8)) {
    const auto conditions = load(options, cluster);
    return conditions ? "none" : conditions.error().to_string();
  }

  test::TempFolder folder_;
  JobTable jobs_ = test::table_of({{.work = 10, .user = "alice", .family = "bert"}, {.work = 10, .user = "bob"}});
};

TEST_F(Conditions, NothingGivenIsNothingToAnEngine) {
  const auto conditions = load({});
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  const RunInputs inputs = conditions->inputs();
  EXPECT_EQ(inputs.runtime, nullptr);
  EXPECT_EQ(inputs.failures, nullptr);
  EXPECT_EQ(inputs.stages, nullptr);
  EXPECT_EQ(inputs.elastic, nullptr);
  EXPECT_EQ(inputs.changes, nullptr);
  EXPECT_EQ(inputs.power, nullptr);
  EXPECT_EQ(inputs.services, nullptr);
}

TEST_F(Conditions, TellOfJobsThatRunForLongerThanRequested) {
  jobs_ = test::table_of({{.work = 100, .estimate = 40},
                          {.attempts = {10, 12}, .estimate = 10},
                          {.work = 40, .estimate = 40},
                          {.work = 5, .estimate = 0},
                          {.work = 50}});
  const std::string zero = "1 job requests a run time of 0: plans take it to end at once";
  const auto conditions = load({});
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  EXPECT_FALSE(conditions->inputs().kill_at_limit);
  ASSERT_EQ(conditions->notes.size(), 2U);
  EXPECT_TRUE(conditions->notes[0].starts_with("3 jobs run in the trace for longer than requested, by 1m 00s at most"))
      << conditions->notes[0];
  EXPECT_EQ(conditions->notes[1], zero);
  const auto limited = load({.kill_at_limit = true});
  ASSERT_TRUE(limited) << limited.error().to_string();
  EXPECT_TRUE(limited->inputs().kill_at_limit);
  ASSERT_EQ(limited->notes.size(), 2U);
  EXPECT_EQ(limited->notes[0],
            "2 jobs run in the trace for longer than requested, by 1m 00s at most; --kill-at-limit ends them there");
  EXPECT_EQ(limited->notes[1], zero + ", and it has no limit");
}

TEST_F(Conditions, ServicesBringTheirReplicasAndNobodyChangesThem) {
  ConditionOptions options;
  options.services = folder_.write("v.json", R"({"services": [{"name": "chat", "requests": {"log": "v.csv"}, "most": 2,
      "serves": {"seconds": 1}, "replica": {"gpus": 1}}]})");
  const std::string log = folder_.write("v.csv", "arrival_s\n1\n2\n");
  const auto conditions = load(options);
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  EXPECT_EQ(conditions->inputs().services, &conditions->services);
  EXPECT_EQ(jobs_.replicas(), 2u);
  EXPECT_EQ(jobs_.size(), 4u);
  EXPECT_EQ(files_of(options), (std::vector<std::string>{"", "", "", options.services, log}));
  Cluster limited = Cluster::homogeneous(2, 8);
  limited.limits = {{.per = LimitOwner::job, .most = {.gpu_milli = 500}}};
  EXPECT_EQ(error_of(options, limited), "services: replica 'chat:0' of " + options.services +
                                            " asks for more than limits of the cluster ever let run; expected less");
  options.changes = folder_.write("c.csv", "time_s,job,change,value\n5,chat:1,cancel,\n");
  EXPECT_EQ(error_of(options), "changes: 'chat:1' is a replica of " + options.services +
                                   ", which its autoscaler starts and ends; expected changes of jobs alone");
}

TEST_F(Conditions, StudiesBringTheirTasksAndNobodyChangesThem) {
  ConditionOptions options;
  options.trials = folder_.write("t.json", R"({"studies": [{"name": "s", "search": "random", "trials": 2, "workers": 1,
      "most_units": 3, "loss": {"table": "l.csv"}}]})");
  const std::string table = folder_.write("l.csv", "trial,units,loss,unit_s\n0,1,1,5\n1,1,0,5\n");
  const auto conditions = load(options);
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  EXPECT_EQ(conditions->inputs().studies, &conditions->studies);
  EXPECT_EQ(jobs_.in_front(), 2u);
  EXPECT_EQ(jobs_.replicas(), 0u);
  EXPECT_EQ(files_of(options), (std::vector<std::string>{"", "", "", options.trials, table}));
  options.changes = folder_.write("c.csv", "time_s,job,change,value\n15,s:1:1,cancel,\n");
  EXPECT_EQ(error_of(options), "changes: 's:1:1' is a trial of " + options.trials +
                                   ", which its search starts and ends; expected changes of jobs alone");
  options.kill_at_limit = true;
  EXPECT_EQ(error_of(options), "trials: expected no --kill-at-limit, which would end trials unheard");
}

TEST_F(Conditions, WhatDoesNothingIsRefusedOrTold) {
  EXPECT_EQ(
      error_of({.speeds = {.span_speed = "nodes=0.5"}}, Cluster::pool(16)),
      "fidelity.span_speed: expected a cluster of nodes, as 75x8; a pool of GPUs has no nodes that gangs could be "
      "apart on");
  const ConditionOptions counted{.placement = "count", .speeds = {.communication = "no such file"}};
  EXPECT_EQ(error_of(counted),
            "fidelity.communication: expected another --placement than count, which knows no nodes that gangs could be "
            "apart on");
  EXPECT_FALSE(check_condition_options(counted));
  const auto fastest = load({.placement = "fastest"});
  ASSERT_TRUE(fastest) << fastest.error().to_string();
  EXPECT_EQ(fastest->all_notes(), (std::vector<std::string>{"--placement fastest: without --profile or --throughputs "
                                                            "every GPU type is as fast as the others"}));
}

TEST_F(Conditions, LimitsNeedRequests) {
  EXPECT_EQ(error_of({.kill_at_limit = true}),
            "kill_at_limit: expected a trace of jobs with a requested run time (estimate_s)");
}

TEST_F(Conditions, EveryFileReachesTheEngine) {
  ConditionOptions options = files();
  options.speeds.span_speed = "nodes=0.5";
  options.preemption.restart = whole_seconds(3);
  const auto conditions = load(options);
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  const RunInputs inputs = conditions->inputs();
  EXPECT_EQ(inputs.runtime, &conditions->runtime.model);
  EXPECT_EQ(inputs.failures, &conditions->failures);
  EXPECT_EQ(inputs.stages, &conditions->stages);
  EXPECT_EQ(inputs.elastic, &conditions->elastic);
  EXPECT_EQ(inputs.changes, &conditions->changes);
  EXPECT_EQ(inputs.power, &conditions->power.model);
  EXPECT_EQ(conditions->preemption.restart, whole_seconds(3));
  EXPECT_EQ(files_of(options), (std::vector<std::string>{"", "", "", options.failures, options.stages, options.elastic,
                                                         options.changes, options.power}));
  options.power = "openb";
  EXPECT_EQ(files_of(options).size(), 7u) << "a ready model is no file";
}

// One file serves many traces and parts of them: a family or user that is not there is no mistake.
TEST_F(Conditions, NamesThatNoJobHasAreNoted) {
  const auto conditions = load(files());
  ASSERT_TRUE(conditions) << conditions.error().to_string();
  ASSERT_EQ(conditions->notes.size(), 3u);
  EXPECT_EQ(conditions->notes[0], folder_.path() +
                                      "/s.json: /images/of: no job has 'alcie' (did you mean 'alice'?), 'x', 'y' and 1 "
                                      "more of its names");
  EXPECT_EQ(conditions->notes[1], folder_.path() + "/e.json: /families: no job has 'resnet'");
  EXPECT_EQ(conditions->notes[2], "1 job is elastic by " + folder_.path() + "/e.json");
}

TEST_F(Conditions, PairsThatDoNotGoTogetherAreRefused) {
  ConditionOptions pooled = files();
  pooled.placement = "count";
  EXPECT_EQ(error_of(pooled),
            "stages: expected another --placement than count, which knows no nodes that could keep anything");
  pooled.stages.clear();
  pooled.failures.clear();
  EXPECT_EQ(error_of(pooled),
            "power: expected another --placement than count, which knows no nodes that could draw power");
  pooled.failures = files().failures;
  EXPECT_EQ(error_of(pooled),
            "failures.file: expected another --placement than count, which knows no nodes that could fail");
  EXPECT_EQ(error_of(files(), Cluster::pool(16)),
            "stages: expected a cluster of nodes, as 75x8; a pool of GPUs has no nodes that could keep anything");

  ConditionOptions resized = files();
  resized.changes = folder_.write("r.csv", "time_s,job,change,value\n5,1,gpus,2\n6,0,gpus,2\n");
  EXPECT_EQ(error_of(resized), "changes: job '0' is elastic by " + resized.elastic +
                                   ", whose curve says which sizes it has; expected no change of its gpus");
  resized.changes = folder_.write("r.csv", "time_s,job,change,value\n5,1,gpus,2\n");
  EXPECT_EQ(error_of(resized), "none");

  ConditionOptions written;
  written.preemption.periodic_checkpoint = whole_seconds(5);
  EXPECT_EQ(error_of(written),
            "preemption.checkpoint_write_s: expected --checkpoint-interval or --checkpoint-rule with it");
  written.preemption.checkpoint_interval = whole_seconds(50);
  written.elastic = folder_.write("p.json", R"({"others": {"phases": [{"until": 0.5, "speedup": [[1, 1]]},
                                                           {"until": 1, "speedup": [[1, 1]]}]}})");
  EXPECT_EQ(error_of(written), "none");
  written.elastic.clear();
  written.stages = folder_.write("k.json", R"({"transfer_gib_per_s": 1, "checkpoint_gib_per_gpu": 2})");
  EXPECT_EQ(error_of(written),
            "preemption.checkpoint_write_s: expected none beside checkpoint_gib_per_gpu of --stages");
  written.preemption = {};
  EXPECT_EQ(error_of(written),
            "stages: expected --checkpoint-interval or --checkpoint-rule with its checkpoint_gib_per_gpu");

  ConditionOptions ruled;
  ruled.preemption.rule = CheckpointRule::young;
  EXPECT_EQ(error_of(ruled), "failures.checkpoint_rule: expected --failures with young");
  ruled.failures = files().failures;
  EXPECT_EQ(error_of(ruled), "failures.checkpoint_rule: expected --checkpoint-write above 0 with young");
  ruled.preemption.periodic_checkpoint = whole_seconds(5);
  ruled.preemption.checkpoint_interval = whole_seconds(5);
  EXPECT_EQ(error_of(ruled),
            "preemption.checkpoint_interval_s: expected no fixed interval with --checkpoint-rule young");
}

TEST_F(Conditions, WhatValuesAloneTellIsToldBeforeFilesAreRead) {
  ConditionOptions options;
  options.failures = "no such file";
  options.placement = "count";
  EXPECT_EQ(check_condition_options(options).error().field, "failures.file");
  options.failures.clear();
  options.power = "no such file";
  EXPECT_EQ(check_condition_options(options).error().field, "power");
  options.placement = "consolidate";
  EXPECT_TRUE(check_condition_options(options));
  options.preemption.rule = CheckpointRule::daly;
  EXPECT_EQ(check_condition_options(options).error().field, "failures.checkpoint_rule");
  options.stages = "which may say what a checkpoint moves";
  EXPECT_TRUE(check_condition_options(options));
}

TEST_F(Conditions, WindowsWhoseArrivalsAreMovedHaveLawsAlone) {
  ConditionOptions options = files();
  EXPECT_TRUE(check_for_windows(*load(options), options, true));
  options.failures = folder_.write("log.csv", "time_s,node,event\n3,1,down\n");
  EXPECT_TRUE(check_for_windows(*load(options), options, false));
  EXPECT_EQ(
      check_for_windows(*load(options), options, true).error().to_string(),
      options.failures + ": expected laws alone with arrivals that are moved; a log of outages stays where it is");
  options = files();
  folder_.write("g.csv", "hour,carbon_intensity\n0,100\n1,300\n");
  options.power = folder_.write("signal.json", R"({"gpus": {"any": {"full_w": 250}}, "carbon": "g.csv"})");
  EXPECT_TRUE(check_for_windows(*load(options), options, false));
  EXPECT_EQ(check_for_windows(*load(options), options, true).error().to_string(),
            options.power + ": expected constants alone with arrivals that are moved; a signal stays where it is");
}

}  // namespace
}  // namespace gpusched
