// SPDX-License-Identifier: Apache-2.0
// Small cases by hand; published figures are in tests/golden.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/calibration/profile/power_limit_table.hpp"
#include "src/sim/protocols/carbon_scaler_protocol.hpp"
#include "src/sim/protocols/gaia_protocol.hpp"
#include "src/sim/protocols/lwa_protocol.hpp"
#include "src/sim/protocols/starburst_protocol.hpp"
#include "src/sim/protocols/zeus_protocol.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

template <class Read>
std::string error_of(Read read, const std::string& text) {
  const test::TempFolder folder;
  const auto result = read(folder.write("in.csv", text));
  return result ? std::string() : result.error().to_string();
}

#define EXPECT_ERROR(read, text, ...)                                                      \
  for (const std::string& part : std::vector<std::string>{__VA_ARGS__}) {                  \
    EXPECT_NE(error_of(read, text).find(part), std::string::npos) << error_of(read, text); \
  }

// ---- GAIA ----

GaiaTrace two_jobs() {
  const test::TempFolder folder;
  return *read_gaia_jobs(folder.write("jobs.csv", "arrival_time,length,cpus\n0,3600,1\n1800,3600,2\n"));
}

TEST(GaiaProtocol, CountsCarbonMoneyAndWaitsByHand) {
  // 100 g/kWh for an hour, then 50. Of 1 W a cpu: 1 h of one cpu, and half an hour each of two cpus.
  const Signal signal({{Time{}, 100'000'000}, {whole_seconds(3600), 50'000'000}});
  const GaiaResult now = run_gaia(two_jobs(), signal, GaiaPolicy::no_wait, 0, {});
  EXPECT_NEAR(now.carbon_g, 0.1 + 0.1 + 0.05, 1e-12);
  EXPECT_NEAR(now.cost_usd, 3 * 0.0624, 1e-12);
  EXPECT_EQ(now.mean_wait_h, 0);
  const GaiaResult later = run_gaia(two_jobs(), signal, GaiaPolicy::lowest_slot, 0, {});
  EXPECT_NEAR(later.carbon_g, 0.05 + 0.1, 1e-12);  // both from hour 1 on
  EXPECT_NEAR(later.mean_wait_h, 0.75, 1e-12);
  const GaiaResult spot = run_gaia(two_jobs(), signal, GaiaPolicy::spot_res, 0, {});
  EXPECT_NEAR(spot.cost_usd, 3 * 0.01248, 1e-12);
}

// The policy `carbon` on a cluster with room for all, of GPUs that draw a watt for each cpu: the same carbon and waits.
// Jobs of a queue are alike, so that each is as long as their mean, in whole slots, with which GAIA reckons.
TEST(GaiaProtocol, IsWhatThePolicyDoesWhereThereIsRoom) {
  std::vector<Signal::Step> steps;
  for (std::int64_t h = 0; h < 200; ++h) {
    steps.push_back({whole_seconds(3600 * h), (100 + h * 37 % 91 + h % 24 * 5) * 1'000'000});
  }
  const Signal signal(std::move(steps));
  std::string csv = "arrival_time,length,cpus\n";
  std::vector<test::Row> rows;
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t length = i % 3 == 0 ? 5400 : 4 * 3600 + 900, arrival = 1235 * i;
    csv += std::to_string(arrival) + "," + std::to_string(length) + ",1\n";
    rows.push_back({.submit = arrival, .work = length});
  }
  const test::TempFolder folder;
  const GaiaTrace trace = *read_gaia_jobs(folder.write("jobs.csv", csv));
  const JobTable jobs = test::table_of(rows);
  const Cluster cluster = Cluster::pool(64);
  PowerModel power;
  power.gpus = {{.load = {.full_w = 1}}};
  power.kinds = {{}};
  power.kind_of.assign(cluster.nodes.size(), 0);
  power.places = {{.carbon_g_per_kwh = signal}};
  for (const auto& [rule, policy] : {std::pair{"no-wait", GaiaPolicy::no_wait},
                                     {"lowest-slot", GaiaPolicy::lowest_slot},
                                     {"lowest-window", GaiaPolicy::lowest_window},
                                     {"carbon-time", GaiaPolicy::carbon_time},
                                     {"ecovisor", GaiaPolicy::ecovisor},
                                     {"wait-awhile", GaiaPolicy::wait_awhile}}) {
    const auto specs = parse_policy_list("carbon{forecast=perfect,estimate=exact,rule=" + std::string(rule) + "}");
    auto made = test::registry().make(specs->front(), {.jobs = &jobs, .cluster = &cluster, .power = &power});
    ASSERT_TRUE(made) << made.error().to_string();
    Engine engine(jobs, cluster, {}, {.power = &power});
    ASSERT_TRUE(simulate(engine, *made));
    const GaiaResult gaia = run_gaia(trace, signal, policy, 0, {});
    double carbon_g = 0, wait_h = 0;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const JobId job{i};
      carbon_g += 1000 * engine.power().bill(job).carbon_kg();
      wait_h += to_seconds(engine.end(job) - jobs.submit(job) - jobs.work(job)) / 3600 / jobs.size();
    }
    EXPECT_NEAR(carbon_g, gaia.carbon_g, 1e-6 * gaia.carbon_g) << rule;
    EXPECT_NEAR(wait_h, gaia.mean_wait_h, 1e-9) << rule;
  }
}

