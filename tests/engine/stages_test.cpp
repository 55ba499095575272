// SPDX-License-Identifier: Apache-2.0
// Stages of runs, worked out by hand. 1 GiB takes 1 s on a node where the test does not say otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

constexpr JobId first{0}, second{1}, third{2};
constexpr auto gib = static_cast<std::int64_t>(bytes_per_gib);

Cluster nodes(std::uint32_t count, std::uint32_t gpus) {
  Cluster cluster = Cluster::pool(gpus);
  cluster.nodes.assign(count, cluster.nodes.front());
  return cluster;
}

// A node of one GPU in each of these racks.
Cluster nodes_in_racks(std::initializer_list<std::uint32_t> racks) {
  Cluster cluster = nodes(static_cast<std::uint32_t>(racks.size()), 1);
  std::size_t node = 0;
  for (const std::uint32_t rack : racks) cluster.nodes[node++].rack = rack;
  return cluster;
}

// Every user has an image of so many GiB.
StageModel images_of_users(const JobTable& jobs, std::int64_t size_gib) {
  StageModel model;
  model.transfer_bytes_per_s = bytes_per_gib;
  model.images.column = StageColumn::user;
  for (std::uint32_t user = 0; user < jobs.users().size(); ++user) {
    model.images.items.push_back(user);
    model.items.push_back({.bytes = size_gib * gib});
  }
  return model;
}

NodeFailures recorded(std::initializer_list<NodeChange> changes) {
  NodeFailures failures;
  failures.add_changes(std::span(changes.begin(), changes.size()));
  return failures;
}
NodeChange down(std::int64_t at_s, std::uint32_t node) { return {whole_seconds(at_s), NodeId{node}, false}; }
NodeChange up(std::int64_t at_s, std::uint32_t node) { return {whole_seconds(at_s), NodeId{node}, true}; }

template <class P>
Engine run(const JobTable& jobs, const Cluster& cluster, const StageModel& stages, P policy,
           const EngineOptions& options = {}, const NodeFailures* failures = nullptr) {
  Engine engine(jobs, cluster, options, {.failures = failures, .stages = &stages});
  EXPECT_TRUE(simulate(engine, policy));
  return engine;
}

TEST(Stages, TheSecondStartOnANodeIsWarm) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"}, {.submit = 0, .work = 5, .user = "a"}});
  StageModel stages = images_of_users(jobs, 10);
  for (StageModel::Item& item : stages.items) {
    item.unpack = whole_seconds(4);
    item.load = whole_seconds(2);
  }
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{});
  EXPECT_EQ(engine.end(first), whole_seconds(10 + 4 + 2 + 5));
  EXPECT_EQ(engine.end(second), whole_seconds(21 + 2 + 5));
  EXPECT_EQ(engine.overhead(first), whole_seconds(16));
  EXPECT_EQ(engine.overhead(second), whole_seconds(2));
  EXPECT_EQ(engine.useful_time(first), whole_seconds(5));
  EXPECT_EQ(engine.starts(first).cold, 1u);
  EXPECT_EQ(engine.starts(second).warm, 1u);
  EXPECT_EQ(engine.starts(first).fetched_bytes, 10 * gib);
  EXPECT_EQ(engine.starts(second).fetched_bytes, 0);
}

// Preempted 5 s after its start, before its container was there: the next one makes its own.
TEST(Stages, AContainerThatWasNotMadeIsNobodys) {
  for (const std::int64_t image_gib : {0, 10}) {
    const JobTable jobs = table_of({{.submit = 0, .work = 1000, .user = "a"}, {.submit = 5, .work = 100, .user = "a"}});
    StageModel stages = images_of_users(jobs, image_gib);
    stages.provision = whole_seconds(50);
    stages.keep_alive = whole_seconds(600);
    Engine engine(jobs, nodes(1, 1), {}, {.stages = &stages});
    Decision decision = engine.decision();
    ASSERT_TRUE(engine.advance());
    ASSERT_EQ(decision.start(first), Verdict::ok);
    engine.apply();
    ASSERT_TRUE(engine.advance());
    while (engine.view().now() < whole_seconds(5)) {
      engine.apply();
      ASSERT_TRUE(engine.advance());
    }
    ASSERT_EQ(decision.preempt(first), Verdict::ok);
    ASSERT_EQ(decision.start(second), Verdict::ok);
    engine.apply();
    while (engine.view().phase(second) != JobPhase::done) {
      ASSERT_TRUE(engine.advance());
      engine.apply();
    }
    const std::int64_t rest_of_fetch = image_gib > 0 ? 5 : 0;  // a GiB a second
    EXPECT_EQ(engine.end(second), whole_seconds(5 + rest_of_fetch + 50 + 100)) << image_gib;
    EXPECT_EQ(engine.starts(second).cold, 1u);
  }
}

