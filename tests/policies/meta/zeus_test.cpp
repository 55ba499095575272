// SPDX-License-Identifier: Apache-2.0
// The policy `zeus` gives each job the power limit that the paper's rule gives it, and is its policy in all else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/calibration/profile/power_limit_table.hpp"
#include "src/policies/carbon/power_limit.hpp"
#include "src/world/power_limits.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

// A GPU that draws 200 W, or 100 W at 0.7 of the speed; none of it idle.
PowerModel slow_or_fast() {
  PowerModel model;
  model.gpus = {{.load = {.idle_w = 0, .full_w = 200}, .limits = {{100, 0.5, 700'000}, {200, 1, reference_rate}}}};
  model.kinds = {{}};
  model.kind_of = {0};
  return model;
}

Cluster one_gpu() { return {.nodes = {{.gpus = 1}}}; }

struct PoweredRun {
  std::uint64_t history = 0;
  std::vector<Time> ends = {};
  double kwh = 0;
};

PoweredRun run_with(const std::string& policy, const JobTable& jobs, const Cluster& cluster, const PowerModel& model) {
  const auto specs = parse_policies(registry(), policy);
  EXPECT_TRUE(specs) << specs.error().to_string();
  auto made = make_policy(registry(), specs->front(), {.jobs = &jobs, .cluster = &cluster, .power = &model});
  EXPECT_TRUE(made) << made.error().to_string();
  Engine engine(jobs, cluster, {}, {.power = &model});
  HistoryHash history;
  EXPECT_TRUE(simulate(engine, *made, history));
  EXPECT_TRUE(engine.power().adds_up());
  PoweredRun run{.history = history.value(), .kwh = engine.power().jobs_bill().kwh()};
  for (std::uint32_t i = 0; i < jobs.size(); ++i) run.ends.push_back(engine.end(JobId{i}));
  return run;
}

JobTable one_job(std::int64_t seconds) {
  JobTableBuilder builder;
  builder.add({.submit = {}, .work = whole_seconds(seconds), .shape = {.gpu_milli_per_task = whole_gpu}});
  return *std::move(builder).build();
}

TEST(Zeus, WeighsEnergyAgainstTime) {
  const JobTable jobs = one_job(70);
  const Cluster cluster = one_gpu();
  const auto run = [&](const std::string& eta) {
    return run_with("zeus{eta=" + eta + "}", jobs, cluster, slow_or_fast());
  };
  // An hour's work at 200 W: eta 200 + (1 - eta) 200 = 200; at 100 W in 1/0.7 h: (eta 100 + (1 - eta) 200) / 0.7.
  // These are equal at eta 0.6.
  EXPECT_EQ(run("0").ends[0], whole_seconds(70));
  EXPECT_EQ(run("0.59").ends[0], whole_seconds(70));
  EXPECT_EQ(run("0.61").ends[0], whole_seconds(100));
  EXPECT_EQ(run("1").ends[0], whole_seconds(100));
  EXPECT_DOUBLE_EQ(run("0").kwh, 200 * 70 / 3.6e6);
  EXPECT_DOUBLE_EQ(run("1").kwh, 100 * 100 / 3.6e6);
}

// The setting is looked up on the type where the job runs, whatever other types there are in the cluster.
TEST(Zeus, KnowsTheTypeOfTheNodes) {
  PowerModel model = slow_or_fast();
  model.gpus.push_back({.load = {.idle_w = 0, .full_w = 60}, .limits = {{30, 0.1, 100'000}, {60, 1, reference_rate}}});
  model.kind_of = {0, 0};
  const Cluster cluster{.nodes = {{.gpus = 1, .gpu_type = 0}, {.gpus = 1, .gpu_type = 1}},
                        .gpu_types = {"big", "small"}};
  JobTableBuilder builder;
  builder.add({.submit = {}, .work = whole_seconds(70), .shape = {.gpu_milli_per_task = whole_gpu}, .gpu_spec = "big"});
  builder.add(
      {.submit = {}, .work = whole_seconds(70), .shape = {.gpu_milli_per_task = whole_gpu}, .gpu_spec = "small"});
  const JobTable jobs = *std::move(builder).build();
  // small: 6 W for 10 times as long as 60 W, where the largest limit is 60 W: slow as soon as energy alone counts.
  EXPECT_EQ(run_with("zeus{eta=0.7}", jobs, cluster, model).ends,
            (std::vector<Time>{whole_seconds(100), whole_seconds(70)}));
  EXPECT_EQ(run_with("zeus{eta=0}", jobs, cluster, model).ends,
            (std::vector<Time>{whole_seconds(70), whole_seconds(70)}));
}

// Without energy no GPU is slowed, and the run is that of the policy which it holds.
TEST(Zeus, OfTimeAloneIsItsPolicy) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomWorld world = random_world(seed, WorldKind::any);
    PowerModel model = changing_signals();
    model.places.clear();
    for (const std::string policy : {"fifo", "srtf", "sjf+easy"}) {
      SCOPED_TRACE(policy + " " + std::to_string(seed));
      EXPECT_EQ(run_with("zeus{eta=0,policies=[" + policy + "]}", world.jobs, world.cluster, model).history,
                run_with(policy, world.jobs, world.cluster, model).history);
    }
  }
}

// The limits of the paper's program, for every batch of the shipped tables.
TEST(Zeus, ChoosesAsTheArtifact) {
  for (const std::string gpu : {"v100", "a40"}) {
    const std::string name = "profiles/zeus/summary_power_" + gpu + ".csv";
    GPUSCHED_NEEDS_TRACE(real_trace(name), name);
    const auto curves = read_power_limits(real_trace(name));
    ASSERT_TRUE(curves);
    const double most_w = largest_limit_w(*curves);
    int compared = 0;
    for (const PowerLimitCurve& curve : *curves) {
      const auto limits = read_limit_curve({.file = real_trace(name),
                                            .dataset = curve.dataset,
                                            .network = curve.network,
                                            .optimizer = curve.optimizer,
                                            .batch_size = curve.batch_size},
                                           0);
      ASSERT_TRUE(limits);
      // Settings that are slower and draw more than a lower one, or faster than the largest, are none of a run's.
      const PowerLimitRow& whole = curve.rows.back();
      const bool is_known = std::all_of(curve.rows.begin(), curve.rows.end(), [&whole](const PowerLimitRow& row) {
        return row.epoch_s >= whole.epoch_s && row.mean_w <= whole.mean_w;
      });
      if (!limits->notes.empty() || !is_known) continue;
      ++compared;
      PowerModel model;
      model.gpus = {{.load = {.idle_w = 0, .full_w = limits->full_w}, .limits = limits->limits}};
      model.kinds = {{}};
      model.kind_of = {0};
      const PoweredRun run = run_with("zeus", one_job(100'000), one_gpu(), model);
      SCOPED_TRACE(gpu + " " + curve.dataset + " " + std::to_string(curve.batch_size));
      std::vector<LimitedRun> runs;
      for (const PowerLimitRow& row : curve.rows) runs.push_back({row.limit_w, row.epoch_s, row.mean_w});
      const LimitedRun& chosen = runs[zeus_choice(runs, 0.5, most_w)];
      EXPECT_NEAR(to_seconds(run.ends[0]) / 1e5, chosen.time_s / runs.back().time_s, 2e-6);
      EXPECT_NEAR(run.kwh * 3.6e6 / (limits->full_w * 1e5), chosen.energy_j() / runs.back().energy_j(), 2e-5);
    }
    EXPECT_GT(compared, 5) << gpu;
  }
}

TEST(Zeus, NeedsLimitsAndOnePolicy) {
  const JobTable jobs = one_job(1);
  const Cluster cluster = one_gpu();
  const auto error = [&](const std::string& text, const PowerModel* power) {
    const auto specs = parse_policies(registry(), text);
    const auto made = make_policy(registry(), specs->front(), {.jobs = &jobs, .cluster = &cluster, .power = power});
    return made ? "" : made.error().to_string();
  };
  const PowerModel model = slow_or_fast();
  PowerModel without = model;
  without.gpus[0].limits.clear();
  const std::string told = "policy zeus: no GPU has power limits; give --power with gpus.TYPE.limits";
  EXPECT_EQ(error("zeus", nullptr), told);
  EXPECT_EQ(error("zeus", &without), told);
  EXPECT_EQ(error("zeus{policies=[fifo,sjf]}", &model), "policy zeus, parameter policies: expected one");
  EXPECT_EQ(error("zeus{policies=[sjf]}", &model), "");
}

}  // namespace
}  // namespace gpusched::test
