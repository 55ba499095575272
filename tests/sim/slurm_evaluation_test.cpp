// SPDX-License-Identifier: Apache-2.0
// Evaluations of a cluster as its slurm.conf describes it: what replay runs, and what is told of the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/sim/evaluate.hpp"
#include "src/sim/protocols/sc20_evaluation.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/scenario.hpp"
#include "src/sim/window_comparison.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// All jobs need all 8 GPUs: b goes before c unless partition or QOS say otherwise.
constexpr const char* slurm_jobs =
    "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user,estimate_s,qos\n"
    "a,0,1000,8,1000,low,u,1000,normal\nb,10,100,8,1000,low,u,1000,normal\nc,20,1000,8,1000,top,u,1000,high\n";
constexpr const char* slurm_lines =
    "ClusterName=lab\nNodeName=n1 Gres=gpu:8\nPriorityType=priority/multifactor\n"
    "PartitionName=low Nodes=n1 PriorityJobFactor=1\nPartitionName=top Nodes=n1 PriorityJobFactor=4\n";

class SlurmEvaluation : public testing::Test {
 protected:
  EvaluateScenario scenario(const std::string& conf, const std::string& policy) {
    EvaluateScenario scenario;
    scenario.traces = {folder_.write("jobs.csv", slurm_jobs)};
    scenario.slurm_conf = folder_.write("slurm.conf", slurm_lines + conf);
    scenario.policies = {policy};
    scenario.mode = "windows-only";
    scenario.window_jobs = 3;
    return scenario;
  }
  EvaluationPlan plan_of(const EvaluateScenario& scenario) {
    auto plan = load_evaluation(scenario, registry_);
    EXPECT_TRUE(plan) << plan.error().to_string();
    return *std::move(plan);
  }
  double avg_jct_s(const EvaluateScenario& scenario) {
    const EvaluationPlan plan = plan_of(scenario);
    EvaluationProgress progress;
    const auto outcome = run_evaluation(plan, registry_, 1, progress);
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    return *outcome->windows.front().contestants.front().runs.front().windows.front()->avg_jct_s;
  }
  // What replay says of the same.
  double replayed_jct_s(const EvaluateScenario& evaluation) {
    Scenario scenario;
    scenario.trace = evaluation.traces.front();
    scenario.slurm_conf = evaluation.slurm_conf;
    scenario.slurm_qos = evaluation.slurm_qos;
    scenario.policies = evaluation.policies;
    scenario.backfill = evaluation.backfill;
    const auto input = load_replay(scenario, registry_);
    EXPECT_TRUE(input) << input.error().to_string();
    ReplayProgress progress;
    const auto runs = run_replay(*input, registry_, 1, {}, progress);
    EXPECT_TRUE(runs) << runs.error().to_string();
    return *runs->front().metrics.avg_jct_s;
  }
  std::string refusal(const EvaluateScenario& scenario) {
    const auto checked = check_evaluate_scenario(scenario);
    return checked ? "" : checked.error().to_string();
  }

  TempFolder folder_;
  PolicyRegistry registry_ = PolicyRegistry::standard();
};

// By hand: b before c gives 1000, 1090 and 2080 s, c before b 1000, 2090 and 1980 s.
TEST_F(SlurmEvaluation, RunsWhatReplayRuns) {
  const std::string by_partition = "PriorityWeightPartition=500\n";
  for (const char* policy : {"slurm", "slurm+none", "portfolio{policies=[slurm]}", "bandit{policies=[slurm]}",
                             "switch{policies=[slurm],at=[]}"}) {
    EXPECT_NEAR(avg_jct_s(scenario("", policy)), (1000 + 1090 + 2080) / 3.0, 1e-6) << policy;
    EXPECT_NEAR(avg_jct_s(scenario(by_partition, policy)), (1000 + 2090 + 1980) / 3.0, 1e-6) << policy;
  }
  for (const char* policy : {"slurm", "fifo", "guarded{policies=[slurm,fifo]}"}) {
    EXPECT_EQ(avg_jct_s(scenario(by_partition, policy)), replayed_jct_s(scenario(by_partition, policy))) << policy;
  }
}

// c cancels a at 20 s, and b, which has no right, waits for c: 1110 and 1000 s.
TEST_F(SlurmEvaluation, CancelsWhomReplayDoes) {
  const EvaluateScenario cancels =
      scenario("", "slurm{preempts_by=partition,preempts=[top>low],cancels=[low],weight_size=0}");
  EXPECT_NEAR(avg_jct_s(cancels), (1110 + 1000) / 2.0, 1e-6);
  EXPECT_EQ(avg_jct_s(cancels), replayed_jct_s(cancels));
}

// Who stops the same jobs and lets them wait again has means of all jobs, which nothing tells from these.
TEST_F(SlurmEvaluation, WindowsOfOtherJobsHaveNoVerdict) {
  EvaluateScenario both = scenario("", "slurm{preempts_by=partition,preempts=[top>low]}");
  both.policies.push_back("slurm{preempts_by=partition,preempts=[top>low],cancels=[low]}");
  const EvaluationPlan plan = plan_of(both);
  EvaluationProgress progress;
  const auto outcome = run_evaluation(plan, registry_, 1, progress);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(compare_windows(outcome->windows, plan.report)[0][1].verdict, "other jobs");
}

