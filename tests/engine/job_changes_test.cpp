// SPDX-License-Identifier: Apache-2.0
// Jobs that users cancel, and priorities that they change, worked out by hand.
#include "gpusched/data/job_changes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched::test {
namespace {

constexpr Time at(std::int64_t seconds) { return whole_seconds(seconds); }

JobChange cancel(std::uint32_t job, Time time) { return {.time = time, .job = JobId{job}}; }
JobChange priority(std::uint32_t job, Time time, std::int32_t value) {
  return {.time = time, .job = JobId{job}, .kind = JobChange::Kind::priority, .priority = value};
}

struct JobRow {
  std::int64_t submit_s, work_s;
  std::uint32_t gpus;
  std::int32_t priority = 0;
  std::vector<std::string> after = {};
};

JobTable table(const std::vector<JobRow>& rows) {
  JobTableBuilder builder;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string id = "j" + std::to_string(i);
    builder.add({.id = id,
                 .submit = at(rows[i].submit_s),
                 .work = at(rows[i].work_s),
                 .shape = {.tasks = rows[i].gpus, .gpu_milli_per_task = whole_gpu},
                 .user = "ann",
                 .priority = rows[i].priority,
                 .after = rows[i].after});
  }
  return *std::move(builder).build();
}

// What each instant brought.
struct EventLog {
  std::vector<std::string> lines;
  void observe(const OracleView& view, std::span<const Event> events) {
    for (const Event& event : events) {
      const char* word = nullptr;
      if (event.kind == EventKind::withdraw) word = "withdraw";
      if (event.kind == EventKind::reprioritize) word = "reprioritize";
      if (event.kind == EventKind::finish) word = "finish";
      if (event.kind == EventKind::kill) word = "kill";
      if (word == nullptr) continue;
      lines.push_back(std::to_string(view.now().us / 1'000'000) + " " + word + " " + std::to_string(index(event.job)));
    }
  }
};

TEST(JobChanges, AWaitingJobThatIsCancelledBlocksNobodyAnyLonger) {
  // j1 wants all of the pool and blocks j2, until it is cancelled at 30.
  const JobTable jobs = table({{0, 100, 2}, {1, 50, 4}, {2, 10, 2}});
  const JobChanges changes({cancel(1, at(30))}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  EventLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(log.lines, (std::vector<std::string>{"30 withdraw 1", "40 finish 2", "100 finish 0"}));
  EXPECT_TRUE(engine.is_cancelled(JobId{1}));
  EXPECT_EQ(engine.end(JobId{1}), at(30));
  EXPECT_EQ(engine.first_start(JobId{1}), Time::max());
  EXPECT_EQ(engine.ran(JobId{1}), at(0));
  EXPECT_EQ(engine.first_start(JobId{2}), at(30));
}

TEST(JobChanges, ARunningJobThatIsCancelledFinishesThenAndItsWorkCounts) {
  const JobTable jobs = table({{0, 100, 4}, {1, 10, 4}});
  const JobChanges changes({cancel(0, at(40))}, 2);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  EventLog log;
  RunLog run;
  ASSERT_TRUE(simulate(engine, policy, log, run));
  EXPECT_EQ(log.lines, (std::vector<std::string>{"40 finish 0", "50 finish 1"}));
  EXPECT_EQ(engine.ran(JobId{0}), at(40));
  EXPECT_EQ(engine.useful_time(JobId{0}), at(40));
  const Metrics metrics = compute_metrics(engine, run);
  EXPECT_EQ(metrics.cancelled_jobs, 1);
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization, 1);
  EXPECT_DOUBLE_EQ(metrics.gpu_allocation, 1);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, 49);  // of job 1 alone
  EXPECT_DOUBLE_EQ(*metrics.avg_wait_s, 39);
}

