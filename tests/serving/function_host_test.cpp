// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/function_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

struct SimFaasCase {
  double rate, warm_s, cold_s;
  std::int64_t expiry_s;
  double cold_share, instances, busy;  ///< published
};

TEST(FunctionHost, IsSimFaasInItsThreeSettings) {
  for (const SimFaasCase& c :
       {SimFaasCase{.9, 1.991, 2.244, 600, .0014, 7.68, 1.79}, SimFaasCase{.1, 2.016, 2.163, 600, .007062, 2.634, 0},
        SimFaasCase{.01, 2, 5, 60, .5619, .4952, 0}}) {
    FunctionHost host({.functions = {{.warm_s = c.warm_s, .cold_s = c.cold_s}},
                       .keep_alive = FixedKeepAlive(whole_seconds(c.expiry_s)),
                       .exponential = true,
                       .seed = 1});
    // The deep tests run all for 10^6 s; here the first, of 360,000 invocations and some 500 cold ones, is shorter.
    const double span_s = c.rate > .5 && random_runs(500) == 500 ? 4e5 : 1e6;
    Rng rng = Rng(1).split("arrivals");
    double at = 0;
    while ((at += rng.exponential(1 / c.rate)) < span_s) {
      host.submit({}, from_seconds(at));
      host.clear_done();
    }
    host.advance(from_seconds(span_s));
    EXPECT_TRUE(host.consistent());
    const double share = static_cast<double>(host.counts().cold) / static_cast<double>(host.counts().invoked);
    EXPECT_NEAR(share, c.cold_share, .1 * c.cold_share);
    EXPECT_NEAR(static_cast<double>(host.counts().alive_us) / 1e6 / span_s, c.instances, .01 * c.instances);
    if (c.busy > 0) {
      EXPECT_NEAR(static_cast<double>(host.counts().busy_us) / 1e6 / span_s, c.busy, .01 * c.busy);
    }
  }
}

TEST(FunctionHost, EndsAfterItsTimeAndBeginsAnew) {
  FunctionHost host({.functions = {{.warm_s = 1, .cold_s = 3}}, .keep_alive = FixedKeepAlive(whole_seconds(10))});
  host.submit({.id = 1}, {});
  host.submit({.id = 2}, whole_seconds(1));  // a second one
  host.submit({.id = 3}, whole_seconds(5));  // both are idle since 3 and 4: the newest
  host.advance(whole_seconds(13));           // the first one's time is over
  EXPECT_EQ(host.alive(), 1);
  host.submit({.id = 4}, whole_seconds(16));  // at this instant the second one's is
  EXPECT_EQ(host.counts().cold, 3);
  host.advance(whole_seconds(100));
  EXPECT_EQ(host.alive(), 0);
  ASSERT_EQ(host.done().size(), 4U);
  EXPECT_EQ(host.done()[2].ended, whole_seconds(6));
  EXPECT_FALSE(host.done()[2].cold);
  EXPECT_EQ(host.done()[3].ended, whole_seconds(19));
  EXPECT_EQ(host.next_time(), Time::max());
}

TEST(FunctionHost, GreedyDualKeepsWhatIsDearToStart) {
  // Memory for two. A: (6 - 1) / 1 = 5 an invocation; B: 1; C: 2.
  FunctionHost host(
      {.functions = {{1, 1, 6}, {1, 1, 2}, {1, 1, 3}}, .keep_alive = GreedyDualKeepAlive(), .memory_mb = 2});
  host.submit({.function = 0}, whole_seconds(0));
  host.submit({.function = 1}, whole_seconds(10));
  host.submit({.function = 1}, whole_seconds(20));  // priority 2
  host.submit({.function = 2}, whole_seconds(30));  // B goes, the clock is 2: C has 2 + 2
  host.submit({.function = 0}, whole_seconds(40));  // A: 2 + 2 x 5
  host.submit({.function = 1}, whole_seconds(50));  // C goes, the clock is 4: B has 4 + 1, its frequency anew
  host.submit({.function = 2}, whole_seconds(60));  // B goes
  host.submit({.function = 0}, whole_seconds(70));  // is still there
  EXPECT_EQ(host.counts().evicted, 3);
  EXPECT_EQ(host.counts().cold, 5);
  host.submit({.function = 0}, whole_seconds(70));  // A runs, C is idle and goes
  host.submit({.function = 1}, whole_seconds(70));  // running ones stay: dropped
  EXPECT_EQ(host.counts().dropped, 1);
  EXPECT_EQ(host.counts().evicted, 4);
  EXPECT_TRUE(host.consistent());
}

