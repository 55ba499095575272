// SPDX-License-Identifier: Apache-2.0
// Why jobs wait, in small worlds worked out by hand.
#include "src/sim/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/sim/report.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using SpanKind = WaitSpan::Kind;

struct SmallWorld {
  std::string jobs;     ///< rows below the header
  std::string cluster;  ///< JSON, or what --cluster takes
  std::string policy = "fifo";
  std::string placement = "consolidate";
  std::string power = {};  ///< JSON; empty: nothing is known
};

class Explain : public testing::Test {
 protected:
  Scenario scenario_of(const SmallWorld& world) const {
    Scenario scenario;
    scenario.trace = folder_.write("jobs.csv",
                                   "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,gpu_spec,"
                                   "cpu_milli_per_task,after\n" +
                                       world.jobs);
    scenario.cluster = world.cluster.starts_with('{') ? folder_.write("cluster.json", world.cluster) : world.cluster;
    scenario.policies = {world.policy};
    scenario.conditions.placement = world.placement;
    if (!world.power.empty()) scenario.conditions.power = folder_.write("power.json", world.power);
    return scenario;
  }

  PolicyRun run(const SmallWorld& world, const std::string& job, bool waits = false) const {
    const PolicyRegistry registry = PolicyRegistry::standard();
    const auto input = load_replay(scenario_of(world), registry);
    EXPECT_TRUE(input) << input.error().to_string();
    JobId explained = no_job;
    for (std::uint32_t i = 0; i < input->trace.jobs.size(); ++i) {
      if (input->trace.jobs.external_id(JobId{i}) == job) explained = JobId{i};
    }
    ReplayProgress progress;
    auto runs = run_replay(*input, registry, 1, {.job_files = true, .waits = waits, .explained = explained}, progress);
    EXPECT_TRUE(runs) << runs.error().to_string();
    EXPECT_EQ(runs->front().why_unfinished, "");
    return std::move(runs->front());
  }

  // "0 no_gpus 10 fragmentation 20 running ...".
  std::string life(const SmallWorld& world, const std::string& job) const {
    std::string text;
    for (const WaitSpan& span : run(world, job).explained) {
      const std::string what = span.kind == SpanKind::waiting ? std::string(name_of(wait_cause_names, span.cause))
                               : span.kind == SpanKind::dependencies ? "dependencies"
                               : span.kind == SpanKind::running      ? "running"
                                                                     : "done";
      text += std::to_string(span.since.us / microseconds_per_second) + " " + what + " ";
    }
    return text;
  }

  test::TempFolder folder_;
};

// a: 8 GPUs until 10; b: 4 until 30; c: 4 on one node until 20; d wants a whole node of 8.
TEST_F(Explain, FreeGpusThenFragmentsOfNodes) {
  const SmallWorld world{.jobs =
                             "a,0,10,1,8000,,,,\n"
                             "b,0,30,1,4000,,,,\n"
                             "d,1,5,1,8000,,,,\n"
                             "c,2,20,1,4000,,,,\n",
                         .cluster = "2x8",
                         .policy = "fifo-skip"};
  // Node 1 has 4 free until c takes them at 2; a's node is free at 10.
  EXPECT_EQ(life(world, "d"), "1 no_gpus 10 running 15 done ");
  const SmallWorld spread{.jobs =
                              "a,0,10,1,4000,,,,\n"
                              "b,0,30,1,4000,,,,\n"
                              "d,1,5,1,8000,,,,\n",
                          .cluster = "2x8",
                          .policy = "fifo",
                          .placement = "worst-fit"};
  EXPECT_EQ(life(spread, "d"), "1 fragmentation 10 running 15 done ") << "4 free on each node";
}

