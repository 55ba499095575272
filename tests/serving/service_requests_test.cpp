// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/service_requests.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/serving/erlang.hpp"
#include "gpusched/serving/llm_station.hpp"
#include "tests/serving/slow_requests.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

using detail::ServiceRequests;

// Steps of 1, 2 or 3 s by their tokens, whatever they look back at.
LlmStepTimes whole_second_steps() {
  KernelTables tables;
  for (const auto& [tokens, s] : {std::pair{1, 1}, {4, 1}, {5, 2}, {8, 2}, {9, 3}, {64, 3}}) {
    tables.dense.push_back({"mlp", tokens, s * 1e6});
  }
  tables.per_sequence = {{"head", 1, 0}, {"head", 64, 0}};
  tables.attention = {{{0, 0, 1, 1}, 0}, {{0, 0, 64, 99}, 0}, {{1, 0, 0, 0}, 0}, {{64, 99, 0, 0}, 0}};
  return LlmStepTimes(KernelStepTimes(tables, 1));
}

std::int64_t at_most(Rng& rng, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1)));
}

ServiceSpec drawn_spec(Rng& rng, bool is_llm) {
  ServiceSpec spec{.name = "s", .most = 1 + static_cast<std::uint32_t>(rng.below(4))};
  const std::int64_t gap = at_most(rng, 0, 4);
  Time at{};
  for (std::uint64_t i = 0, requests = 1 + rng.below(50); i < requests; ++i) {
    at += whole_seconds(at_most(rng, 0, gap));
    spec.requests.push_back({.arrival = at,
                             .work = whole_seconds(at_most(rng, 1, 9)),
                             .prompt_tokens = static_cast<std::uint32_t>(at_most(rng, 1, 14)),
                             .output_tokens = static_cast<std::uint32_t>(at_most(rng, 1, 9)),
                             .session = rng.below(4)});
  }
  spec.at_once = 1 + static_cast<std::uint32_t>(rng.below(3));
  if (rng.below(2) == 0) spec.timeout = whole_seconds(at_most(rng, 1, 25));
  spec.lost = rng.below(2) == 0 ? LostRequests::retry : LostRequests::drop;
  const std::array rules{RoutingRule::least_loaded, RoutingRule::round_robin, RoutingRule::session,
                         RoutingRule::shared_queue};
  spec.routing = rules[rng.below(is_llm ? 4 : 3)];
  if (is_llm) {
    spec.llm = LlmEngine{.limits = {.kv_blocks = at_most(rng, 6, 16),
                                    .block_tokens = 4,
                                    .step_tokens = at_most(rng, 4, 16),
                                    .sequences = static_cast<std::int32_t>(at_most(rng, 1, 6)),
                                    .chunked = rng.below(3) > 0,
                                    .whole_prompt_fits = rng.below(2) == 0},
                         .times = whole_second_steps()};
  }
  return spec;
}

std::int64_t seconds_of(Time t) { return t == Time::max() ? -1 : t.us / 1'000'000; }

// What happens to replicas in a second, to both.
void disturb(Rng& rng, const ServiceSpec& spec, ServiceRequests& own, SlowRequests& slow, std::vector<int>& phases) {
  for (std::uint32_t r = 0; r < spec.most; ++r) {
    if (rng.below(12) != 0) continue;
    const RatePpm rate = spec.llm ? reference_rate : static_cast<RatePpm>(rng.below(2) * reference_rate);
    const std::uint64_t what = rng.below(4);
    if (phases[r] == 0) {
      own.open(r, rate);
      slow.open(r, rate);
      phases[r] = 1;
    } else if (what == 0) {
      own.close(r);
      own.resume();
      slow.close(r);
      phases[r] = 0;
    } else if (what == 1) {
      phases[r] = 3 - phases[r];
      own.accept(r, phases[r] == 1);
      slow.accept(r, phases[r] == 1);
    } else if (!spec.llm) {
      own.set_rate(r, rate);
      slow.set_rate(r, rate);
    }
  }
}

