// SPDX-License-Identifier: Apache-2.0
// Backfilling around orders, and the choices of learned schedulers made by an order, against the reference simulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "tests/differential/differential.hpp"
#include "tests/differential/reference_agenda.hpp"
#include "tests/differential/reference_backfill.hpp"

namespace gpusched::test {
namespace {

/// An order of the registry and the same for the reference.
struct Wrapped {
  std::string policy;
  ReferenceOrder before;
  ReferenceEstimator estimator = ReferenceEstimator("requested");
};

std::vector<Wrapped> wrapped_orders() {
  const auto shortest = by_key([](const ReferenceJob& job) { return job.believed_us; });
  const auto area = by_key([](const ReferenceJob& job) { return job.believed_us * job.gpus; });
  const auto submit = by_key([](const ReferenceJob& job) { return job.submit; });
  const auto deadline = by_key([](const ReferenceJob& job) { return job.deadline; });
  return {{"fifo", submit},
          {"sjf", shortest, ReferenceEstimator("exact")},
          {"sjf{estimate=user}", shortest},
          {"saf{estimate=user}", area},
          {"f1", regressed(1)},
          {"edf", deadline},
          {"wfp3", wfp3_order()},
          {"unicep", unicep_order()}};
}

class BackfillDifferential : public testing::TestWithParam<Wrapped> {};

INSTANTIATE_TEST_SUITE_P(Around, BackfillDifferential, testing::ValuesIn(wrapped_orders()),
                         [](const auto& instance) { return readable(instance.param.policy); });

// Run times of reservations as asked for, which are over- and underestimates, or the truth.
struct Beliefs {
  std::string how;
  std::vector<Row> rows;
  std::string overrun = *rc::gen::element<std::string>("kill", "now", "increments", "double");