// Job 1 waits for the time behind job 0 when its user cancels it at 15,000 s, the last that happens. A node of 4 of the
// 8 GPUs is out of service from 2,000 s on.
TEST(JobChanges, TheCancelOfAJobThatWaitsForOthersIsAnEvent) {
  JobTableBuilder builder;
  const std::vector<std::string> after{"a"};
  builder.add({.id = "a", .work = at(1000), .shape = {.tasks = 2, .gpu_milli_per_task = whole_gpu}});
  builder.add({.id = "b",
               .submit = at(100),
               .work = at(500),
               .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu},
               .after = after,
               .after_delay = at(20'000)});
  const JobTable jobs = *std::move(builder).build();
  const JobChanges changes({cancel(1, at(15'000))}, 2);
  NodeFailures failures;
  failures.add_changes(std::vector<NodeChange>{{at(2000), NodeId{1}, false}, {at(30'000), NodeId{1}, true}});
  Engine engine(jobs, Cluster::homogeneous(2, 4), {}, {.failures = &failures, .changes = &changes});
  Fifo policy;
  RunLog run;
  ASSERT_TRUE(simulate(engine, policy, run));
  const Metrics metrics = compute_metrics(engine, run);
  EXPECT_DOUBLE_EQ(metrics.makespan_s, 15'000);
  EXPECT_DOUBLE_EQ(metrics.gpu_withheld.value(), 13'000.0 * 4 / (15'000 * 8));
  EXPECT_DOUBLE_EQ(metrics.gpu_allocation, 2'000.0 / (15'000 * 8));
}

TEST(JobChanges, AJobThatEndedBeforeIsLeftOutOfAveragesAllTheSame) {
  const JobTable jobs = table({{0, 100, 1}, {0, 10, 1}});
  const JobChanges changes({cancel(1, at(40)), priority(0, at(500), 3)}, 2);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  RunLog run;
  ASSERT_TRUE(simulate(engine, policy, run));
  EXPECT_FALSE(engine.is_cancelled(JobId{1}));
  const Metrics metrics = compute_metrics(engine, run);
  EXPECT_EQ(metrics.cancelled_jobs, 0);
  EXPECT_EQ(metrics.jobs, 2u);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, 100);
  EXPECT_DOUBLE_EQ(metrics.makespan_s, 100);
}

TEST(JobChanges, WhatAnOverheadCostIsNotUsefulWhenTheJobIsCancelled) {
  // Preempted by nobody, but killed at 20 without a checkpoint; starts again at 30 with 5 s of loading; cancelled
  // at 50.
  const JobTable jobs = table({{0, 100, 4}});
  NodeFailures failures;
  const std::vector<NodeChange> outage{{at(20), NodeId{0}, false}, {at(30), NodeId{0}, true}};
  failures.add_changes(outage);
  const JobChanges changes({cancel(0, at(50))}, 1);
  const EngineOptions options{.preemption = {.restart = at(5)}};
  Engine engine(jobs, Cluster::homogeneous(1, 4), options, {.failures = &failures, .changes = &changes});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.ran(JobId{0}), at(40));
  EXPECT_EQ(engine.lost(JobId{0}), at(20));
  EXPECT_EQ(engine.overhead(JobId{0}), at(5));
  EXPECT_EQ(engine.useful_time(JobId{0}), at(15));
}

TEST(JobChanges, WhoWaitsForACancelledJobWaitsNoMore) {
  // j1 waits for j0, j2 for j1; j1 is cancelled at 10 while it waits for j0, which then frees j2 at 10.
  const JobTable jobs = table({{0, 100, 1}, {1, 5, 1, 0, {"j0"}}, {2, 7, 1, 0, {"j1"}}});
  const JobChanges changes({cancel(1, at(10))}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.is_cancelled(JobId{1}));
  EXPECT_EQ(engine.end(JobId{1}), at(10));
  EXPECT_EQ(engine.first_start(JobId{2}), at(10));
  EXPECT_EQ(engine.end(JobId{2}), at(17));
}

TEST(JobChanges, OfAChainThatIsCancelledAtOneInstantNobodyIsLost) {
  const JobTable jobs = table({{0, 100, 1}, {1, 5, 1, 0, {"j0"}}, {2, 7, 1, 0, {"j1"}}});
  const JobChanges changes({cancel(0, at(10)), cancel(1, at(10)), cancel(2, at(10))}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.consistent());
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(engine.end(JobId{i}), at(10)) << i;
}

// The policy of that name over the pool of 4 GPUs.
std::vector<Time> starts_under(const std::string& policy, const JobTable& jobs, const JobChanges& changes) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  const Cluster cluster = Cluster::pool(4);
  const auto specs = parse_policy_list(policy);
  auto made = registry.make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = 1});
  EXPECT_TRUE(made.has_value()) << policy;
  Engine engine(jobs, cluster, {}, {.changes = &changes});
  EXPECT_TRUE(simulate(engine, *made)) << policy;
  std::vector<Time> starts;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) starts.push_back(engine.first_start(JobId{i}));
  return starts;
}

TEST(JobChanges, AJobThatBecomesUrgentGoesFirst) {
  const JobTable jobs = table({{0, 100, 4}, {1, 10, 4, 1}, {2, 10, 4, 1}});
  const JobChanges none, changes({priority(2, at(50), 9)}, 3);
  for (const char* policy : {"priority{aging_s=1e6,preempt=false}", "k8s", "slurm{weight_qos=1000,weight_age=0}"}) {
    EXPECT_EQ(starts_under(policy, jobs, none)[1], at(100)) << policy;
    const std::vector<Time> starts = starts_under(policy, jobs, changes);
    EXPECT_EQ(starts[2], at(100)) << policy;
    EXPECT_EQ(starts[1], at(110)) << policy;
  }
}

TEST(JobChanges, ARunningJobThatBecomesUnimportantMayBePreempted) {
  const JobTable jobs = table({{0, 100, 4, 5}, {1, 10, 4, 5}});
  const JobChanges none, changes({priority(0, at(50), 1)}, 2);
  EXPECT_EQ(starts_under("priority{aging_s=1e6}", jobs, none)[1], at(100));
  EXPECT_EQ(starts_under("priority{aging_s=1e6}", jobs, changes)[1], at(50));
}

TEST(JobChanges, AJobThatIsKilledAtTheInstantOfItsChangeComesBackWithTheNewPriority) {
  const JobTable jobs = table({{0, 100, 4, 5}, {1, 10, 4, 3}});
  const JobChanges changes({priority(0, at(20), 1)}, 2);
  NodeFailures failures;
  const std::vector<NodeChange> outage{{at(20), NodeId{0}, false}, {at(30), NodeId{0}, true}};
  failures.add_changes(outage);
  Engine engine(jobs, Cluster::homogeneous(1, 4), {}, {.failures = &failures, .changes = &changes});
  static const PolicyRegistry registry = PolicyRegistry::standard();
  const Cluster cluster = Cluster::homogeneous(1, 4);
  auto policy =
      registry.make(parse_policy_list("priority{aging_s=1e6}")->front(), {.jobs = &jobs, .cluster = &cluster});
  ASSERT_TRUE(policy.has_value());
  EventLog log;
  ASSERT_TRUE(simulate(engine, *policy, log));
  EXPECT_EQ(log.lines, (std::vector<std::string>{"20 kill 0", "40 finish 1", "140 finish 0"}));
}

// Says when each job ran on how many GPUs: "j1 10-20x4".
struct RunLines {
  std::vector<std::string> lines;
  std::vector<std::pair<Time, MilliGpu>> open = std::vector<std::pair<Time, MilliGpu>>(8);
  void observe(const OracleView& view, std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == EventKind::start) open[index(event.job)] = {view.now(), view.held_gpu_milli(event.job)};
      if (!leaves_cluster(event.kind) && event.kind != EventKind::preempt) continue;
      const auto& [since, milli] = open[index(event.job)];
      lines.push_back("j" + std::to_string(index(event.job)) + " " + std::to_string(since.us / 1'000'000) + "-" +
                      std::to_string(view.now().us / 1'000'000) + "x" + std::to_string(milli / whole_gpu));
    }
  }
};

JobChange size(JobTable& jobs, std::uint32_t job, Time time, std::uint32_t gpus) {
  const std::uint32_t shape = jobs.number_of_shape({.tasks = gpus, .gpu_milli_per_task = whole_gpu});
  return {.time = time, .job = JobId{job}, .kind = JobChange::Kind::size, .shape = shape};
}

TEST(JobChanges, AWaitingJobOfAnotherSizeKeepsItsPlace) {
  // j1 wants 4 and blocks j2; from 20 on it wants 1, and both run at once.
  JobTable jobs = table({{0, 100, 2}, {1, 50, 4}, {2, 10, 1}});
  const JobChanges changes({size(jobs, 1, at(20), 1)}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  RunLines runs;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, runs, log));
  EXPECT_EQ(runs.lines, (std::vector<std::string>{"j2 20-30x1", "j1 20-70x1", "j0 0-100x2"}));
  EXPECT_EQ(engine.submit(JobId{1}), at(1));
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization, (200.0 + 50 + 10) / 400);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, (100.0 + 69 + 28) / 3);
}

