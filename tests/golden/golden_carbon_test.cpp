// SPDX-License-Identifier: Apache-2.0
// Published figures of schedulers that follow carbon, power and the price of a cloud, on the inputs of their artifacts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/calibration/profile/power_limit_table.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/protocols/carbon_scaler_protocol.hpp"
#include "src/sim/protocols/gaia_protocol.hpp"
#include "src/sim/protocols/lwa_protocol.hpp"
#include "src/sim/protocols/starburst_protocol.hpp"
#include "src/sim/protocols/zeus_protocol.hpp"
#include "src/world/signal_reader.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

using test::real_trace;

Result<SignalFile> south_australia() {
  SignalOptions options;
  options.begins_at = Time{};
  options.from = whole_seconds(7000 * 3600);
  return read_signal(real_trace("carbon/em_2022_AU-SA.csv"), options);
}

// Figures of GAIA's artifact, run with its inputs.
TEST(GoldenGaia, PoliciesAreThoseOfTheArtifact) {
  const std::string jobs = real_trace("gaia/pai_1k.csv");
  GPUSCHED_NEEDS_TRACE(jobs, "gaia/pai_1k.csv");
  GPUSCHED_NEEDS_TRACE(real_trace("carbon/em_2022_AU-SA.csv"), "carbon/em_2022_AU-SA.csv");
  const auto trace = read_gaia_jobs(jobs);
  const auto signal = south_australia();
  ASSERT_TRUE(trace && signal);
  constexpr double not_printed = -1;
  const std::vector<std::tuple<GaiaPolicy, std::int64_t, double, double, double>> rows{
      {GaiaPolicy::no_wait, 0, 562.171256, 199.175860, 0},
      {GaiaPolicy::lowest_slot, 0, 438.514532, not_printed, 5.637933},
      {GaiaPolicy::lowest_window, 0, 384.358746, not_printed, 6.645},
      {GaiaPolicy::carbon_time, 0, 407.511325, not_printed, 4.729},
      {GaiaPolicy::ecovisor, 0, 359.286547, not_printed, not_printed},
      {GaiaPolicy::wait_awhile, 0, 307.055794, not_printed, not_printed},
      {GaiaPolicy::no_wait, 9, 562.171256, 154.397412, 0},
      {GaiaPolicy::all_wait, 9, 518.126017, 129.827239, 9.010090},
      {GaiaPolicy::carbon_time, 9, 407.511325, 181.380732, 4.729},
      {GaiaPolicy::res_first, 9, 480.322255, 142.148535, 2.643676},
      {GaiaPolicy::spot_res, 9, 484.427951, 117.469768, 2.857558},
      {GaiaPolicy::res_first, 3, 436.434616, 178.261269, 4.107833},
      {GaiaPolicy::res_first, 24, 556.380473, 110.262065, 0.485908}};
  for (const auto& [policy, reserved, carbon, cost, wait] : rows) {
    const GaiaResult result = run_gaia(*trace, signal->signal, policy, reserved, {});
    SCOPED_TRACE(std::to_string(static_cast<int>(policy)) + " with " + std::to_string(reserved));
    EXPECT_NEAR(result.carbon_g, carbon, 1e-6);
    if (cost != not_printed) EXPECT_NEAR(result.cost_usd, cost, 1e-6);
    if (wait != not_printed) EXPECT_NEAR(result.mean_wait_h, wait, 1e-6);
  }
}

// The paper's figures, 5.91 and 7.93 %, have 5 % of noise; its code is newer than they are.
TEST(GoldenLetsWaitAwhile, SavesAsPublished) {
  const std::string jobs = real_trace("carbon/lwa_ml_jobs.csv"), carbon = real_trace("carbon/lwa_2020_ger.csv");
  GPUSCHED_NEEDS_TRACE(jobs, "carbon/lwa_ml_jobs.csv");
  GPUSCHED_NEEDS_TRACE(carbon, "carbon/lwa_2020_ger.csv");
  const auto trace = read_lwa_jobs(jobs);
  const auto signal = read_signal(carbon, {});
  ASSERT_TRUE(trace && signal);
  const auto year = lwa_year(signal->signal);
  ASSERT_TRUE(year);
  const LwaResult result = run_lwa(*trace, signal->signal, *year, {});
  EXPECT_NEAR(result.base_t, 100.972, 5e-4);
  EXPECT_NEAR(result.best_window_saved_percent, 5.91, 0.12);
  EXPECT_NEAR(result.cheapest_slots_saved_percent, 7.93, 0.12);
}

