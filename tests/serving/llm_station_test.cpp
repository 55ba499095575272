// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/llm_station.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

/// Any prompt step takes 100 us, any step of decodes 10.
LlmStepTimes plain_times() { return LlmStepTimes(BatchStepTimes({{1, 100, 10}, {2, 100, 10}})); }

LlmRequest llm_request(std::uint64_t id, std::int32_t prompt, std::int32_t output, std::uint64_t session = 0) {
  return {.id = id, .prompt_tokens = prompt, .output_tokens = output, .session = session};
}

TEST(LlmStation, RequestsOfAnInstantShareAStep) {
  const LlmStepTimes times = plain_times();
  LlmStation station;
  station.add_replica({}, {}, times);
  for (std::uint64_t id = 0; id < 3; ++id) EXPECT_TRUE(station.submit(llm_request(id, 10, 2), {50}));
  station.advance({50});
  EXPECT_EQ(station.running(), 3);
  station.advance({1000});
  ASSERT_EQ(station.done().size(), 3U);
  for (const LlmOutcome& o : station.done()) EXPECT_EQ(o.last_token, Time{160});
  EXPECT_EQ(station.counts().held_us, 3 * 110);
  EXPECT_TRUE(station.consistent());
}

TEST(LlmStation, ReplicasThatDrainAndFailHandTheirRequestsOn) {
  const LlmStepTimes times = plain_times();
  LlmStation station({.routing = RoutingRule::round_robin});
  station.submit(llm_request(0, 10, 5), {0});  // waits for a replica
  EXPECT_EQ(station.waiting(), 1);
  station.add_replica({10}, {.sequences = 1}, times);
  station.add_replica({10}, {.sequences = 1}, times);
  for (std::uint64_t id = 1; id < 6; ++id) station.submit(llm_request(id, 10, 5), {10});
  station.advance({20});
  EXPECT_EQ(station.replica(0).waiting(), 2);  // 0 runs, 2 and 4 wait; 1 runs, 3 and 5 wait
  station.drain(0, {30});
  EXPECT_EQ(station.replica(0).waiting(), 0);
  EXPECT_EQ(station.replica(1).waiting(), 4);
  const std::vector<LlmRequest> left = station.remove(1, {40});
  ASSERT_EQ(left.size(), 5U);
  EXPECT_EQ(left[0].id, 1U);
  EXPECT_EQ(left[4].id, 4U);
  EXPECT_TRUE(station.submit(llm_request(9, 10, 5), {40}));  // nobody takes it now: it waits
  EXPECT_EQ(station.waiting(), 1);
  station.advance({1000});
  EXPECT_EQ(station.counts().completed, 1);
  EXPECT_EQ(station.counts().returned, 5);
  EXPECT_TRUE(station.consistent());
}

TEST(LlmStation, DropsWhatNoCacheHoldsAndWhatFindsAFullQueue) {
  const LlmStepTimes times = plain_times();
  LlmStation station({.queue_limit = 2});
  station.add_replica({}, {.kv_blocks = 2, .block_tokens = 4, .sequences = 1}, times);
  EXPECT_FALSE(station.submit(llm_request(0, 8, 2), {}));
  EXPECT_TRUE(station.submit(llm_request(1, 4, 2), {}));
  station.advance({});
  EXPECT_TRUE(station.submit(llm_request(2, 4, 2), {1}));
  EXPECT_TRUE(station.submit(llm_request(3, 4, 2), {1}));
  EXPECT_FALSE(station.submit(llm_request(4, 4, 2), {1}));
  EXPECT_EQ(station.counts().dropped, 2);
}