TEST(JobChanges, ARunningJobOfAnotherSizeIsStoppedAndKeepsItsWork) {
  // j0 did 30 of its 100 s on 2 GPUs. At 30 it wants 3 and keeps its place before the others: it starts again at once.
  JobTable jobs = table({{0, 100, 2}, {1, 50, 4}, {2, 10, 2}});
  const JobChanges changes({size(jobs, 0, at(30), 3)}, 3);
  const EngineOptions options{.preemption = {.checkpoint = at(2), .restart = at(3)}};
  Engine engine(jobs, Cluster::pool(4), options, {.changes = &changes});
  Fifo policy;
  RunLines runs;
  RunLog log;
  EventLog events;
  ASSERT_TRUE(simulate(engine, policy, runs, log, events));
  // It needs 70 s more, and 5 for its checkpoint.
  EXPECT_EQ(runs.lines, (std::vector<std::string>{"j0 0-30x2", "j0 30-105x3", "j1 105-155x4", "j2 155-165x2"}));
  EXPECT_EQ(events.lines.front(), "30 kill 0");
  EXPECT_EQ(events.lines[1], "30 withdraw 0");
  EXPECT_EQ(engine.ran(JobId{0}), at(105));
  EXPECT_EQ(engine.preemptions(JobId{0}), 0u);
  EXPECT_EQ(engine.kills(JobId{0}), 0u);
  const Metrics metrics = compute_metrics(engine, log);
  const double capacity = 4 * 165, useful = 30 * 2 + 70 * 3 + 50 * 4 + 10 * 2, overhead = 5 * 3;
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization, useful / capacity);
  EXPECT_DOUBLE_EQ(metrics.gpu_allocation, (useful + overhead) / capacity);
  EXPECT_DOUBLE_EQ(*metrics.gpu_overhead, overhead / capacity);
  EXPECT_DOUBLE_EQ(*metrics.gpu_lost, 0);
}