// Limit, energy and time at eta 0.5 of each workload's default batch size, from Zeus's own program.
TEST(GoldenZeus, LimitsAreThoseOfTheArtifact) {
  struct Row {
    std::string dataset;
    std::int64_t batch_size;
    double limit_w, energy_ratio, time_ratio;
  };
  const std::vector<std::pair<std::string, std::vector<Row>>> tables{{"v100",
                                                                      {{"librispeech", 192, 225, 0.9570, 1.0028},
                                                                       {"cifar100", 1024, 175, 0.7928, 1.0788},
                                                                       {"movielens", 1024, 225, 0.9759, 0.9863},
                                                                       {"squad", 32, 200, 0.8908, 1.0634},
                                                                       {"sentiment", 128, 225, 0.9443, 1.0229},
                                                                       {"imagenet", 256, 175, 0.8278, 1.0959}}},
                                                                     {"a40",
                                                                      {{"librispeech", 192, 250, 0.9828, 1.0029},
                                                                       {"cifar100", 1024, 175, 0.7903, 1.0762},
                                                                       {"movielens", 1024, 275, 0.9370, 0.9435},
                                                                       {"squad", 32, 225, 0.8368, 1.0637},
                                                                       {"sentiment", 128, 200, 0.7941, 1.1122},
                                                                       {"imagenet", 256, 225, 0.8485, 1.0161}}}};
  for (const auto& [gpu, rows] : tables) {
    const std::string name = "profiles/zeus/summary_power_" + gpu + ".csv";
    GPUSCHED_NEEDS_TRACE(real_trace(name), name);
    const auto curves = read_power_limits(real_trace(name));
    ASSERT_TRUE(curves);
    const std::vector<ZeusChoice> choices = zeus_choices(*curves, 0.5);
    for (const Row& row : rows) {
      int found = 0;
      for (std::size_t i = 0; i < choices.size(); ++i) {
        const PowerLimitCurve& curve = (*curves)[i];
        const bool is_it = curve.dataset.starts_with(row.dataset) && curve.batch_size == row.batch_size &&
                           (row.dataset != "cifar100" || curve.optimizer == "adadelta");
        if (!is_it) continue;
        ++found;
        SCOPED_TRACE(gpu + " " + row.dataset);
        EXPECT_EQ(choices[i].limit_w, row.limit_w);
        EXPECT_NEAR(choices[i].energy_ratio, row.energy_ratio, 5e-5);
        EXPECT_NEAR(choices[i].time_ratio, row.time_ratio, 5e-5);
      }
      EXPECT_EQ(found, 1) << gpu << " " << row.dataset;
    }
  }
}

// By an independent program: 24 replica-hours until 48 h later.
TEST(GoldenCarbonScaler, PlanOfResnet50) {
  const std::string name = "energy/carbonadvisor_scale_profile.yaml";
  GPUSCHED_NEEDS_TRACE(real_trace(name), name);
  GPUSCHED_NEEDS_TRACE(real_trace("carbon/em_2022_AU-SA.csv"), "carbon/em_2022_AU-SA.csv");
  const auto profiles = read_scale_profiles(real_trace(name));
  const auto signal = south_australia();
  ASSERT_TRUE(profiles && signal);
  EXPECT_EQ(profiles->size(), 6u);
  for (const ScaleProfile& profile : *profiles) {
    if (profile.model != "resnet50") continue;
    const ScaleResult result = run_carbon_scaler(profile, signal->signal, {});
    EXPECT_TRUE(result.in_time);
    EXPECT_NEAR(result.carbon_g, 222.5337, 5e-5);
    EXPECT_NEAR(result.energy_kwh, 3.579575, 5e-7);
    EXPECT_NEAR(result.base_carbon_g, 520.3361, 5e-5);
    return;
  }
  FAIL() << "no resnet50";
}

/// From which hour on a job has how many tasks.
class HourlySizes {
 public:
  void observe(const OracleView& view, std::span<const Event>) {
    const std::uint32_t tasks = view.phase(JobId{0}) == JobPhase::running ? view.held_tasks(JobId{0}) : 0;
    if (seen.empty() || seen.back().second != tasks) seen.emplace_back(to_seconds(view.now()) / 3600, tasks);
  }
  std::vector<std::pair<double, std::uint32_t>> seen;
};

