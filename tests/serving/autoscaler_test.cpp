// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/autoscaler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "gpusched/serving/erlang.hpp"

namespace gpusched::test {
namespace {

TEST(Erlang, TheWaitOfMMcIsThatOfTheDesign) {
  const MmcQueue a = MmcQueue::of(8, 1, 10), b = MmcQueue::of(90, 10, 10), c = MmcQueue::of(45, 1, 50);
  EXPECT_NEAR(a.waits, .40918015, 1e-8);
  EXPECT_NEAR(a.mean_wait_s(), .20459008, 1e-8);
  EXPECT_NEAR(b.waits, .66873152, 1e-8);
  EXPECT_NEAR(b.mean_wait_s(), .06687315, 1e-8);
  EXPECT_NEAR(c.waits, .36386447, 1e-8);
  EXPECT_NEAR(c.mean_wait_s(), .07277289, 1e-8);
  EXPECT_NEAR(a.wait_tail(1.5), .40918015 * std::exp(-3.0), 1e-8);
}

TEST(Erlang, OneServerIsMM1) {
  EXPECT_DOUBLE_EQ(erlang_b(1, .5), .5 / 1.5);
  EXPECT_DOUBLE_EQ(erlang_c(1, .5), .5);
  // The response of M/M/1 is exponential with rate mu - lambda; here both rates of the sum are equal.
  EXPECT_NEAR(MmcQueue::of(.5, 1, 1).response_tail(3), std::exp(-1.5), 1e-12);
  EXPECT_NEAR(MmcQueue::of(1, 2, 1).response_tail(.7), std::exp(-.7), 1e-12);
  // Two servers, lambda 1, mu 1: spare rate = mu, where the quotient of the general form is 0 / 0. C = 1/3.
  EXPECT_NEAR(MmcQueue::of(1, 1, 2).response_tail(2), std::exp(-2.0) * (1 + 2.0 / 3), 1e-12);
  EXPECT_NEAR(MmcQueue::of(1 + 1e-5, 1, 2).response_tail(2), MmcQueue::of(1, 1, 2).response_tail(2), 1e-5);
}

TEST(Erlang, LargeNumbersOfServersStayWithinTheNumbers) {
  for (const std::int64_t servers : {1'000, 100'000, 1'000'000}) {
    const double load = .99 * static_cast<double>(servers);
    const double waits = erlang_c(servers, load);
    EXPECT_GT(waits, 0);
    EXPECT_LT(waits, 1);
  }
  // Halfin and Whitt: c = a + beta sqrt(a), beta 1: P(wait) tends to 1 / (1 + sqrt(2 pi) Phi(1) e^(1/2)).
  EXPECT_NEAR(erlang_c(1'001'000, 1e6), 1 / (1 + std::sqrt(2 * M_PI) * .8413447461 * std::exp(.5)), 1e-3);
  EXPECT_EQ(erlang_c(10, 10), 1);
  EXPECT_TRUE(std::isinf(MmcQueue::of(10, 1, 10).mean_wait_s()));
  EXPECT_TRUE(std::isinf(md1_mean_wait_s(1, 1)));
  EXPECT_DOUBLE_EQ(md1_mean_wait_s(.8, 1), 2);
}

TEST(Erlang, LeastServersKeepThePromiseAndOneLessDoesNot) {
  const LatencyTarget target{.within_s = .5, .quantile = .95, .of = LatencyTarget::Of::wait};
  for (const double rate : {.1, 1.0, 8.0, 45.0, 300.0}) {
    const std::int64_t c = least_servers(rate, 1, target, 1000);
    EXPECT_LE(MmcQueue::of(rate, 1, c).wait_tail(.5), .05);
    if (c > 1) {
      EXPECT_GT(MmcQueue::of(rate, 1, c - 1).wait_tail(.5), .05);
    }
  }
  // The service alone takes longer than 0.5 s in e^-0.5 of the cases: nothing helps.
  EXPECT_EQ(least_servers(1, 1, {.within_s = .5, .quantile = .95}, 40), 41);
  EXPECT_EQ(replicas_lower_bound(10.1, 2), 6);
  EXPECT_EQ(replicas_lower_bound(0, 2), 0);
}

/// A service whose replicas become what is wanted at once, at a given number of requests in it.
struct World {
  ServiceLoad load;

