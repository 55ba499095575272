// SPDX-License-Identifier: Apache-2.0
#include "gpusched/serving/request_station.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpusched/serving/erlang.hpp"
#include "tests/serving/slow_station.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

struct Estimate {
  double mean = 0, half_width = 0;  ///< of the 99 % confidence interval
};

Estimate estimate(const std::vector<double>& values) {
  Estimate e;
  for (const double value : values) e.mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - e.mean) * (value - e.mean);
  const double student_t = 2.861;  // 99.5 % quantile, 19 degrees of freedom
  EXPECT_EQ(values.size(), 20U);
  e.half_width = student_t * std::sqrt(squares / 19 / 20);
  return e;
}

/// Sends `count` requests of a Poisson process and runs until all are gone; each: called with each outcome.
template <class Each>
void send(RequestStation& station, double rate, std::uint64_t seed, int count, Each each) {
  Rng rng = Rng(seed).split("arrivals");
  double at = 0;
  for (int i = 0; i < count; ++i) {
    at += rng.exponential(1 / rate);
    const Time now = from_seconds(at);
    station.submit({.id = static_cast<std::uint64_t>(i), .arrival = now}, now);
    for (const StationOutcome& outcome : station.done()) each(outcome);
    station.clear_done();
  }
  while (station.next_time() != Time::max()) station.advance(station.next_time());
  for (const StationOutcome& outcome : station.done()) each(outcome);
  station.clear_done();
  EXPECT_TRUE(station.consistent());
}

struct Waits {
  double mean = 0, waited = 0, over = 0, busy = 0;
};

Waits mmc_run(double lambda, double mu, int servers, double over_s, std::uint64_t seed, int count) {
  RequestStation station(
      {.service = {.kind = ServiceTimes::Kind::exponential, .mean = from_seconds(1 / mu)}, .seed = seed});
  for (int i = 0; i < servers; ++i) station.add_replica({});
  Waits waits;
  double counted = 0;
  StationCounts warm{};
  Time from{}, to{};
  send(station, lambda, seed, count, [&](const StationOutcome& outcome) {
    if (outcome.request.id < static_cast<std::uint64_t>(count) / 10) return;  // warming up
    if (from == Time{}) from = outcome.ended, warm = station.counts();
    if (station.counts().submitted < count) {
      to = outcome.ended;
      waits.busy = static_cast<double>(station.counts().busy_us - warm.busy_us);
    }
    const double wait = to_seconds(outcome.begun - outcome.request.arrival);
    counted += 1, waits.mean += wait, waits.waited += wait > 0, waits.over += wait > over_s;
  });
  waits.mean /= counted, waits.waited /= counted, waits.over /= counted;
  waits.busy /= static_cast<double>((to - from).us);
  return waits;
}

TEST(RequestStation, MMcIsErlangs) {
  struct Case {
    double lambda, mu;
    int servers;
    double over_s;
  };
  for (const Case& c : {Case{8, 1, 10, .5}, Case{90, 10, 10, .05}, Case{45, 1, 50, .2}}) {
    std::vector<double> mean, waited, over, busy;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Waits waits = mmc_run(c.lambda, c.mu, c.servers, c.over_s, 100 * c.servers + seed, 30'000);
      mean.push_back(waits.mean), waited.push_back(waits.waited), over.push_back(waits.over),
          busy.push_back(waits.busy);
    }
    const MmcQueue queue = MmcQueue::of(c.lambda, c.mu, c.servers);
    EXPECT_NEAR(estimate(mean).mean, queue.mean_wait_s(), estimate(mean).half_width);
    EXPECT_NEAR(estimate(waited).mean, queue.waits, estimate(waited).half_width);
    EXPECT_NEAR(estimate(over).mean, queue.wait_tail(c.over_s), estimate(over).half_width);
    EXPECT_LT(estimate(mean).half_width, .25 * queue.mean_wait_s());           // the interval says something
    EXPECT_NEAR(estimate(busy).mean, c.lambda / c.mu, .01 * c.lambda / c.mu);  // Little
  }
}

