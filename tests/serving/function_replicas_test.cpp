// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/function_replicas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/serving/autoscaler.hpp"
#include "gpusched/serving/function_host.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

// Requests that are served at once, each for its time.
struct Visits {
  std::vector<Time> begins, ends;

  [[nodiscard]] std::int64_t at(Time now) const {
    std::int64_t held = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) held += begins[i] <= now && now < ends[i] ? 1 : 0;
    return held;
  }
  // The most at once since `from`, that instant left out, until `now`.
  [[nodiscard]] std::int64_t most_since(Time from, Time now) const {
    std::int64_t most = at(now);
    for (const Time begin : begins) {
      if (begin <= now) most = std::max(most, at(std::max(begin, from + Time{1})));
    }
    return std::max(most, at(std::min(from + Time{1}, now)));
  }
  // When something happens, ascending.
  [[nodiscard]] std::vector<Time> instants() const {
    std::vector<Time> times = begins;
    times.insert(times.end(), ends.begin(), ends.end());
    std::sort(times.begin(), times.end());
    return times;
  }
  [[nodiscard]] ServiceLoad load(Time now) const {
    return {.now = now,
            .in_flight = at(now),
            .arrived = std::count_if(begins.begin(), begins.end(), [&now](Time begin) { return begin <= now; })};
  }
};

// Asks the rule whenever it must be until `end`; look(now, answer) at each of these instants.
template <class Look>
void follow(FunctionReplicas& rule, const Visits& visits, Time end, Look look) {
  const std::vector<Time> instants = visits.instants();
  for (std::size_t next = 0;;) {
    const Time now = std::min(next < instants.size() ? instants[next] : Time::max(), rule.look_again());
    if (now > end) return;
    while (next < instants.size() && instants[next] == now) ++next;
    look(now, rule.wanted(visits.load(now)));
    ASSERT_GT(rule.look_again(), now);
  }
}

TEST(FunctionReplicas, AFixedTimeKeepsWhatWasNeededAtOnceWithinIt) {
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    Rng rng(seed);
    const Time keep{1 + static_cast<std::int64_t>(rng.below(40'000'000))};
    Visits visits;
    Time at{};
    for (int i = 0; i < 40; ++i) {
      at += from_seconds(rng.exponential(8));
      visits.begins.push_back(at);
      visits.ends.push_back(at + Time{1} + from_seconds(rng.exponential(12)));
    }
    FunctionReplicas rule({.keep_alive = FixedKeepAlive(keep)});
    follow(rule, visits, whole_seconds(10'000), [&](Time now, std::int32_t wanted) {
      ASSERT_EQ(wanted, visits.most_since(now - keep, now)) << seed << " at " << now.us;
    });
    EXPECT_EQ(rule.wanted(visits.load(whole_seconds(20'000))), 0);
  }
}

TEST(FunctionReplicas, IdleTimesLoadAndEndTheLastOneAsFunctionHostDoes) {
  std::int64_t ahead = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    Rng rng(seed);
    HistogramOptions options{.bins = 60, .bin = whole_seconds(10), .least_samples = 3, .otherwise = whole_seconds(90)};
    if (seed % 2 == 0) options.conditions = HistogramOptions::Conditions::faascache;
    const double gap_s = 50 + 200 * rng.uniform();
    Visits visits;
    FunctionHost host({.functions = {{}}, .keep_alive = HistogramKeepAlive(options)});
    Time at{};
    for (int i = 0; i < 60; ++i) {
      at += from_seconds(gap_s * (rng.below(8) == 0 ? .1 + 3 * rng.uniform() : 1 + .2 * rng.uniform()));
      visits.begins.push_back(at);
      at += from_seconds(1 + rng.uniform());
      visits.ends.push_back(at);
    }
    FunctionReplicas rule({.keep_alive = HistogramKeepAlive(options)});
    std::size_t next = 0;
    follow(rule, visits, whole_seconds(100'000), [&](Time now, std::int32_t wanted) {
      if (next < visits.begins.size() && visits.begins[next] == now) {
        host.submit({.service = visits.ends[next] - now}, now);
        ++next;
      }
      host.advance(now);
      ASSERT_EQ(wanted, host.alive()) << seed << " at " << now.us;
    });
    EXPECT_EQ(next, visits.begins.size());
    ahead += host.counts().loaded_ahead;
  }
  EXPECT_GT(ahead, 100);
}

TEST(FunctionReplicas, StaysWithinItsLimits) {
  FunctionReplicas rule(
      {.limits = {.least = 1, .most = 3}, .at_once = 2, .keep_alive = FixedKeepAlive(whole_seconds(10))});
  EXPECT_EQ(rule.wanted({}), 1);
  EXPECT_EQ(rule.wanted({.now = whole_seconds(1), .in_flight = 3, .arrived = 3}), 2);
  EXPECT_EQ(rule.wanted({.now = whole_seconds(2), .in_flight = 6, .queued = 5, .arrived = 11}), 3);
  EXPECT_EQ(rule.wanted({.now = whole_seconds(3), .in_flight = 1, .arrived = 11}), 3);
  EXPECT_EQ(rule.look_again(), whole_seconds(13));
  EXPECT_EQ(rule.wanted({.now = whole_seconds(13), .arrived = 11}), 1);
  EXPECT_TRUE(Autoscaler(rule).follows_requests());
  EXPECT_EQ(Autoscaler(rule).look_again(), whole_seconds(23));
  EXPECT_FALSE(Autoscaler(Hpa()).follows_requests());
  EXPECT_EQ(Autoscaler(Hpa()).look_again(), Time::max());
}

}  // namespace
}  // namespace gpusched::test
