// SPDX-License-Identifier: Apache-2.0
// Replays of a cluster as its slurm.conf describes it.
#include "src/sim/slurm_parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"
#include "src/sim/scenario.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using test::TempFolder;

const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user,estimate_s\n";
const std::string cluster_lines =
    "ClusterName=lab\nNodeName=n1 Gres=gpu:8\n"
    "PartitionName=low Nodes=n1 PriorityJobFactor=1\n"
    "PartitionName=top Nodes=n1 PriorityJobFactor=4 QOS=few\n";

class SlurmReplay : public testing::Test {
 protected:
  Scenario scenario(const std::string& jobs, const std::string& conf, const std::string& policy) {
    Scenario scenario;
    scenario.trace = folder_.write("jobs.csv", header + jobs);
    scenario.slurm_conf = folder_.write("slurm.conf", cluster_lines + conf);
    scenario.policies = {policy};
    return scenario;
  }
  ReplayInput load(const Scenario& scenario) {
    auto input = load_replay(scenario, registry_);
    EXPECT_TRUE(input) << input.error().to_string();
    return *std::move(input);
  }
  // Starts of the jobs, in seconds.
  std::vector<double> starts(const ReplayInput& input) {
    ReplayProgress progress;
    auto runs = run_replay(input, registry_, 1, {.job_files = true}, progress);
    EXPECT_TRUE(runs) << runs.error().to_string();
    std::vector<double> starts;
    for (std::uint32_t i = 0; i < input.trace.jobs.size(); ++i) {
      starts.push_back(to_seconds(runs->front().engine->view().first_start(JobId{i})));
    }
    return starts;
  }

  TempFolder folder_;
  PolicyRegistry registry_ = PolicyRegistry::standard();
};

// All jobs need all 8 GPUs. At 1000 s job b, which waits for 990 s of a greatest age of 3600 s, has
// 1000 x 990 / 3600 + 500 x 1/4 = 275 + 125 = 400, and c 1000 x 630 / 3600 + 500 = 175 + 500 = 675: c is first. With a
// weight of partitions of 100, b has 275 + 25 = 300 and c 175 + 100 = 275: b is first. (priority_multifactor.html)
TEST_F(SlurmReplay, TakesThePrioritiesOfTheFile) {
  const std::string jobs = "a,0,1000,8,1000,low,u,1000\nb,10,1000,8,1000,low,u,1000\nc,370,1000,8,1000,top,u,1000\n";
  const std::string common = "PriorityWeightAge=1000\nPriorityMaxAge=1:00:00\nPriorityType=priority/";
  using Starts = std::vector<double>;
  const auto with = [&](const std::string& rest) { return starts(load(scenario(jobs, common + rest, "slurm"))); };
  EXPECT_EQ(with("multifactor\nPriorityWeightPartition=500\n"), (Starts{0, 2000, 1000}));
  EXPECT_EQ(with("multifactor\nPriorityWeightPartition=100\n"), (Starts{0, 1000, 2000}));
  EXPECT_EQ(with("basic\nPriorityWeightPartition=500\n"), (Starts{0, 1000, 2000})) << "first in, first out";
  const std::string lines = common + "multifactor\nPriorityWeightPartition=500\n";
  for (const char* holder :
       {"portfolio{policies=[slurm]}", "bandit{policies=[slurm]}", "switch{policies=[slurm],at=[]}"}) {
    EXPECT_EQ(starts(load(scenario(jobs, lines, holder))), (Starts{0, 2000, 1000})) << holder;
  }
}

// c, of 2 GPUs and 100 s, ends before a does and delays nobody: sched/backfill starts it at once.
TEST_F(SlurmReplay, BackfillsAsTheSchedulerType) {
  const std::string jobs = "a,0,1000,6,1000,low,u,1000\nb,10,1000,8,1000,low,u,1000\nc,20,100,2,1000,low,u,100\n";
  const ReplayInput backfilled = load(scenario(jobs, "SchedulerParameters=bf_interval=1\n", "slurm"));
  EXPECT_EQ(backfilled.specs.front().text.substr(0, 10), "slurm+easy");
  EXPECT_EQ(starts(backfilled), (std::vector<double>{0, 1000, 20}));
  EXPECT_EQ(starts(load(scenario(jobs, "SchedulerType=sched/builtin\n", "slurm"))),
            (std::vector<double>{0, 1000, 2000}));
  EXPECT_EQ(starts(load(scenario(jobs, "", "slurm+none"))), (std::vector<double>{0, 1000, 2000}));
}