TEST(Stages, WhoComesWhileAnImageIsOnItsWayWaitsForTheRest) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"}, {.submit = 6, .work = 5, .user = "a"}});
  const Engine engine = run(jobs, nodes(1, 2), images_of_users(jobs, 10), Fifo{});
  EXPECT_EQ(engine.end(first), whole_seconds(15));
  EXPECT_EQ(engine.end(second), whole_seconds(15));
  EXPECT_EQ(engine.starts(second).cold, 1u);
  EXPECT_EQ(engine.starts(second).fetched_bytes, 0);
}

TEST(Stages, EqualFetchesOfOneStorageTakeAsManyTimesAsLong) {
  for (const std::uint32_t count : {1u, 2u, 5u}) {
    const JobTable jobs = table_of(std::vector<Row>(count, {.submit = 0, .work = 5, .user = "a"}));
    StageModel stages = images_of_users(jobs, 10);
    stages.storage_bytes_per_s = bytes_per_gib;
    const Engine engine = run(jobs, nodes(count, 1), stages, Fifo{});
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(engine.end(JobId{i}), whole_seconds(10 * count + 5));
  }
}

TEST(Stages, AGangWaitsForItsSlowestNode) {
  // The first job warms one node of two.
  const JobTable jobs =
      table_of({{.submit = 0, .work = 5, .user = "a"}, {.submit = 20, .work = 5, .gpus = 2, .user = "a"}});
  const Engine engine = run(jobs, nodes(2, 1), images_of_users(jobs, 10), Fifo{});
  EXPECT_EQ(engine.end(second), whole_seconds(20 + 10 + 5));
  EXPECT_EQ(engine.starts(second).fetched_bytes, 10 * gib);
}

TEST(Stages, AFullCacheForgetsWhatWasUsedLongestAgo) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .user = "a"},
                                  {.submit = 100, .work = 1, .user = "b"},
                                  {.submit = 200, .work = 1, .user = "a"},
                                  {.submit = 300, .work = 1, .user = "c"},
                                  {.submit = 400, .work = 1, .user = "a"},
                                  {.submit = 500, .work = 1, .user = "b"}});
  StageModel stages = images_of_users(jobs, 10);
  stages.cache_bytes = 25 * gib;
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{});
  const auto is_cold = [&](std::uint32_t job) { return engine.starts(JobId{job}).cold == 1; };
  EXPECT_TRUE(is_cold(0) && is_cold(1) && !is_cold(2) && is_cold(3) && !is_cold(4) && is_cold(5));
}

TEST(Stages, AnImageInUseStaysInAFullCache) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .user = "a"},
                                  {.submit = 20, .work = 1, .user = "b"},
                                  {.submit = 40, .work = 1, .user = "a"},
                                  {.submit = 60, .work = 1, .user = "b"}});
  StageModel stages = images_of_users(jobs, 10);
  stages.cache_bytes = 10 * gib;
  const Engine engine = run(jobs, nodes(1, 2), stages, Fifo{});
  EXPECT_EQ(engine.end(third), whole_seconds(41));
  EXPECT_EQ(engine.starts(JobId{3}).cold, 1u);  // b was nobody's
}

TEST(Stages, AContainerWaitsForItsNextRunForAWhile) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5}, {.submit = 24, .work = 5}, {.submit = 100, .work = 5}});
  StageModel stages;
  stages.provision = whole_seconds(9);
  stages.keep_alive = whole_seconds(10);
  stages.transfer_bytes_per_s = 1;
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{});
  EXPECT_EQ(engine.end(first), whole_seconds(14));
  EXPECT_EQ(engine.end(second), whole_seconds(29));  // its last instant
  EXPECT_EQ(engine.end(third), whole_seconds(114));
  EXPECT_EQ(engine.starts(second).warm, 1u);
  EXPECT_EQ(engine.starts(third).cold, 1u);
}

TEST(Stages, WeightsAreFetchedBesideTheImage) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 5, .user = "a", .family = "x"}, {.submit = 0, .work = 5, .user = "a", .family = "y"}});
  StageModel stages = images_of_users(jobs, 10);
  stages.weights.column = StageColumn::family;
  for (std::uint32_t family = 0; family < jobs.families().size(); ++family) {
    stages.weights.items.push_back(static_cast<std::uint32_t>(stages.items.size()));
    stages.items.push_back({.bytes = 4 * gib, .load = whole_seconds(1)});
  }
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{});
  EXPECT_EQ(engine.end(first), whole_seconds(10 + 1 + 5));  // both at once: no storage is shared
  EXPECT_EQ(engine.end(second), whole_seconds(16 + 4 + 1 + 5));
}

