// SPDX-License-Identifier: Apache-2.0
#include "gpusched/learn/service_life.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/engine.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched {
namespace {

using test::Span;
using test::table_of;

// Starts every job at once and shows the forecast all that happens.
class WatchedRun {
 public:
  WatchedRun(const JobTable& jobs, const Cluster& cluster) : engine_(jobs, cluster) {}

  // Up to and including the events at `second`.
  void run_until(std::int64_t second) {
    while (engine_.advance()) {
      const View view = engine_.view();
      Decision decision = engine_.decision();
      for (const Event& event : view.events()) {
        if (event.kind == EventKind::submit) {
          forecast.submit(view, event.job);
          decision.start(event.job);
        }
        if (event.kind == EventKind::finish) forecast.finish(view, event.job);
      }
      for (const JobId job : view.running()) forecast.pass(view, job);
      engine_.apply();
      if (view.now() >= whole_seconds(second)) return;
    }
  }
  [[nodiscard]] View view() const { return engine_.view(); }

  ServiceLife forecast;

 private:
  Engine engine_;
};

TEST(ServiceLife, WithoutHistoryEveryDoublingEndsAlike) {
  const JobTable jobs = table_of({{.submit = 0, .work = 10}});
  WatchedRun run(jobs, Cluster::pool(1));
  run.run_until(0);
  // 0.16 of each level: the first, 60 GPU-s of which the job needs half if it ends there, has the best index.
  EXPECT_NEAR(run.forecast.gittins_index(run.view(), JobId{0}), 0.16 / (60 * 0.92), 1e-15);
}

// One of its kind ended after 90 s, another runs and has attained 100 s when a third comes.
TEST(ServiceLife, CountsByHand) {
  const JobTable jobs = table_of({{.submit = 0, .work = 90}, {.submit = 0, .work = 500}, {.submit = 100, .work = 500}});
  WatchedRun run(jobs, Cluster::pool(3));
  run.run_until(100);
  // Below a minute two were and none ended: of all 0.32 / 4 = 0.08, of the shape 20 x 0.08 / 22, of the kind 20 / 22
  // of that again, 0.066116; near it 2 x 0.066116 / (0.94 + 0.8836 + 2) = 0.034583, and 0.034583 / (0.78 + 0.6084 + 1)
  // = 0.014480. In the next level one was and ended: 1.32 / 3 = 0.44, 9.8 / 21, 10.3333 / 21 = 0.492063, then (0.8836 +
  // 2 x 0.492063) / 2.8836 = 0.647707, (0.6084 + 0.647707) / 1.6084 = 0.780967. Above it is 0.16. Best is to look two
  // levels ahead: 0.784138 end, after 60 x 0.992760 + 60 x 0.985520 x 0.609517 GPU-s on average.
  EXPECT_NEAR(run.forecast.gittins_index(run.view(), JobId{2}), 0.00820167371699251, 1e-15);
}

TEST(ServiceLife, NearAreThoseOfItsKindThatHaveNotEnded) {
  std::vector<test::Row> rows(40, {.submit = 0, .work = 500});
  rows[18].work = 10;
  rows[20].work = 20;
  rows[21].gpus = 2;
  const JobTable jobs = table_of(rows);
  WatchedRun run(jobs, Cluster::pool(41));
  run.run_until(20);
  std::vector<std::uint32_t> near;
  run.forecast.for_each_near(JobId{20}, [&](JobId job) { near.push_back(index(job)); });
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 4; i <= 37; ++i) {
    if (i != 18 && i != 20 && i != 21) expected.push_back(i);
  }
  EXPECT_EQ(near, expected);  // sixteen places on either side, in which the wide job is none
}