TEST(JobChanges, ASizeThatComesBeforeWhatAJobWaitsForEndsIsTheOneThatItAsksFor) {
  JobTable jobs = table({{0, 100, 1}, {1, 5, 4, 0, {"j0"}}, {2, 200, 1}});
  const JobChanges changes({size(jobs, 1, at(10), 2)}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  RunLines runs;
  ASSERT_TRUE(simulate(engine, policy, runs));
  EXPECT_EQ(runs.lines, (std::vector<std::string>{"j0 0-100x1", "j1 100-105x2", "j2 2-202x1"}));
}

// The job of higher priority holds all 8 GPUs, and is left with 4 at 100: it runs on with these, without a cost, and
// the other one, which wants 8, waits.
TEST(JobChanges, ARunningJobThatIsMadeSmallerRunsOnWhereItsPolicyPutsItFirst) {
  JobTable jobs = table({{0, 1000, 8, 9}, {10, 1000, 8, 1}});
  const JobChanges changes({size(jobs, 0, at(100), 4)}, 2);
  const PreemptionCost costly{.checkpoint = at(2), .restart = at(30), .checkpoint_interval = at(70)};
  static const PolicyRegistry registry = PolicyRegistry::standard();
  for (const char* name : {"fifo", "fifo-skip", "priority{aging_s=1e6}", "srtf", "sjf"}) {
    const Cluster cluster = Cluster::homogeneous(1, 8);
    auto policy = registry.make(parse_policy_list(name)->front(), {.jobs = &jobs, .cluster = &cluster});
    ASSERT_TRUE(policy.has_value()) << name;
    Engine engine(jobs, cluster, {.preemption = costly}, {.changes = &changes});
    RunLines runs;
    RunLog log;
    ASSERT_TRUE(simulate(engine, *policy, runs, log)) << name;
    EXPECT_EQ(runs.lines, (std::vector<std::string>{"j0 0-100x8", "j0 100-1000x4", "j1 1000-2000x8"})) << name;
    EXPECT_EQ(engine.preemptions(JobId{0}), 0u) << name;
    EXPECT_EQ(engine.overhead(JobId{0}) + engine.lost(JobId{0}), at(0)) << name;
    EXPECT_EQ(fault_of_account(engine, log), std::nullopt) << name;
  }
}

// Smaller, but behind one that fits: it waits for its turn, and pays for the stop.
TEST(JobChanges, ARunningJobThatIsMadeSmallerIsStoppedWhereItsPolicyPutsAnotherFirst) {
  JobTable jobs = table({{0, 1000, 8}, {10, 50, 8}});
  const JobChanges changes({size(jobs, 0, at(100), 4)}, 2);
  Engine engine(jobs, Cluster::pool(8), {.preemption = {.restart = at(30)}}, {.changes = &changes});
  struct LastFirst {
    std::string_view name() const { return "last-first"; }
    void decide(const View& view, Decision& decision) {
      const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
      for (auto job = waiting.rbegin(); job != waiting.rend(); ++job) decision.start(*job);
    }
  } policy;
  RunLines runs;
  ASSERT_TRUE(simulate(engine, policy, runs));
  EXPECT_EQ(runs.lines, (std::vector<std::string>{"j0 0-100x8", "j1 100-150x8", "j0 150-1080x4"}));
}

// What is at risk when the size changes is counted at the sizes that did it: 8 GPUs for 30 s since the checkpoint at
// 70, then 4 for 20 s, until the node fails.
TEST(JobChanges, WorkAtRiskIsLostAtTheSizesThatDidIt) {
  JobTable jobs = table({{0, 1000, 8}});
  const JobChanges changes({size(jobs, 0, at(100), 4)}, 1);
  NodeFailures failures;
  const std::vector<NodeChange> outage{{at(120), NodeId{0}, false}, {at(130), NodeId{0}, true}};
  failures.add_changes(outage);
  Engine engine(jobs, Cluster::homogeneous(1, 8), {.preemption = {.checkpoint_interval = at(70)}},
                {.failures = &failures, .changes = &changes});
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_DOUBLE_EQ(RunLog::gpu_seconds(engine.gpu_time(JobId{0}).lost), 8 * 30 + 4 * 20);
  EXPECT_DOUBLE_EQ(RunLog::gpu_seconds(engine.gpu_time(JobId{0}).useful), 8 * 70 + 4 * 930);
  EXPECT_EQ(fault_of_account(engine, log), std::nullopt);
}

TEST(JobChanges, AnEndAtTheInstantOfAChangeWins) {
  JobTable jobs = table({{0, 100, 4}, {10, 5000, 8}});
  const JobChanges changes({size(jobs, 0, at(100), 8)}, 2);
  Engine engine(jobs, Cluster::pool(8), {}, {.changes = &changes});
  Fifo policy;
  RunLines runs;
  ASSERT_TRUE(simulate(engine, policy, runs));
  EXPECT_EQ(runs.lines, (std::vector<std::string>{"j0 0-100x4", "j1 100-5100x8"}));
}

TEST(JobChanges, ACopyOfAnEngineGoesOnAlikeBeforeTheDecisionOfAChange) {
  JobTable jobs = table({{0, 100, 4}, {1, 50, 4}, {2, 10, 1}});
  const JobChanges changes({size(jobs, 0, at(20), 2)}, 3);
  Engine engine(jobs, Cluster::pool(4), {}, {.changes = &changes});
  Fifo policy;
  while (engine.advance() && engine.view().now() < at(20)) {
    Decision decision = engine.decision();
    policy.decide(engine.view(), decision);
    engine.apply();
  }
  EXPECT_EQ(engine.view().phase(JobId{0}), JobPhase::pending);
  Engine copy = engine;
  for (Engine* const each : {&engine, &copy}) {
    Decision decision = each->decision();
    policy.decide(each->view(), decision);
    each->apply();
    Fifo own = policy;
    ASSERT_TRUE(simulate(*each, own));
    EXPECT_EQ(each->end(JobId{0}), at(100));
    EXPECT_EQ(each->end(JobId{1}), at(150));
  }
}

// Cancels job 0 when job 1 comes, and itself waits for nobody.
struct Canceller {
  [[nodiscard]] static std::string_view name() { return "canceller"; }
  static void decide(const View& view, Decision& decision) {
    if (view.phase(JobId{0}) == JobPhase::running && view.now() == at(10)) {
      EXPECT_EQ(decision.cancel(JobId{0}), Verdict::ok);
      EXPECT_EQ(decision.cancel(JobId{0}), Verdict::wrong_phase) << "it is done";
      EXPECT_EQ(decision.restore(JobId{0}), Verdict::wrong_phase);
      EXPECT_EQ(decision.start(JobId{0}), Verdict::wrong_phase);
    }
    const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : waiting) decision.start(job);
  }
};