// The same job as one of a cluster, by an independent program. The elastic model has the measured speeds but no draws:
// each replica draws alike. The sizes are others for that, and what they draw as measured is less than by the plan
// above, which does not look past the seventh replica of 160 W at the eighth of 12 W.
TEST(GoldenCarbonScaler, PolicySizesResnet50) {
  const std::string name = "energy/carbonadvisor_scale_profile.yaml";
  GPUSCHED_NEEDS_TRACE(real_trace(name), name);
  GPUSCHED_NEEDS_TRACE(real_trace("carbon/em_2022_AU-SA.csv"), "carbon/em_2022_AU-SA.csv");
  const auto profiles = read_scale_profiles(real_trace(name));
  const auto signal = south_australia();
  ASSERT_TRUE(profiles && signal);
  const auto profile = std::find_if(profiles->begin(), profiles->end(),
                                    [](const ScaleProfile& other) { return other.model == "resnet50"; });
  ASSERT_NE(profile, profiles->end());
  ElasticCurve curve{.min_tasks = 1, .max_tasks = static_cast<std::uint32_t>(profile->points.size()), .phases = {{}}};
  for (const ReplicaPoint& point : profile->points) {
    const double speed = point.throughput / profile->points[0].throughput;
    curve.phases[0].rates.push_back(static_cast<RatePpm>(speed * reference_rate));
  }
  const JobTable jobs = test::table_of({{.submit = 0, .work = 24 * 3600}});
  ElasticModel model(jobs.shapes().size());
  model.add(0, jobs.shape_id(JobId{0}), curve);
  PowerModel power;
  power.places = {{.carbon_g_per_kwh = signal->signal, .usd_per_mwh = {}}};
  const Cluster cluster = Cluster::pool(8);
  auto policy =
      PolicyRegistry::standard().make(parse_policy_list("carbonscaler{forecast=perfect,estimate=exact}")->front(),
                                      {.jobs = &jobs, .cluster = &cluster, .power = &power});
  ASSERT_TRUE(policy);
  Engine engine(jobs, cluster, {}, {.elastic = &model});
  HourlySizes sizes;
  ASSERT_TRUE(simulate(engine, *policy, sizes));
  ASSERT_EQ(sizes.seen.size(), 6u);
  double carbon_g = 0;
  const std::vector<std::pair<double, std::uint32_t>> rows{{0, 0}, {7, 1}, {8, 8}, {10, 5}, {11, 4}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(sizes.seen[i], rows[i]);
    if (rows[i].second == 0) continue;
    const Time begin = from_seconds(3600 * rows[i].first), end = from_seconds(3600 * sizes.seen[i + 1].first);
    const double watts = profile->points[rows[i].second - 1].watts;
    carbon_g += static_cast<double>(signal->signal.integral(begin, end)) * watts / 3.6e18;
  }
  EXPECT_NEAR(carbon_g, 207.9634, 5e-4);
}

// Table 4 by the artifact's program.
TEST(GoldenStarburst, WaitingPoliciesAreThoseOfTheArtifact) {
  const std::string name = "starburst/starburst_tab4_rate16.csv";
  GPUSCHED_NEEDS_TRACE(real_trace(name), name);
  const auto jobs = read_starburst_jobs(real_trace(name));
  ASSERT_TRUE(jobs);
  const std::vector<std::tuple<std::string, double, double, std::size_t>> rows{
      {"no-wait", 760.678625, 0, 60},
      {"constant", 705.551364, 0.051629, 35},
      {"linear_cost 0.07805625 loop", 584.001433, 0.051187, 68},
      {"linear_cost 0.25 loop", 406.714650, 0.147425, 61},
      {"linear_capacity 0.25 loop", 499.354635, 0.124654, 37},
      {"linear_runtime 0.25", 713.616459, 0.062826, 105},
      {"sjf linear_cost 0.25 loop", 407.118687, 0.148225, 31}};
  const std::vector<StarburstPolicy> policies = starburst_policies(*jobs);
  ASSERT_EQ(policies.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [policy, cost, wait, cloud_jobs] = rows[i];
    SCOPED_TRACE(policy);
    EXPECT_EQ(policies[i].name, policy);
    const StarburstResult result = run_starburst(*jobs, policies[i], {});
    EXPECT_NEAR(result.cost_usd, cost, 1e-6);
    EXPECT_NEAR(result.mean_wait_h, wait, 1e-6);
    EXPECT_EQ(result.cloud_jobs, cloud_jobs);
  }
}

}  // namespace
}  // namespace gpusched