TEST(ServiceLife, ABatchOfEqualsIsToldByItsFirst) {
  // Seventy jobs of 30 s, then as many of 2,000 s: what comes next is expected to be like those.
  std::vector<test::Row> rows;
  for (int i = 0; i < 140; ++i) rows.push_back({.submit = i < 70 ? 0 : 3000, .work = i < 70 ? 30 : 2000});
  rows.push_back({.submit = 5500, .work = 2000});
  const JobTable jobs = table_of(rows);
  WatchedRun run(jobs, Cluster::pool(200));
  run.run_until(3000);
  const double after_short = run.forecast.gittins_index(run.view(), JobId{70});
  run.run_until(5500);
  const double after_long = run.forecast.gittins_index(run.view(), JobId{140});
  EXPECT_GT(after_short, 0.9 / 30);
  EXPECT_LT(after_long, 2.0 / 2000);
}

// Of the finished jobs of a shape that reached a level, the share that ended in it, as the sum over all of them says:
// over so many that the weights leave the range of numbers and are made small again.
TEST(ServiceLife, ForgetsAtItsHalfLife) {
  for (const double half_life : {0.0, 2.0, 300.0}) {
    ServiceLife life(half_life);
    struct Ended {
      std::uint32_t shape, level;
    };
    std::vector<Ended> all;
    Rng rng = Rng(2).split("life");
    for (std::uint32_t i = 0; i < 2500; ++i) {
      const auto shape = static_cast<std::uint32_t>(rng.below(2));
      const std::int64_t service_us = whole_seconds(static_cast<std::int64_t>(rng.lognormal(6, 2))).us;
      life.learn({.vc = 0, .shape = shape}, JobId{i}, service_us);
      all.push_back({shape, ServiceLife::levels.level(service_us)});
    }
    const auto count = [&](std::uint32_t level, bool ended, auto alike) {
      double sum = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!alike(all[i]) || (ended ? all[i].level != level : all[i].level < level)) continue;
        const auto age = static_cast<double>(all.size() - 1 - i);
        sum += half_life > 0 ? std::exp2(-age / half_life) : 1;
      }
      return sum;
    };
    for (std::uint32_t level = 0; level < 12; ++level) {
      const auto any = [](const Ended&) { return true; };
      const auto first = [](const Ended& job) { return job.shape == 1; };
      const double of_all = (count(level, true, any) + 2 * 0.5) / (count(level, false, any) + 2);
      const double of_shape = (count(level, true, first) + 4 * of_all) / (count(level, false, first) + 4);
      EXPECT_NEAR(life.ended_share(1, ServiceLife::levels.begin(level)), of_shape, 1e-6) << half_life << " " << level;
    }
  }
}

// A forecast that begins late is the one that was kept from the start, cancelled jobs included.
TEST(ServiceLife, CatchesUp) {
  const JobTable jobs = table_of({{.submit = 0, .work = 90}, {.submit = 0, .work = 500}, {.submit = 100, .work = 500}});
  WatchedRun run(jobs, Cluster::pool(3));
  run.run_until(100);
  ServiceLife late;
  late.finish(run.view(), JobId{0});
  for (std::uint32_t i = 0; i < 3; ++i) late.catch_up(run.view(), JobId{i});
  for (const std::uint32_t job : {1u, 2u}) {
    EXPECT_EQ(late.gittins_index(run.view(), JobId{job}), run.forecast.gittins_index(run.view(), JobId{job})) << job;
  }
}

TEST(GittinsOrder, ByHand) {
  // When the first job has run a minute, three of a hundred equals would be expected to end in their first minute,
  // since it did not, and of such that lasted a minute 16 in the next: it goes on. Least attained service would preempt
  // it.
  const JobTable jobs = table_of({{.submit = 0, .work = 300}, {.submit = 10, .work = 30}});
  const auto run = [&](Heuristic heuristic) {
    const AgendaOptions options{
        .mode = ActionMode::preempt, .knowledge = RuntimeKnowledge::none, .heuristic = heuristic};
    return test::run(jobs, Cluster::pool(1), AgendaPolicy(options, {}));
  };
  EXPECT_EQ(run(Heuristic::gittins), (std::vector<Span>{{0, 300}, {300, 330}}));
  EXPECT_EQ(run(Heuristic::las), (std::vector<Span>{{0, 330}, {60, 90}}));
}

}  // namespace
}  // namespace gpusched