TEST_F(SlurmReplay, WhatIsWrittenWithThePolicyStays) {
  const ReplayInput input = load(scenario(
      "a,0,1,1,1000,low,u,1000\n", "PriorityType=priority/multifactor\nPriorityWeightAge=7\n", "slurm{weight_age=3}"));
  const auto& given = input.specs.front().given;
  EXPECT_EQ(std::get<double>(given.at("weight_age")), 3);
  EXPECT_EQ(std::get<double>(given.at("weight_size")), 0);
}

// top may hold 3 GPUs at once: of its jobs of 2 GPUs one runs at a time, under any policy.
TEST_F(SlurmReplay, LimitsPartitionsUnderAnyPolicy) {
  const std::string jobs = "a,0,100,2,1000,top,u,1000\nb,0,100,2,1000,top,u,1000\nc,0,100,2,1000,low,u,1000\n";
  for (const std::string policy : {"fifo", "sjf", "slurm", "fifo+easy"}) {
    Scenario limited = scenario(jobs, "AccountingStorageEnforce=limits\n", policy);
    limited.slurm_qos = folder_.write("qos.txt", "Name|Priority|GrpTRES\nfew|1|gres/gpu=3\n");
    EXPECT_EQ(starts(load(limited)), (std::vector<double>{0, 100, 0})) << policy;
  }
}

TEST_F(SlurmReplay, TellsWhatIsNotUsed) {
  Scenario asked = scenario("a,0,1,1,1000,low,u,1000\n", "SlurmUser=slurm\nPreemptMode=REQUEUE\n", "fifo");
  const ReplayInput input = load(asked);
  const auto lines = report_warnings(input, {});
  const std::string expected = "slurm.conf: 3 settings not used: SlurmUser, PreemptMode, PartitionName:QOS";
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.ends_with(expected); }), 1)
      << testing::PrintToString(lines);
  ASSERT_EQ(input.files.size(), 1u);
  const std::string json = json_report(asked, input, {}, {});
  EXPECT_NE(json.find("\"value\": \"REQUEUE\""), std::string::npos);
}

// b waits for a, or stops it: at 10 s, or when a's grace of two minutes is over, or not before a has run for 5 minutes.
TEST_F(SlurmReplay, PreemptsByQosAsTheFilesSay) {
  const std::string rows = "a,0,1000,8,1000,low,u,1000,normal\nb,10,100,8,1000,low,u,1000,high\n";
  const auto with = [&](const std::string& conf, const std::string& normal) {
    Scenario scenario = this->scenario("", conf, "slurm");
    scenario.trace = folder_.write("jobs.csv", header.substr(0, header.size() - 1) + ",qos\n" + rows);
    scenario.slurm_qos = folder_.write("qos.txt", "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\n" +
                                                      normal + "\nhigh|10|00:00:00|normal||cluster\nfew|0||||\n");
    return starts(load(scenario));
  };
  using Starts = std::vector<double>;
  const std::string by_qos = "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n";
  EXPECT_EQ(with("", "normal|0|00:00:00|||cluster"), (Starts{0, 1000}));
  EXPECT_EQ(with(by_qos, "normal|0|00:00:00|||cluster"), (Starts{0, 10}));
  EXPECT_EQ(with(by_qos, "normal|0|00:02:00|||cluster"), (Starts{0, 130}));
  EXPECT_EQ(with(by_qos, "normal|0|00:00:00||00:05:00|cluster"), (Starts{0, 300}));
  EXPECT_EQ(with(by_qos + "PreemptExemptTime=3\n", "normal|0|00:00:00|||cluster"), (Starts{0, 180}));
  EXPECT_EQ(with(by_qos, "normal|0|00:00:00|||off"), (Starts{0, 1000}));
  EXPECT_EQ(with("PreemptType=preempt/qos\nPreemptMode=OFF\n", "normal|0|00:00:00|||requeue"), (Starts{0, 10}));
}

// c, of the higher tier, goes before b, whatever their priorities.
TEST_F(SlurmReplay, HigherTiersGoFirst) {
  const std::string rows = "a,0,100,8,1000,slow,u,100\nb,10,100,8,1000,slow,u,100\nc,20,100,8,1000,fast,u,100\n";
  const auto with = [&](const std::string& tier) {
    return starts(load(scenario(
        rows, "PartitionName=fast Nodes=n1 PriorityTier=" + tier + "\nPartitionName=slow Nodes=n1\n", "slurm")));
  };
  EXPECT_EQ(with("1"), (std::vector<double>{0, 100, 200}));
  EXPECT_EQ(with("2"), (std::vector<double>{0, 200, 100}));
}