TEST(GaiaProtocol, PaysReservedCpusUntilTheLastStart) {
  const Signal signal(100.0);
  // One cpu holds the first job; the second does not fit.
  const GaiaResult one = run_gaia(two_jobs(), signal, GaiaPolicy::no_wait, 1, {});
  EXPECT_NEAR(one.cost_usd, 2 * 0.0624 + 0.4 * 0.0624 * 0.5, 1e-12);
  // Two: the first takes one of them, and what is left does not fit the second, which waits until a slot after its end.
  const GaiaResult two = run_gaia(two_jobs(), signal, GaiaPolicy::all_wait, 2, {});
  const double start_h = 1 + 5 / 3600.0;
  EXPECT_NEAR(two.cost_usd, 0.4 * 0.0624 * 2 * start_h, 1e-12);
  EXPECT_NEAR(two.mean_wait_h, (start_h - 0.5) / 2, 1e-12);
}

TEST(GaiaProtocol, RefusesBadRows) {
  EXPECT_ERROR(read_gaia_jobs, "arrival_time,length\n", "in.csv", "cpus");
  EXPECT_ERROR(read_gaia_jobs, "arrival_time,length,cpus\n0,9,1\n0,4,1\n", "in.csv:3", "length", "5 to 8,000,000");
  EXPECT_ERROR(read_gaia_jobs, "arrival_time,length,cpus\n-1,9,1\n", "in.csv:2", "arrival_time", "-1");
  EXPECT_ERROR(read_gaia_jobs, "arrival_time,length,cpus\n0,9,1.5\n", "in.csv:2", "cpus", "1.5");
  EXPECT_ERROR(read_gaia_jobs, "arrival_time,length,cpus\n", "expected rows");
}

// ---- Let's Wait Awhile ----

