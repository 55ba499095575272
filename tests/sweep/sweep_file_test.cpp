// SPDX-License-Identifier: Apache-2.0
// What a sweep's file stands for, and what is refused with its place.
#include "src/sweep/sweep_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_point_run.hpp"
#include "src/sweep/sweep_store.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"
#include "tests/support/json_schema.hpp"

namespace gpusched::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Sweep read(const std::string& text) {
  auto sweep = read_sweep_json(text, "s.json");
  EXPECT_TRUE(sweep) << sweep.error().to_string();
  return sweep ? *std::move(sweep) : Sweep{};
}

std::vector<std::string> names(const Sweep& sweep) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < sweep.size(); ++i) {
    const auto point = sweep.point(i);
    EXPECT_TRUE(point) << point.error().to_string();
    if (point) all.push_back(point_name(sweep, *point));
  }
  return all;
}

void expect_refused(const std::string& text, const std::string& reason) {
  const auto sweep = read_sweep_json(text, "s.json");
  ASSERT_FALSE(sweep) << text;
  EXPECT_EQ(sweep.error().to_string(), "s.json: " + reason);
}

TEST(SweepFile, AGridIsEveryCombinationAndItsFirstKeyTheSlowest) {
  const Sweep sweep =
      read(R"({"base": {"trace": "a.csv"}, "grid": {"policy": ["fifo", "sjf"], "seed": {"from": 1, "to": 3}}})");
  EXPECT_THAT(names(sweep), ElementsAre("policy fifo, seed 1", "policy fifo, seed 2", "policy fifo, seed 3",
                                        "policy sjf, seed 1", "policy sjf, seed 2", "policy sjf, seed 3"));
  EXPECT_EQ(sweep.point(4)->run.trace, "a.csv");
  EXPECT_EQ(sweep.point(4)->run.seed, 2u);
}

TEST(SweepFile, EachEntryOfTheListIsRunWithTheWholeGrid) {
  const Sweep sweep = read(R"({
    "base": {"policy": "fifo", "cluster": "2x8"},
    "list": [{"trace": "a.csv", "cluster": "4x8"}, {"trace": {"path": "b.csv", "format": "csv"}}],
    "grid": {"load": {"from": 0.7, "to": 0.9, "step": 0.1}}})");
  ASSERT_EQ(sweep.size(), 6u);
  EXPECT_THAT(sweep.columns, ElementsAre("trace.path", "cluster", "trace.format", "load"));
  EXPECT_THAT(names(sweep)[1], "trace.path a.csv, cluster 4x8, trace.format auto, load 0.8");
  EXPECT_THAT(names(sweep)[5], "trace.path b.csv, cluster 2x8, trace.format csv, load 0.9");
}

TEST(SweepFile, RangesOfWholeNumbersAreExact) {
  const Sweep sweep = read(R"({"base": {"trace": "a.csv", "policy": "fifo"}, "grid": {
    "seed": {"from": 18446744073709551610, "to": 18446744073709551615, "step": 2}}})");
  ASSERT_EQ(sweep.size(), 3u);
  EXPECT_EQ(sweep.point(2)->run.seed, 18446744073709551614u);
}

TEST(SweepFile, AnObjectSetsSeveralFieldsTogether) {
  const Sweep sweep = read(R"({"base": {"trace": "a.csv", "policy": "fifo"}, "grid": {
    "window": [{"first_job": 0, "jobs": 10}, {"first_job": 10, "jobs": 10}], "measure.warmup_jobs": [2]}})");
  EXPECT_THAT(sweep.columns, ElementsAre("window.first_job", "window.jobs", "measure.warmup_jobs"));
  EXPECT_EQ(sweep.point(1)->first_job, 10u);
  EXPECT_EQ(sweep.point(1)->run.warmup_jobs, 2u);
}