// A second node lets b run beside a, and c behind b: 1000, 100 and 1090 s.
TEST_F(SlurmEvaluation, AddsNodesToThoseOfTheFile) {
  EvaluateScenario more = scenario("", "fifo");
  more.clusters = {"+1x8"};
  EXPECT_NEAR(avg_jct_s(more), (1000 + 100 + 1090) / 3.0, 1e-6);
  more.clusters = {"+1x8+1x8"};
  EXPECT_NEAR(avg_jct_s(more), (1000 + 100 + 1000) / 3.0, 1e-6);
  more.clusters = {"+1y8"};
  EXPECT_THAT(load_evaluation(more, registry_).error().to_string(), HasSubstr("expected NODESxGPUS[:TYPE]"));
}

// TimelimitRaw Partition_Limit.
TEST_F(SlurmEvaluation, JobsWithoutARequestRequestMaxTime) {
  Scenario scenario;
  scenario.trace = folder_.write("jobs.csv",
                                 "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,estimate_s,qos\n"
                                 "a,0,10,1,1000,low,,long\nb,0,10,1,1000,top,,long\nc,0,10,1,1000,low,60,long\n"
                                 "d,0,10,1,1000,low,,short\ne,0,10,1,1000,mid,,long\n");
  scenario.slurm_qos = folder_.write("qos.txt", "Name|Priority|MaxWall\nlong|1|1-0\nshort|1|00:10:00\n");
  scenario.slurm_conf =
      folder_.write("slurm.conf",
                    "AccountingStorageEnforce=limits\nNodeName=n1 Gres=gpu:8\nPartitionName=low Nodes=n1 MaxTime=30\n"
                    "PartitionName=top Nodes=n1 DefaultTime=NONE\n"
                    "PartitionName=mid Nodes=n1 MaxTime=60 DefaultTime=5\n");
  scenario.policies = {"fifo"};
  const auto input = load_replay(scenario, registry_);
  ASSERT_TRUE(input) << input.error().to_string();
  const JobTable& jobs = input->trace.jobs;
  EXPECT_EQ(jobs.estimate(JobId{0}), whole_seconds(1800));
  EXPECT_EQ(jobs.estimate(JobId{1}), Time::max());
  EXPECT_EQ(jobs.estimate(JobId{2}), whole_seconds(60));
  EXPECT_EQ(jobs.estimate(JobId{3}), whole_seconds(600)) << "MaxWall of its QOS is less, and would refuse it";
  EXPECT_EQ(jobs.estimate(JobId{4}), whole_seconds(300));
  EXPECT_THAT(input->trace.report.notes,
              Contains("3 jobs without a requested run time request DefaultTime or MaxTime of the partition"));
}

TEST_F(SlurmEvaluation, TakesQosPrioritiesAndLimits) {
  EvaluateScenario asked = scenario("PriorityWeightQOS=500\n", "slurm");
  asked.slurm_qos = folder_.write("qos.txt", "Name|Priority\nnormal|1\nhigh|10\n");
  EXPECT_NEAR(avg_jct_s(asked), (1000 + 2090 + 1980) / 3.0, 1e-6);
  EXPECT_EQ(avg_jct_s(asked), replayed_jct_s(asked));
  EvaluateScenario limited = scenario("AccountingStorageEnforce=limits\n", "fifo");
  limited.traces = {folder_.write("small.csv",
                                  "job_id,submit_s,work_s,tasks,gpu_milli_per_task,qos\n"
                                  "a,0,100,2,1000,few\nb,0,100,2,1000,few\nc,0,100,2,1000,few\n")};
  EXPECT_NEAR(avg_jct_s(limited), 100, 1e-6);
  limited.slurm_qos = folder_.write("few.txt", "Name|Priority|GrpTRES\nfew|1|gres/gpu=3\n");
  EXPECT_NEAR(avg_jct_s(limited), 200, 1e-6);
}