TEST_F(SlurmReplay, TellsThatNoJobHasAQos) {
  Scenario asked = scenario("a,0,1,1,1000,low,u,1000\n", "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n", "slurm");
  asked.slurm_qos = folder_.write("qos.txt", "Name|Priority|Preempt\nfew|1|\nhigh|2|few\n");
  const ReplayInput input = load(asked);
  const auto& notes = input.trace.report.notes;
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "no job of the trace has a QOS, so that nobody preempts by it"), 1);
}

// A cancelled job ends when it is stopped, one that may not be requeued is cancelled, and no average counts either.
TEST_F(SlurmReplay, CancelsWhoIsPreempted) {
  const std::string rows = "a,0,1000,8,1000,slow,u,1000\nb,10,100,8,1000,fast,u,1000\n";
  const auto with = [&](const std::string& conf) {
    const ReplayInput input = load(scenario(rows,
                                            "PreemptType=preempt/partition_prio\n" + conf +
                                                "PartitionName=fast Nodes=n1 PriorityTier=10\nPartitionName=slow "
                                                "Nodes=n1 PriorityTier=5\n",
                                            "slurm"));
    ReplayProgress progress;
    const auto runs = run_replay(input, registry_, 1, {}, progress);
    EXPECT_TRUE(runs) << runs.error().to_string();
    const Metrics& metrics = runs->front().metrics;
    return std::tuple(metrics.policy_cancelled_jobs, metrics.last_end_s, metrics.avg_jct_s);
  };
  EXPECT_EQ(with("PreemptMode=REQUEUE\n"), std::tuple(std::optional<double>(), 1100.0, 600.0));
  EXPECT_EQ(with("PreemptMode=CANCEL\n"), std::tuple(std::optional(1.0), 110.0, 100.0));
  EXPECT_EQ(with("PreemptMode=REQUEUE\nJobRequeue=0\n"), std::tuple(std::optional(1.0), 110.0, 100.0));
}

// The partition of the higher tier stops jobs of the other one, unless these may not be.
TEST_F(SlurmReplay, PreemptsByTiersOfPartitions) {
  const std::string rows = "a,0,1000,8,1000,slow,u,1000\nb,10,100,8,1000,fast,u,1000\n";
  const auto with = [&](const std::string& slow) {
    return starts(load(scenario(rows,
                                "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
                                "PartitionName=fast Nodes=n1 PriorityTier=10\nPartitionName=slow Nodes=n1 " +
                                    slow + "\n",
                                "slurm")));
  };
  using Starts = std::vector<double>;
  EXPECT_EQ(with("PriorityTier=5"), (Starts{0, 10}));
  EXPECT_EQ(with("PriorityTier=5 GraceTime=30"), (Starts{0, 40}));
  EXPECT_EQ(with("PriorityTier=5 PreemptMode=OFF"), (Starts{0, 1000}));
  EXPECT_EQ(with("PriorityTier=5 PreemptMode=SUSPEND"), (Starts{0, 1000})) << "it would keep its GPUs";
  EXPECT_EQ(with("PriorityTier=10"), (Starts{0, 1000}));
}

TEST_F(SlurmReplay, PrioritiesOfQosAreGivenOnce) {
  Scenario asked = scenario("a,0,1,1,1000,low,u,1000\n", "", "fifo");
  asked.qos = "a=1";
  asked.slurm_qos = "qos.txt";
  const auto checked = check_scenario(asked);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().field, "trace.slurm_qos");
}

// The greatest QOS of the table, 40, has no job: that of 10 is a quarter of it.
TEST(SlurmParameters, ScaleQosByTheirTable) {
  JobTableBuilder builder;
  JobRecord record;
  record.priority = 10;
  builder.add(record);
  const auto jobs = std::move(builder).build();
  SlurmSite site;
  site.conf.emplace();
  site.conf->multifactor = true;
  site.conf->weight_qos = 200;
  site.qos.emplace();
  for (const std::int32_t priority : {10, 40}) {
    SlurmQos qos;
    qos.priority = priority;
    site.qos->rows.push_back(qos);
  }
  std::vector<PolicySpec> specs = *parse_policy_list("slurm");
  set_slurm_parameters(site, *jobs, false, PolicyRegistry::standard(), specs);
  EXPECT_EQ(std::get<double>(specs.front().given.at("weight_qos")), 50);
  EXPECT_EQ(specs.front().text, "slurm");
  specs = *parse_policy_list("portfolio{policies=[fifo,slurm]}");
  set_slurm_parameters(site, *jobs, false, PolicyRegistry::standard(), specs);
  EXPECT_EQ(std::get<double>(specs.front().held[1].given.at("weight_qos")), 50);
}

}  // namespace
}  // namespace gpusched
