// SPDX-License-Identifier: Apache-2.0
// What files say of energy, carbon and money adds up, job by job and split by split.
#include "src/sim/power_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/output_folder.hpp"
#include "src/sim/report.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using nlohmann::json;

// The cells of a csv with its header.
std::vector<std::vector<std::string>> cells_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

// In millionths.
std::int64_t millionths(double value) { return std::llround(value * 1e6); }

class PowerReport : public testing::Test {
 protected:
  PowerReport() {
    scenario_.trace = folder_.write("jobs.csv",
                                    "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,vc\n"
                                    "a,0,100,1,1000,u,x\nb,0,70,1,300,v,y\nc,3,50,1,300,u,y\nd,200,10,2,1000,w,x\n");
    scenario_.cluster = "2x2";
    scenario_.policies = {"fifo"};
    scenario_.timeline = true;
    scenario_.conditions.power = power("500");
  }

  std::string power(const std::string& cap) const {
    return folder_.write("power.json", R"({"gpus": {"any": {"idle_w": 30, "full_w": 130}}, "nodes": {"base_w": 40,
        "cpu": {"idle_w": 20, "full_w": 90}, "sleep": {"after_s": 20, "asleep_w": 5, "wake_s": 4, "wake_j": 90}},
        "losses": {"gain": 0.137, "fixed_w": 11}, "carbon": 321.5, "usd_per_mwh": -7, "rent": {"usd_per_gpu_h": 1.7},
        "caps": [{"w": )" + cap + "}]}");
  }

  // The folder of the only policy.
  std::string run() {
    const PolicyRegistry registry = PolicyRegistry::standard();
    auto input = load_replay(scenario_, registry);
    EXPECT_TRUE(input) << input.error().to_string();
    ReplayProgress progress;
    auto runs =
        run_replay(*input, registry, 1, {.splits = true, .job_files = true, .timeline = scenario_.timeline}, progress);
    EXPECT_TRUE(runs) << runs.error().to_string();
    EXPECT_EQ(runs->front().why_unfinished, "");
    auto out = OutputFolder::open(folder_.path() + "/out", manifest_name);
    EXPECT_TRUE(write_policy_files(*out, *input, runs->front()));
    table_ = comparison_table(scenario_, *input, *runs);
    report_ = json::parse(json_report(scenario_, *input, *runs, {}));
    warnings_ = report_warnings(*input, *runs);
    return folder_.path() + "/out/fifo";
  }

  TempFolder folder_;
  Scenario scenario_;
  std::string table_;
  json report_;
  std::vector<std::string> warnings_;
};

TEST_F(PowerReport, JobsSplitsAndTheRestAddUpToTheMeter) {
  const std::string place = run();
  const json summary = json::parse(bytes_of(place + "/summary.json"));
  const json& power = summary["power"];
  const auto jobs = cells_of(bytes_of(place + "/jobs.csv"));
  for (const std::string amount : {"energy_kwh", "carbon_kg", "electricity_usd", "gpus_usd"}) {
    std::int64_t parts = 0;
    for (const char* const part : {"jobs", "idle", "asleep", "waking", "losses"}) {
      parts += millionths(power[part][amount].get<double>());
    }
    EXPECT_EQ(parts, millionths(power["meter"][amount].get<double>())) << amount;
    const auto column = static_cast<std::size_t>(std::find(jobs[0].begin(), jobs[0].end(), amount) - jobs[0].begin());
    ASSERT_LT(column, jobs[0].size());
    std::int64_t sum = 0;
    for (std::size_t i = 1; i < jobs.size(); ++i) sum += millionths(std::stod(jobs[i][column]));
    EXPECT_EQ(sum, millionths(power["jobs"][amount].get<double>())) << amount;
    for (const auto& [by, rows] : summary["splits"].items()) {
      std::int64_t of_rows = 0;
      for (const json& row : rows) of_rows += millionths(row[amount].get<double>());
      EXPECT_EQ(of_rows, sum) << amount << " by " << by;
    }
  }
  const json& metrics = summary["metrics"];
  EXPECT_NEAR(metrics["energy_kwh"].get<double>(), power["meter"]["energy_kwh"].get<double>(), 5e-7);
  EXPECT_NEAR(metrics["cost_usd"].get<double>(),
              power["meter"]["electricity_usd"].get<double>() + power["meter"]["gpus_usd"].get<double>(), 2e-6);
  EXPECT_LT(power["meter"]["electricity_usd"], 0) << "a negative price";
  EXPECT_GT(power["asleep"]["energy_kwh"], 0);
  EXPECT_EQ(report_["runs"][0]["power"], power);
  EXPECT_EQ(report_["manifest"]["value_sources"]["power"]["model"], scenario_.conditions.power);
  EXPECT_THAT(table_, testing::HasSubstr("energy kWh"));
  EXPECT_THAT(table_, testing::HasSubstr("carbon kg"));
}

