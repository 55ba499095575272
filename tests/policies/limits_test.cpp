// SPDX-License-Identifier: Apache-2.0
// Limits of users, accounts, QOS and arrays, worked out by hand after slurm.schedmd.com/resource_limits.html and
// qos.html.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_limits.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "tests/policies/contestants.hpp"

namespace gpusched::test {
namespace {

constexpr Time limits_at(std::int64_t seconds) { return whole_seconds(seconds); }

struct LimitedJob {
  std::int64_t submit_s = 0, work_s = 10;
  std::uint32_t gpus = 1;
  std::string user = "ann";
  std::string account = "physics", qos = "normal", vc = "gpu", id = {};
  std::int64_t cpus = 0, memory_mib = 0;  // of a task
  std::vector<std::string> after = {};
  std::int32_t priority = 0;
};

JobTable limited_table(const std::vector<LimitedJob>& rows) {
  JobTableBuilder builder;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LimitedJob& row = rows[i];
    const std::string id = row.id.empty() ? "j" + std::to_string(i) : row.id;
    builder.add({.id = id,
                 .submit = limits_at(row.submit_s),
                 .work = limits_at(row.work_s),
                 .estimate = limits_at(row.work_s),
                 .shape = {.tasks = row.gpus,
                           .gpu_milli_per_task = whole_gpu,
                           .cpu_milli_per_task = row.cpus * 1000,
                           .memory_mib_per_task = row.memory_mib},
                 .user = row.user,
                 .group = row.account,
                 .vc = row.vc,
                 .qos = row.qos,
                 .priority = row.priority,
                 .after = row.after});
  }
  auto table = std::move(builder).build();
  EXPECT_TRUE(table) << table.error().to_string();
  return *std::move(table);
}

Cluster limited_pool(std::uint32_t gpus, std::vector<LimitRule> limits) {
  Cluster cluster = Cluster::homogeneous(1, gpus);
  cluster.limits = std::move(limits);
  return cluster;
}

// When each job starts first, in seconds; -1: never.
std::vector<std::int64_t> starts_under(const std::string& policy, const JobTable& jobs, const Cluster& cluster,
                                       const RunInputs& inputs = {}) {
  Engine engine(jobs, cluster, {}, inputs);
  const std::size_t plus = policy.find('+');
  auto made = make({policy.substr(0, plus), plus == std::string::npos ? "" : policy.substr(plus + 1)}, jobs, cluster);
  EXPECT_TRUE(made) << made.error().to_string();
  EXPECT_TRUE(simulate(engine, *made)) << policy;
  EXPECT_TRUE(engine.consistent());
  std::vector<std::int64_t> starts;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const Time start = engine.first_start(JobId{i});
    starts.push_back(start == Time::max() ? -1 : start.us / 1'000'000);
  }
  return starts;
}

using Starts = std::vector<std::int64_t>;

// MaxJobsPerUser: "the maximum number of jobs each user is allowed to run at one time". Who waits for that blocks
// nobody.
TEST(Limits, JobsOfAUserThatRunAtOnce) {
  const JobTable jobs = limited_table({{}, {}, {}, {.user = "bob"}, {.user = "bob"}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.jobs = 2}}});
  for (const char* policy : {"fifo", "sjf", "fifo+easy", "fifo+conservative", "slurm", "slurm+easy", "srtf", "las"}) {
    EXPECT_EQ(starts_under(policy, jobs, cluster), (Starts{0, 0, 10, 0, 0})) << policy;
  }
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {})), (Starts{0, 0, 0, 0, 0}));
}

// At 100 five GPUs come free: a and b start, which holds c back; d was passed over with c and goes before e.
TEST(Limits, NobodyOvertakesWhoIsPassedOverWithAJobThatIsHeldBack) {
  const JobTable jobs = limited_table({{.work_s = 100, .gpus = 4},
                                       {.submit_s = 1, .work_s = 1000, .gpus = 3, .user = "cleo"},
                                       {.submit_s = 10, .work_s = 50},
                                       {.submit_s = 11, .work_s = 50, .gpus = 2},
                                       {.submit_s = 12, .work_s = 50, .gpus = 2},
                                       {.submit_s = 13, .work_s = 50, .gpus = 2, .user = "bob"},
                                       {.submit_s = 14, .work_s = 50}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.gpu_milli = 4 * whole_gpu}}});
  for (const char* policy :
       {"fifo", "fifo-skip", "fifo+easy", "sjf{skip=true}", "kueue", "kai", "yarn-capacity", "k8s{resources=gpu}",
        "tiresias", "las", "volcano", "slurm{skip=true}", "slurm{skip=true,weight_fair_share=0,weight_size=0}", "lsf",
        "fgd", "max-min", "hdrf", "drf"}) {
    const Starts starts = starts_under(policy, jobs, cluster);
    EXPECT_EQ(starts[5], 100) << policy;
    EXPECT_EQ(starts[6], 150) << policy;
  }
}

