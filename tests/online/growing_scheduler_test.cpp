// SPDX-License-Identifier: Apache-2.0
// Jobs that come unannounced to a scheduler which takes them as they come, and forgets those that are over.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "src/process/online_growth.hpp"
#include "tests/online/replayed_runs.hpp"

namespace gpusched::test {
namespace {

OnlineGrowth growth_of(const std::string& policy, bool nodes_may_fail = false) {
  const auto specs = parse_policies(registry(), policy);
  return specs ? online_growth(registry(), specs->front(), nodes_may_fail) : OnlineGrowth{};
}

// Policies that take jobs as they come. Not slurm, whose shares are those of all users of a table, later ones too.
std::vector<std::string> growing_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& row : registry().rows()) {
    for (const char* way : {"", "+easy{estimate=exact}", "+easy{estimate=user}", "+conservative{estimate=exact}",
                            "+conservative{estimate=user}", "+sc20{estimate=exact}", "+sc20{estimate=user}"}) {
      const std::string name = row.name + way;
      if (!parse_policies(registry(), name)) continue;
      if (growth_of(name).takes_new_jobs && row.name != "slurm") names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> drawn_policies() {
  static const std::vector<std::string> names = growing_policies();
  return *rc::gen::container<std::vector<std::string>>(16, rc::gen::elementOf(names));
}

std::vector<Row> some_rows(const Cluster& cluster) { return first_rows(rows_that_fit(*mixed_rows(), cluster), 12); }

RC_GTEST_PROP(GrowingScheduler, AHostGetsTheReplayOfEveryPolicyThatTakesJobsAsTheyCome, ()) {
  const Cluster cluster = *clusters();
  const auto rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const EngineOptions& options = *rc::gen::element(free_preemption, dear_preemption);
  for (const std::string& policy : growing_policies()) {
    if (!maker(policy)(jobs, cluster)) continue;  // it refuses this cluster or trace
    expect_replay(jobs, cluster, policy, {.announces = false}, options, growth_of(policy));
  }
}

// Who takes over inherits what users used. Shares are those of all users, so that each has a job from the beginning.
RC_GTEST_PROP(GrowingScheduler, SoItDoesUnderSlurmWhereAllUsersAreKnown, ()) {
  const Cluster cluster = *clusters();
  std::vector<Row> rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const std::size_t drawn = rows.size();
  for (std::size_t i = 0; i < drawn; ++i) {
    Row first = rows[i];
    first.submit = -10;
    first.work = 1;
    rows.push_back(first);
  }
  const JobTable jobs = table_of(rows);
  for (const char* policy : {"slurm", "slurm{skip=true,half_life_s=20}", "lsf"}) {
    if (!maker(policy)(jobs, cluster)) continue;
    expect_replay(jobs, cluster, policy, {.announces = false}, free_preemption, growth_of(policy));
  }
}

// Between takeovers the history is repeated for new owners and demands.
RC_GTEST_PROP(GrowingScheduler, SoItDoesWhereSomeJobsThatAreOverAreRemembered, ()) {
  const Cluster cluster = *clusters();
  const auto rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const OnlineGrowth growth{.takes_new_jobs = *rc::gen::arbitrary<bool>(), .remembers = *rc::gen::inRange(1u, 8u)};
  for (const char* policy : {"fifo", "saf", "sjf+easy{estimate=exact}", "drf", "tiresias"}) {
    expect_replay(jobs, cluster, policy, {.announces = false}, free_preemption, growth);
  }
}

RC_GTEST_PROP(GrowingScheduler, SoItDoesWhereNodesFail, ()) {
  const Cluster cluster = *clusters();
  const auto rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const HostManner manner{.announces = false,
                          .nodes_may_fail = true,
                          .changes = *node_changes(static_cast<std::uint32_t>(cluster.nodes.size()))};
  for (const std::string& policy : drawn_policies()) {
    if (!maker(policy)(jobs, cluster)) continue;  // it refuses this cluster or trace
    expect_replay(jobs, cluster, policy, manner, free_preemption, growth_of(policy));
  }
}

// Its instants were once kept for the next job, and then they were past.
TEST(GrowingScheduler, ANodeChangesWhereNobodyIsThere) {
  const std::vector<Row> rows{{.submit = 0, .work = 1}, {.submit = 20, .work = 1}};
  HostManner manner{.announces = false, .nodes_may_fail = true};
  manner.changes = {{whole_seconds(5), NodeId{1}, false}, {whole_seconds(8), NodeId{1}, true}};
  expect_replay(table_of(rows), Cluster::homogeneous(2, 2), "srtf", manner, free_preemption, {.takes_new_jobs = true});
}

// Nobody is left then to take over from, and owners keep their numbers.
TEST(GrowingScheduler, ANodeChangesWhereNobodyIsLeft) {
  const std::vector<Row> rows{{.submit = 0, .work = 1, .user = "ann"},
                              {.submit = 20, .work = 1, .user = "bob"},
                              {.submit = 20, .work = 1, .user = "ann"}};
  HostManner manner{.announces = false, .nodes_may_fail = true};
  manner.changes = {{whole_seconds(5), NodeId{1}, false}, {whole_seconds(8), NodeId{1}, true}};
  for (const char* policy : {"fifo", "lsf"}) {
    expect_replay(table_of(rows), Cluster::homogeneous(2, 1), policy, manner, free_preemption, growth_of(policy, true));
  }
}

// At 2 s a start is taken back, and restored behind the stop that made its room.
TEST(GrowingScheduler, ARestoredStartIsFollowed) {
  const auto row = [](std::int64_t submit, std::int64_t work, const char* user, std::uint32_t tasks, MilliGpu milli) {
    return Row{
        .submit = submit, .work = work, .user = user, .shape = Shape{.tasks = tasks, .gpu_milli_per_task = milli}};
  };
  const JobTable jobs = table_of({row(0, 4, "ann", 2, 2000), row(0, 4, "ann", 1, 2000), row(2, 0, "ann", 1, 500),
                                  row(2, 1, "ann", 1, 7000), row(2, 1, "cid", 1, 1000), row(3, 0, "dan", 1, 1000)});
  OnlineScheduler scheduler(Cluster::pool(12), maker("srtf"), free_preemption, false,
                            {.takes_new_jobs = true, .remembers = 0});
  ModelHost host(jobs, scheduler, {.announces = false});
  const auto ran = host.run();
  EXPECT_TRUE(ran) << ran.error().to_string();
  EXPECT_EQ(host.finished(), jobs.size());
}

// What these prepare from all jobs of a table would have made them decide otherwise before a new one came.
RC_GTEST_PROP(GrowingScheduler, EveryJobIsDoneUnderPoliciesThatDivideBetweenAllOwners, ()) {
  const Cluster cluster = *clusters();
  const auto rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  for (const char* policy : {"slurm", "slurm+easy", "fgd", "static-partition", "kueue{by=user}", "kai{by=user}",
                             "yarn-capacity{by=user}", "saf+conservative"}) {
    if (!maker(policy)(jobs, cluster)) continue;  // it refuses this cluster or trace
    OnlineScheduler scheduler(cluster, maker(policy), free_preemption, false, growth_of(policy));
    ModelHost host(jobs, scheduler, {.announces = false});
    const auto ran = host.run();
    RC_LOG() << policy << ": " << (ran ? "ran" : ran.error().to_string()) << '\n';
    RC_ASSERT(ran.has_value());
    RC_ASSERT(host.finished() == jobs.size());
  }
}

// Equal jobs may stand in another order than in a replay, but each is done once.
RC_GTEST_PROP(GrowingScheduler, EveryJobOfAPolicyThatTakesOverIsDone, ()) {
  const Cluster cluster = *clusters();
  const auto rows = some_rows(cluster);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  for (const char* policy : {"las", "srtf", "srsf"}) {
    OnlineScheduler scheduler(cluster, maker(policy), free_preemption, false,
                              {.takes_new_jobs = true, .remembers = *rc::gen::inRange(0u, 5u)});
    ModelHost host(jobs, scheduler, {.announces = false});
    const auto ran = host.run();
    RC_LOG() << policy << ": " << (ran ? "ran" : ran.error().to_string()) << '\n';
    RC_ASSERT(ran.has_value());
    RC_ASSERT(host.finished() == jobs.size());
    RC_ASSERT(scheduler.unfinished() == 0u);
  }
}

OnlineJob small_job(const std::string& id, std::uint32_t tasks) {
  return {.id = id,
          .duration = whole_seconds(10),
          .estimate = whole_seconds(20),
          .shape = {.tasks = tasks, .gpu_milli_per_task = whole_gpu}};
}

TEST(GrowingScheduler, ForgetsJobsThatAreOver) {
  OnlineScheduler scheduler(Cluster::homogeneous(1, 4), maker("fifo+easy"), {}, false, growth_of("fifo+easy"));
  for (int i = 0; i < 3000; ++i) {
    if (i >= 3) {
      ASSERT_TRUE(scheduler.finish("j" + std::to_string(i - 3)));
    }
    ASSERT_TRUE(scheduler.submit(small_job("j" + std::to_string(i), 1)));
    const auto commands = scheduler.decide(whole_seconds(i));
    ASSERT_TRUE(commands) << commands.error().to_string();
    ASSERT_EQ(commands->size(), 1u);
    EXPECT_EQ(scheduler.id(commands->front().job), "j" + std::to_string(i));
    EXPECT_LE(scheduler.submitted(), 300u);
  }
  EXPECT_EQ(scheduler.unfinished(), 3u);
  EXPECT_EQ(scheduler.finish("j5").error().message, "no job 'j5' is known");
}

// Requests are learned from jobs that are over where nobody makes any.
TEST(GrowingScheduler, WhoLearnsFromJobsThatAreOverKeepsThem) {
  for (const char* policy : {"fifo+easy", "saf", "wfp3", "f1"}) {
    OnlineScheduler scheduler(Cluster::homogeneous(1, 4), maker(policy), {}, false, growth_of(policy));
    for (int i = 0; i < 600; ++i) {
      if (i > 0) {
        ASSERT_TRUE(scheduler.finish("j" + std::to_string(i - 1)));
      }
      OnlineJob job = small_job("j" + std::to_string(i), 1);
      job.estimate = Time::max();
      ASSERT_TRUE(scheduler.submit(job));
      ASSERT_TRUE(scheduler.decide(whole_seconds(i)));
    }
    EXPECT_EQ(scheduler.submitted(), 600u) << policy;
  }
}

// A host's order within an instant once gave each job the nodes of another.
TEST(GrowingScheduler, JobsOfOneInstantAreToldApartInWhateverOrderTheyCome) {
  for (const bool announced : {false, true}) {
    OnlineScheduler scheduler(Cluster::homogeneous(1, 4), maker("fifo"));
    for (const auto& job : {small_job("b", 3), small_job("a", 1)}) {
      if (announced) {
        ASSERT_TRUE(scheduler.announce(job, Time{}));
      }
      ASSERT_TRUE(announced ? scheduler.submit(job.id) : scheduler.submit(job));
    }
    const auto commands = scheduler.decide(Time{});
    ASSERT_TRUE(commands && commands->size() == 2u);
    for (const OnlineCommand& command : *commands) {
      EXPECT_EQ(command.nodes.front().tasks, scheduler.id(command.job) == "a" ? 1u : 3u);
    }
  }
}

TEST(GrowingScheduler, PoliciesThatLearnTakeEveryJobWithItsHistory) {
  EXPECT_TRUE(growth_of("fifo").takes_new_jobs);
  EXPECT_EQ(growth_of("fifo").remembers, 0u);
  EXPECT_EQ(growth_of("las").remembers, 100'000u);
  EXPECT_EQ(growth_of("slurm").remembers, 0u);
  EXPECT_EQ(growth_of("themis").remembers, no_index);
  for (const char* policy :
       {"fifo+easy{estimate=history}", "saf{estimate=user-mean}", "fifo+sc20{estimate=user-mean}", "fgd"}) {
    EXPECT_FALSE(growth_of(policy).takes_new_jobs) << policy;
  }
  for (const char* policy : {"fifo+conservative", "pollux", "allox"}) {
    EXPECT_TRUE(growth_of(policy).takes_new_jobs) << policy;
    EXPECT_FALSE(growth_of(policy, true).takes_new_jobs) << policy;
  }
}

}  // namespace
}  // namespace gpusched::test