TEST(Stages, APreemptedRunDoesNotWaitTwiceForWhatItsNodeHas) {
  // Preempted at 4 s of 10: the node fetches on, and has it at 10 s.
  const JobTable jobs = table_of({{.submit = 0, .work = 50, .user = "a"}, {.submit = 4, .work = 8, .user = "b"}});
  const Engine engine = run(jobs, nodes(1, 1), images_of_users(jobs, 10), ShortestRemaining(false));
  EXPECT_EQ(engine.preemptions(first), 1u);
  EXPECT_EQ(engine.end(second), whole_seconds(4 + 10 + 8));
  EXPECT_EQ(engine.end(first), whole_seconds(22 + 50));
  EXPECT_EQ(engine.overhead(first), whole_seconds(4));
}

TEST(Stages, ANodeThatFailsComesBackCold) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"},
                                  {.submit = 50, .work = 5, .user = "a"},
                                  {.submit = 60, .work = 20, .user = "a"}});
  const NodeFailures failures = recorded({down(30, 0), up(40, 0), down(75, 0), up(76, 0)});
  const Engine engine = run(jobs, nodes(1, 1), images_of_users(jobs, 10), Fifo{}, {}, &failures);
  EXPECT_EQ(engine.end(second), whole_seconds(50 + 10 + 5));
  EXPECT_EQ(engine.end(third), whole_seconds(76 + 10 + 20));
  EXPECT_EQ(engine.lost(third), whole_seconds(10));
  EXPECT_EQ(engine.overhead(third), whole_seconds(10));
}

TEST(Stages, EqualCheckpointsOfOneStorageTakeAsManyTimesAsLong) {
  // 8 GiB after 10, 20 and 30 s of 35; none at the end.
  for (const std::uint32_t count : {1u, 2u, 4u}) {
    const JobTable jobs = table_of(std::vector<Row>(count, {.submit = 0, .work = 35, .gpus = 2}));
    StageModel stages;
    stages.transfer_bytes_per_s = stages.storage_bytes_per_s = 2 * bytes_per_gib;
    stages.checkpoint_bytes_per_gpu = 4 * bytes_per_gib;
    EngineOptions options;
    options.preemption.checkpoint_interval = whole_seconds(10);
    const Engine engine = run(jobs, nodes(count, 2), stages, Fifo{}, options);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(engine.end(JobId{i}), whole_seconds(35 + 3 * 4 * count));
      EXPECT_EQ(engine.overhead(JobId{i}), whole_seconds(3 * 4 * count));
    }
  }
}

TEST(Stages, AFailureLosesTheCheckpointThatIsBeingWritten) {
  // Checkpoints from 10 to 14 s and from 24 s; down at 26 s, in the second.
  const JobTable jobs = table_of({{.submit = 0, .work = 35}});
  StageModel stages;
  stages.transfer_bytes_per_s = bytes_per_gib;
  stages.checkpoint_bytes_per_gpu = 4 * bytes_per_gib;
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(3), .checkpoint_interval = whole_seconds(10)};
  const NodeFailures failures = recorded({down(26, 0), up(30, 0)});
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{}, options, &failures);
  EXPECT_EQ(engine.lost(first), whole_seconds(10));
  EXPECT_EQ(engine.end(first), whole_seconds(30 + 3 + 25 + 2 * 4));
  EXPECT_EQ(engine.overhead(first), whole_seconds(4 + 2 + 3 + 8));
}

std::vector<Time> ends_of(const Engine& engine, std::uint32_t jobs) {
  std::vector<Time> ends;
  for (std::uint32_t i = 0; i < jobs; ++i) ends.push_back(engine.end(JobId{i}));
  return ends;
}

// Jobs of one GPU go to nodes of one GPU by number.
EngineOptions in_order() {
  EngineOptions options;
  options.placement = Placement::first_fit;
  return options;
}

TEST(Stages, EqualFetchesOfOneRackTakeAsManyTimesAsLong) {
  const JobTable jobs = table_of(std::vector<Row>(6, {.submit = 0, .work = 5, .user = "a"}));
  StageModel stages = images_of_users(jobs, 10);
  stages.uplink_bytes_per_s = bytes_per_gib;
  const Time one = whole_seconds(10 + 5), two = whole_seconds(20 + 5), three = whole_seconds(30 + 5);
  EXPECT_EQ(ends_of(run(jobs, nodes_in_racks({9, 4, 9, 4, 4, 2}), stages, Fifo{}, in_order()), 6),
            (std::vector{two, three, two, three, three, one}));
}