// What a limit cuts short goes on at that instant, in every virtual cluster and with whom has just come.
TEST(Limits, WhoIsNotHeldBackDoesNotWaitForWhoIs) {
  const JobTable jobs = limited_table({{.work_s = 10'000, .account = "x", .vc = "a"},
                                       {.work_s = 10'000, .account = "y", .vc = "a"},
                                       {.gpus = 2, .user = "bob", .account = "z", .vc = "b"}});
  Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.jobs = 1}}});
  for (const bool has_vcs : {false, true}) {
    if (has_vcs) {
      cluster.nodes.assign(2, Node{.gpus = 4});
      cluster.vcs = {{.name = "a"}, {.name = "b"}};
      cluster.nodes[0].vc = 0;
      cluster.nodes[1].vc = 1;
    }
    for (const Contestant& contestant : contestants()) {
      auto made = make(contestant, jobs, cluster);
      if (!made) continue;
      Engine engine(jobs, cluster);
      ASSERT_TRUE(simulate(engine, *made)) << contestant;
      EXPECT_LT(engine.first_start(JobId{2}), limits_at(10'000))
          << contestant << (has_vcs ? " in virtual clusters" : "");
    }
  }
}

// MaxTRESPerUser=gres/gpu=4: a job that would exceed it waits, and a smaller one behind it does not.
TEST(Limits, GpusOfAUser) {
  const JobTable jobs = limited_table({{.gpus = 3}, {.gpus = 2}, {.gpus = 1}, {.gpus = 4, .user = "bob"}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.gpu_milli = 4 * whole_gpu}}});
  for (const char* policy : {"fifo", "fifo+easy", "ljf"}) {
    EXPECT_EQ(starts_under(policy, jobs, cluster), (Starts{0, 10, 0, 0})) << policy;
  }
}

// GrpTRES=cpu=8,mem=1000 and GrpJobs=3 of a QOS: all its jobs together, whoever submitted them.
TEST(Limits, CpusMemoryAndJobsOfAQosTogether) {
  const JobTable cpu = limited_table({{.cpus = 5}, {.user = "bob", .cpus = 4}, {.qos = "high", .cpus = 4}});
  EXPECT_EQ(starts_under("fifo", cpu, limited_pool(8, {{.qos = {"normal"}, .most = {.cpu_milli = 8000}}})),
            (Starts{0, 10, 0}));
  const JobTable memory = limited_table({{.gpus = 2, .memory_mib = 300}, {.memory_mib = 500}, {.memory_mib = 400}});
  EXPECT_EQ(starts_under("fifo", memory, limited_pool(8, {{.qos = {"normal"}, .most = {.memory_mib = 1000}}})),
            (Starts{0, 10, 0}));
  const JobTable jobs = limited_table({{}, {.user = "bob"}, {.user = "cid"}, {.user = "dan"}, {.qos = "high"}});
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.qos = {"normal"}, .most = {.jobs = 3}}})),
            (Starts{0, 0, 0, 10, 0}));
}

TEST(Limits, EachAccountPartitionAndQosHasItsOwn) {
  const JobTable jobs = limited_table({{}, {}, {.account = "bio"}, {.vc = "cpu"}, {.qos = "high"}});
  const auto per = [&](LimitOwner owner) {
    return starts_under("fifo", jobs, limited_pool(8, {{.per = owner, .most = {.jobs = 1}}}));
  };
  EXPECT_EQ(per(LimitOwner::account), (Starts{0, 10, 0, 20, 30}));
  EXPECT_EQ(per(LimitOwner::vc), (Starts{0, 10, 20, 0, 30}));
  EXPECT_EQ(per(LimitOwner::qos), (Starts{0, 10, 20, 30, 0}));
  EXPECT_EQ(per(LimitOwner::all), (Starts{0, 10, 20, 30, 40}));
}

// sbatch --array=0-3%2: "the number of simultaneously running tasks from the job array".
TEST(Limits, TasksOfAnArray) {
  const JobTable jobs = limited_table({{.id = "7_0"},
                                       {.id = "7_1"},
                                       {.id = "7_2"},
                                       {.id = "7_3"},
                                       {.id = "8"},
                                       {.id = "9_0"},
                                       {.id = "9_1"},
                                       {.id = "9_2"}});
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.arrays = {"7"}, .most = {.jobs = 2}}})),
            (Starts{0, 0, 10, 10, 0, 0, 0, 0}));
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.per = LimitOwner::array, .most = {.jobs = 2}}})),
            (Starts{0, 0, 10, 10, 0, 0, 0, 10}));
}