TEST(ServiceRequests, AreThoseOfTheSlowSimulation) {
  std::uint64_t completed = 0, dropped = 0, timed_out = 0, retried = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(300); ++seed) {
    Rng rng(seed);
    const bool is_llm = seed % 2 == 0;
    const ServiceSpec spec = drawn_spec(rng, is_llm);
    ServiceRequests own(spec, {});
    SlowRequests slow(spec);
    std::vector<int> phases(spec.most, 0);  // 0: closed, 1: takes requests, 2: drains
    std::int64_t held_s = 0;
    for (std::int64_t now = 0; now < 220; ++now) {
      if (now > 0) held_s += slow.served() + slow.waiting();
      own.advance_to(whole_seconds(now));
      slow.second(now);
      disturb(rng, spec, own, slow, phases);
      own.advance_to(whole_seconds(now));
      ASSERT_TRUE(own.ledger().counts().add_up());
      for (std::uint32_t r = 0; r < spec.most; ++r) ASSERT_EQ(own.busy(r), slow.busy(r)) << seed << " at " << now;
      for (std::uint32_t i = 0; i < spec.requests.size(); ++i) {
        const RequestRecord& record = own.ledger().records()[i];
        const SlowRequests::Life& life = slow.lives[i];
        ASSERT_EQ(record.phase, life.phase) << seed << " request " << i << " at " << now;
        ASSERT_EQ(seconds_of(record.start), life.start) << seed << " request " << i << " at " << now;
        ASSERT_EQ(seconds_of(record.end), life.end) << seed << " request " << i << " at " << now;
        ASSERT_EQ(static_cast<int>(record.replica), life.replica) << seed << " request " << i << " at " << now;
        ASSERT_EQ(record.retries, life.retries) << seed << " request " << i;
        ASSERT_EQ(seconds_of(record.first_token), life.first) << seed << " request " << i;
      }
    }
    EXPECT_EQ(own.ledger().held_us(), held_s * 1'000'000) << seed;  // Little's integral
    completed += own.ledger().counts().completed;
    dropped += own.ledger().counts().dropped;
    timed_out += own.ledger().counts().timed_out;
    for (const RequestRecord& record : own.ledger().records()) retried += record.retries;
  }
  for (const std::uint64_t some : {completed, dropped, timed_out, retried}) EXPECT_GT(some, 0u);
}

TEST(ServiceRequests, OneEngineAloneIsAnLlmStation) {
  std::int64_t preempted = 0, gave_up = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(40); ++seed) {
    Rng rng(seed);
    ServiceSpec spec = drawn_spec(rng, true);
    spec.most = 1;
    spec.llm->times = LlmStepTimes(BatchStepTimes({{1, 900.25, 400.125}, {20, 31000, 900}}));
    for (ServiceRequest& request : spec.requests) request.arrival = Time{request.arrival.us / 700};
    spec.timeout = seed % 3 == 0 ? Time{15'000} : Time::max();
    ServiceRequests own(spec, {});
    LlmStation station({.routing = spec.routing, .timeout = spec.timeout});
    own.open(0, reference_rate);
    station.add_replica({}, spec.llm->limits, spec.llm->times);
    std::vector<LlmOutcome> outcomes;
    for (std::uint32_t i = 0; i < spec.requests.size(); ++i) {
      const LlmRequest request = gpusched::llm_request(spec.requests[i], {}, i);
      if (i > 0 && request.arrival > spec.requests[i - 1].arrival) station.advance(spec.requests[i - 1].arrival);
      station.submit(request, request.arrival);
    }
    station.advance(whole_seconds(1000));
    own.advance_to(whole_seconds(1000));
    ASSERT_EQ(static_cast<std::int64_t>(own.ledger().counts().completed), station.counts().completed) << seed;
    ASSERT_EQ(static_cast<std::int64_t>(own.ledger().counts().timed_out), station.counts().timed_out) << seed;
    for (const LlmOutcome& outcome : station.done()) {
      const RequestRecord& record = own.ledger().records()[outcome.request.id];
      ASSERT_EQ(record.start, outcome.scheduled) << seed << " request " << outcome.request.id;
      ASSERT_EQ(record.first_token, outcome.first_token) << seed << " request " << outcome.request.id;
      ASSERT_EQ(record.end, outcome.last_token) << seed << " request " << outcome.request.id;
    }
    preempted += station.replica(0).counts().preemptions;
    gave_up += station.counts().timed_out;
  }
  EXPECT_GT(preempted, 0);
  EXPECT_GT(gave_up, 0);
}