TEST(LlmStation, GivesUpWhatNoStepTookInTime) {
  const LlmStepTimes times = plain_times();
  for (const RoutingRule rule : {RoutingRule::shared_queue, RoutingRule::least_loaded}) {
    LlmStation station({.routing = rule, .timeout = {105}});
    station.add_replica({}, {.sequences = 1}, times);
    station.submit(llm_request(0, 10, 1), {0});   // runs until 100
    station.submit(llm_request(1, 10, 50), {0});  // from 100 on, and longer than the timeout
    station.submit(llm_request(2, 10, 1), {0});
    station.advance({104});
    EXPECT_EQ(station.gave_up().size(), 0U);
    station.advance({105});
    ASSERT_EQ(station.gave_up().size(), 1U);
    EXPECT_EQ(station.gave_up()[0].id, 2U);
    station.advance({5'000});
    EXPECT_EQ(station.counts().completed, 2);
    EXPECT_EQ(station.counts().timed_out, 1);
    EXPECT_TRUE(station.consistent());
    EXPECT_EQ(station.next_time(), Time::max());
  }
}

TEST(LlmStation, ASharedQueueServesInOrder) {
  const LlmStepTimes times = plain_times();
  LlmStation station({.routing = RoutingRule::shared_queue});
  station.add_replica({}, {.sequences = 2}, times);
  station.add_replica({}, {.sequences = 2}, times);
  for (std::uint64_t id = 0; id < 9; ++id)
    station.submit(llm_request(id, 10, 1 + static_cast<std::int32_t>(id % 3)), {0});
  station.advance({0});
  EXPECT_EQ(station.running(), 4);
  EXPECT_EQ(station.waiting(), 5);
  station.advance({10'000});
  ASSERT_EQ(station.done().size(), 9U);
  std::vector<Time> scheduled(9);
  for (const LlmOutcome& o : station.done()) scheduled[o.request.id] = o.scheduled;
  for (std::size_t i = 1; i < 9; ++i) EXPECT_LE(scheduled[i - 1], scheduled[i]);
}

/// Requests, replicas that come, drain and fail at random: each request leaves once, in the order of its instants; a
/// lone replica in a station is a replica.
void live(std::uint64_t seed) {
  Rng rng = Rng(2026).split("llm station").split(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int32_t>(rng.below(n)); };
  const LlmStepTimes times = plain_times();
  const LlmLimits limits{.kv_blocks = 20, .block_tokens = 4, .step_tokens = 1 + below(40), .sequences = 1 + below(6)};
  LlmStation station({.routing = static_cast<RoutingRule>(below(4)),
                      .queue_limit = below(2) == 0 ? 1000 : below(5),
                      .timeout = below(2) == 0 ? Time::max() : Time{below(900)}});
  LlmStation lone;
  lone.add_replica({}, limits, times);
  LlmReplica replica(limits, times);
  std::vector<std::int32_t> alive;
  std::multiset<std::uint64_t> in;
  Time now{};
  for (std::uint64_t i = 0; i < 50; ++i) {
    now += Time{below(2) * below(300)};
    const int what = below(12);
    if (what == 0) {
      alive.push_back(station.add_replica(now, limits, times));
    } else if (what == 1 && !alive.empty()) {
      station.drain(alive[rng.below(alive.size())], now);
    } else if (what == 2 && !alive.empty()) {
      const std::size_t at = rng.below(alive.size());
      const std::vector<LlmRequest> left = station.remove(alive[at], now);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
      for (const LlmRequest& r : left) {
        in.erase(in.find(r.id));
        if (station.submit(r, now)) in.insert(r.id);
      }
    } else {
      LlmRequest r = llm_request(i, 1 + below(30), 1 + below(20), rng.below(3));
      r.arrival = now;
      if (station.submit(r, now)) in.insert(r.id);
      lone.submit(r, now), replica.submit(r, now);
    }
    // What drained replicas handed on may have been dropped there.
    station.advance(now), lone.advance(now), replica.advance(now);
    ASSERT_TRUE(station.consistent()) << seed;
    ASSERT_TRUE(lone.consistent()) << seed;
  }
  if (station.accepting().empty()) station.add_replica(now, limits, times);
  station.advance(now + Time{1'000'000}), lone.advance(now + Time{1'000'000}), replica.advance(now + Time{1'000'000});
  ASSERT_TRUE(station.consistent());
  ASSERT_EQ(station.waiting() + station.running(), 0) << seed;
  for (const LlmOutcome& o : station.done()) {
    ASSERT_TRUE(o.request.arrival <= o.queued && o.queued <= o.scheduled && o.scheduled <= o.first_token &&
                o.first_token <= o.last_token);
    ASSERT_EQ(in.count(o.request.id), 1U);
    in.erase(in.find(o.request.id));
  }
  for (const LlmRequest& r : station.gave_up()) {
    ASSERT_EQ(in.count(r.id), 1U);
    in.erase(in.find(r.id));
  }
  ASSERT_EQ(lone.done().size(), replica.done().size());
  for (std::size_t i = 0; i < lone.done().size(); ++i) {
    ASSERT_EQ(lone.done()[i].request.id, replica.done()[i].request.id);
    ASSERT_EQ(lone.done()[i].last_token, replica.done()[i].last_token);
  }
}

TEST(LlmStation, EachRequestLeavesOnceOnRandomWorlds) {
  for (std::uint64_t seed = 0; seed < random_runs(300) && !HasFatalFailure(); ++seed) live(seed);
}

}  // namespace
}  // namespace gpusched::test
