// SPDX-License-Identifier: Apache-2.0
// Jobs that share a GPU slow each other, from the instant at which one comes to the instant at which it goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/engine/stays.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr Shape half_card{.gpu_milli_per_task = 500};
constexpr Shape third_card{.gpu_milli_per_task = 333};

Row share(std::int64_t submit, std::int64_t work, std::string_view family, Shape shape = half_card) {
  return {.submit = submit, .work = work, .family = family, .shape = shape};
}

/// Slowdowns of families "a" and "b" on one GPU type at the reference rate.
struct Slowdowns {
  double a_by_a = 1, a_by_b = 1, b_by_a = 1, b_by_b = 1;
};
RuntimeModel model_of(const JobTable& jobs, const Slowdowns& slowdowns) {
  RuntimeModel model(jobs.families().size(), 1);
  const std::uint32_t a = jobs.families().find("a");
  const std::uint32_t b = jobs.families().find("b");
  const auto ppm = [](double slowdown) { return static_cast<std::uint32_t>(std::lround(1e6 * (slowdown - 1))); };
  if (a != no_index) model.set_extra(a, a, 0, ppm(slowdowns.a_by_a));
  if (b != no_index) model.set_extra(b, b, 0, ppm(slowdowns.b_by_b));
  if (a != no_index && b != no_index) {
    model.set_extra(a, b, 0, ppm(slowdowns.a_by_b));
    model.set_extra(b, a, 0, ppm(slowdowns.b_by_a));
  }
  return model;
}

template <Policy P = Fifo>
void expect_spans(const std::vector<Row>& rows, const Slowdowns& slowdowns, const Cluster& cluster,
                  const std::vector<Span>& expected, P policy = P{}, const EngineOptions& options = {}) {
  const JobTable jobs = table_of(rows);
  const RuntimeModel model = model_of(jobs, slowdowns);
  const std::vector<Span> found = run(jobs, cluster, policy, options, &model);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].start, expected[i].start, 1e-4) << i;
    EXPECT_NEAR(found[i].end, expected[i].end, 1e-4) << i;
  }
}

const Cluster one_card = Cluster::homogeneous(1, 1);

TEST(CardSharing, TwoJobsShareACardAndOneEndsMidway) {
  // b runs at 1/2 until its 4 s are done at 8; a did 8 / 1.5 of its 10 s by then and goes on alone.
  expect_spans({share(0, 10, "a"), share(0, 4, "b")}, {.a_by_b = 1.5, .b_by_a = 2}, one_card,
               {{0, 8 + (10 - 8 / 1.5)}, {0, 8}});
}

TEST(CardSharing, ALateComerSlowsFromItsStart) {
  // a alone for 3 s, then both at 1/2: the 2 s of b end at 7, when a has done 5 s.
  expect_spans({share(0, 10, "a"), share(3, 2, "b")}, {.a_by_b = 2, .b_by_a = 2}, one_card, {{0, 12}, {3, 7}});
}

TEST(CardSharing, NeighboursAddUp) {
  // Three alike, each slowed by half of its time by each of two others: 6 s take 12.
  expect_spans({share(0, 6, "a", third_card), share(0, 6, "a", third_card), share(0, 6, "a", third_card)},
               {.a_by_a = 1.5}, one_card, {{0, 12}, {0, 12}, {0, 12}});
}

// SRTF: 90 s are left of the share when the whole GPU is wanted for 6.
TEST(CardSharing, AShareMakesRoomForAWholeGpu) {
  expect_spans({share(0, 100, "a"), {.submit = 10, .work = 6, .family = "a"}}, {}, one_card, {{0, 106}, {10, 16}},
               ShortestRemaining(true));
}

TEST(CardSharing, APreemptedJobNoLongerSlows) {
  // SRTF: b (9 s) beside a (8 s), both at 1/2, until c wants a half at 4: b, with most left, makes room. a and c at
  // 1/2: c done at 8, a has 4 s left then, and b comes back beside it with 7.
  expect_spans({share(0, 8, "a"), share(0, 9, "b"), share(4, 2, "a")},
               {.a_by_a = 2, .a_by_b = 2, .b_by_a = 2, .b_by_b = 2}, one_card, {{0, 16}, {0, 19}, {4, 8}},
               ShortestRemaining(true));
}

