// SPDX-License-Identifier: Apache-2.0
#include "gpusched/online/online_scheduler.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/queues/capacity_profile.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/online/model_host.hpp"
#include "tests/online/replayed_runs.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

// Policies that add work to running jobs by rules of their own, and the one that needs a trace's start times.
const std::set<std::string>& not_for_hosts() {
  static const std::set<std::string> names{"tiresias@pollux", "tiresias@lucid", "tiresias@muri", "srtf@helios",
                                           "srtf@muri",       "srsf@muri",      "as-recorded"};
  return names;
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names{"fifo+easy", "sjf+easy", "saf+conservative", "fifo+sc20"};
  for (const PolicyInfo& row : registry().rows()) {
    if (!not_for_hosts().contains(row.name)) names.push_back(row.name);
  }
  return names;
}

RC_GTEST_PROP(OnlineScheduler, AHostThatAnnouncesItsJobsGetsTheReplayOfEveryPolicy, ()) {
  const Cluster cluster = *clusters();
  const auto rows = first_rows(rows_that_fit(*mixed_rows(), cluster), 25);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const EngineOptions& options = *rc::gen::element(free_preemption, dear_preemption);
  for (const std::string& policy : all_policies()) {
    if (!maker(policy)(jobs, cluster)) continue;  // it refuses this cluster or trace
    expect_replay(jobs, cluster, policy, {}, options);
  }
}

// Every kind of policy once: without and with backfilling, preemptive, by time slices, fair, of a trained model. Not
// slurm, whose shares are those of all users of a table, later ones too.
const char* const some_policies[] = {"fifo",    "sjf",     "fifo+easy", "saf+conservative", "srtf", "las", "tiresias",
                                     "gandiva", "max-min", "drf",       "rl:builtin/philly"};

RC_GTEST_PROP(OnlineScheduler, SoDoesAHostWhoseJobsComeUnannounced, ()) {
  const Cluster cluster = *clusters();
  const auto rows = first_rows(rows_that_fit(*mixed_rows(), cluster), 12);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const EngineOptions& options = *rc::gen::element(free_preemption, dear_preemption);
  const bool begins_to_mind_nodes =
      CapacityProfile(cluster, jobs).by_node() && !CapacityProfile(cluster, table_of({rows.front()})).by_node();
  for (const std::string_view policy : some_policies) {
    if (policy.ends_with("+conservative") && begins_to_mind_nodes) continue;  // see the test below
    expect_replay(jobs, cluster, std::string(policy), {.announces = false}, options);
  }
}

RC_GTEST_PROP(OnlineScheduler, SoDoesAHostThatKnowsNoDurations, ()) {
  const Cluster cluster = *clusters();
  const auto rows = first_rows(rows_that_fit(*mixed_rows(), cluster), 25);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const bool announces = *rc::gen::arbitrary<bool>();
  for (const char* policy : {"fifo", "fifo+easy{estimate=user}", "las", "tiresias", "drf", "longest-waiting-user"}) {
    expect_replay(jobs, cluster, policy, {.announces = announces, .knows = false}, free_preemption);
  }
}

OnlineJob job_of(const std::string& id, std::uint32_t gpus, std::int64_t seconds) {
  return {.id = id, .duration = whole_seconds(seconds), .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu}};
}

std::string actions(const OnlineScheduler& scheduler, const Result<std::vector<OnlineCommand>>& commands) {
  if (!commands) return commands.error().to_string();
  std::string text;
  for (const OnlineCommand& command : *commands) {
    static constexpr char letters[] = {'+', '-', '>', 'x'};
    text += letters[static_cast<std::size_t>(command.action)] + scheduler.id(command.job);
  }
  return text;
}

// One node of two GPUs under a policy; a script of what its host does.
struct Script {
  explicit Script(const std::string& policy) : scheduler(Cluster::homogeneous(1, 2), maker(policy)) {}
  std::string at(std::int64_t second) { return actions(scheduler, scheduler.decide(whole_seconds(second))); }
  OnlineScheduler scheduler;
};