TEST(ServiceRequests, OneReplicaWithAQueueIsOneQueueForAll) {
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    Rng rng(seed);
    ServiceSpec spec = drawn_spec(rng, false);
    spec.most = 1;
    if (seed % 2 == 0) {
      spec.batches = {whole_seconds(2), whole_seconds(3), whole_seconds(5)};
      spec.batch_delay = whole_seconds(at_most(rng, 0, 3));
    }
    ServiceSpec shared = spec;
    shared.routing = RoutingRule::shared_queue;
    ServiceRequests own(spec, {}), one(shared, {});
    for (std::int64_t now = 0; now < 200; now += 5) {
      const auto rate = static_cast<RatePpm>(rng.below(3) * 700'000);
      for (ServiceRequests* each : {&own, &one}) {
        each->advance_to(whole_seconds(now));
        if (now == 0) each->open(0, rate);
        if (now == 50) each->close(0);
        each->resume();
        if (now == 60) each->open(0, rate);
        if (now > 60) each->set_rate(0, rate);
        each->advance_to(whole_seconds(now));
      }
    }
    for (std::uint32_t i = 0; i < spec.requests.size(); ++i) {
      ASSERT_EQ(own.ledger().records()[i].phase, one.ledger().records()[i].phase) << seed << " request " << i;
      ASSERT_EQ(own.ledger().records()[i].start, one.ledger().records()[i].start) << seed << " request " << i;
      ASSERT_EQ(own.ledger().records()[i].end, one.ledger().records()[i].end) << seed << " request " << i;
    }
  }
}

ServiceSpec steady(int requests, double gap_s, double work_s, std::uint32_t most, RoutingRule routing) {
  ServiceSpec spec{.name = "s", .most = most};
  for (int i = 0; i < requests; ++i) {
    spec.requests.push_back({.arrival = from_seconds(gap_s * i), .work = from_seconds(work_s)});
  }
  spec.routing = routing;
  return spec;
}

// Requests at 0, 1, 2 ... of 3 s each go to replicas 0, 1, 0, 1: request k begins at max(k, the end of k - 2), so it
// waits (k / 2) seconds, rounded down, at two replicas that are given 1.5 times what they serve.
TEST(ServiceRequests, RoundRobinByHand) {
  const ServiceSpec spec = steady(8, 1, 3, 2, RoutingRule::round_robin);
  ServiceRequests own(spec, {});
  own.open(0, reference_rate);
  own.open(1, reference_rate);
  own.advance_to(whole_seconds(100));
  for (std::uint32_t k = 0; k < 8; ++k) {
    EXPECT_EQ(own.ledger().records()[k].replica, k % 2);
    EXPECT_EQ(own.ledger().records()[k].start, whole_seconds(k + k / 2));
    EXPECT_EQ(own.ledger().records()[k].end, whole_seconds(k + k / 2 + 3));
  }
}

// Of those that came by 4 s, replica 1 holds 1 (served from 1 s to 4 s) and 3, which it begins at 4 s. It is lost then:
// 3 goes to the end of the queue of replica 0, which has 2 (3 s to 6 s) and 4, and begins before 4 as it came first.
TEST(ServiceRequests, WhatALostReplicaHeldIsRoutedAgain) {
  const ServiceSpec spec = steady(5, 1, 3, 2, RoutingRule::round_robin);
  ServiceRequests own(spec, {});
  own.open(0, reference_rate);
  own.open(1, reference_rate);
  own.advance_to(whole_seconds(4));
  EXPECT_EQ(own.ledger().records()[1].end, whole_seconds(4));
  own.close(1);
  own.resume();
  own.advance_to(whole_seconds(100));
  EXPECT_EQ(own.ledger().records()[3].start, whole_seconds(6));
  EXPECT_EQ(own.ledger().records()[3].replica, 0u);
  EXPECT_EQ(own.ledger().records()[3].retries, 1u);
  EXPECT_EQ(own.ledger().records()[4].start, whole_seconds(9));
}