TEST(SweepFile, ParametersGoIntoThePolicysBraces) {
  const Sweep sweep = read(R"({"base": {"trace": "a.csv"}, "grid": {
    "policy": ["las", "las{}", "las{preempt=false}+easy{depth=2}"], "parameters.quantum_gpu_s": [5, 0.5]}})");
  std::vector<std::string> policies;
  for (std::uint64_t i = 0; i < sweep.size(); ++i) policies.push_back(sweep.point(i)->run.policies.front());
  EXPECT_THAT(policies, ElementsAre("las{quantum_gpu_s=5}", "las{quantum_gpu_s=0.5}", "las{quantum_gpu_s=5}",
                                    "las{quantum_gpu_s=0.5}", "las{preempt=false,quantum_gpu_s=5}+easy{depth=2}",
                                    "las{preempt=false,quantum_gpu_s=0.5}+easy{depth=2}"));
  const Sweep lists = read(R"({"base": {"trace": "a.csv", "policy": "tiresias"},
    "grid": {"parameters": [{"queue_limits_gpu_s": [1, 2]}, {"queue_limits_gpu_s": [3]}]}})");
  EXPECT_EQ(lists.point(0)->run.policies.front(), "tiresias{queue_limits_gpu_s=[1,2]}");
  EXPECT_EQ(sweep_cell(sweep_point_json(*lists.point(1)), "parameters.queue_limits_gpu_s"), "[3]");
}

TEST(SweepFile, AManifestIsSuchAFile) {
  const Sweep sweep = read(R"({"program": "gpusched", "config": {"base": {"trace": "a.csv", "policy": "fifo"}}})");
  EXPECT_EQ(sweep.size(), 1u);
  EXPECT_EQ(sweep.point(0)->run.policies.front(), "fifo");
}

TEST(SweepFile, WhatIsWrongIsToldWithItsPlace) {
  expect_refused(R"({"grids": {}})", "/grids: unknown key (did you mean 'grid'?)");
  expect_refused(R"({"base": {"clutser": "8x8"}})", "/base/clutser: unknown key (did you mean 'cluster'?)");
  expect_refused(R"({"base": {"trace": {"pth": "a"}}})", "/base/trace/pth: unknown key (did you mean 'trace.path'?)");
  expect_refused(R"({"grid": {"policies": [["fifo"]]}})",
                 "/grid/policies: unknown key; a run has one policy: give a list of them under /grid/policy");
  expect_refused(R"({"grid": {"seed": [1, "x"]}})", "/grid/seed/1: expected a whole number, 0 or more, not \"x\"");
  expect_refused(R"({"grid": {"seed": [1, -1]}})", "/grid/seed/1: expected a whole number, 0 or more, not -1");
  expect_refused(R"({"grid": {"load": [0]}})", "/grid/load/0: expected a number from 0.001 to 1000, not 0");
  expect_refused(R"({"grid": {"seed": []}})", "/grid/seed: the list is empty: there is nothing to run");
  expect_refused(R"({"grid": {"seed": 3}})", "/grid/seed: expected a list of values, not 3");
  expect_refused(R"({"grid": {"seed": {"from": 3, "until": 4}}})",
                 "/grid/seed/until: unknown key; expected one of from|to|step");
  expect_refused(R"({"grid": {"seed": {"from": 3, "to": 1}}})",
                 "/grid/seed: expected a step above 0 and an end at or behind the beginning");
  expect_refused(R"({"list": [{"seed": 1}], "grid": {"seed": [2]}})",
                 "/list/0: gives seed, which /grid/seed gives too");
  expect_refused(R"({"grid": {"window.jobs": [1], "window": [{"jobs": 2}]}})",
                 "/grid/window: gives window.jobs, which /grid/window.jobs gives too");
  expect_refused(R"({"base": {"trace": "a", "trace.path": "b"}})", "/base/trace.path: gives trace.path a second time");
  expect_refused(R"({"base": {"parameters.x": {"y": 1}}})",
                 "/base/parameters.x: expected a number, a word, true, false or a list of numbers, not {\"y\":1}");
  expect_refused(R"({"grid": {"seed": {"from": 1, "to": 2000}, "load": {"from": 1, "to": 2, "step": 0.001}}})",
                 "/grid: stands for 2002000 runs; at most 1000000");
  expect_refused(R"({"threads": 5000})", "/threads: expected a whole number, 0 to 4096, not 5000");
}

TEST(SweepFile, WhatARunLacksIsTold) {
  EXPECT_EQ(read(R"({"base": {"trace": "a"}})").point(0).error().field, "/grid/policy");
  EXPECT_EQ(read(R"({"base": {"policy": "fifo"}})").point(0).error().field, "/base/trace");
  const auto both = read(R"({"base": {"trace": "a", "policy": "fifo", "measure": {"warmup_jobs": 1, "warmup_s": 2}}})");
  EXPECT_EQ(both.point(0).error().field, "measure.warmup_s");
}