TEST_F(PowerReport, ServicesHaveBillsOfTheirOwn) {
  folder_.write("requests.csv", "arrival_s\n0\n10\n20\n");
  const std::string rest = R"("requests": {"log": "requests.csv"}, "serves": {"seconds": 7},
      "replica": {"gpus": 1}, "least": 1, "most": 1})";
  scenario_.conditions.services =
      folder_.write("services.json", R"({"services": [{"name": "s", )" + rest + R"(, {"name": "t", )" + rest + "]}");
  const std::string place = run();
  const json summary = json::parse(bytes_of(place + "/summary.json"));
  const json& power = summary["power"];
  const auto jobs = cells_of(bytes_of(place + "/jobs.csv")), services = cells_of(bytes_of(place + "/services.csv"));
  ASSERT_EQ(services.size(), 3u);
  for (const std::string amount : {"energy_kwh", "carbon_kg", "electricity_usd", "gpus_usd"}) {
    std::int64_t parts = 0;
    for (const char* const part : {"jobs", "services", "idle", "asleep", "waking", "losses"}) {
      parts += millionths(power[part][amount].get<double>());
    }
    EXPECT_EQ(parts, millionths(power["meter"][amount].get<double>())) << amount;
    const auto sum_of = [&amount](const auto& rows) {
      const auto column = static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), amount) - rows[0].begin());
      std::int64_t sum = 0;
      for (std::size_t i = 1; i < rows.size(); ++i) sum += millionths(std::stod(rows[i].at(column)));
      return sum;
    };
    EXPECT_EQ(sum_of(jobs), millionths(power["jobs"][amount].get<double>())) << amount;
    EXPECT_EQ(sum_of(services), millionths(power["services"][amount].get<double>())) << amount;
    EXPECT_NE(sum_of(services), 0) << amount;
    for (const char* const service : {"s", "t"}) EXPECT_TRUE(summary["services"][service].contains(amount));
  }
  EXPECT_THAT(table_, testing::HasSubstr("of jobs  services  idle"));
}

// The integrals of the meter, of what it emits and of its price over power.csv are the energy, the carbon and the
// money.
TEST_F(PowerReport, TheTimelineIntegratesToTheEnergy) {
  const std::string place = run();
  const auto rows = cells_of(bytes_of(place + "/power.csv"));
  EXPECT_EQ(rows[0], (std::vector<std::string>{"time_s", "draw_w", "meter_w", "carbon_kg_per_h",
                                               "electricity_usd_per_h", "cap0_w", "drawn0_w", "headroom0_w"}));
  const json summary = json::parse(bytes_of(place + "/summary.json"));
  const json& metrics = summary["metrics"];
  const double end = metrics["last_end_s"];
  double joules = 0, peak_w = 0, carbon_kg = 0, usd = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double from = std::stod(rows[i][0]), until = i + 1 < rows.size() ? std::stod(rows[i + 1][0]) : end;
    joules += std::stod(rows[i][2]) * (until - from);
    carbon_kg += std::stod(rows[i][3]) * (until - from) / 3600;
    usd += std::stod(rows[i][4]) * (until - from) / 3600;
    if (until > from) peak_w = std::max(peak_w, std::stod(rows[i][2]));
    EXPECT_EQ(rows[i][1], rows[i][6]) << "the cap is of all nodes";
    EXPECT_NEAR(std::stod(rows[i][7]), 500 - std::stod(rows[i][1]), 1e-9);
    EXPECT_GE(std::stod(rows[i][7]), 0);
  }
  EXPECT_NEAR(joules / 3.6e6, metrics["energy_kwh"].get<double>(), 1e-9);
  EXPECT_NEAR(carbon_kg, metrics["carbon_kg"].get<double>(), 1e-6);
  EXPECT_NEAR(usd, summary["power"]["meter"]["electricity_usd"].get<double>(), 2e-6);
  EXPECT_NEAR(peak_w / 1e3, metrics["peak_kw"].get<double>(), 1e-9);
  scenario_.timeline = false;
  run();
  EXPECT_FALSE(std::filesystem::exists(place + "/power.csv"));
}

TEST_F(PowerReport, ACapThatFallsTooFarIsTold) {
  folder_.write("cap.csv", "time_s,cap_w\n0,600\n30,300\n50,600\n");
  scenario_.conditions.power = power("\"cap.csv\"");
  const std::string place = run();
  const json caps = json::parse(bytes_of(place + "/summary.json"))["power"]["caps"];
  ASSERT_EQ(caps.size(), 1u);
  EXPECT_EQ(caps[0]["exceeded_s"], 20);
  const double watts = caps[0]["exceeded_w"];
  EXPECT_NEAR(caps[0]["exceeded_kwh"].get<double>(), watts * 20 / 3.6e6, 1e-12);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], testing::StartsWith("fifo: power cap 0 was exceeded for 20.0 s, by up to "));
}

// Nothing of power is in the files of a run without it.
TEST_F(PowerReport, WithoutPowerNothingIsSaid) {
  scenario_.conditions.power.clear();
  const std::string place = run();
  const json summary = json::parse(bytes_of(place + "/summary.json"));
  EXPECT_FALSE(summary.contains("power"));
  for (const char* const name : {"carbon_kg", "cost_usd", "peak_kw"}) EXPECT_FALSE(summary["metrics"].contains(name));
  EXPECT_TRUE(summary["metrics"]["energy_kwh"].is_null());
  EXPECT_THAT(bytes_of(place + "/jobs.csv"), testing::Not(testing::HasSubstr("energy")));
  EXPECT_FALSE(std::filesystem::exists(place + "/power.csv"));
  EXPECT_EQ(report_["manifest"]["value_sources"]["power"], "none");
}

}  // namespace
}  // namespace gpusched::test