RC_GTEST_PROP(OnlineScheduler, AHostWhoseNodesFailGetsTheReplayOfTheirLog, ()) {
  const Cluster cluster = *clusters();
  const auto rows = first_rows(rows_that_fit(*mixed_rows(), cluster), 15);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const HostManner manner{.announces = *rc::gen::arbitrary<bool>(),
                          .nodes_may_fail = true,
                          .changes = *node_changes(static_cast<std::uint32_t>(cluster.nodes.size()))};
  for (const std::string policy : some_policies) {
    // Its profile has a cell for each node only where some job of the table needs it, which matters when nodes are
    // away.
    if (policy == "saf+conservative" && !manner.announces) continue;
    expect_replay(jobs, cluster, policy, manner, free_preemption);
  }
}

// Nodes that are out stay away where nodes may not fail, and come back by the changes of a host whose nodes may. Jobs
// fit without those that never come back.
RC_GTEST_PROP(OnlineScheduler, AHostThatBeginsWithoutSomeOfItsNodesGetsTheReplayOfTheirLog, ()) {
  const Cluster cluster = *clusters();
  const auto nodes = static_cast<std::uint32_t>(cluster.nodes.size());
  HostManner manner{.announces = *rc::gen::arbitrary<bool>(), .nodes_may_fail = *rc::gen::arbitrary<bool>()};
  if (manner.nodes_may_fail) manner.changes = *node_changes(nodes);
  Cluster in_the_end = cluster;
  in_the_end.nodes.clear();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const auto of_node = [&](const NodeChange& change) { return change.node == NodeId{node}; };
    const auto first = std::find_if(manner.changes.begin(), manner.changes.end(), of_node);
    const bool out = *rc::gen::arbitrary<bool>(), comes_back = first != manner.changes.end();
    if (!out || comes_back) in_the_end.nodes.push_back(cluster.nodes[node]);
    if (!out) continue;
    manner.out.push_back(NodeId{node});
    if (comes_back) manner.changes.erase(first);  // it goes down
  }
  RC_PRE(!in_the_end.nodes.empty());
  const auto rows = first_rows(rows_that_fit(*mixed_rows(), in_the_end), 15);
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  for (const std::string policy : some_policies) {
    if (policy == "saf+conservative" && !manner.announces) continue;
    expect_replay(jobs, cluster, policy, manner, manner.nodes_may_fail ? free_preemption : dear_preemption);
  }
}

TEST(OnlineScheduler, ANodeThatIsOutAtTheStartComesBack) {
  OnlineScheduler scheduler(Cluster::homogeneous(2, 1), maker("fifo"), {}, true);
  const auto error = [](const Result<void>& result) { return result ? "" : result.error().message; };
  ASSERT_TRUE(scheduler.out_at_start(NodeId{1}));
  EXPECT_EQ(error(scheduler.out_at_start(NodeId{1})), "node 1 is out of service already");
  EXPECT_EQ(error(scheduler.out_at_start(NodeId{2})), "no node 2; there are 2");
  for (const char* id : {"a", "b"}) ASSERT_TRUE(scheduler.submit(job_of(id, 1, 10)));
  EXPECT_EQ(actions(scheduler, scheduler.decide(Time{})), "+a");
  EXPECT_EQ(error(scheduler.out_at_start(NodeId{0})), "node 0 is out from the start, told after the first decision");
  ASSERT_TRUE(scheduler.node_up(NodeId{1}));
  EXPECT_EQ(actions(scheduler, scheduler.decide(whole_seconds(1))), "+b");
}