TEST(Stages, WithoutRacksANodeHasAnUplinkOfItsOwn) {
  // Two jobs with images of their own on one node, one on the other.
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"},
                                  {.submit = 0, .work = 5, .user = "b"},
                                  {.submit = 0, .work = 5, .user = "c"}});
  StageModel stages = images_of_users(jobs, 10);
  stages.uplink_bytes_per_s = bytes_per_gib;
  EXPECT_EQ(ends_of(run(jobs, nodes(2, 2), stages, Fifo{}, in_order()), 3),
            (std::vector{whole_seconds(25), whole_seconds(25), whole_seconds(15)}));
}

TEST(Stages, AFetchThatIsCancelledGivesItsRackItsShare) {
  // Until 5 s the three of rack 1 got 5/3 GiB each; the 25/3 that are left take 50/3 s.
  const JobTable jobs = table_of(std::vector<Row>(4, {.submit = 0, .work = 5, .user = "a"}));
  StageModel stages = images_of_users(jobs, 10);
  stages.uplink_bytes_per_s = bytes_per_gib;
  const NodeFailures failures = recorded({down(5, 0), up(100, 0)});
  const Engine engine = run(jobs, nodes_in_racks({1, 1, 1, 2}), stages, Fifo{}, in_order(), &failures);
  EXPECT_EQ(engine.kills(first), 1u);
  EXPECT_EQ(engine.end(second), Time{5'000'000 + 16'666'667 + 5'000'000});
  EXPECT_EQ(engine.end(third), engine.end(second));
  EXPECT_EQ(engine.end(JobId{3}), whole_seconds(10 + 5));
}

TEST(Stages, ASpareFetchesOverTheUplinkOfItsOwnRack) {
  // The last node, of rack 2, stands in for the first, of rack 1.
  const JobTable jobs = table_of(std::vector<Row>(3, {.submit = 10, .work = 5, .user = "a"}));
  StageModel stages = images_of_users(jobs, 10);
  stages.uplink_bytes_per_s = bytes_per_gib;
  NodeFailures failures = recorded({down(5, 0), up(100, 0)});
  failures.keep_spares(1);
  EXPECT_EQ(ends_of(run(jobs, nodes_in_racks({1, 1, 2, 2}), stages, Fifo{}, in_order(), &failures), 3),
            (std::vector{whole_seconds(10 + 10 + 5), whole_seconds(10 + 20 + 5), whole_seconds(10 + 20 + 5)}));
}

TEST(Stages, StorageAndUplinkBindTogether) {
  // The three of rack 2 get 1/3 GiB/s each, the one of rack 1 what is left of 1.5 GiB/s; of 0.9, all get the same.
  const JobTable jobs = table_of(std::vector<Row>(4, {.submit = 0, .work = 5, .user = "a"}));
  StageModel stages = images_of_users(jobs, 5);
  stages.uplink_bytes_per_s = bytes_per_gib;
  stages.storage_bytes_per_s = 1.5 * bytes_per_gib;
  const Cluster cluster = nodes_in_racks({1, 2, 2, 2});
  const auto at = [](std::int64_t us) { return Time{us + 5'000'000}; };
  EXPECT_EQ(ends_of(run(jobs, cluster, stages, Fifo{}, in_order()), 4),
            (std::vector{at(10'000'000), at(15'000'000), at(15'000'000), at(15'000'000)}));
  stages.storage_bytes_per_s = 0.9 * bytes_per_gib;
  EXPECT_EQ(ends_of(run(jobs, cluster, stages, Fifo{}, in_order()), 4), std::vector<Time>(4, at(22'222'223)));
}

TEST(Stages, ACheckpointOfAGangWaitsForTheFullestUplink) {
  // 4 GiB of each node after 10, 20 and 30 s of 35; two nodes share the uplink of rack 1.
  const JobTable jobs = table_of({{.submit = 0, .work = 35, .gpus = 3}});
  StageModel stages;
  stages.transfer_bytes_per_s = 2 * bytes_per_gib;
  stages.uplink_bytes_per_s = bytes_per_gib;
  stages.checkpoint_bytes_per_gpu = 4 * bytes_per_gib;
  EngineOptions options;
  options.preemption.checkpoint_interval = whole_seconds(10);
  EXPECT_EQ(run(jobs, nodes_in_racks({1, 2, 1}), stages, Fifo{}, options).end(first), whole_seconds(35 + 3 * 8));
  EXPECT_EQ(run(jobs, nodes_in_racks({1, 2, 3}), stages, Fifo{}, options).end(first), whole_seconds(35 + 3 * 4));
}