TEST(LwaProtocol, WaitsUntilTheMorningByHand) {
  // 2020 begins on a Wednesday. From 20:00 for an hour: until Thursday 9:00. 300 g/kWh, from 3:00 to 3:30 on 100.
  const Time year = whole_seconds(1'577'836'800);
  const auto half_hours = [&](std::int64_t count) { return year + whole_seconds(1800 * count); };
  const Signal signal({{year, 300'000'000},
                       {half_hours(54), 100'000'000},
                       {half_hours(55), 300'000'000},
                       {half_hours(60), 200'000'000},
                       {half_hours(61), 300'000'000}});
  ASSERT_TRUE(lwa_year(signal));
  EXPECT_EQ(*lwa_year(signal), year);
  const LwaResult result = run_lwa({{20 * 60, 60}}, signal, year, {.watts = 1e6});
  EXPECT_NEAR(result.base_t, 0.3, 1e-12);
  EXPECT_NEAR(result.best_window_saved_percent, 100.0 / 3, 1e-9);  // 100 and 300 half an hour each
  EXPECT_NEAR(result.cheapest_slots_saved_percent, 50, 1e-9);      // 100 and 200
  EXPECT_EQ(lwa_horizon({{20 * 60, 60}}, year), whole_seconds(33 * 3600));
  EXPECT_FALSE(lwa_year(Signal(std::vector<Signal::Step>{{year + Time{1}, 1}})));
}

TEST(LwaProtocol, RefusesBadRows) {
  EXPECT_ERROR(read_lwa_jobs, "submit_min,duration_min\n0,45\n", "in.csv:2", "duration_min", "multiple of 30");
  EXPECT_ERROR(read_lwa_jobs, "submit_min,duration_min\n15,60\n", "in.csv:2", "submit_min", "multiple of 30");
  EXPECT_ERROR(read_lwa_jobs, "submit_min,duration_min\n0,0\n", "in.csv:2", "duration_min", "30 to");
}

// ---- CarbonScaler ----

TEST(CarbonScalerProtocol, ReadsAndPlansByHand) {
  const std::string yaml =
      "---\nsmall:  # a model\n  instance: x\n  replicas:\n    1:\n      power: 100\n      throughput: 10\n"
      "      other: 7\n    2:\n      power: 150\n      throughput: 20\r\n";
  const auto profiles = scale_profiles_from_yaml(yaml, "p.yaml");
  ASSERT_TRUE(profiles) << profiles.error().to_string();
  ASSERT_EQ(profiles->size(), 1u);
  const ScaleProfile& profile = profiles->front();
  EXPECT_EQ(profile.model, "small");
  ASSERT_EQ(profile.points.size(), 2u);
  EXPECT_EQ(profile.points[1].watts, 150);
  // 2 hours of one replica until hour 3: both replicas in hour 1, of 100 g/kWh.
  const Signal signal({{Time{}, 400'000'000}, {whole_seconds(3600), 100'000'000}, {whole_seconds(7200), 300'000'000}});
  const ScaleResult result = run_carbon_scaler(profile, signal, {.work_h = 2, .deadline_h = 3});
  EXPECT_TRUE(result.in_time);
  EXPECT_NEAR(result.carbon_g, 15, 1e-9);
  EXPECT_NEAR(result.energy_kwh, 0.15, 1e-12);
  EXPECT_NEAR(result.base_carbon_g, 50, 1e-9);
  EXPECT_FALSE(run_carbon_scaler(profile, signal, {.work_h = 7, .deadline_h = 3}).in_time);
}

TEST(CarbonScalerProtocol, RefusesWhatIsNoProfile) {
  const auto error = [](const std::string& yaml) {
    const auto profiles = scale_profiles_from_yaml(yaml, "p.yaml");
    return profiles ? std::string() : profiles.error().to_string();
  };
  EXPECT_NE(error("").find("expected models"), std::string::npos);
  EXPECT_NE(error("m:\n").find("expected replicas"), std::string::npos);
  EXPECT_NE(error("  a: 1\n").find("p.yaml:1"), std::string::npos);
  EXPECT_NE(error("m:\n  replicas:\n    2:\n      power: 1\n").find("expected 1"), std::string::npos);
  EXPECT_NE(error("m:\n  replicas:\n    1:\n      power: -1\n").find("p.yaml:4"), std::string::npos);
  EXPECT_NE(error("m:\n  replicas:\n    1:\n      power: 1\n").find("throughput"), std::string::npos);
  EXPECT_NE(error("m\n").find("colon"), std::string::npos);
}

// ---- Zeus ----

TEST(PowerLimitTable, GathersCurvesAndChooses) {
  const test::TempFolder folder;
  const auto curves = read_power_limits(
      folder.write("t.csv",
                   "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
                   "a,n,8,adam,200,12,160\nb,n,8,adam,300,10,240\na,n,8,adam,100,20,90\na,n,8,adam,250,11,180\n"));
  ASSERT_TRUE(curves);
  ASSERT_EQ(curves->size(), 2u);
  EXPECT_EQ((*curves)[0].rows[0].limit_w, 100);  // ascending
  EXPECT_EQ(largest_limit_w(*curves), 300);      // of the whole table: 2760 J against 2640 J
  const std::vector<ZeusChoice> choices = zeus_choices(*curves, 0.5);
  EXPECT_EQ(choices[0].limit_w, 250);
  EXPECT_EQ(choices[0].energy_ratio, 1);
  EXPECT_EQ(zeus_choices(*curves, 1)[0].limit_w, 100);
  EXPECT_NEAR(zeus_choices(*curves, 1)[0].energy_ratio, 1800.0 / 1980, 1e-12);
  EXPECT_NEAR(zeus_choices(*curves, 1)[0].time_ratio, 20.0 / 11, 1e-12);
}

TEST(PowerLimitTable, RefusesBadRows) {
  const std::string header = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n";
  EXPECT_ERROR(read_power_limits, header + "a,n,8,adam,100,0,90\n", "in.csv:2", "time_per_epoch", "above 0");
  EXPECT_ERROR(read_power_limits, header + "a,n,8,adam,100,1,90\na,n,8,adam,100,2,80\n", "in.csv:3", "power_limit",
               "each limit once");
  EXPECT_ERROR(read_power_limits, header + "a,n,x,adam,100,1,90\n", "in.csv:2", "batch_size", "whole number");
}

// ---- Starburst ----

StarburstResult run_jobs(std::vector<StarburstJob> jobs, const StarburstPolicy& policy) {
  return run_starburst(jobs, policy, {.nodes = 1, .gpus_per_node = 4, .usd_per_gpu_h = 2});
}

TEST(StarburstProtocol, WaitsThenPaysByHand) {
  const std::vector<StarburstJob> jobs{{0, 2, 4}, {1, 1, 1}, {1, 1, 4}};
  const StarburstResult at_once = run_jobs(jobs, {"", {BurstWait::no_wait, 0}});
  EXPECT_EQ(at_once.cloud_jobs, 2u);
  EXPECT_EQ(at_once.cost_usd, 2 * (1 + 4));
  EXPECT_EQ(at_once.mean_wait_h, 0);
  // At 2 the first has ended, before the others' time is up; the second starts and the third, held up, leaves at 2.5.
  const StarburstResult waits = run_jobs(jobs, {"", {BurstWait::constant, 1.5}});
  EXPECT_EQ(waits.cloud_jobs, 1u);
  EXPECT_EQ(waits.cost_usd, 8);
  EXPECT_EQ(waits.mean_wait_h, (0 + 1 + 1.5) / 3);
  // Their time is up at the instant of the end: the cloud comes before the queue.
  EXPECT_EQ(run_jobs(jobs, {"", {BurstWait::constant, 1}}).cloud_jobs, 2u);
}

TEST(StarburstProtocol, PassesOverOrHoldsUp) {
  const std::vector<StarburstJob> jobs{{0, 2, 2}, {0.5, 2, 4}, {0.5, 1, 2}};
  EXPECT_EQ(run_jobs(jobs, {"", {BurstWait::constant, 9}}).mean_wait_h, (0 + 1.5 + 3.5) / 3);
  EXPECT_EQ(run_jobs(jobs, {"", {BurstWait::constant, 9}, true}).mean_wait_h, (0 + 1.5 + 0) / 3);
  EXPECT_EQ(run_jobs(jobs, {"", {BurstWait::constant, 9}, false, true}).mean_wait_h, (0 + 1.5 + 0) / 3);
  // Larger than the cluster: it waits, then leaves.
  EXPECT_EQ(run_jobs({{0, 1, 5}}, {"", {BurstWait::constant, 9}}).mean_wait_h, 9);
}

TEST(StarburstProtocol, RefusesBadRows) {
  EXPECT_ERROR(read_starburst_jobs, "submit_h,runtime_h,gpus\n0,0,1\n", "in.csv:2", "runtime_h", "above 0");
  EXPECT_ERROR(read_starburst_jobs, "submit_h,runtime_h,gpus\nx,1,1\n", "in.csv:2", "submit_h", "'x'");
}

}  // namespace
}  // namespace gpusched