// a does 5 s of work beside b until 10 s and 4 s alone until c takes the card at 14 s: less than the 10 s after which a
// checkpoint is due, so that all of it is lost.
TEST(CardSharing, WorkSinceTheLastCheckpointIsLostAtWhateverRateItPassed) {
  EngineOptions options;
  options.preemption.checkpoint_interval = whole_seconds(10);
  const std::vector<Row> rows{share(0, 100, "a"), share(0, 5, "b"), {.submit = 14, .work = 6, .family = "a"}};
  expect_spans(rows, {.a_by_b = 2, .b_by_a = 2}, one_card, {{0, 120}, {0, 10}, {14, 20}}, ShortestRemaining(true),
               options);
}

TEST(CardSharing, CardsOfANodeAreApartAndWholeGpusAreAlone) {
  expect_spans({share(0, 4, "a"), share(0, 4, "a"), share(0, 4, "a"), {.submit = 0, .work = 4, .family = "a"}},
               {.a_by_a = 2}, Cluster::homogeneous(1, 3), {{0, 8}, {0, 8}, {0, 4}, {0, 4}});
}

TEST(CardSharing, AGangGoesAtThePaceOfItsSlowestTask) {
  // Two tasks of 700 on two cards; only one of the cards has a neighbour, for 4 s at 1/2.
  const Shape gang{.tasks = 2, .gpu_milli_per_task = 700};
  const Shape small{.gpu_milli_per_task = 300};
  expect_spans({share(0, 10, "a", gang), share(0, 2, "b", small)}, {.a_by_b = 2, .b_by_a = 2},
               Cluster::homogeneous(1, 2), {{0, 12}, {0, 4}});
  // Two tasks of one gang on one card are neighbours too.
  expect_spans({share(0, 5, "a", {.tasks = 2, .gpu_milli_per_task = 500})}, {.a_by_a = 1.5}, one_card, {{0, 7.5}});
}

TEST(CardSharing, APoolCannotTellItsCardsApart) {
  expect_spans({share(0, 4, "a"), share(0, 4, "a")}, {.a_by_a = 2}, Cluster::pool(1), {{0, 4}, {0, 4}});
}

TEST(CardSharing, SlowdownComesOnTopOfTheRateOfTheGpu) {
  const JobTable jobs = table_of({share(0, 8, "a"), share(0, 8, "a")});
  RuntimeModel model = model_of(jobs, {.a_by_a = 2});
  model.set(jobs.families().find("a"), 0, 4 * reference_rate);
  EXPECT_EQ(run(jobs, one_card, Fifo{}, {}, &model), (std::vector<Span>{{0, 4}, {0, 4}}));
}

// ---- any comings and goings ----

/// The work that each job did, second by second: who is where is looked up afresh for every second, or part of one in
/// which somebody came or went.
std::vector<double> work_by_seconds(const JobTable& jobs, const RuntimeModel& model, const std::vector<Stay>& stays) {
  std::vector<Time> instants;
  Time last{};
  for (const Stay& stay : stays) {
    instants.push_back(stay.begin);
    instants.push_back(stay.end);
    last = std::max(last, stay.end);
  }
  for (Time t{}; t < last; t += whole_seconds(1)) instants.push_back(t);
  std::sort(instants.begin(), instants.end());
  std::vector<double> work(jobs.size(), 0);
  for (std::size_t i = 0; i + 1 < instants.size(); ++i) {
    std::vector<const Stay*> present;
    for (const Stay& stay : stays) {
      if (stay.begin <= instants[i] && instants[i + 1] <= stay.end) present.push_back(&stay);
    }
    for (const Stay* stay : present) {
      double slowest = 1e9;
      for (std::size_t own = 0; own < stay->cards.size(); ++own) {
        double slowdown = 1;
        for (const Stay* other : present) {
          for (std::size_t seat = 0; seat < other->cards.size(); ++seat) {
            if (other->cards[seat] != stay->cards[own] || (other == stay && seat == own)) continue;
            slowdown += 1e-6 * model.extra(jobs.family(stay->job), jobs.family(other->job), 0);
          }
        }
        slowest = std::min(slowest, 1e-6 * model.rate(jobs.family(stay->job), 0) / slowdown);
      }
      work[index(stay->job)] += slowest * to_seconds(instants[i + 1] - instants[i]);
    }
  }
  return work;
}