TEST(FunctionHost, GreedyDualForgetsByItsClock) {
  // Memory for two. An invocation of A is worth 5, of B 1, of C 2; B and C come in turns.
  FunctionHost host(
      {.functions = {{1, 1, 6}, {1, 1, 2}, {1, 1, 3}}, .keep_alive = GreedyDualKeepAlive(), .memory_mb = 2});
  const std::uint32_t order[] = {0, 1, 2, 1, 2, 1};  // clock 1, 3, 4; then B takes the place of A (5), not of C (4 + 2)
  Time now{};
  for (const std::uint32_t function : order) host.submit({.function = function}, now += whole_seconds(10));
  host.submit({.function = 2}, now += whole_seconds(10));
  EXPECT_EQ(host.counts().cold, 6);
  host.submit({.function = 0}, now += whole_seconds(10));
  EXPECT_EQ(host.counts().cold, 7);
}

TEST(FunctionHost, AHistogramCountsNoIdleTimeOfAFunctionThatRuns) {
  FunctionHost host(
      {.functions = {{.warm_s = 1, .cold_s = 1}}, .keep_alive = HistogramKeepAlive({.least_samples = 4})});
  for (int i = 0; i < 6; ++i) {
    host.submit({.service = whole_seconds(100)}, whole_seconds(600 * i));
    host.submit({.service = whole_seconds(10)}, whole_seconds(600 * i + 50));
  }
  const Time ended = whole_seconds(600 * 5 + 100);  // idle 500 s each time: bin 8
  host.advance(ended + from_seconds(1.1 * 540) - Time{1});
  EXPECT_GT(host.alive(), 0);
  host.advance(ended + from_seconds(1.1 * 540));
  EXPECT_EQ(host.alive(), 0);
}

TEST(FunctionHost, AHistogramEndsAndLoadsAhead) {
  HistogramOptions histogram{.least_samples = 4};
  FunctionHost host({.functions = {{.warm_s = 1, .cold_s = 2}}, .keep_alive = HistogramKeepAlive(histogram)});
  Time at{};
  for (int i = 0; i < 5; ++i) {  // idle 598 s, then 599 s: bin 9, from 540 s
    host.submit({}, at);
    at += whole_seconds(600);
  }
  EXPECT_EQ(host.counts().cold, 1);  // 4 h until there are four samples
  host.advance(at - whole_seconds(600 - 2));
  EXPECT_EQ(host.alive(), 0);  // ended at once
  const Time ended = at - whole_seconds(599);
  host.advance(ended + whole_seconds(486) - Time{1});
  EXPECT_EQ(host.alive(), 0);
  host.advance(ended + whole_seconds(486));  // .9 x 540
  EXPECT_EQ(host.alive(), 1);
  FunctionHost late = host;
  host.submit({}, at);
  EXPECT_EQ(host.counts().cold, 1);
  late.advance(ended + whole_seconds(660) - Time{1});  // 1.1 x 600
  EXPECT_EQ(late.alive(), 1);
  late.advance(ended + whole_seconds(660));
  EXPECT_EQ(late.alive(), 0);
  EXPECT_EQ(late.counts().loaded_ahead, 1);
}