TEST(RequestStation, MD1AndTwoStagesOfHalf) {
  std::vector<double> one, two;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RequestStation whole({.service = {.mean = whole_seconds(1)}}), first({.service = {.mean = Time{500'000}}});
    RequestStation second = first;
    whole.add_replica({}), first.add_replica({}), second.add_replica({});
    double sum = 0;
    send(whole, .8, seed, 10'000, [&](const StationOutcome& o) { sum += to_seconds(o.ended - o.request.arrival); });
    one.push_back(sum / 10'000);
    sum = 0;
    send(first, .8, seed, 10'000,
         [&](const StationOutcome& o) { second.submit({.id = o.request.id, .arrival = o.request.arrival}, o.ended); });
    second.advance(whole_seconds(1'000'000));
    for (const StationOutcome& o : second.done()) sum += to_seconds(o.ended - o.request.arrival);
    EXPECT_EQ(second.done().size(), 10'000U);
    two.push_back(sum / 10'000);
  }
  EXPECT_NEAR(estimate(one).mean, 3, estimate(one).half_width);
  EXPECT_NEAR(estimate(two).mean, 1.166667, estimate(two).half_width);
  EXPECT_LT(estimate(one).half_width, .2);
  EXPECT_LT(estimate(two).half_width, .01);
}

TEST(RequestStation, WithoutQueueItIsErlangsLossSystem) {
  std::vector<double> lost;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RequestStation station({.service = {.kind = ServiceTimes::Kind::exponential}, .queue_limit = 0, .seed = seed});
    for (int i = 0; i < 4; ++i) station.add_replica({});
    send(station, 3, seed, 20'000, [](const StationOutcome&) {});
    EXPECT_EQ(station.counts().completed + station.counts().dropped, 20'000);
    lost.push_back(static_cast<double>(station.counts().dropped) / 20'000);
  }
  EXPECT_NEAR(estimate(lost).mean, erlang_b(4, 3), estimate(lost).half_width);
}

StationRequest request(std::uint64_t id, std::int64_t at, std::int64_t service, std::uint64_t session = 0) {
  return {.id = id, .arrival = {at}, .session = session, .service = {service}};
}

TEST(RequestStation, GivesUpAtItsTimeUnlessAServiceEndsThen) {
  RequestStation station({.timeout = {10}});
  station.add_replica({});
  station.submit(request(0, 0, 10), {0});
  station.submit(request(1, 0, 10), {0});  // at 10 its time is over and the server is free: it is served
  station.submit(request(2, 1, 10), {1});
  station.advance({20});
  ASSERT_EQ(station.done().size(), 3U);
  EXPECT_EQ(station.done()[1].request.id, 2U);
  EXPECT_EQ(station.done()[1].end, StationOutcome::End::timed_out);
  EXPECT_EQ(station.done()[1].ended, Time{11});
  EXPECT_EQ(station.done()[2].begun, Time{10});
}

TEST(RequestStation, BatchesWaitForMoreAtMostTheirDelay) {
  RequestStation station(
      {.service = {.kind = ServiceTimes::Kind::by_batch, .table = {{1, {100}}, {4, {160}}}, .longest_delay = {50}}});
  station.add_replica({});
  station.submit(request(0, 0, -1), {0});
  EXPECT_EQ(station.next_time(), Time{50});
  station.submit(request(1, 20, -1), {20});
  station.advance({50});
  EXPECT_EQ(station.in_service(), 2);
  EXPECT_EQ(station.next_time(), Time{50 + 120});  // linear between 1 and 4
  for (std::uint64_t id = 2; id < 7; ++id) station.submit(request(id, 60, -1), {60});
  station.advance({170});  // four are a full batch; the fifth waited long enough but finds no replica
  EXPECT_EQ(station.in_service(), 4);
  EXPECT_EQ(station.next_time(), Time{330});
  station.advance({330});
  EXPECT_EQ(station.in_service(), 1);
  EXPECT_TRUE(station.consistent());
}

TEST(RequestStation, SessionsStickAndMoveWhenTheirReplicaEnds) {
  RequestStation station({.routing = RoutingRule::session});
  station.add_replica({});
  station.add_replica({});
  station.submit(request(0, 0, 100, 7), {0});
  station.submit(request(1, 0, 10, 8), {0});
  station.advance({50});
  station.submit(request(2, 50, 10, 7), {50});  // behind its session, though the other is free
  EXPECT_EQ(station.load(0), 2);
  station.drain(0, {60});
  EXPECT_EQ(station.load(0), 1);
  EXPECT_EQ(station.load(1), 1);
  station.advance({200});
  EXPECT_EQ(station.done()[1].request.id, 2U);
  EXPECT_EQ(station.done()[1].replica, 1);
  EXPECT_EQ(station.done()[2].replica, 0);
}

TEST(RequestStation, RequestsOfAReplicaThatFailsComeBackInOrder) {
  RequestStation station({.routing = RoutingRule::round_robin, .at_once = 2});
  station.submit(request(9, 0, 10), {0});  // no replica yet
  EXPECT_EQ(station.next_time(), Time::max());
  station.add_replica({0});
  station.add_replica({0});
  for (std::uint64_t id = 0; id < 6; ++id) station.submit(request(id, 1, 100), {1});
  const std::vector<StationRequest> left = station.remove(0, {20});
  std::vector<std::uint64_t> ids;
  for (const StationRequest& r : left) ids.push_back(r.id);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(station.counts().returned, 3);
  for (const StationRequest& r : left) station.submit(r, {20});
  station.advance({1000});
  EXPECT_EQ(station.counts().completed, 7);
  EXPECT_TRUE(station.consistent());
}

TEST(RequestStation, ItsOwnLogAgainGivesTheSame) {
  StationOptions options{.service = {.kind = ServiceTimes::Kind::exponential, .mean = {900'000}},
                         .queue_limit = 6,
                         .timeout = whole_seconds(4),
                         .seed = 3};
  RequestStation station(options);
  for (int i = 0; i < 4; ++i) station.add_replica({}, 1 + i);
  std::vector<StationOutcome> first;
  send(station, 11, 5, 3000, [&](const StationOutcome& o) { first.push_back(o); });
  EXPECT_GT(station.counts().dropped, 0);
  std::vector<StationRequest> log(first.size());
  for (const StationOutcome& o : first) log[o.request.id] = o.request;
  options.seed = 99;
  RequestStation again(options);
  for (int i = 0; i < 4; ++i) again.add_replica({}, 1 + i);
  for (const StationRequest& r : log) again.submit(r, r.arrival);
  again.advance(whole_seconds(100'000));
  ASSERT_EQ(again.done().size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(again.done()[i].request.id, first[i].request.id);
    EXPECT_EQ(again.done()[i].ended, first[i].ended);
    EXPECT_EQ(again.done()[i].begun, first[i].begun);
    EXPECT_EQ(again.done()[i].end, first[i].end);
  }
}

StationOptions drawn_options(Rng& rng) {
  StationOptions options;
  options.routing = static_cast<RoutingRule>(rng.below(4));
  options.at_once = static_cast<std::int32_t>(1 + rng.below(3));
  if (rng.below(2) == 0) options.queue_limit = static_cast<std::int64_t>(rng.below(5));
  if (rng.below(2) == 0) options.timeout = {static_cast<std::int64_t>(rng.below(40))};
  if (rng.below(3) == 0) {
    options.service = {.kind = ServiceTimes::Kind::by_batch,
                       .longest_delay = {static_cast<std::int64_t>(rng.below(20))}};
    std::int32_t size = 0;
    for (std::uint64_t i = 0; i < 1 + rng.below(3); ++i) {
      size += static_cast<std::int32_t>(1 + rng.below(3));
      options.service.table.push_back({size, {static_cast<std::int64_t>(rng.below(30))}});
    }
  }
  return options;
}

std::string line(const StationOutcome& o) {
  const char* const ends[] = {"completed", "dropped", "timed out"};
  return std::to_string(o.ended.us) + " " + std::to_string(o.request.id) + " " + ends[static_cast<int>(o.end)] +
         " queued " + std::to_string(o.queued.us) + " begun " + std::to_string(o.begun.us) + " on " +
         std::to_string(o.replica);
}

/// Times are small, so that many things happen at one instant.
void compare_with_slow_station(std::uint64_t seed) {
  Rng rng = Rng(2026).split("stations").split(seed);
  const StationOptions options = drawn_options(rng);
  RequestStation station(options);
  SlowStation slow(options);
  std::vector<std::string> log;
  std::vector<int> alive;
  std::vector<bool> drained;
  std::int64_t now = 0;
  std::uint64_t id = 0;
  const auto submit = [&](const StationRequest& r) { station.submit(r, {now}), slow.submit(now, r); };
  for (int i = 0; i < 60; ++i) {
    now += static_cast<std::int64_t>(rng.below(2) * rng.below(12));
    const std::uint64_t what = rng.below(12);
    if (what == 0 || (alive.empty() && what < 4)) {
      const double speed = rng.below(2) == 0 ? 1 : 2;
      alive.push_back(station.add_replica({now}, speed)), slow.add(now, speed);
      drained.push_back(false);
    } else if (what == 1 && !alive.empty()) {
      const int number = alive[rng.below(alive.size())];
      if (!drained[number]) station.drain(number, {now}), slow.drain(now, number);
      drained[number] = true;
    } else if (what == 2 && !alive.empty()) {
      const std::uint64_t at = rng.below(alive.size());
      const std::vector<StationRequest> left = station.remove(alive[at], {now});
      std::vector<std::uint64_t> ids;
      for (const StationRequest& r : left) ids.push_back(r.id);
      ASSERT_EQ(ids, slow.remove(now, alive[at])) << seed;
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
      for (StationRequest r : left) {
        r.id = 1000 + id++;
        if (rng.below(2) == 0) submit(r);
      }
    } else {
      submit(request(id++, std::max<std::int64_t>(0, now - static_cast<std::int64_t>(rng.below(10))),
                     static_cast<std::int64_t>(rng.below(30)), rng.below(4)));
    }
    ASSERT_TRUE(station.consistent());
    if (rng.below(8) == 0) station = RequestStation(station);
    for (const StationOutcome& o : station.done()) log.push_back(line(o));
    station.clear_done();
  }
  while (station.next_time() <= Time{now + 200}) station.advance(station.next_time());
  slow.until(now + 200);
  for (const StationOutcome& o : station.done()) log.push_back(line(o));
  std::sort(log.begin(), log.end()), std::sort(slow.log.begin(), slow.log.end());
  ASSERT_EQ(log, slow.log) << "seed " << seed;
  ASSERT_TRUE(station.consistent());
}

TEST(RequestStation, IsASlowStationOnRandomWorlds) {
  for (std::uint64_t seed = 0; seed < random_runs(500) && !HasFatalFailure(); ++seed) compare_with_slow_station(seed);
}

}  // namespace
}  // namespace gpusched::test