TEST_F(SlurmEvaluation, TakesLimitsBesideTheCluster) {
  EvaluateScenario limited = scenario("", "fifo");
  limited.traces = {folder_.write("small.csv",
                                  "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                                  "a,0,100,2,1000,ann\nb,0,100,2,1000,ann\nc,0,100,2,1000,bob\n")};
  limited.limits = "user{gpus=3}";
  EXPECT_NEAR(avg_jct_s(limited), 400 / 3.0, 1e-6);
  limited.limits = "user{users=[bob,eve],jobs=0},all{gpus=100}";
  EXPECT_THAT(evaluation_notes(plan_of(limited)), Contains(HasSubstr("limits/users: no job has 'eve'")));
}

// Of the window's jobs none has the greatest priority, 10: that of b, 5, counts half, as in the whole log.
TEST_F(SlurmEvaluation, ScalesQosByTheirTableInEachWindow) {
  EvaluateScenario asked = scenario("PriorityWeightQOS=100\nPriorityWeightPartition=80\n", "slurm");
  asked.traces = {folder_.write("parts.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user,estimate_s,qos\n"
                                "x,0,10,8,1000,low,u,10,high\ny,20000,10,8,1000,low,u,10,high\n"
                                "z,30000,10,8,1000,low,u,10,high\na,40000,1000,8,1000,low,u,1000,low\n"
                                "b,40010,100,8,1000,low,u,1000,middle\nc,40020,1000,8,1000,top,u,1000,low\n")};
  asked.slurm_qos = folder_.write("qos.txt", "Name|Priority\nlow|0\nmiddle|5\nhigh|10\n");
  // b has 50 + 20 and c 80.
  const EvaluationPlan plan = plan_of(asked);
  EvaluationProgress progress;
  const auto outcome = run_evaluation(plan, registry_, 1, progress);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  const auto& windows = outcome->windows.front().contestants.front().runs.front().windows;
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_NEAR(*windows[1]->avg_jct_s, (1000 + 2090 + 1980) / 3.0, 1e-6);
}

TEST_F(SlurmEvaluation, TellsOfTheFilesOnce) {
  EvaluateScenario asked = scenario("SlurmUser=slurm\nPreemptMode=REQUEUE\n", "slurm");
  asked.traces.push_back(folder_.write("more.csv", slurm_jobs));
  asked.policies.push_back("fifo");
  const EvaluationPlan plan = plan_of(asked);
  EXPECT_THAT(plan.files, ElementsAre(asked.slurm_conf));
  const auto notes = evaluation_notes(plan);
  const auto of_files = [&](const std::string& text) {
    std::vector<std::string> found;
    for (const std::string& line : notes) {
      if (line.find(text) != std::string::npos) found.push_back(line);
    }
    return found;
  };
  EXPECT_THAT(of_files("not used"), ElementsAre(asked.slurm_conf + ": 2 settings not used: SlurmUser, PreemptMode"));
  EXPECT_THAT(of_files("runs as"), ElementsAre(asked.slurm_conf + ": slurm runs as slurm+easy"));
  EvaluationProgress progress;
  const auto outcome = run_evaluation(plan, registry_, 1, progress);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  const auto report = nlohmann::json::parse(evaluation_json(asked, plan, *outcome, {}));
  EXPECT_EQ(report["manifest"]["slurm"]["unused"].size(), 2u);
  EXPECT_EQ(report["manifest"]["config"]["trace"]["slurm_conf"], asked.slurm_conf);
  asked.backfill = "easy";
  for (const std::string& line : evaluation_notes(plan_of(asked))) EXPECT_THAT(line, Not(HasSubstr("runs as")));
}

TEST_F(SlurmEvaluation, SaysWhatDoesNotGoTogether) {
  EvaluateScenario asked = scenario("", "slurm");
  EXPECT_EQ(refusal(asked), "");
  asked.sites = "sites.json";
  EXPECT_EQ(refusal(asked), "trace.slurm_conf: expected none beside --sites, whose file has the clusters");
  asked.slurm_conf.clear();
  asked.slurm_qos = "qos.txt";
  EXPECT_EQ(refusal(asked),
            "trace.slurm_qos: expected none beside --sites, which have no limits; --qos gives priorities");
  asked.slurm_qos.clear();
  asked.limits = "user{gpus=4}";
  EXPECT_EQ(refusal(asked), "limits: expected none beside --sites, which have no limits");
  asked.sites.clear();
  asked.limits = "user";
  EXPECT_THAT(refusal(asked), HasSubstr("limits: 'user': expected a limit"));
  asked.limits.clear();
  asked.slurm_qos = "qos.txt";
  asked.qos = "high=1";
  EXPECT_EQ(refusal(asked), "trace.slurm_qos: expected --qos or --slurm-qos, not both");
  asked.qos.clear();
  asked.protocol = "sc20";
  EvaluationProgress progress;
  const auto run = run_sc20_evaluation(asked, registry_, progress);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().to_string(), "--protocol sc20: takes no --slurm-conf, --slurm-qos or --limits");
}

// Replicas have users of their own.
TEST_F(SlurmEvaluation, BesideServicesNobodyIsMissedInLimits) {
  EvaluateScenario asked = scenario("", "fifo");
  asked.slurm_conf.clear();
  asked.clusters = {folder_.write(
      "cluster.json", R"({"limits": [{"per": "user", "users": "s", "gpus": 2}], "nodes": [{"count": 2, "gpus": 8}]})")};
  const std::string missed = "cluster: limits/users: no job has 's'";
  EXPECT_THAT(evaluation_notes(plan_of(asked)), Contains(EndsWith(missed)));
  folder_.write("requests.csv", "arrival_s\n0\n1\n2\n3\n");
  asked.conditions.services = folder_.write("services.json", R"({"services": [{"name": "s",
      "requests": {"log": "requests.csv"}, "serves": {"seconds": 1}, "replica": {"gpus": 1}, "least": 2, "most": 2}]})");
  EXPECT_THAT(evaluation_notes(plan_of(asked)), Not(Contains(HasSubstr("no job has"))));
}

}  // namespace
}  // namespace gpusched::test
