// SPDX-License-Identifier: Apache-2.0
// The policy `carbon`; tests/differential compares it with its definition on full clusters.
#include "src/policies/carbon/carbon_starts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "tests/policies/policy_support.hpp"

namespace gpusched::test {
namespace {

constexpr Time hour = whole_seconds(3600);

PowerModel with_carbon(Signal signal) {
  PowerModel model;
  model.places = {{.carbon_g_per_kwh = std::move(signal), .usd_per_mwh = {}}};
  return model;
}

Result<AnyPolicy> carbon(const std::string& parameters, const JobTable& jobs, const PowerModel* power) {
  const Cluster cluster = Cluster::pool(64);
  const auto specs = parse_policy_list("carbon{" + parameters + "}");
  return registry().make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = 5, .power = power});
}

std::string refusal(const std::string& parameters, const JobTable& jobs, const PowerModel* power) {
  const auto made = carbon(parameters, jobs, power);
  return made ? std::string() : made.error().to_string();
}

using Pieces = std::vector<std::pair<std::int64_t, std::int64_t>>;  // microseconds

// By job: its runs, by time.
std::vector<Pieces> runs_of(const JobTable& jobs, const Cluster& cluster, AnyPolicy policy, const RunInputs& inputs) {
  Engine engine(jobs, cluster, {}, inputs);
  IntervalLog log;
  EXPECT_TRUE(simulate(engine, policy, log));
  std::vector<Pieces> runs(jobs.size());
  for (const Interval& interval : log.intervals()) {
    runs[index(interval.job)].emplace_back(interval.start.us, interval.end.us);
  }
  for (Pieces& pieces : runs) std::sort(pieces.begin(), pieces.end());
  return runs;
}

// Five days by the hour, around 300 with a night of 100 less.
Signal random_days(Rng& rng) {
  std::vector<Signal::Step> steps;
  for (std::int64_t h = 0; h < 120; ++h) {
    const std::int64_t night = h % 24 < 7 ? 100 : 0;
    steps.push_back({whole_seconds(3600 * h), (300 - night + static_cast<std::int64_t>(rng.below(150))) * 1'000'000});
  }
  return Signal(std::move(steps));
}