TEST(CardSharing, EveryJobDoesItsWorkWhoeverComesAndGoes) {
  std::size_t stays = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(60); ++seed) {
    Rng rng(seed);
    std::vector<Row> rows;
    std::int64_t submit = 0;
    constexpr std::string_view families[] = {"a", "b", ""};
    for (int i = 0; i < 14; ++i) {
      const MilliGpu milli[] = {200, 300, 500, 700, 1000};
      rows.push_back(
          share(submit, 1 + static_cast<std::int64_t>(rng.below(30)), families[rng.below(3)],
                {.tasks = 1 + static_cast<std::uint32_t>(rng.below(2)), .gpu_milli_per_task = milli[rng.below(5)]}));
      submit += static_cast<std::int64_t>(rng.below(6));
    }
    const JobTable jobs = table_of(rows);
    RuntimeModel model = model_of(jobs, {.a_by_a = 1 + rng.uniform(),
                                         .a_by_b = 1 + rng.uniform(),
                                         .b_by_a = 1 + 3 * rng.uniform(),
                                         .b_by_b = 1 + rng.uniform()});
    for (std::uint32_t family = 0; family < jobs.families().size(); ++family) {
      model.set(family, 0, reference_rate / 2 + static_cast<RatePpm>(rng.below(std::uint64_t{2} * reference_rate)));
    }
    Engine engine(jobs, Cluster::homogeneous(2, 2), {.seed = seed}, &model);
    Restless policy{rng.split("policy")};
    StayLog log;
    std::optional<std::pair<Engine, Restless>> snapshot;
    Decision decision = engine.decision();
    while (engine.advance()) {
      log.observe(engine.view(), engine.events());
      policy.decide(engine.view(), decision);
      engine.apply();
      log.observe(engine.view(), engine.events());
      ASSERT_TRUE(engine.consistent()) << "seed " << seed;
      if (!snapshot && engine.view().finished() == 3) snapshot.emplace(engine, policy);
    }
    ASSERT_TRUE(engine.all_finished());
    const std::vector<double> work = work_by_seconds(jobs, model, log.stays);
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const double expected = to_seconds(jobs.work(JobId{i}));
      EXPECT_NEAR(work[i], expected, 1e-3 + 1e-5 * expected) << "seed " << seed << " job " << i;
    }
    ASSERT_TRUE(snapshot);
    simulate(snapshot->first, snapshot->second);
    EXPECT_EQ(spans_of(snapshot->first), spans_of(engine)) << "a copy in mid-run, seed " << seed;
    stays += log.stays.size();
  }
  EXPECT_GT(stays, 60U * 14);  // there were preemptions and moves
}

// Job 0 shares a card with job 1, both at 1/2, until 50 s, and ends at 100 s, as its user asked for. Job 2 wants both
// cards then, so that job 3, which asked for 80 s, may not start at 50 s.
TEST(CardSharing, EasyBelievesThatARunEndsAsItsUserSaidWhenItStarted) {
  std::vector<Row> rows{
      share(0, 75, "a"), share(0, 25, "b"), {.submit = 50, .work = 10, .gpus = 2}, {.submit = 50, .work = 80}};
  rows[0].estimate = 100;
  rows[1].estimate = 50;
  rows[2].estimate = 10;
  rows[3].estimate = 80;
  const JobTable jobs = table_of(rows);
  const RuntimeModel model = model_of(jobs, {.a_by_b = 2, .b_by_a = 2});
  const Cluster cluster = Cluster::homogeneous(1, 2);
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster};
  const auto policy = make_backfilled(PolicyRegistry::standard(), parse_policy_list("fifo")->front(),
                                      *parse_backfill("easy{estimate=user}"), context);
  ASSERT_TRUE(policy);
  const auto spans = run(jobs, cluster, *policy, {}, &model);
  EXPECT_EQ(spans, (std::vector<Span>{{0, 100}, {0, 50}, {100, 110}, {110, 190}}));
}

}  // namespace
}  // namespace gpusched::test