TEST(OnlineScheduler, JobsMayEndEarlierAndLaterThanAnnounced) {
  Script host("sjf");
  for (const auto& job : {job_of("brief", 2, 10), job_of("longer", 2, 20), job_of("longest", 2, 30)}) {
    ASSERT_TRUE(host.scheduler.submit(job));
  }
  EXPECT_EQ(host.at(0), "+brief");
  ASSERT_TRUE(host.scheduler.finish("brief"));
  EXPECT_EQ(host.at(3), "+longer");
  EXPECT_EQ(host.at(23), "");  // it should have ended
  EXPECT_EQ(host.at(50), "");
  ASSERT_TRUE(host.scheduler.finish("longer"));
  EXPECT_EQ(host.at(70), "+longest");
  EXPECT_EQ(host.scheduler.engine()->end(JobId{1}), whole_seconds(70));
  EXPECT_EQ(host.scheduler.unfinished(), 1u);
}

// One that outlives what was foreseen takes as long again, counted at the instant at which that is seen.
TEST(OnlineScheduler, AJobThatRunsLongerIsTakenToRunAsLongAgain) {
  Script host("srtf");
  ASSERT_TRUE(host.scheduler.submit(job_of("a", 2, 5)));
  EXPECT_EQ(host.at(0), "+a");
  for (const std::int64_t second : {5, 10, 20, 40}) {
    EXPECT_EQ(host.scheduler.next_call(), whole_seconds(second));
    EXPECT_EQ(host.at(second), "");
  }
  ASSERT_TRUE(host.scheduler.submit(job_of("b", 2, 10)));
  EXPECT_EQ(host.at(41), "-a+b");
}

TEST(OnlineScheduler, ACancelledJobFreesItsNodesOrIsNeverStarted) {
  Script host("fifo");
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(host.scheduler.submit(job_of(id, 2, 10)));
  EXPECT_EQ(host.at(0), "+a");
  ASSERT_TRUE(host.scheduler.cancel("b"));
  EXPECT_EQ(host.at(1), "");
  ASSERT_TRUE(host.scheduler.cancel("a"));
  EXPECT_EQ(host.at(2), "+c");
  ASSERT_TRUE(host.scheduler.submit(job_of("d", 1, 1)));  // repeats the history
  EXPECT_EQ(host.at(3), "");
  ASSERT_TRUE(host.scheduler.finish("c"));
  EXPECT_EQ(host.at(4), "+d");
}

const std::string cancelling_slurm = "slurm{preempts_by=partition,preempts=[top>low,top>mid],cancels=[low]}";

// One that its policy cancels is suspended and given up, and its host has no more to say of it.
TEST(OnlineScheduler, AJobThatItsPolicyCancelsIsGivenUp) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "u", .vc = "low"},
                                  {.submit = 0, .work = 50, .user = "u", .vc = "mid"},
                                  {.submit = 10, .work = 20, .gpus = 2, .user = "u", .vc = "top"}});
  const auto id = [&jobs](std::uint32_t job) { return jobs.external_id(JobId{job}); };
  Script two(cancelling_slurm);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(two.scheduler.announce(online_job(jobs, JobId{i}), jobs.submit(JobId{i})));
  }
  ASSERT_TRUE(two.scheduler.submit(id(0)));
  ASSERT_TRUE(two.scheduler.submit(id(1)));
  EXPECT_EQ(two.at(0), "+" + id(0) + "+" + id(1));
  ASSERT_TRUE(two.scheduler.submit(id(2)));
  EXPECT_EQ(two.at(10), "-" + id(0) + "-" + id(1) + "+" + id(2) + "x" + id(0));
  EXPECT_EQ(two.scheduler.finish(id(0)).error().message, "job '" + id(0) + "' was cancelled, it does not run");
  EXPECT_EQ(two.scheduler.unfinished(), 2u);
}

RC_GTEST_PROP(OnlineScheduler, AHostIsToldWhomItsPolicyCancels, ()) {
  const Cluster cluster = *clusters();
  auto rows = first_rows(rows_that_fit(*mixed_rows(), cluster), 25);
  RC_PRE(!rows.empty());
  for (Row& row : rows) row.vc = *rc::gen::element("low", "mid", "top");
  const JobTable jobs = table_of(rows);
  for (const char* const backfill : {"", "+easy"}) {
    if (!maker(cancelling_slurm + backfill)(jobs, cluster)) continue;  // a partition has no job
    expect_replay(jobs, cluster, cancelling_slurm + backfill, {}, *rc::gen::element(free_preemption, dear_preemption));
  }
}