  template <class Rule>
  std::int32_t ask(Rule& rule, double at_s, std::int64_t in_flight, double rate = 0) {
    const Time now = from_seconds(at_s);
    load.held_us += load.held() * (now - load.now).us;
    load.arrived += std::llround(rate * to_seconds(now - load.now));
    load.now = now;
    load.in_flight = in_flight;
    return load.ready = rule.wanted(load);
  }
};

TEST(Hpa, FollowsTheRatioWithinItsLimits) {
  Hpa rule({.target = .5});
  World world;
  world.load.ready = 4;
  EXPECT_EQ(world.ask(rule, 0, 4), 8);       // metric 1: ceil(4 x 2)
  EXPECT_EQ(world.ask(rule, 7, 1000), 8);    // not asked again before 15 s
  EXPECT_EQ(world.ask(rule, 15, 4), 8);      // ratio 1
  EXPECT_EQ(world.ask(rule, 30, 1000), 16);  // at most double
  EXPECT_EQ(world.ask(rule, 45, 8), 16);     // ratio 1
  World small;
  Hpa other({.target = .5});
  small.load.ready = 1;
  EXPECT_EQ(small.ask(other, 0, 1000), 5);  // at most four more
  EXPECT_EQ(small.ask(other, 15, 1000), 10);
}

TEST(Hpa, DoesNothingWithinTenPercent) {
  Hpa rule({.metric = HpaOptions::Metric::held, .target = 10});
  World world;
  world.load.ready = 10;
  EXPECT_EQ(world.ask(rule, 0, 109), 10);
  EXPECT_EQ(world.ask(rule, 15, 91), 10);
  EXPECT_EQ(world.ask(rule, 30, 111), 12);
}

TEST(Hpa, GoesDownByTheLargestWishOfFiveMinutes) {
  Hpa rule({.target = .5});
  World world;
  world.load.ready = 10;
  EXPECT_EQ(world.ask(rule, 0, 5), 10);
  EXPECT_EQ(world.ask(rule, 15, 4), 10);  // wants 8
  for (int second = 30; second < 300; second += 15) EXPECT_EQ(world.ask(rule, second, 1), 10) << second;
  EXPECT_EQ(world.ask(rule, 300, 1), 8);  // the wish of second 15 holds
  EXPECT_EQ(world.ask(rule, 315, 1), 2);
}

TEST(Hpa, ReplicasThatStartSpeakAgainstGoingUp) {
  Hpa rule({.target = .5});
  ServiceLoad load{.ready = 2, .starting = 2, .in_flight = 2};
  EXPECT_EQ(rule.wanted(load), 4);  // ratio 2 of two, 1 of four
  Hpa other({.target = .5, .at_once = 10});
  load.in_flight = 21;
  EXPECT_EQ(other.wanted(load), 4);  // ratio 1.05 of four; of two it would be ceil(2 x 2.1)
}

TEST(Kpa, FollowsTheMeanOfAMinute) {
  Kpa rule({.concurrency = 10});
  World world;
  world.load.ready = 5;
  EXPECT_EQ(world.ask(rule, 0, 35), 5);  // 35 / 7
  for (int second = 2; second <= 60; second += 2) EXPECT_EQ(world.ask(rule, second, 35), 5) << second;
  // 49 from second 60 on: 7 once the whole minute is at 49, 6 once the mean exceeds 35.
  EXPECT_EQ(world.ask(rule, 62, 49), 5);
  EXPECT_EQ(world.ask(rule, 64, 49), 6);
  for (int second = 66; second <= 118; second += 2) EXPECT_LE(world.ask(rule, second, 49), 7) << second;
  EXPECT_EQ(world.ask(rule, 122, 49), 7);
  EXPECT_FALSE(rule.panics());
}

TEST(Kpa, PanicsAtTwiceWhatIsReadyAndDoesNotGoDownThen) {
  Kpa rule({.concurrency = 10});
  World world;
  world.load.ready = 2;
  for (int second = 0; second <= 60; second += 2) EXPECT_EQ(world.ask(rule, second, 14), 2) << second;
  world.ask(rule, 61, 60);                // from here on 60 are held
  EXPECT_EQ(world.ask(rule, 62, 60), 4);  // the mean of 6 s is (5 x 14 + 60) / 6 = 21.7, that is 4 replicas: panic
  EXPECT_TRUE(rule.panics());
  EXPECT_EQ(world.ask(rule, 68, 60), 9);  // ceil(60 / 7)
  for (int second = 70; second < 122; second += 2) EXPECT_EQ(world.ask(rule, second, 0), 9) << second;
  int second = 122;
  while (second < 200 && world.ask(rule, second, 0) >= 9) second += 2;
  EXPECT_EQ(second, 130);  // panic was renewed at 68 or later and lasts 60 s from there
  EXPECT_FALSE(rule.panics());
  EXPECT_EQ(world.load.ready, 4);  // at most halved
}

TEST(Kpa, GoesToZeroAfterTheStableWindowAndThirtySecondsAndWakesAtOnce) {
  Kpa rule({.concurrency = 10});
  World world;
  world.load.ready = 1;
  for (int second = 0; second <= 100; second += 2) EXPECT_EQ(world.ask(rule, second, 1), 1);
  int second = 102;
  world.ask(rule, second, 0);
  while (second < 300 && world.load.ready == 1) world.ask(rule, second += 2, 0);
  EXPECT_EQ(second, 102 + 60 + 30);
  EXPECT_EQ(world.ask(rule, second + .5, 0), 0);
  world.load.queued = 1;
  EXPECT_EQ(world.ask(rule, second + 1, 0), 1);  // before its period is over
}

TEST(RequestRate, GoesUpAfterFiveMinutesAndDownAfterTwenty) {
  RequestRate rule({.rate_per_replica = 2});
  World world;
  world.load.ready = 1;
  int second = 0, looks = 0;
  world.ask(rule, second, 0, 0);
  while (world.load.ready == 1 && ++looks < 100) world.ask(rule, second += 20, 0, 5);
  EXPECT_EQ(world.load.ready, 3);  // ceil(5 / 2)
  // At 20 s a third of the minute has counted (1.67/s), at 40 s two thirds: 15 looks from there.
  EXPECT_EQ(second, 40 + 14 * 20);
  looks = 0;
  const int from = second;
  while (world.load.ready == 3 && ++looks < 100) world.ask(rule, second += 20, 0, 1);
  EXPECT_EQ(world.load.ready, 1);
  EXPECT_EQ(second - from, 60 * 20);  // from the first look on: the minute holds 11 thirds a second, that is 2
}

TEST(RequestRate, ABreakBeginsAnew) {
  RequestRate rule({.window = whole_seconds(20)});
  World world;
  world.load.ready = 1;
  world.ask(rule, 0, 0, 0);
  int second = 0;
  for (int look = 0; look < 14; ++look) EXPECT_EQ(world.ask(rule, second += 20, 0, 3), 1);
  EXPECT_EQ(world.ask(rule, second += 20, 0, 1), 1);
  for (int look = 0; look < 14; ++look) EXPECT_EQ(world.ask(rule, second += 20, 0, 3), 1);
  EXPECT_EQ(world.ask(rule, second += 20, 0, 3), 3);
}

TEST(RequestRate, LeavesZeroAtOnce) {
  RequestRate rule({.limits = {.least = 0}});
  World world;
  EXPECT_EQ(world.ask(rule, 0, 0), 0);
  EXPECT_EQ(world.ask(rule, 20, 0, 3), 1);
}

TEST(QueueTarget, IsTheLeastThatKeepsThePromise) {
  QueueTarget rule({.target = {.within_s = .5, .quantile = .95, .of = LatencyTarget::Of::wait}, .service_s = 1});
  World world;
  world.load.ready = 1;
  EXPECT_EQ(world.ask(rule, 0, 0), 1);
  const std::int64_t at_8 = least_servers(8, 1, {.within_s = .5, .quantile = .95, .of = LatencyTarget::Of::wait}, 100);
  // By hand: c = 11 waits with C = .2451..; .2451 e^-1.5 = .0547 > .05, and 12 with C = .1398 e^-2 = .0189.
  EXPECT_EQ(at_8, 12);
  for (int second = 15; second <= 60; second += 15) EXPECT_EQ(world.ask(rule, second, 8, 8), 12);
  QueueTarget shared({.target = {.within_s = .5, .quantile = .95, .of = LatencyTarget::Of::wait}, .at_once = 5});
  ServiceLoad load{.ready = 4};
  EXPECT_EQ(shared.wanted(load), 4);  // no service time is known
  load = {.now = whole_seconds(60), .ready = 4, .arrived = 480, .mean_service_s = 1};
  EXPECT_EQ(shared.wanted(load), 3);  // ceil(12 / 5), and the wish of 60 s ago holds no more
}

TEST(Autoscaler, HoldsEachRuleByValue) {
  Autoscaler fixed(FixedReplicas(7)), hpa{Hpa({.target = .5})};
  ServiceLoad load{.ready = 4, .in_flight = 4};
  EXPECT_EQ(fixed.wanted(load), 7);
  EXPECT_EQ(fixed.period(), Time::max());
  Autoscaler copy = hpa;
  EXPECT_EQ(copy.wanted(load), 8);
  load.in_flight = 2;
  EXPECT_EQ(hpa.wanted(load), 4);  // the copy's memory is its own
  EXPECT_EQ(hpa.period(), whole_seconds(15));
  EXPECT_EQ(Autoscaler().wanted(load), 1);
}

}  // namespace
}  // namespace gpusched::test