// Job 1 waits for none, job 2 for job 0: cancelled, that is done, and holds nothing.
TEST(JobChanges, ADecisionMayCancelAJob) {
  const JobTable jobs = table({{0, 100, 4}, {10, 50, 2}, {10, 20, 2, 0, {"j0"}}});
  Engine engine(jobs, Cluster::pool(4), {});
  Canceller policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_TRUE(engine.consistent());
  EXPECT_TRUE(engine.is_cancelled(JobId{0}));
  EXPECT_TRUE(engine.is_cancelled_by_policy(JobId{0}));
  EXPECT_EQ(engine.end(JobId{0}), at(10));
  EXPECT_EQ(engine.ran(JobId{0}), at(10));
  EXPECT_EQ(engine.preemptions(JobId{0}), 1u);
  EXPECT_EQ(engine.end(JobId{1}), at(60));
  EXPECT_EQ(engine.end(JobId{2}), at(30));
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_EQ(metrics.policy_cancelled_jobs, 1.0);
  EXPECT_FALSE(metrics.cancelled_jobs.has_value()) << "users change none";
  EXPECT_EQ(metrics.avg_jct_s, 35.0);
}

// Cancels job 0, the last that is measured, before it stops job 1: what that one held counts in the span, too.
struct CancelsFirst {
  [[nodiscard]] static std::string_view name() { return "cancels-first"; }
  static void decide(const View& view, Decision& decision) {
    if (view.now() == at(10) && view.phase(JobId{0}) == JobPhase::running) {
      EXPECT_EQ(decision.cancel(JobId{0}), Verdict::ok);
      EXPECT_EQ(decision.preempt(JobId{1}), Verdict::ok);
    }
    const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : waiting) decision.start(job);
  }
};