TEST(OnlineScheduler, AnAnnouncedJobMayComeLaterEarlierOrNever) {
  Script host("fifo");
  for (const auto& [id, second] : {std::pair{"a", 0}, std::pair{"b", 1}, std::pair{"c", 2}, std::pair{"d", 9}}) {
    ASSERT_TRUE(host.scheduler.announce(job_of(id, 1, 10), whole_seconds(second)));
  }
  ASSERT_TRUE(host.scheduler.submit("a"));
  EXPECT_EQ(host.at(0), "+a");
  EXPECT_EQ(host.at(3), "");  // b and c are overdue
  ASSERT_TRUE(host.scheduler.submit("d"));
  EXPECT_EQ(host.at(4), "+d");
  ASSERT_TRUE(host.scheduler.submit("b"));
  EXPECT_EQ(host.at(5), "");
  ASSERT_TRUE(host.scheduler.finish("a"));
  EXPECT_EQ(host.at(10), "+b");
  EXPECT_EQ(host.scheduler.submitted(), 3u);
}

TEST(OnlineScheduler, ANodeThatGoesAwayTakesItsJobsWithIt) {
  OnlineScheduler scheduler(Cluster::homogeneous(2, 1), maker("fifo"), {}, true);
  ASSERT_TRUE(scheduler.submit({.id = "a", .shape = {.gpu_milli_per_task = whole_gpu}}));
  const auto first = scheduler.decide(Time{});
  ASSERT_TRUE(first && first->size() == 1u);
  const NodeId node = first->front().nodes.front().node, other{1 - index(node)};
  EXPECT_EQ(scheduler.node_up(node).error().message, "node " + std::to_string(index(node)) + " is in service already");
  EXPECT_EQ(scheduler.node_down(NodeId{2}).error().message, "no node 2; there are 2");
  ASSERT_TRUE(scheduler.node_down(node));
  const auto second = scheduler.decide(whole_seconds(5));
  ASSERT_TRUE(second && second->size() == 1u);
  EXPECT_EQ(second->front().action, OnlineAction::start);
  EXPECT_EQ(second->front().nodes.front().node, other);
  ASSERT_TRUE(scheduler.node_down(other));
  EXPECT_TRUE(scheduler.decide(whole_seconds(6))->empty());
  EXPECT_EQ(scheduler.finish("a").error().message, "job 'a' waits, it does not run");
  ASSERT_TRUE(scheduler.node_up(node));
  EXPECT_EQ(scheduler.decide(whole_seconds(7))->size(), 1u);
  ASSERT_TRUE(scheduler.finish("a"));
  EXPECT_TRUE(scheduler.decide(whole_seconds(8))->empty());
  EXPECT_EQ(scheduler.unfinished(), 0u);

  OnlineScheduler sound(Cluster::homogeneous(2, 1), maker("fifo"));
  EXPECT_EQ(sound.node_down(node).error().message, "node 0 changes, but the scheduler was made for nodes that do not");
}