TEST(HistogramKeepAlive, ItsConditionsAreThoseOfTheTwoPapers) {
  HistogramOptions options{.least_samples = 4};
  HistogramKeepAlive hybrid(options);
  options.conditions = HistogramOptions::Conditions::faascache;
  options.otherwise = whole_seconds(7200);
  HistogramKeepAlive faascache(options);
  // Function 0: all alike. 1: each bin once, which tells nothing. 2: beyond four hours, most of them. 3: mostly 10 s,
  // rarely 5 h.
  for (int i = 0; i < 240; ++i) {
    for (HistogramKeepAlive* rule : {&hybrid, &faascache}) {
      rule->invoked(0, whole_seconds(90));
      rule->invoked(1, whole_seconds(60 * i + 30));
      rule->invoked(2, whole_seconds(i % 3 == 0 ? 30 : 20'000));
      rule->invoked(3, whole_seconds(i % 40 == 0 ? 18'000 : 10));
    }
  }
  const auto until_s = [](const HistogramKeepAlive& rule, std::uint32_t f) { return to_seconds(rule.plan(f).until); };
  EXPECT_DOUBLE_EQ(until_s(hybrid, 0), 132);
  EXPECT_DOUBLE_EQ(to_seconds(hybrid.plan(0).load_after), 54);
  EXPECT_DOUBLE_EQ(until_s(hybrid, 1), 4 * 3600);
  EXPECT_DOUBLE_EQ(until_s(hybrid, 2), 4 * 3600);
  EXPECT_DOUBLE_EQ(until_s(hybrid, 3), 66);
  EXPECT_DOUBLE_EQ(until_s(faascache, 0), 132);
  EXPECT_DOUBLE_EQ(until_s(faascache, 1), 1.1 * 60 * 238);
  EXPECT_DOUBLE_EQ(until_s(faascache, 2), 66);
  EXPECT_DOUBLE_EQ(until_s(faascache, 3), 7200);
}

/// A host of fixed keep-alive that looks at everything at every event. Ends of services, expiries and arrivals by time.
void compare_with_slow_host(std::uint64_t seed) {
  Rng rng = Rng(2026).split("functions").split(seed);
  struct Box {
    std::uint32_t function;
    std::int64_t busy_until, idle_since, used_at;
    bool alive;
  };
  const std::int64_t expiry = 1 + static_cast<std::int64_t>(rng.below(40));
  const double memory = 3 + static_cast<double>(rng.below(8));
  const std::vector<FunctionCosts> functions{{1, .00001, .00001}, {2, .00001, .000014}, {3, .00001, .00002}};
  FunctionHost host({.functions = functions, .keep_alive = FixedKeepAlive({expiry}), .memory_mb = memory});
  std::vector<Box> boxes;
  std::int64_t now = 0, cold = 0, dropped = 0, alive_us = 0;
  const auto pass = [&](std::int64_t to) {
    for (; now < to; ++now) {  // microsecond by microsecond
      for (Box& box : boxes) alive_us += box.alive;
      for (Box& box : boxes) {
        if (box.alive && box.busy_until == now + 1) box.idle_since = now + 1;
      }
      for (Box& box : boxes) {
        if (box.alive && box.busy_until <= now + 1 && box.idle_since + expiry <= now + 1) box.alive = false;
      }
    }
  };
  for (int i = 0; i < 60; ++i) {
    pass(now + static_cast<std::int64_t>(rng.below(2) * rng.below(25)));
    const auto function = static_cast<std::uint32_t>(rng.below(3));
    const auto service = static_cast<std::int64_t>(1 + rng.below(30));
    host.submit({.id = static_cast<std::uint64_t>(i), .function = function, .service = {service}}, {now});
    Box* warm = nullptr;
    double used = 0;
    for (Box& box : boxes) {
      if (box.alive) used += functions[box.function].memory_mb;
      if (box.alive && box.function == function && box.busy_until <= now) warm = &box;  // the newest
    }
    if (warm != nullptr) {
      warm->busy_until = now + service;
      warm->used_at = now;
    } else {
      const double need = functions[function].memory_mb;
      std::vector<std::size_t> idle;
      for (std::size_t b = 0; b < boxes.size(); ++b) {
        if (boxes[b].alive && boxes[b].busy_until <= now) idle.push_back(b);
      }
      std::sort(idle.begin(), idle.end(), [&](std::size_t a, std::size_t b) {
        return boxes[a].used_at != boxes[b].used_at ? boxes[a].used_at < boxes[b].used_at : a < b;
      });
      std::size_t out = 0;
      double left = used;
      while (out < idle.size() && left + need > memory) left -= functions[boxes[idle[out++]].function].memory_mb;
      if (left + need > memory) {
        ++dropped;
      } else {
        for (std::size_t k = 0; k < out; ++k) boxes[idle[k]].alive = false;
        const auto start = std::llround((functions[function].cold_s - functions[function].warm_s) * 1e6);
        boxes.push_back({function, now + service + start, 0, now, true});
        ++cold;
      }
    }
    ASSERT_TRUE(host.consistent());
    ASSERT_EQ(host.alive(), std::count_if(boxes.begin(), boxes.end(), [](const Box& b) { return b.alive; }))
        << "seed " << seed;
    ASSERT_EQ(host.counts().cold, cold);
    ASSERT_EQ(host.counts().dropped, dropped);
  }
  pass(now + 200);
  host.advance({now});
  ASSERT_EQ(host.counts().alive_us, alive_us) << "seed " << seed;
  ASSERT_EQ(host.counts().completed + dropped, 60);
}

TEST(FunctionHost, IsASlowHostOnRandomWorlds) {
  for (std::uint64_t seed = 0; seed < random_runs(500) && !HasFatalFailure(); ++seed) compare_with_slow_host(seed);
}

}  // namespace
}  // namespace gpusched::test