TEST(SweepFile, TheSchemaInTheDocumentationIsThis) {
  EXPECT_EQ(bytes_of(source_dir() + "/docs/sweep.schema.json"), sweep_schema())
      << "write it anew: gpusched sweep --print-schema > docs/sweep.schema.json";
}

TEST(SweepFile, TheSchemaKnowsEveryKeyAndNoOther) {
  const auto violation = [](const std::string& text) { return schema_violation(text, "docs/sweep.schema.json"); };
  EXPECT_EQ(violation(R"({"base": {"trace.path": "a", "measure": {"warmup_jobs": 1}, "parameters.quantum_gpu_s": 5},
      "grid": {"load": [1], "window.jobs": [2], "parameters.x": {"from": 1, "to": 2}}, "list": [{"cluster": "8"}]})"),
            "");
  EXPECT_NE(violation(R"({"base": {"clutser": "8"}})"), "");
  EXPECT_NE(violation(R"({"base": {"measure.warmup": 8}})"), "");
  EXPECT_NE(violation(R"({"grid": {"laod": [1]}})"), "");
  EXPECT_NE(violation(R"({"list": [{"polcy": "fifo"}]})"), "");
}

class SweepPlanning : public testing::Test {
 protected:
  std::string trace(const std::string& name, const std::string& work = "10") const {
    return folder_.write(name, "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0," + work + ",1,1000\n");
  }
  std::string file(const std::string& grid) const {
    return R"({"base": {"trace": ")" + trace("t.csv") + R"(", "cluster": "2"}, "grid": )" + grid + "}";
  }
  Result<SweepPlan> plan(const std::string& text) const { return plan_sweep(read(text), registry_); }

  PolicyRegistry registry_ = PolicyRegistry::standard();
  TempFolder folder_;
};

TEST_F(SweepPlanning, AnotherTraceOrAnotherValueIsAnotherKey) {
  const std::string text = file(R"({"policy": ["fifo", "sjf"], "seed": [1, 2]})");
  const auto before = plan(text);
  ASSERT_TRUE(before);
  std::set<std::string> keys;
  for (const PlannedRun& run : before->runs) keys.insert(run.key);
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_EQ(plan(text)->runs[3].key, before->runs[3].key);
  trace("t.csv", "11");  // the same path
  EXPECT_NE(plan_sweep(read(R"({"base": {"trace": ")" + folder_.path() + R"(/t.csv", "cluster": "2"},
    "grid": {"policy": ["fifo", "sjf"], "seed": [1, 2]}})"),
                       registry_)
                ->runs[3]
                .key,
            before->runs[3].key);
}

TEST_F(SweepPlanning, RunsShareWhatTheyReadAndPrepare) {
  const auto plan_of = plan(file(R"({"policy": ["fifo", "sjf"], "cluster": ["2", "4"], "seed": [1, 2]})"));
  ASSERT_TRUE(plan_of) << plan_of.error().to_string();
  std::vector<std::uint32_t> inputs;
  for (const PlannedRun& run : plan_of->runs) {
    EXPECT_EQ(run.trace, 0u);  // one file
    inputs.push_back(run.input);
  }
  EXPECT_THAT(inputs, ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));  // one a cluster
  const auto drawn = plan(R"({"base": {"trace": "synthetic:philly", "policy": "fifo"}, "grid": {"seed": [1, 2]}})");
  ASSERT_TRUE(drawn);
  EXPECT_NE(drawn->runs[0].trace, drawn->runs[1].trace);  // a seed draws other jobs
}