TEST(OnlineScheduler, WhatAHostGetsWrongIsOneLine) {
  Script host("fifo");
  ASSERT_TRUE(host.scheduler.submit(job_of("a", 1, 10)));
  const auto error = [](const Result<void>& result) { return result ? "" : result.error().to_string(); };
  EXPECT_EQ(error(host.scheduler.finish("a")), "job 'a' is submitted at this very instant");
  EXPECT_EQ(host.at(5), "+a");
  EXPECT_EQ(error(host.scheduler.submit(job_of("a", 1, 1))), "job 'a' is known already; ids must be distinct");
  EXPECT_EQ(error(host.scheduler.submit(job_of("", 1, 1))), "a job has an empty id");
  EXPECT_EQ(error(host.scheduler.submit(job_of("b", 0, 1))), "job 'b' asks for 0 tasks");
  EXPECT_EQ(error(host.scheduler.submit(job_of("b", 1, -1))), "job 'b' has a negative run time");
  EXPECT_EQ(error(host.scheduler.submit("b")), "no job 'b' is known");
  EXPECT_EQ(error(host.scheduler.finish("b")), "no job 'b' is known");
  EXPECT_EQ(error(host.scheduler.announce(job_of("b", 1, 1), whole_seconds(9))),
            "job 'b' is announced after the first decision");
  ASSERT_TRUE(host.scheduler.finish("a"));
  EXPECT_EQ(error(host.scheduler.finish("a")), "job 'a' ended, it does not run");
  EXPECT_EQ(error(host.scheduler.cancel("a")), "job 'a' ended before");
  EXPECT_EQ(host.at(4), "time goes back from 5000000 us to 4000000 us");
  EXPECT_EQ(host.at(6), "the scheduler cannot go on after an error");
}

TEST(OnlineScheduler, RefusesWhatItCannotServe) {
  Script large("fifo");
  ASSERT_TRUE(large.scheduler.submit(job_of("large", 3, 10)));
  EXPECT_EQ(large.at(0), "job 'large' does not fit the empty cluster");

  Script clairvoyant("srtf");
  ASSERT_TRUE(clairvoyant.scheduler.submit({.id = "a", .shape = {.gpu_milli_per_task = whole_gpu}}));
  EXPECT_EQ(clairvoyant.at(0), "policy srtf reads run times, and job 'a' comes without its duration");

  Script charging("tiresias@pollux");
  ASSERT_TRUE(charging.scheduler.submit(job_of("a", 1, 10)));
  EXPECT_EQ(charging.at(0), "policy tiresias@pollux changed how long job 'a' runs, which a host cannot carry out");

  Script twice("fifo");
  ASSERT_TRUE(twice.scheduler.submit(job_of("a", 1, 10)));
  EXPECT_EQ(twice.at(0), "+a");
  ASSERT_TRUE(twice.scheduler.submit(job_of("b", 1, 10)));
  EXPECT_EQ(twice.at(0),
            "job 'b' is submitted at 0 us after the submissions of that instant were decided; submit them before one "
            "decision");
}

// Starts jobs as long as it knows of one alone.
struct OnlyAlone {
  [[nodiscard]] static std::string_view name() { return "only-alone"; }
  static void decide(const View& view, Decision& decision) {
    if (view.job_count() == 1 && view.pending_count() == 1) decision.start(JobId{0});
  }
};

// A new one takes over, which knows who runs, whatever it would have done before.
TEST(OnlineScheduler, APolicyThatDecidesByLaterJobsTakesOver) {
  OnlineScheduler scheduler(Cluster::homogeneous(1, 2), [](const JobTable&, const Cluster&) -> Result<AnyPolicy> {
    return AnyPolicy(OnlyAlone{});
  });
  ASSERT_TRUE(scheduler.submit(job_of("a", 1, 10)));
  EXPECT_EQ(actions(scheduler, scheduler.decide(Time{})), "+a");
  ASSERT_TRUE(scheduler.submit(job_of("b", 1, 10)));
  EXPECT_EQ(actions(scheduler, scheduler.decide(whole_seconds(1))), "");
  ASSERT_TRUE(scheduler.finish("a"));
  EXPECT_EQ(actions(scheduler, scheduler.decide(whole_seconds(10))), "");
  EXPECT_EQ(scheduler.unfinished(), 1u);
}