TEST_F(Explain, ItsTurnBehindAJobThatDoesNotFit) {
  const SmallWorld world{.jobs =
                             "a,0,10,1,6000,,,,\n"
                             "wide,1,5,1,8000,,,,\n"
                             "late,2,3,1,1000,,,,\n"
                             "later,3,3,1,1000,,,,\n",
                         .cluster = "1x8"};
  EXPECT_EQ(life(world, "late"), "2 policy 10 no_gpus 15 running 18 done ");
  const PolicyRun fifo = run(world, "later");
  ASSERT_EQ(fifo.explained.size(), 4u);
  const WaitSpan& first = fifo.explained[0];
  EXPECT_EQ(first.least_free, 2 * whole_gpu);
  EXPECT_EQ(first.ahead_at_begin.count, 2u);
  EXPECT_EQ(first.ahead_at_begin.gpu_milli, 9 * whole_gpu);
  EXPECT_EQ(first.ahead_at_begin.first, JobId{1});
  EXPECT_EQ(first.started, 0u);
  EXPECT_EQ(fifo.explained[1].started, 1u) << "wide, at 10; late starts beside it, at 15";
  EXPECT_EQ(fifo.explained[1].overtook, 0u);
  SmallWorld skip = world;
  skip.policy = "fifo-skip";
  const PolicyRun passed = run(skip, "wide");
  EXPECT_EQ(passed.explained[0].started, 2u);
  EXPECT_EQ(passed.explained[0].overtook, 2u);
}

// j6 is stopped and starts again while j7 waits: one job.
TEST_F(Explain, CountsJobsThatStartNotStarts) {
  const SmallWorld world{.jobs =
                             "j0,40,10,1,2000,,,,\n"
                             "j1,40,100,1,2000,,,,\n"
                             "j2,45,250,1,2000,,,,\n"
                             "j3,85,10,1,4000,,,,\n"
                             "j4,90,30,1,2000,,,,\n"
                             "j5,90,10,1,2000,,,,\n"
                             "j6,90,250,1,2000,,,,\n"
                             "j7,90,30,1,1000,,,,\n",
                         .cluster = "1x4",
                         .policy = "las"};
  EXPECT_EQ(run(world, "j7").explained[0].started, 4u);
}

TEST_F(Explain, TypesQueuesQuotasAndCpus) {
  const std::string types = R"({"nodes": [{"gpus": 8, "gpu_type": "V100"}, {"gpus": 8, "gpu_type": "T4"}]})";
  EXPECT_EQ(life({.jobs = "a,0,10,1,8000,,V100,,\nb,1,5,1,1000,,V100,,\n", .cluster = types}, "b"),
            "1 gpu_type 10 running 15 done ");
  const std::string queues = R"({"vcs": [{"name": "x"}, {"name": "y"}],
                                "nodes": [{"gpus": 4, "vc": "x"}, {"gpus": 4, "vc": "y"}]})";
  EXPECT_EQ(life({.jobs = "a,0,10,1,4000,x,,,\nb,1,5,1,1000,x,,,\n", .cluster = queues}, "b"),
            "1 queue_nodes 10 running 15 done ");
  const std::string quota = R"({"vcs": [{"name": "x", "quota_gpus": 4}], "nodes": [{"gpus": 8}]})";
  EXPECT_EQ(life({.jobs = "a,0,10,1,4000,x,,,\nb,1,5,1,1000,x,,,\n", .cluster = quota}, "b"),
            "1 quota 10 running 15 done ");
  const std::string cpus = R"({"nodes": [{"gpus": 8, "cpus": 10}]})";
  EXPECT_EQ(life({.jobs = "a,0,10,1,1000,,,8000,\nb,1,5,1,1000,,,4000,\n", .cluster = cpus}, "b"),
            "1 cpu_memory 10 running 15 done ");
}