// Where there is room for all, every job runs in the stretches of its plan, to the microsecond.
TEST(CarbonStarts, RunEachJobAsPlannedWhereThereIsRoom) {
  const std::map<std::string, Forecast::Kind> forecasts{{"perfect", Forecast::Kind::perfect},
                                                        {"persistence", Forecast::Kind::persistence},
                                                        {"noisy", Forecast::Kind::noisy}};
  std::size_t suspended = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng = Rng(seed).split("carbon starts");
    const PowerModel power = with_carbon(random_days(rng));
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < 25; ++i) {
      rows.push_back({.submit = 3000 * i, .work = 1 + static_cast<std::int64_t>(rng.below(5 * 3600))});
    }
    const JobTable jobs = table_of(rows);
    for (const auto& [rule_name, rule] : start_rule_names) {
      for (const auto& [name, kind] : forecasts) {
        const std::string text =
            "rule=" + std::string(rule_name) + ",estimate=exact,forecast_sigma=0.3,forecast=" + name;
        auto policy = carbon(text, jobs, &power);
        ASSERT_TRUE(policy) << policy.error().to_string();
        const auto runs = runs_of(jobs, Cluster::pool(64), *std::move(policy), {});
        for (std::uint32_t i = 0; i < jobs.size(); ++i) {
          const Time length = jobs.work(JobId{i});
          Pieces planned;
          for (const RunStretch& stretch : planned_runs(
                   rule, power.places.front().carbon_g_per_kwh, {.kind = kind, .sigma = 0.3, .seed = 5},
                   {.now = jobs.submit(JobId{i}),
                   .wait = length < whole_seconds(2 * 3600) ? whole_seconds(6 * 3600) : whole_seconds(24 * 3600),
                   .length = length,
                   .expected = length})) {
            planned.emplace_back(stretch.begin.us, stretch.end.us);
          }
          EXPECT_EQ(runs[i], planned) << text << ", seed " << seed << ", job " << i;
          suspended += planned.size() > 1 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(suspended, 100u);
}

TEST(CarbonStarts, PayWhatPreemptionCosts) {
  // Clean in hours 0 and 2: two hours of work run there, the load of 10 min follows what is left.
  const PowerModel power = with_carbon(
      Signal({{Time{}, 1'000'000}, {hour, 9'000'000}, {hour + hour, 1'000'000}, {hour + hour + hour, 9'000'000}}));
  const JobTable jobs = table_of({{.submit = 0, .work = 7200}});
  auto policy = carbon("rule=wait-awhile,forecast=perfect,estimate=exact,short_h=0,wait_h=1", jobs, &power);
  ASSERT_TRUE(policy) << policy.error().to_string();
  Engine engine(jobs, Cluster::pool(1), {.preemption = {.restart = whole_seconds(600)}});
  ASSERT_TRUE(simulate(engine, *policy));
  EXPECT_EQ(engine.preemptions(JobId{0}), 1u);
  EXPECT_EQ(engine.end(JobId{0}), hour + hour + hour + whole_seconds(600));
}

TEST(CarbonStarts, LoseSlackWhenNodesFail) {
  // All-Wait of 6 h, from 6 h on for an hour. At 6 h 30 min the node fails until 7 h: no slack is left.
  const JobTable jobs = table_of({{.submit = 0, .work = 3600}});
  auto policy = carbon("rule=all-wait,estimate=exact", jobs, nullptr);
  ASSERT_TRUE(policy) << policy.error().to_string();
  NodeFailures failures;
  const std::vector<NodeChange> changes{{.time = whole_seconds(23'400), .node = NodeId{0}, .up = false},
                                        {.time = whole_seconds(25'200), .node = NodeId{0}, .up = true}};
  failures.add_changes(changes);
  const auto runs = runs_of(jobs, Cluster::pool(1), *std::move(policy), {.failures = &failures});
  EXPECT_EQ(runs[0], (Pieces{{21'600'000'000, 23'400'000'000}, {25'200'000'000, 28'800'000'000}}));
}

TEST(CarbonStarts, AreMarkedWhenTheyKnowTheFuture) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .estimate = 1}});
  const PowerModel& power = signals_of_tests();
  const auto marked = [&](const std::string& text) { return carbon(text, jobs, &power)->clairvoyant(); };
  EXPECT_FALSE(marked(""));
  EXPECT_TRUE(marked("forecast=perfect"));
  EXPECT_TRUE(marked("forecast=noisy"));
  EXPECT_TRUE(marked("estimate=exact"));
  EXPECT_FALSE(marked("rule=all-wait,forecast=perfect"));  // which reads none
}

TEST(CarbonStarts, RefuseWhatTheyCannotRead) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .estimate = 1}});
  const PowerModel carbon_alone = with_carbon(Signal(300)), far_off = with_carbon(Signal(2e6));
  EXPECT_EQ(refusal("", jobs, nullptr),
            "policy carbon: rule carbon-time reads a signal; expected --power FILE with \"carbon\"");
  EXPECT_EQ(refusal("rule=ecovisor,figure=price", jobs, &carbon_alone),
            "policy carbon: rule ecovisor reads a signal; expected --power FILE with \"usd_per_mwh\"");
  EXPECT_EQ(refusal("", jobs, &far_off), "policy carbon: expected a carbon below 1000000 in --power");
  EXPECT_EQ(refusal("deadline=trace", jobs, &carbon_alone),
            "policy carbon: the trace has no deadlines (column deadline)");
  EXPECT_EQ(refusal("rule=wait-awhile,reserved_gpus=2", jobs, &carbon_alone),
            "policy carbon: rule wait-awhile suspends jobs; reserved_gpus goes with the others");
  EXPECT_EQ(refusal("rule=no-wait", jobs, nullptr), "");
}

}  // namespace
}  // namespace gpusched::test