  [[nodiscard]] std::string parameters() const { return "{estimate=" + how + ",overrun=" + overrun; }
};

Beliefs random_beliefs(bool takes_time) {
  Beliefs beliefs{*rc::gen::element<std::string>("exact", "user"), *gpu_rows(case_gpus)};
  for (Row& row : beliefs.rows) {
    // Too short, right, or too long.
    row.estimate = *rc::gen::element(row.estimate, std::max<std::int64_t>(row.work, 1), row.work + row.estimate);
    if (!takes_time) continue;
    row.work = std::max<std::int64_t>(row.work, 1);
    for (std::int64_t& work : row.attempts) work = std::max<std::int64_t>(work, 1);
  }
  // One that needs several increments.
  if (!beliefs.rows.empty() && *rc::gen::inRange(0, 20) == 0) beliefs.rows.front().work += *rc::gen::inRange(60, 400);
  return beliefs;
}

ReferenceBackfill reference_of(const Wrapped& order, const Beliefs& beliefs) {
  const std::string how = beliefs.how == "user" ? "requested" : beliefs.how;
  return {order.before, order.estimator, ReferenceEstimator(how, &ReferenceJob::planned_us), beliefs.overrun};
}

TEST_P(BackfillDifferential, Easy) {
  check_many(1000, [] {
    const Beliefs beliefs = random_beliefs(false);
    expect_agreement(
        {GetParam().policy, "easy" + beliefs.parameters() + "}", ReferenceEasy{reference_of(GetParam(), beliefs)}},
        beliefs.rows, *alike_clusters());
  });
}

TEST_P(BackfillDifferential, Sc20) {
  check_many(1000, [] {
    const Beliefs beliefs = random_beliefs(false);
    expect_agreement(
        {GetParam().policy, "sc20" + beliefs.parameters() + "}", ReferenceSc20{reference_of(GetParam(), beliefs)}},
        beliefs.rows, *alike_clusters());
  });
}

// A reservation is at least a microsecond long, so that here every attempt takes time.
TEST_P(BackfillDifferential, Conservative) {
  check_many(1000, [] {
    const Beliefs beliefs = random_beliefs(true);
    const auto depth = *rc::gen::element<std::size_t>(0, 1, 2, 3);
    expect_agreement(
        {GetParam().policy, "conservative" + beliefs.parameters() + ",depth=" + std::to_string(depth) + "}",
         ReferenceConservative(reference_of(GetParam(), beliefs), depth == 0 ? beliefs.rows.size() : depth)},
        beliefs.rows, *alike_clusters());
  });
}

TEST(SlurmBackfillDifferential, StartsAndEndsAgreeWithTheReference) {
  check_many(3000, [] {
    using rc::gen::element;
    const Beliefs beliefs = random_beliefs(true);
    const ReferenceSlurmBackfill rule{
        .weight_age = *element<std::int64_t>(0, 10, 1000),
        .weight_size = *element<std::int64_t>(0, 10, 1000),
        .weight_qos = *element<std::int64_t>(0, 10, 2000),
        .max_age_s = *element<std::int64_t>(1, 7, 604'800),
        .window = *element<std::int64_t>(0, 5, 20, 86'400),
        .interval = *element<std::int64_t>(0, 0, 1, 7, 30),
        .most_jobs = *element<std::size_t>(1, 2, 500),
        .estimator = ReferenceEstimator(beliefs.how == "user" ? "requested" : beliefs.how, &ReferenceJob::planned_us),
        .overrun = beliefs.overrun};
    const std::string policy =
        "slurm{weight_fair_share=0,weight_partition=0,weight_age=" + std::to_string(rule.weight_age) +
        ",weight_size=" + std::to_string(rule.weight_size) + ",weight_qos=" + std::to_string(rule.weight_qos) +
        ",max_age_s=" + std::to_string(rule.max_age_s) + ",bf_window_s=" + std::to_string(rule.window) +
        ",bf_interval_s=" + std::to_string(rule.interval) + ",bf_max_job_test=" + std::to_string(rule.most_jobs) + "}";
    expect_agreement({policy, "easy" + beliefs.parameters() + "}", rule}, beliefs.rows, *alike_clusters());
  });
}

// So many waiting jobs of each of four shapes that they are kept by length, in orders of which two age.
Beliefs random_crowd() {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  const auto below = [&rng](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
  Beliefs crowd{*rc::gen::element<std::string>("exact", "user"), std::vector<Row>(500)};
  for (Row& row : crowd.rows) {
    row = {.submit = below(100), .work = below(17), .gpus = 1u << below(4), .deadline = below(300)};
    if (below(6) == 0) row.attempts = {below(9), below(9)};
    row.estimate = std::max<std::int64_t>(1, row.work + below(3) * (below(20) - 10));
  }
  std::stable_sort(crowd.rows.begin(), crowd.rows.end(), [](auto& a, auto& b) { return a.submit < b.submit; });
  return crowd;
}

TEST_P(BackfillDifferential, EasyAndSc20InACrowd) {
  check_many(5, [] {
    const Beliefs crowd = random_crowd();
    const ReferenceBackfill how = reference_of(GetParam(), crowd);
    const std::string estimate = crowd.parameters() + "}";
    const Cluster cluster = *alike_clusters();
    expect_agreement({GetParam().policy, "easy" + estimate, ReferenceEasy{how}}, crowd.rows, cluster);
    expect_agreement({GetParam().policy, "sc20" + estimate, ReferenceSc20{how}}, crowd.rows, cluster);
  });
}

class AgendaDifferential : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Heuristics, AgendaDifferential, testing::Values("fcfs", "sjf", "saf", "f1"),
                         [](const auto& instance) { return instance.param; });

struct AgendaCase {
  std::string knowledge, estimator;
  std::vector<Row> rows;

  [[nodiscard]] ReferenceEstimator order() const { return ReferenceEstimator(estimator); }
  [[nodiscard]] ReferenceBackfill backfill(const std::string& heuristic) const {
    return {agenda_order(heuristic), order(), ReferenceEstimator(estimator, &ReferenceJob::planned_us), "kill"};
  }
  [[nodiscard]] std::string policy(const std::string& mode, const std::string& heuristic) const {
    return "agenda{mode=" + mode + ",heuristic=" + heuristic + ",knowledge=" + knowledge + "}";
  }
};

AgendaCase random_agenda_case() {
  AgendaCase c;
  c.knowledge = *rc::gen::element<std::string>("user", "oracle", "none");
  c.estimator = c.knowledge == "user" ? "requested" : c.knowledge == "oracle" ? "exact" : "nothing";
  c.rows = *gpu_rows(case_gpus, false);
  return c;
}

TEST_P(AgendaDifferential, FitOrWaitAndInspect) {
  check_many(1000, [] {
    const AgendaCase c = random_agenda_case();
    const auto mode = *rc::gen::element<std::string>("fit_or_wait", "inspect");
    expect_agreement({.policy = c.policy(mode, GetParam()), .rule = agenda_greedy(GetParam(), c.order())}, c.rows,
                     *alike_clusters());
  });
}

TEST_P(AgendaDifferential, Backfill) {
  check_many(1000, [] {
    const AgendaCase c = random_agenda_case();
    expect_agreement(
        {.policy = c.policy("backfill", GetParam()), .rule = ReferenceAgendaBackfill{c.backfill(GetParam())}}, c.rows,
        *alike_clusters());
  });
}

TEST_P(AgendaDifferential, SelectBlocking) {
  check_many(1000, [] {
    const AgendaCase c = random_agenda_case();
    const bool backfills = *rc::gen::arbitrary<bool>();
    std::string policy = c.policy("select_blocking", GetParam());
    policy.insert(policy.size() - 1, backfills ? ",sc20_backfill=true" : "");
    expect_agreement({.policy = policy, .rule = ReferenceAgendaBlocking{c.backfill(GetParam()), backfills}}, c.rows,
                     *alike_clusters());
  });
}

}  // namespace
}  // namespace gpusched::test
