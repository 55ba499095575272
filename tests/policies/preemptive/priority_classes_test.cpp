// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/priority_classes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using test::Row;
using test::Span;

TEST(PriorityClasses, HigherClassPreemptsTheLatestOfTheLower) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 100, .gpus = 2},
                                        {.submit = 1, .work = 100, .gpus = 2},
                                        {.submit = 10, .work = 20, .gpus = 2, .priority = 1}});
  Engine engine(jobs, Cluster::homogeneous(1, 4));
  PriorityClasses policy(whole_seconds(1000), true);
  simulate(engine, policy);
  EXPECT_EQ(test::spans_of(engine), (std::vector<Span>{{0, 100}, {1, 121}, {10, 30}}));
  EXPECT_EQ(engine.preemptions(JobId{0}), 0u);
  EXPECT_EQ(engine.preemptions(JobId{1}), 1u);
}

TEST(PriorityClasses, PreemptsNobodyInVain) {
  // Stopping the one-GPU job of the lower class would not make room for three GPUs.
  const JobTable jobs = test::table_of({{.submit = 0, .work = 50, .gpus = 3, .priority = 1},
                                        {.submit = 0, .work = 100, .gpus = 1},
                                        {.submit = 10, .work = 20, .gpus = 3, .priority = 1}});
  Engine engine(jobs, Cluster::homogeneous(1, 4));
  PriorityClasses policy(whole_seconds(1000), true);
  simulate(engine, policy);
  EXPECT_EQ(test::spans_of(engine), (std::vector<Span>{{0, 50}, {0, 100}, {50, 70}}));
  EXPECT_EQ(engine.preemptions(JobId{1}), 0u);
}

// Class times aging is more microseconds than 64 bits hold.
TEST(PriorityClasses, ALongAgingDoesNotTurnTheOrderRound) {
  const JobTable jobs = test::table_of({{.submit = 0, .work = 10},
                                        {.submit = 1, .work = 10, .priority = 1},
                                        {.submit = 1, .work = 10, .priority = 10'000}});
  EXPECT_EQ(test::run(jobs, Cluster::pool(1), PriorityClasses(whole_seconds(1'000'000'000), false)),
            (std::vector<Span>{{0, 10}, {20, 30}, {10, 20}}));
}

TEST(PriorityClasses, WaitingOutweighsAClass) {
  // With aging of 5 s, the job of class 0 submitted at 1 s is ahead of the one of class 1 submitted at 7 s, not at 5 s.
  const std::vector<Row> rows{{.submit = 0, .work = 10, .gpus = 1, .priority = 9},
                              {.submit = 1, .work = 10, .gpus = 1},
                              {.submit = 5, .work = 10, .gpus = 1, .priority = 1},
                              {.submit = 7, .work = 10, .gpus = 1, .priority = 1}};
  EXPECT_EQ(test::run(test::table_of(rows), Cluster::pool(1), PriorityClasses(whole_seconds(5), false)),
            (std::vector<Span>{{0, 10}, {20, 30}, {10, 20}, {30, 40}}));
}

// The bound: while a job waits, no job behind it in the order of submit - class x aging starts.
RC_GTEST_PROP(PriorityClasses, NobodyIsOvertakenForEver, ()) {
  constexpr std::int64_t aging = 20;
  const auto shapes = *rc::gen::container<std::vector<std::tuple<int, int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 6), rc::gen::inRange(1, 40), rc::gen::inRange(1, 5), rc::gen::inRange(0, 4)));
  std::vector<Row> rows;
  std::int64_t submit = 0;
  for (const auto& [pause, work, gpus, priority] : shapes) {
    submit += pause;
    rows.push_back({.submit = submit, .work = work, .gpus = static_cast<std::uint32_t>(gpus), .priority = priority});
  }
  const JobTable jobs = test::table_of(rows);
  const auto key = [&](JobId job) { return jobs.submit(job).us - jobs.priority(job) * whole_seconds(aging).us; };
  Engine engine(jobs, Cluster::homogeneous(1, 4));
  PriorityClasses policy(whole_seconds(aging), *rc::gen::arbitrary<bool>());
  Decision decision = engine.decision();
  while (engine.advance()) {
    const OracleView view = engine.view();
    policy.decide(view, decision);
    engine.apply();
    for (const Event& event : engine.events()) {
      if (event.kind != EventKind::start) continue;
      for (const JobId waiting : view.queue(0)) RC_ASSERT(key(waiting) >= key(event.job));
    }
  }
  RC_ASSERT(engine.all_finished());
}

}  // namespace
}  // namespace gpusched