// Its reservations tell nodes apart if any job asks for parts of nodes.
TEST(OnlineScheduler, ConservativeBackfillingMeetsJobsThatAskForPartsOfNodes) {
  Cluster cluster = Cluster::homogeneous(3, 4);
  cluster.nodes.front().gpus = 2;
  OnlineJob gang = job_of("gang", 5, 5), part = job_of("part", 1, 5);
  part.shape.cpu_milli_per_task = 4000;
  for (const bool announced : {false, true}) {
    OnlineScheduler scheduler(cluster, maker("saf+conservative"));
    if (announced) {
      ASSERT_TRUE(scheduler.announce(gang, Time{}));
      ASSERT_TRUE(scheduler.announce(part, whole_seconds(1)));
    }
    ASSERT_TRUE(announced ? scheduler.submit("gang") : scheduler.submit(gang));
    EXPECT_EQ(actions(scheduler, scheduler.decide(Time{})), "+gang");
    ASSERT_TRUE(announced ? scheduler.submit("part") : scheduler.submit(part));
    EXPECT_EQ(actions(scheduler, scheduler.decide(whole_seconds(1))), "+part") << announced;
  }
}

// Starts what fits, and asks to decide two seconds after each decision once it knows of two jobs.
struct WakesForTwo {
  [[nodiscard]] static std::string_view name() { return "wakes-for-two"; }
  static void decide(const View& view, Decision& decision) {
    std::vector<JobId> waiting;
    for (const JobId job : view.queue(0)) waiting.push_back(job);
    for (const JobId job : waiting) {
      if (decision.start(job) != Verdict::ok) break;
    }
    if (view.job_count() > 1) decision.wake(view.now() + whole_seconds(2));
  }
};

TEST(OnlineScheduler, APolicyThatKnowsOfLaterJobsMayHaveAskedForMoreInstants) {
  OnlineScheduler scheduler(Cluster::homogeneous(1, 2), [](const JobTable&, const Cluster&) -> Result<AnyPolicy> {
    return AnyPolicy(WakesForTwo{});
  });
  const auto at = [&](std::int64_t second) { return actions(scheduler, scheduler.decide(whole_seconds(second))); };
  ASSERT_TRUE(scheduler.submit(job_of("a", 1, 3)));
  EXPECT_EQ(at(0), "+a");
  // The history is repeated with decisions at 2, 4 and 6 s. Job a outlives its 3 s in all of them.
  ASSERT_TRUE(scheduler.submit(job_of("b", 2, 10)));
  EXPECT_EQ(at(7), "");
  EXPECT_EQ(scheduler.engine()->view().phase(JobId{0}), JobPhase::running);
  EXPECT_EQ(scheduler.next_call(), whole_seconds(8));
  ASSERT_TRUE(scheduler.finish("a"));
  EXPECT_EQ(at(8), "+b");
  EXPECT_EQ(scheduler.engine()->end(JobId{0}), whole_seconds(8));
}

TEST(OnlineScheduler, AJobWithoutADurationAsksForNoInstantBeforeTimeZeroEither) {
  Script host("fifo");
  OnlineJob job = job_of("a", 2, 1);
  job.duration = Time::max();
  ASSERT_TRUE(host.scheduler.submit(std::move(job)));
  EXPECT_EQ(host.at(-1), "+a");
  EXPECT_EQ(host.scheduler.next_call(), Time::max());
}

TEST(OnlineScheduler, APolicyThatAskedToDecideIsNotPassedOver) {
  Script host("gandiva{slice_s=5}");
  for (const char* id : {"a", "b"}) ASSERT_TRUE(host.scheduler.submit(job_of(id, 2, 100)));
  EXPECT_EQ(host.at(0), "+a");
  EXPECT_EQ(host.scheduler.next_call(), whole_seconds(5));
  EXPECT_EQ(host.at(6), "the policy asked to decide at 5000000 us, which was passed over");

  Script busy("gandiva{slice_s=5}");  // nor where the history is repeated for a job that comes
  for (const char* id : {"a", "b"}) ASSERT_TRUE(busy.scheduler.submit(job_of(id, 2, 100)));
  EXPECT_EQ(busy.at(0), "+a");
  ASSERT_TRUE(busy.scheduler.submit(job_of("c", 2, 100)));
  EXPECT_EQ(busy.at(6), "the policy asked to decide at 5000000 us, which was passed over");
}

}  // namespace
}  // namespace gpusched::test