// MaxSubmitJobsPerUser: "the maximum number of jobs pending or running state at any time for each user"; a job beyond
// it is refused at submission. Here ann has two when the third comes, and one when the fourth does.
TEST(Limits, SubmissionsBeyondALimitAreRefused) {
  const JobTable jobs =
      limited_table({{.work_s = 5}, {.work_s = 20}, {.submit_s = 4}, {.submit_s = 6}, {.submit_s = 6, .user = "bob"}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .submitted = 2}});
  Engine engine(jobs, cluster);
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  std::vector<bool> refused;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) refused.push_back(engine.is_refused(JobId{i}));
  EXPECT_EQ(refused, (std::vector<bool>{false, false, true, false, false}));
  EXPECT_EQ(engine.end(JobId{2}), limits_at(4));
  EXPECT_EQ(engine.first_start(JobId{3}), limits_at(6));
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_EQ(metrics.refused_jobs, 1);
  EXPECT_DOUBLE_EQ(*metrics.avg_jct_s, (5 + 20 + 10 + 10) / 4.0) << "no average counts it";
}

// A refused job holds up nobody who waits for it. It ends when it is submitted.
TEST(Limits, WhoWaitsForARefusedJobGoesOn) {
  const JobTable jobs = limited_table({{.work_s = 50},
                                       {.submit_s = 1, .user = "bob", .id = "b", .after = {"late"}},
                                       {.submit_s = 7, .id = "late"},
                                       {.submit_s = 80, .gpus = 5, .id = "large"}});
  const Cluster cluster = limited_pool(
      8, {{.per = LimitOwner::user, .submitted = 1}, {.per = LimitOwner::job, .most = {.gpu_milli = 4 * whole_gpu}}});
  Engine engine(jobs, cluster);
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_TRUE(engine.is_refused(JobId{2}));
  EXPECT_EQ(engine.first_start(JobId{1}), limits_at(7));
  EXPECT_TRUE(engine.is_refused(JobId{3})) << "MaxTRESPerJob, as with DenyOnLimit: it could never run";
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_EQ(metrics.refused_jobs, 2);
  EXPECT_DOUBLE_EQ(metrics.makespan_s, 80);
}

TEST(Limits, JobsOfPartitionsThatAreLeftOut) {
  const JobTable jobs = limited_table({{.vc = "free"}, {.vc = "free"}, {}, {}});
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.except_vcs = {"free"}, .most = {.jobs = 1}}})),
            (Starts{0, 0, 0, 10}));
}

// The hierarchy of resource_limits.html: a limit of the partition's QOS stands in for that of the job's QOS, in whose
// usage the job counts all the same. QOS "few" is that of partition "own" besides, and has one usage.
TEST(Limits, JobsOfAPartitionCountInTheUsageOfTwoQos) {
  const JobTable jobs = limited_table({{.qos = "few", .vc = "other"},
                                       {.submit_s = 1, .qos = "few", .vc = "other"},
                                       {.submit_s = 2, .qos = "few"},
                                       {.submit_s = 3, .vc = "own"}});
  const LimitRule few{.qos = {"few"}, .or_vcs = {"own"}, .unbound_vcs = {"other"}, .most = {.jobs = 2}};
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {few})), (Starts{0, 1, 10, 11}));
  LimitRule submitted = few;
  submitted.most = {};
  submitted.submitted = 3;
  Engine engine(jobs, limited_pool(8, {submitted}));
  Fifo policy;
  RunLog log;
  ASSERT_TRUE(simulate(engine, policy, log));
  EXPECT_FALSE(engine.is_refused(JobId{2}));
  EXPECT_TRUE(engine.is_refused(JobId{3}));
}

// A job keeps its place while it is held back: j1 (submitted first) starts before j3 once ann may run again.
TEST(Limits, AJobKeepsItsPlaceInTheQueue) {
  const JobTable jobs = limited_table({{.work_s = 10, .gpus = 2},
                                       {.submit_s = 1, .gpus = 2},
                                       {.submit_s = 2, .work_s = 8, .gpus = 2, .user = "bob"},
                                       {.submit_s = 3, .gpus = 2, .user = "cid"}});
  const Cluster cluster = limited_pool(4, {{.per = LimitOwner::user, .most = {.jobs = 1}}});
  EXPECT_EQ(starts_under("fifo", jobs, cluster), (Starts{0, 10, 2, 10}));
  // Room for one of the two at 10: the earlier place wins.
  const JobTable tight =
      limited_table({{.work_s = 10, .gpus = 4}, {.submit_s = 1, .gpus = 4}, {.submit_s = 3, .gpus = 4, .user = "cid"}});
  EXPECT_EQ(starts_under("fifo", tight, cluster), (Starts{0, 10, 20}));
}