// What takes no time ends before the next one begins: all at once, and one after the other beside one that takes 2 s.
TEST(ServiceRequests, ServiceMayTakeNoTime) {
  ServiceSpec spec{.name = "s", .most = 2, .routing = RoutingRule::round_robin};
  for (const std::int64_t work_s : {0, 2, 0, 0, 0, 1}) {
    spec.requests.push_back({.arrival = whole_seconds(1), .work = whole_seconds(work_s)});
  }
  ServiceRequests own(spec, {});
  own.open(0, reference_rate);
  own.open(1, reference_rate);
  own.advance_to(whole_seconds(100));
  std::vector<std::int64_t> ends;
  for (const RequestRecord& record : own.ledger().records()) ends.push_back(record.end.us / 1'000'000);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{1, 3, 1, 3, 1, 4}));
}

// M/M/1 each of c replicas under random splitting: rate 0.8 a replica, 1 s of service: a mean wait of 0.8 / 0.2 = 4 s;
// one queue of M/M/4 waits 0.7455 s. Round robin (Erlang-4 arrivals at each) lies between.
TEST(ServiceRequests, WaitsOfRoutersAreThoseOfQueueingTheory) {
  const auto mean_wait_s = [](RoutingRule routing) {
    ServiceSpec spec{.name = "s", .most = 4};
    Rng rng(5);
    double at_s = 0;
    constexpr int requests = 400'000;
    for (int i = 0; i < requests; ++i) {
      at_s += rng.exponential(1 / 3.2);
      spec.requests.push_back({.arrival = from_seconds(at_s), .work = from_seconds(rng.exponential(1))});
    }
    spec.routing = routing;
    ServiceRequests own(spec, {});
    for (std::uint32_t r = 0; r < 4; ++r) own.open(r, reference_rate);
    own.advance_to(whole_seconds(1'000'000));
    EXPECT_EQ(own.ledger().counts().completed, static_cast<std::uint64_t>(requests));
    double wait_s = 0, stay_s = 0;
    for (std::uint32_t i = 0; i < requests; ++i) {
      wait_s += to_seconds(own.ledger().records()[i].start - own.ledger().arrival(i));
      stay_s += to_seconds(own.ledger().records()[i].end - own.ledger().arrival(i));
    }
    EXPECT_NEAR(stay_s, static_cast<double>(own.ledger().held_us()) / 1e6, 1e-3);  // Little's law
    return wait_s / requests;
  };
  const double shared = mean_wait_s(RoutingRule::shared_queue), random = mean_wait_s(RoutingRule::random);
  EXPECT_NEAR(shared, 0.7455, 0.05);
  EXPECT_NEAR(random, 4, 0.25);
  const double turns = mean_wait_s(RoutingRule::round_robin), least = mean_wait_s(RoutingRule::least_loaded);
  EXPECT_LT(shared, least);
  EXPECT_LT(least, turns);
  EXPECT_LT(turns, random);
}

// A prompt takes 1 s, each later token too. At half speed from 1.5 s on: the step that began at 1 s ends at 2 s, the
// next ones take 2 s each, until 6 s; it stands still from 5 s to 9 s, so that the last step begins at 9 s, at full
// speed again.
TEST(ServiceRequests, AnEngineChangesItsSpeedWithTheNextStep) {
  ServiceSpec spec{.name = "s"};
  spec.requests = {{.prompt_tokens = 3, .output_tokens = 5}};
  spec.llm = LlmEngine{.limits = {.kv_blocks = 9}, .times = whole_second_steps()};
  ServiceRequests own(spec, {});
  own.open(0, reference_rate);
  own.advance_to(from_seconds(1.5));
  own.set_rate(0, reference_rate / 2);
  own.advance_to(whole_seconds(5));
  own.set_rate(0, 0);
  own.advance_to(whole_seconds(9));
  EXPECT_EQ(own.next_time(), Time::max());
  EXPECT_EQ(own.busy(0), 1u);
  own.set_rate(0, reference_rate);
  own.advance_to(whole_seconds(20));
  EXPECT_EQ(own.ledger().records()[0].first_token, whole_seconds(1));
  EXPECT_EQ(own.ledger().records()[0].end, whole_seconds(10));
}

}  // namespace
}  // namespace gpusched::test