TEST_F(SweepPlanning, WhatCannotBeRunIsRefusedBeforeAnythingRuns) {
  const auto refused = [&](const std::string& grid) { return plan(file(grid)).error().to_string(); };
  EXPECT_THAT(refused(R"({"policy": ["fifo", "fifoo"]})"),
              HasSubstr("policy fifoo: unknown policy 'fifoo' (did you mean 'fifo'?)"));
  EXPECT_THAT(refused(R"({"policy": ["srtf"], "backfill": ["none", "easy"]})"),
              HasSubstr("policy srtf, backfill easy: "));
  EXPECT_THAT(refused(R"({"policy": ["fifo"], "parameters.quantum": [1]})"), HasSubstr("parameters.quantum 1"));
  EXPECT_THAT(refused(R"({"policy": ["fifo,sjf"]})"), HasSubstr("expected one policy a run, not 'fifo,sjf'"));
  EXPECT_THAT(refused(R"({"policy": ["fifo"], "seed": [1, 2, 1]})"), HasSubstr("run 3 is run 1 once more: "));
  EXPECT_THAT(refused(R"({"policy": ["fifo", "fifo{}"]})"), HasSubstr("run 2 is run 1 once more: "));
  EXPECT_THAT(refused(R"({"policy": ["fifo", "rl:nofolder"]})"),
              HasSubstr("policy rl:nofolder: nofolder/model.json: cannot be opened"));
  EXPECT_THAT(plan(R"({"base": {"trace": "no-such.csv", "policy": "fifo"}})").error().to_string(),
              HasSubstr("no-such.csv: cannot open"));
  EXPECT_THAT(plan(R"({"base": {"trace": "/", "policy": "fifo"}})").error().to_string(),
              HasSubstr("is a folder; expected a file, or a folder with pai_job_table.csv"));
  EXPECT_THAT(plan(R"({"base": {"trace": "-", "policy": "fifo"}})").error().to_string(), HasSubstr("expected a file"));
  EXPECT_THAT(
      plan(R"({"base": {"trace": "synthetic:philly", "policy": "fifo", "cluster": "phlly"}})").error().to_string(),
      HasSubstr("phlly"));
}

// Conditions and windows are tried before anything runs, but not by a search, which asks often and has tried them.
TEST_F(SweepPlanning, WhatAReplayWouldRefuseIsRefusedBeforeAnythingRuns) {
  const auto refused = [&](const std::string& grid) {
    const std::string text =
        R"({"base": {"trace": ")" + trace("t.csv") + R"(", "cluster": "1x2", "policy": "fifo"}, "grid": )" + grid + "}";
    EXPECT_TRUE(plan_sweep(read(text), registry_, false)) << grid;
    const auto planned = plan(text);
    return planned ? "" : planned.error().to_string();
  };
  EXPECT_EQ(refused(R"({"seed": [1, 2]})"), "");
  for (const char* key : {"power", "stages", "failures.file", "elastic", "trials", "services", "changes"}) {
    EXPECT_THAT(refused("{\"" + std::string(key) + R"(": ["nofile.json"]})"), HasSubstr("nofile.json")) << key;
  }
  EXPECT_THAT(refused(R"({"preemption.checkpoint_write_s": [0, 5]})"), HasSubstr("checkpoint_write_s 5: "));
  EXPECT_THAT(refused(R"({"fidelity.slowdown": [1, 2]})"),
              HasSubstr("fidelity.slowdown 2: fidelity.slowdown: applies"));
  EXPECT_THAT(refused(R"({"placement": ["count"], "stages": ["nofile.json"]})"), HasSubstr("--placement than count"));
  EXPECT_THAT(refused(R"({"window.first_job": [0, 7]})"), HasSubstr("window.first_job 7: window: asks for jobs 7"));
  EXPECT_THAT(refused(R"({"measure.warmup_jobs": [0, 1]})"), HasSubstr("no job is left to measure of 1"));
  EXPECT_THAT(refused(R"({"history_jobs": [1]})"), HasSubstr("expected fewer than the 1 jobs"));
}

Trace rows(std::initializer_list<Row> jobs) { return {.jobs = table_of(jobs), .report = {}}; }

TEST(SweepPoints, LoadDividesTheTimesBetweenSubmissions) {
  const Trace trace = rows({{.submit = 10, .work = 5}, {.submit = 20, .work = 5}, {.submit = 50, .work = 5}});
  SweepPoint point;
  point.load = 2;
  const auto faster = point_jobs(trace, point);
  ASSERT_TRUE(faster);
  EXPECT_EQ(faster->jobs.submit(JobId{1}), whole_seconds(15));
  EXPECT_EQ(faster->jobs.submit(JobId{2}), whole_seconds(30));
  EXPECT_EQ(faster->jobs.work(JobId{2}), whole_seconds(5));
}

TEST(SweepPoints, AWindowIsAPartOfTheJobs) {
  const Trace trace = rows({{.submit = 10, .work = 5}, {.submit = 20, .work = 6}, {.submit = 50, .work = 7}});
  SweepPoint point;
  point.first_job = 1;
  EXPECT_EQ(point_jobs(trace, point)->jobs.size(), 2u);
  point.jobs = 1;
  const auto one = point_jobs(trace, point);
  ASSERT_EQ(one->jobs.size(), 1u);
  EXPECT_EQ(one->jobs.work(JobId{0}), whole_seconds(6));
  point.jobs = 3;
  EXPECT_EQ(point_jobs(trace, point).error().to_string(), "window: asks for jobs 1 to 3 of 3, counted from 0");
  point.first_job = 9;
  EXPECT_FALSE(point_jobs(trace, point));
}