// EASY makes no reservation for a job that a limit holds back: bob's job, second in the queue, starts at once.
TEST(Limits, NothingIsReservedForAJobHeldBack) {
  const JobTable jobs = limited_table({{.work_s = 10, .gpus = 2},
                                       {.submit_s = 0, .gpus = 4},
                                       {.submit_s = 0, .work_s = 100, .gpus = 2, .user = "bob"}});
  const Cluster cluster = limited_pool(4, {{.per = LimitOwner::user, .most = {.jobs = 1}}});
  EXPECT_EQ(starts_under("fifo+easy", jobs, cluster), (Starts{0, 100, 0}));
  EXPECT_EQ(starts_under("fifo+easy", jobs, limited_pool(4, {})), (Starts{0, 10, 20}));
}

// A decision cannot start one job too many, and what it preempts makes room at once.
TEST(Limits, ADecisionIsHeldToThem) {
  const JobTable jobs = limited_table({{}, {}, {}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.jobs = 1}}});
  Engine engine(jobs, cluster);
  ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(engine.view().pending_count(), 3u) << "each may run, alone";
  EXPECT_TRUE(decision.fits(JobId{1}));
  EXPECT_EQ(decision.start(JobId{0}), Verdict::ok);
  EXPECT_FALSE(decision.fits(JobId{1}));
  EXPECT_EQ(decision.start(JobId{1}), Verdict::over_limit);
  EXPECT_EQ(decision.start_on(JobId{1}, std::vector<NodeTasks>{{NodeId{0}, 1}}), Verdict::over_limit);
  EXPECT_EQ(decision.preempt(JobId{0}), Verdict::ok);
  EXPECT_EQ(decision.start(JobId{1}), Verdict::ok);
  EXPECT_EQ(decision.restore(JobId{0}), Verdict::over_limit);
  engine.apply();
  ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().now(), Time{}) << "the next decision comes at the same instant";
  EXPECT_EQ(engine.view().pending_count(), 0u);
  EXPECT_EQ(engine.events().size(), 2u);
  EXPECT_EQ(engine.view().limit_of(JobId{2}), 0u);
  EXPECT_EQ(engine.view().limit_of(JobId{1}), no_index) << "it runs";
  EXPECT_TRUE(engine.consistent());
  engine.apply();
  ASSERT_TRUE(engine.advance());
  EXPECT_EQ(engine.view().now(), limits_at(10));
  EXPECT_EQ(engine.view().pending_count(), 2u);
}