TEST(Stages, TellsWhatACheckpointTakesWhileNothingElseMoves) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1}});
  StageModel stages;
  stages.transfer_bytes_per_s = 2 * bytes_per_gib;
  stages.checkpoint_bytes_per_gpu = 12 * bytes_per_gib;
  const Cluster cluster = nodes_in_racks({1, 2, 2, 2});
  const std::vector<detail::NodePart> alone{{NodeId{0}, whole_gpu}},
      gang{{NodeId{0}, whole_gpu}, {NodeId{1}, whole_gpu}, {NodeId{2}, whole_gpu}, {NodeId{3}, whole_gpu}};
  const auto seconds = [&](const auto& parts) { return detail::Stages(stages, jobs, cluster).checkpoint_s(parts); };
  EXPECT_DOUBLE_EQ(seconds(gang), 6);
  stages.uplink_bytes_per_s = bytes_per_gib;
  EXPECT_DOUBLE_EQ(seconds(alone), 12);
  EXPECT_DOUBLE_EQ(seconds(gang), 36);  // three on the uplink of rack 2
  stages.storage_bytes_per_s = 1.2 * bytes_per_gib;
  EXPECT_DOUBLE_EQ(seconds(alone), 12);
  EXPECT_DOUBLE_EQ(seconds(gang), 40);  // four on the storage
}

TEST(Stages, YoungsIntervalKnowsTheUplink) {
  // C = 8 s over the uplink, M = 10,000 s: Young's interval is 400 s, and two checkpoints are written.
  const JobTable jobs = table_of({{.submit = 0, .work = 1000}});
  StageModel stages;
  stages.transfer_bytes_per_s = 4 * bytes_per_gib;
  stages.uplink_bytes_per_s = bytes_per_gib;
  stages.checkpoint_bytes_per_gpu = 8 * bytes_per_gib;
  NodeFailures failures;
  const NodeId own[] = {NodeId{0}};
  failures.add_unit(failures.add_law({.mean_up_s = 10'000, .mean_repair_s = 1}), own);
  EngineOptions options;
  options.seed = 3;  // under which the law draws no failure in this run
  options.preemption.rule = CheckpointRule::young;
  const Engine engine = run(jobs, nodes(1, 1), stages, Fifo{}, options, &failures);
  ASSERT_EQ(engine.kills(first), 0u);
  EXPECT_EQ(engine.end(first), whole_seconds(1000 + 2 * 8));
}

TEST(Stages, AnUplinkOfTheOnlyNodeIsAStorageOfThatBandwidth) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"},
                                  {.submit = 3, .work = 5, .user = "b"},
                                  {.submit = 7, .work = 9, .user = "c"}});
  StageModel storage = images_of_users(jobs, 7), uplink = storage;
  storage.storage_bytes_per_s = uplink.uplink_bytes_per_s = bytes_per_gib;
  EXPECT_EQ(ends_of(run(jobs, nodes(1, 3), storage, Fifo{}), 3), ends_of(run(jobs, nodes(1, 3), uplink, Fifo{}), 3));
}

TEST(Stages, AModelOfNothingChangesNothing) {
  const JobTable jobs = table_of({{0, 10, 2}, {1, 5, 1}, {2, 7, 3}});
  const Engine engine = run(jobs, nodes(2, 2), StageModel{}, Fifo{});
  EXPECT_FALSE(engine.has_stages());
  EXPECT_FALSE(engine.counts_costs());
}

TEST(Stages, AreInTheMetrics) {
  const JobTable jobs = table_of({{.submit = 0, .work = 5, .user = "a"}, {.submit = 0, .work = 5, .user = "a"}});
  const StageModel stages = images_of_users(jobs, 10);
  Engine engine(jobs, nodes(1, 1), {}, {.stages = &stages});
  RunLog log;
  Fifo fifo;
  ASSERT_TRUE(simulate(engine, fifo, log));
  const Metrics metrics = compute_metrics(engine, log);
  EXPECT_EQ(metrics.cold_starts, 1);
  EXPECT_EQ(metrics.warm_starts, 1);
  EXPECT_EQ(metrics.fetched_gib, 10);
  EXPECT_DOUBLE_EQ(*metrics.gpu_overhead, 0.5);
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization, 0.5);
}

}  // namespace
}  // namespace gpusched::test