TEST_F(Explain, JobsThatItWaitsForAndPlacementRules) {
  EXPECT_EQ(life({.jobs = "a,0,10,1,1000,,,,\nb,1,5,1,1000,,,,a\n", .cluster = "1x8"}, "b"),
            "1 dependencies 10 running 15 done ");
  EXPECT_EQ(life({.jobs = "a,0,10,1,1000,,,,\nb,1,5,1,1000,,,,a;c\nc,3,15,1,1000,,,,\n", .cluster = "1x8"}, "b"),
            "1 dependencies 10 dependencies 18 running 23 done ");
  // Two tasks of 4 on one node each would do; yarn wants one node that holds both.
  const SmallWorld yarn{.jobs = "a,0,10,1,4000,,,,\nb,0,10,1,5000,,,,\nd,1,5,7,1000,,,,\n",
                        .cluster = "2x8",
                        .policy = "fifo",
                        .placement = "yarn"};
  EXPECT_EQ(life(yarn, "d"), "1 placement 10 running 15 done ");
}

// 2 free GPUs for 9 s while `late` fits (policy), then 0.
TEST_F(Explain, FreeGpuTimeWhileJobsWaitHasACause) {
  const SmallWorld world{.jobs =
                             "a,0,3600,1,6000,x,,,\n"
                             "wide,0,3600,1,8000,x,,,\n"
                             "late,1800,7200,1,1000,y,,,\n",
                         .cluster = "1x8"};
  const PolicyRun run_of = run(world, "late", true);
  const WaitFigures& waits = *run_of.waits;
  const auto hours = [&](WaitCause cause) { return waits.idle_gpu_hours[static_cast<std::size_t>(cause)]; };
  EXPECT_DOUBLE_EQ(hours(WaitCause::no_gpus), 2 * 0.5) << "only `wide` waits, for 8";
  EXPECT_DOUBLE_EQ(hours(WaitCause::policy), 2 * 0.5) << "`late` fits";
  EXPECT_DOUBLE_EQ(waits.all_idle_gpu_hours(), 2.0);
  ASSERT_EQ(waits.queues.size(), 2u);
  EXPECT_EQ(waits.queues[0].name, "x");
  EXPECT_EQ(waits.queues[0].jobs, 2u);
  EXPECT_EQ(waits.queues[0].under_an_hour, 1u) << "wide waits an hour";
  EXPECT_EQ(waits.queues[1].under_an_hour, 0u) << "late waits an hour and a half";
  EXPECT_DOUBLE_EQ(waits.queues[1].longest_wait_s, 5400);
}

// b waits for the limit alone until wide comes at 1800, which waits for GPUs until b, which came before it, ends.
TEST_F(Explain, FreeGpuTimeWhileLimitsHoldAllBack) {
  SmallWorld world{.jobs =
                       "a,0,3600,1,2000,x,,,\n"
                       "b,600,1800,1,1000,x,,,\n"
                       "wide,1800,1800,1,4000,y,,,\n",
                   .cluster = R"({"nodes": [{"gpus": 4}], "limits": [{"per": "vc", "gpus": 2, "vcs": "x"}]})"};
  EXPECT_EQ(life(world, "b"), "600 limit 3600 running 5400 done ");
  const PolicyRun run_of = run(world, "b", true);
  const WaitFigures& waits = *run_of.waits;
  const auto hours = [&](WaitCause cause) { return waits.idle_gpu_hours[static_cast<std::size_t>(cause)]; };
  EXPECT_DOUBLE_EQ(hours(WaitCause::limit), 2 * 1200.0 / 3600);
  EXPECT_DOUBLE_EQ(hours(WaitCause::no_gpus), 2 * 0.5 + 3 * 0.5) << "wide waits in its queue";
  EXPECT_DOUBLE_EQ(waits.all_idle_gpu_hours(), 2 * 3000.0 / 3600 + 3 * 0.5);
}