TEST(SweepPoints, DeadlinesMoveWithTheirSubmissions) {
  SweepPoint point;
  point.load = 0.5;
  const auto slower = point_jobs(rows({{.submit = 0, .work = 5, .deadline = 9},
                                       {.submit = 10, .work = 5},
                                       {.submit = 20, .work = 5, .deadline = 27}}),
                                 point);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->jobs.deadline(JobId{0}), whole_seconds(9));
  EXPECT_EQ(slower->jobs.deadline(JobId{1}), Time::max());
  EXPECT_EQ(slower->jobs.submit(JobId{2}), whole_seconds(40));
  EXPECT_EQ(slower->jobs.deadline(JobId{2}), whole_seconds(47));
}

TEST(SweepPoints, ALoadWouldNotMoveChangesOfJobs) {
  SweepPoint point;
  point.load = 2;
  point.run.conditions.changes = "changes.csv";
  EXPECT_EQ(point_jobs(rows({{.submit = 0, .work = 5}}), point).error().to_string(),
            "load: expected 1 beside changes, whose times it would not move");
}

TEST(SweepPoints, TheClockLimitsTheLoad) {
  SweepPoint point;
  point.load = 0.001;
  EXPECT_THAT(
      point_jobs(rows({{.submit = 0, .work = 5}, {.submit = 1'000'000'000'000, .work = 5}}), point).error().to_string(),
      HasSubstr("beyond the clock"));
}

TEST(SweepStoring, FiguresComeBackToTheBit) {
  const TempFolder folder;
  SweepResult result{.status = RunStatus::done, .message = {}, .wall_s = 1.5, .cpu_s = 1.25, .sim_s = 0.25};
  result.metrics.jobs = 7;
  result.metrics.avg_jct_s = 0.1 + 0.2;
  result.metrics.preemptions = 123456789012;
  result.saturation.saturated = result.clairvoyant = true;
  {
    auto store = SweepStore::open(folder.path() + "/s.sqlite");
    ASSERT_TRUE(store) << store.error().to_string();
    ASSERT_TRUE(store->put({"k1", "{}", "0.1.0 abc"}, result));
    ASSERT_TRUE(store->put({"k2", "{}", "0.1.0 abc"}, {.status = RunStatus::timeout, .message = "it's \"late\""}));
    ASSERT_TRUE(store->put({"k2", "{}", "0.1.0 abc"}, {.status = RunStatus::timeout, .message = "later"}));
  }
  auto store = SweepStore::open(folder.path() + "/s.sqlite");
  ASSERT_TRUE(store);
  const auto found = store->find("k1");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->metrics.avg_jct_s, 0.1 + 0.2);
  EXPECT_EQ((*found)->metrics.preemptions, 123456789012u);
  EXPECT_EQ((*found)->metrics.energy_kwh, std::nullopt);
  EXPECT_TRUE((*found)->saturation.saturated);
  EXPECT_TRUE((*found)->clairvoyant);
  EXPECT_EQ((*found)->wall_s, 1.5);
  EXPECT_EQ((*found)->cpu_s, 1.25);
  EXPECT_EQ((*found)->sim_s, 0.25);
  EXPECT_EQ((**store->find("k2")).message, "later");
  EXPECT_FALSE(*store->find("k3"));
  EXPECT_EQ(store->states()->size(), 2u);
}

// As a sweep leaves it that is killed before its first transaction.
TEST(SweepStoring, AnEmptyFileHoldsNoRuns) {
  const TempFolder folder;
  const auto store = SweepStore::open_existing(folder.write("sweep.sqlite", ""));
  ASSERT_TRUE(store) << store.error().to_string();
  EXPECT_FALSE(*store);
}

TEST(SweepStoring, AnotherFileIsNoDatabaseAndStaysAsItIs) {
  const TempFolder folder;
  const std::string text = "this is a text of my own, long enough to be mistaken for something else altogether\n";
  const std::string path = folder.write("sweep.sqlite", text);
  const auto store = SweepStore::open(path);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().to_string(), HasSubstr("file is not a database"));
  EXPECT_EQ(bytes_of(path), text);
}

}  // namespace
}  // namespace gpusched::test