// A limit of each job is one of its sizes, too: its curve ends there, whoever reads it, and where another limit would
// never let a job alone have more. Curves without such sizes are whole.
TEST(Limits, NoElasticJobGrowsBeyondThem) {
  const JobTable jobs = limited_table({{.gpus = 2, .cpus = 3}, {.gpus = 2, .user = "bob", .cpus = 3}});
  ElasticModel model(jobs.shapes().size());
  const std::vector<RatePpm> rates = {600'000, 1'000'000, 1'400'000, 1'800'000, 2'200'000, 2'600'000};
  model.add(0, jobs.shape_id(JobId{0}), {.min_tasks = 1, .max_tasks = 6, .phases = {{.until = 1, .rates = rates}}});
  const auto sizes = [&](const std::vector<LimitRule>& limits) {
    const Cluster limited = limited_pool(16, limits);
    const Engine engine(jobs, limited, {}, {.elastic = &model});
    const Engine copy = engine;
    std::vector<std::uint32_t> most;
    for (const JobId job : {JobId{0}, JobId{1}}) {
      const ElasticCurve& curve = *engine.view().curve(job);
      EXPECT_EQ(copy.view().curve(job), &curve);
      EXPECT_EQ(curve.min_tasks, 1u);
      EXPECT_EQ(curve.phases.front().rates.size(), curve.max_tasks);
      most.push_back(curve.max_tasks);
    }
    return most;
  };
  using Most = std::vector<std::uint32_t>;
  EXPECT_EQ(sizes({}), (Most{6, 6}));
  EXPECT_EQ(sizes({{.per = LimitOwner::job, .most = {.gpu_milli = 4500}}}), (Most{4, 4}));
  EXPECT_EQ(sizes({{.per = LimitOwner::job, .users = {"bob"}, .most = {.cpu_milli = 15'000}}}), (Most{6, 5}));
  EXPECT_EQ(sizes({{.users = {"ann"}, .most = {.gpu_milli = 3000}}}), (Most{3, 6}));
  EXPECT_EQ(sizes({{.per = LimitOwner::job, .most = {.gpu_milli = 1000}}}), (Most{2, 2})) << "refused at submission";
  const Cluster cluster = limited_pool(16, {{.per = LimitOwner::job, .most = {.gpu_milli = 4000}}});
  Engine engine(jobs, cluster, {}, {.elastic = &model});
  ASSERT_TRUE(engine.advance());
  Decision decision = engine.decision();
  EXPECT_EQ(decision.start_with(JobId{0}, 5), Verdict::wrong_size);
  EXPECT_EQ(decision.start_with(JobId{0}, 4), Verdict::ok);
  for (const char* policy : {"optimus", "pollux", "elasticflow"}) {
    Engine run(jobs, cluster, {}, {.elastic = &model});
    auto made = make(Contestant{policy}, jobs, cluster);
    ASSERT_TRUE(made && simulate(run, *made)) << policy;
    EXPECT_EQ(run.view().held_tasks(JobId{0}), 4u) << policy;
  }
}

// A node fails: the job that it ran waits again. At 5 ann has no other job that runs, so that both may; j0 has the
// earlier place and takes the one node that is left.
TEST(Limits, AFailureGivesTheLimitBack) {
  const JobTable jobs = limited_table({{.work_s = 20}, {.work_s = 20}});
  Cluster cluster = Cluster::homogeneous(2, 1);
  cluster.limits = {{.per = LimitOwner::user, .most = {.jobs = 1}}};
  NodeFailures failures;
  failures.add_changes(std::vector<NodeChange>{{.time = limits_at(5), .node = NodeId{0}}});
  Engine engine(jobs, cluster, {}, {.failures = &failures});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_EQ(engine.end(JobId{0}), limits_at(25));
  EXPECT_EQ(engine.first_start(JobId{1}), limits_at(25));
}

// Users cancel a job that is held back, and make another small enough for the limit.
TEST(Limits, ChangesOfJobsThatAreHeldBack) {
  JobTable jobs = limited_table({{.work_s = 30, .gpus = 3}, {.gpus = 2}, {.gpus = 2}});
  const std::uint32_t one = jobs.number_of_shape({.tasks = 1, .gpu_milli_per_task = whole_gpu});
  const JobChanges changes({{.time = limits_at(4), .job = JobId{1}},
                            {.time = limits_at(6), .job = JobId{2}, .kind = JobChange::Kind::size, .shape = one}},
                           jobs.size());
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.gpu_milli = 4 * whole_gpu}}});
  Engine engine(jobs, cluster, {}, {.changes = &changes});
  Fifo policy;
  ASSERT_TRUE(simulate(engine, policy));
  EXPECT_TRUE(engine.is_cancelled(JobId{1}));
  EXPECT_EQ(engine.end(JobId{1}), limits_at(4));
  EXPECT_EQ(engine.first_start(JobId{2}), limits_at(6));
  EXPECT_TRUE(engine.consistent());
}

// Jobs that wait for others count as submitted, and are held back when their turn comes.
TEST(Limits, JobsThatWaitForOthers) {
  const JobTable jobs = limited_table(
      {{.id = "a"}, {.work_s = 30, .id = "b"}, {.id = "c", .after = {"a"}}, {.submit_s = 1, .user = "bob", .id = "d"}});
  const Cluster cluster = limited_pool(8, {{.per = LimitOwner::user, .most = {.jobs = 2}}});
  EXPECT_EQ(starts_under("fifo", jobs, cluster), (Starts{0, 0, 10, 1}));
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.per = LimitOwner::user, .most = {.jobs = 1}}})),
            (Starts{0, 10, 40, 1}));
  EXPECT_EQ(starts_under("fifo", jobs, limited_pool(8, {{.per = LimitOwner::user, .submitted = 2}})),
            (Starts{0, 0, -1, 1}));
}

TEST(Limits, IdsOfArrays) {
  EXPECT_EQ(array_of_id("12_3"), "12");
  for (const char* id : {"12", "_3", "12_", "12_[0-4]", "j_1", "12_3_4", ""}) EXPECT_EQ(array_of_id(id), "") << id;
}

}  // namespace
}  // namespace gpusched::test
