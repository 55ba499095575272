// SPDX-License-Identifier: Apache-2.0
// Figures of services and of power over time, of runs counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/report/report.hpp"
#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

using TextRows = std::vector<std::vector<std::string>>;

class ReportOverTime : public Program {
 protected:
  void SetUp() override {
    if (!can_report()) GTEST_SKIP() << "built without Vega";
  }

  // The data of each figure of one replay, without their headers.
  std::map<std::string, TextRows> figures_of(const std::string& replay) const {
    const std::string out = folder_.path() + "/out", csv = folder_.path() + "/csv";
    const Outcome ran = run("replay " + replay + " --out " + out);
    EXPECT_EQ(ran.code, 0) << ran.err;
    const Outcome drawn = run("report " + out + " --out " + folder_.path() + "/page.html --csv " + csv);
    EXPECT_EQ(drawn.code, 0) << drawn.err;
    std::map<std::string, TextRows> all;
    for (const auto& entry : std::filesystem::directory_iterator(csv)) {
      TextRows& rows = all[entry.path().stem().string()];
      std::istringstream lines(bytes_of(entry.path().string()));
      for (std::string line; std::getline(lines, line);) {
        rows.emplace_back();
        std::istringstream cells(line);
        for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
      }
      rows.erase(rows.begin());
    }
    return all;
  }

  // The value of a figure over time at `t`.
  static double level_at(const TextRows& rows, double t) {
    double value = -1;
    for (const auto& row : rows) {
      if (std::stod(row[1]) <= t + 1e-9) value = std::stod(row[2]);
    }
    return value;
  }
};

// One replica serves 2 s each; the second of the requests at 0 waits until 2, the third comes at 10. All is over at 12.
TEST_F(ReportOverTime, AServiceAlone) {
  folder_.write("requests.csv", "arrival_s\n0\n0\n10\n");
  const std::string services = folder_.write("services.json", R"({"services": [{"name": "s",
      "requests": {"log": "requests.csv"}, "serves": {"seconds": 2}, "replica": {"gpus": 1}, "least": 1, "most": 1,
      "promise": {"part": 0.9, "within_s": 3}}]})");
  const auto all = figures_of("--cluster 1x2 --policy fifo --services " + services);
  EXPECT_EQ(all.at("latency"), (TextRows{{"fifo", "2", "0.666667"}, {"fifo", "4", "1"}}));
  const TextRows& waiting = all.at("requests");
  ASSERT_EQ(waiting.size(), 301u);
  EXPECT_EQ(level_at(waiting, 1), 1);
  EXPECT_EQ(level_at(waiting, 3), 0);
  EXPECT_EQ(waiting.back()[1], "12");
  EXPECT_EQ(all.at("in-time"), (TextRows{{"fifo", "0", "0.5"}, {"fifo", "10", "1"}, {"fifo", "12", "1"}}));
  for (const auto& row : all.at("replicas")) EXPECT_EQ(row[2], "1");
  EXPECT_EQ(all.count("jct"), 0u) << "there are no jobs";
}

// 100 W from 0 to 20, 200 W until 40; the intensity doubles at 10.
TEST_F(ReportOverTime, PowerCarbonAndEnergyByUser) {
  const std::string jobs = folder_.write("jobs.csv",
                                         "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                                         "a,0,20,1,1000,u\nb,20,20,2,1000,v\n");
  folder_.write("carbon.csv", "time_s,carbon_intensity\n0,100\n10,200\n");
  const std::string power = folder_.write("power.json", R"({"gpus": {"any": {"idle_w": 0, "full_w": 100}},
      "nodes": {"base_w": 0}, "carbon": "carbon.csv", "usd_per_mwh": 50, "caps": [{"w": 300}]})");
  const auto all = figures_of(jobs + " --cluster 1x2 --policy fifo,sjf --timeline --power " + power);
  const auto of_fifo = [&](const char* figure) {
    TextRows rows;
    for (const auto& row : all.at(figure)) {
      if (row[0] == "fifo") rows.push_back(row);
    }
    return rows;
  };
  for (const auto& [t, watts, intensity] :
       std::vector<std::tuple<double, double, double>>{{5, 100, 100}, {15, 100, 200}, {30, 200, 200}}) {
    EXPECT_NEAR(level_at(of_fifo("draw"), t), watts / 1e3, 1e-9) << t;
    EXPECT_NEAR(level_at(of_fifo("headroom"), t), (300 - watts) / 1e3, 1e-9) << t;
    EXPECT_NEAR(level_at(of_fifo("carbon"), t), watts * intensity / 1e6, 1e-9) << t;
    EXPECT_NEAR(level_at(of_fifo("electricity"), t), watts * 50 / 1e6, 1e-9) << t;
  }
  const TextRows energy = of_fifo("energy");
  ASSERT_EQ(energy.size(), 2u);
  for (const auto& row : energy) EXPECT_NEAR(std::stod(row[4]), row[1] == "u" ? 2000 / 3.6e6 : 4000 / 3.6e6, 1e-6);
  for (const char* const front : {"front-energy_kwh", "front-carbon_kg", "front-cost_usd"}) {
    EXPECT_EQ(all.at(front).size(), 2u) << front;
  }
}

TEST_F(ReportOverTime, FilesThatAreCutAreNamed) {
  const std::string place = folder_.path() + "/out/fifo/";
  folder_.write("requests.csv", "arrival_s\n0\n");
  const std::string services = folder_.write("services.json", R"({"services": [{"name": "s",
      "requests": {"log": "requests.csv"}, "serves": {"seconds": 2}, "replica": {"gpus": 1}, "least": 1, "most": 1}]})");
  figures_of("--cluster 1x2 --policy fifo --services " + services);
  const std::string whole = bytes_of(place + "latencies.csv");
  folder_.write("out/fifo/latencies.csv", "service,share,latency_s\nother,1,2\n");
  expect_refused("report " + folder_.path() + "/out", "service 'other' is not in service_levels.csv beside it");
  folder_.write("out/fifo/latencies.csv", whole.substr(0, whole.size() - 9));
  expect_refused("report " + folder_.path() + "/out", "latencies.csv");
  std::filesystem::remove(place + "latencies.csv");
  expect_refused("report " + folder_.path() + "/out", "latencies.csv");
}

}  // namespace
}  // namespace gpusched::test