TEST_F(Explain, NamesTheLimitThatRefusesAJob) {
  const auto told = [this](const std::string& limit) {
    const SmallWorld world{.jobs = "a,0,10,1,2000,x,,,\nb,1,5,1,3000,x,,,\n",
                           .cluster = R"({"nodes": [{"gpus": 4}], "limits": [{"gpus": 3}, )" + limit + "]}"};
    const PolicyRegistry registry = PolicyRegistry::standard();
    auto input = load_replay(scenario_of(world), registry);
    EXPECT_TRUE(input) << input.error().to_string();
    const ExplainPlan plan{
        .folder = "", .scenario = scenario_of(world), .input = *std::move(input), .job = JobId{1}, .hashes = {}};
    ReplayProgress progress;
    const auto ran = run_replay(plan.input, registry, 1, {.job_files = true, .explained = plan.job}, progress);
    EXPECT_TRUE(ran) << ran.error().to_string();
    const std::vector<PolicyRun>& runs = *ran;
    return explanation_text(plan, runs) + explanation_json(plan, runs);
  };
  EXPECT_THAT(told(R"({"per": "job", "gpus": 2, "name": "small"})"),
              AllOf(HasSubstr("refused at 1 s by the limit small (2 GPUs per job)"),
                    HasSubstr("\"refused_by\": \"small (2 GPUs per job)\"")));
  EXPECT_THAT(told(R"({"per": "vc", "submitted": 1})"), HasSubstr("by the limit 1 job submitted per vc"));
}

// Four GPUs draw 1,120 W beside four idle ones, which leaves 380 W; `small` waits for its turn, and would draw 220 W.
TEST_F(Explain, TellsWhomAPowerCapRefuses) {
  const SmallWorld world{.jobs = "a,0,900,4,1000,,,,\nb,0,900,4,1000,,,,\nsmall,0,900,1,1000,,,,\n",
                         .cluster = "1x8",
                         .power = R"({"gpus": {"any": {"idle_w": 30, "full_w": 250}},
                                      "caps": [{"w": 1500}], "cap_rule": "admit"})"};
  EXPECT_EQ(life(world, "b"), "0 power_cap 900 running 1800 done ");
  EXPECT_EQ(life(world, "small"), "0 policy 900 running 1800 done ");
  SmallWorld alone = world;
  alone.jobs = "a,0,900,4,1000,,,,\nb,0,900,4,1000,,,,\n";
  const PolicyRun run_of = run(alone, "b", true);
  const WaitFigures& waits = *run_of.waits;
  EXPECT_DOUBLE_EQ(waits.idle_gpu_hours[static_cast<std::size_t>(WaitCause::power_cap)], 4 * 0.25);
  EXPECT_DOUBLE_EQ(waits.all_idle_gpu_hours(), 4 * 0.25);
  EXPECT_THAT(waits_tables({{"fifo", &waits}}), AllOf(HasSubstr("kept    power  limits"), HasSubstr("0.0 %  100.0 %")));
}

// Stops the job five seconds after its start, and starts it again at once.
struct StopsOnce {
  [[nodiscard]] static std::string_view name() { return "stops-once"; }
  void decide(const View& view, Decision& decision) {
    const JobId job{0};
    if (view.phase(job) == JobPhase::pending) {
      decision.start(job);
      decision.wake(view.now() + whole_seconds(5));
    } else if (view.phase(job) == JobPhase::running && !std::exchange(stopped_, true)) {
      decision.preempt(job);
      decision.start(job);
    }
  }
  bool stopped_ = false;
};

TEST(WaitLog, AStopThatLastsNoTimeIsSeen) {
  const JobTable jobs = test::table_of({{0, 20, 1}});
  const Cluster cluster = Cluster::homogeneous(1, 1);
  Engine engine(jobs, cluster);
  WaitLog log(JobId{0}, cluster);
  StopsOnce policy;
  ASSERT_TRUE(simulate(engine, policy, log));
  const std::vector<WaitSpan> spans = std::move(log).take();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].since, Time{});
  EXPECT_EQ(spans[1].since, whole_seconds(5));
  EXPECT_EQ(spans[1].kind, SpanKind::running);
  EXPECT_EQ(spans[2].kind, SpanKind::done);
}

}  // namespace
}  // namespace gpusched