TEST(JobChanges, ADecisionMayCancelTheLastMeasuredJob) {
  const JobTable jobs = table({{0, 100, 2}, {0, 50, 2}, {10, 20, 4}});
  const MeasureWindow measured{.first = 0, .count = 1};
  Engine engine(jobs, Cluster::pool(4), {.preemption = {.restart = at(5)}}, {.measured = measured});
  CancelsFirst policy;
  RunLog log(measured);
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_EQ(fault_of_account(engine, log, measured), std::nullopt);
  EXPECT_EQ(engine.end(JobId{0}), at(10));
  EXPECT_EQ(engine.end(JobId{2}), at(30));
  EXPECT_EQ(engine.end(JobId{1}), at(75)) << "40 s left, after a restart of 5 s";
}

TEST(JobChanges, OfASliceAreThoseOfItsJobs) {
  const JobChanges changes({cancel(1, at(5)), priority(2, at(7), 4), cancel(3, at(1))}, 4);
  const JobChanges part = changes.slice(2, 2);
  ASSERT_EQ(part.all().size(), 2u);
  EXPECT_EQ(part.all()[0].job, JobId{1});
  EXPECT_EQ(part.all()[0].time, at(1));
  EXPECT_EQ(part.all()[1].job, JobId{0});
  EXPECT_EQ(part.all()[1].priority, 4);
  EXPECT_TRUE(part.cancels(JobId{1}));
  EXPECT_FALSE(part.cancels(JobId{0}));
  EXPECT_TRUE(changes.slice(0, 1).is_empty());
}

// A job that never ran and was cancelled has no effect on who runs when, once it is gone.
TEST(JobChanges, ACancelledJobLeavesNoTraceUnderAnyPolicyThatStopsNobody) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  const std::vector<JobRow> rows{{0, 100, 3}, {1, 20, 4}, {2, 30, 2}, {3, 5, 1}, {4, 40, 4}, {5, 15, 2}};
  std::vector<JobRow> with = rows;
  with.push_back({6, 1, 4, 9});  // the shortest, the most urgent, and never with room before 50
  const JobTable plain = table(rows), jobs = table(with);
  const JobChanges none, changes({cancel(6, at(50))}, 7);
  std::uint32_t compared = 0;
  for (const PolicyInfo& info : registry.rows()) {
    if (info.preemptive || !info.make) continue;
    const Cluster cluster = Cluster::pool(4);
    const auto specs = parse_policy_list(info.name);
    if (!specs || !registry.make(specs->front(), {.jobs = &jobs, .cluster = &cluster}).has_value()) continue;
    if (!registry.make(specs->front(), {.jobs = &plain, .cluster = &cluster}).has_value()) continue;
    std::vector<Time> after = starts_under(info.name, jobs, changes);
    const std::vector<Time> before = starts_under(info.name, plain, none);
    ASSERT_EQ(after.back(), Time::max()) << info.name << " found room for it";
    after.pop_back();
    for (std::size_t i = 0; i < before.size(); ++i) {
      // Who might have started before 50 may have stood behind it.
      if (before[i] < at(50)) continue;
      EXPECT_EQ(after[i], before[i]) << info.name << ", job " << i;
    }
    ++compared;
  }
  EXPECT_GE(compared, 15u);
}

}  // namespace
}  // namespace gpusched::test
