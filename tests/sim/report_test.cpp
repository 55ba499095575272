// SPDX-License-Identifier: Apache-2.0
#include "src/sim/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(bytes_of(path));
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

// What intervals.csv says of a job.
struct Seen {
  double run = 0, end = 0;
  std::set<std::pair<double, double>> spans;
};

RC_GTEST_PROP(Report, MetricsFollowFromTheIntervals, ()) {
  const TempFolder folder;
  std::string trace = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  const auto count = *rc::gen::inRange(1, 30);
  for (int i = 0; i < count; ++i) {
    const auto submit = *rc::gen::inRange(0, 200);
    const auto work = *rc::gen::inRange(0, 80'000'000);
    const auto tasks = *rc::gen::inRange(1, 9);
    const auto milli = *rc::gen::element(500, 1000, 2000);
    trace += std::to_string(i) + "," + std::to_string(submit) + "," + exact_seconds(Time{work}) + "," +
             std::to_string(tasks) + "," + std::to_string(milli) + "\n";
  }
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv", trace);
  scenario.cluster = "4x4";
  scenario.policies = {*rc::gen::element<std::string>("fifo", "srtf", "srsf")};
  scenario.conditions.preemption.restart = Time{*rc::gen::inRange(0, 5'000'000)};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  RC_ASSERT(input.has_value());
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {.splits = true, .job_files = true}, progress);
  RC_ASSERT(runs.has_value());
  auto out = OutputFolder::open(folder.path() + "/out", manifest_name);
  RC_ASSERT(out.has_value());
  RC_ASSERT(write_policy_files(*out, *input, runs->front()).has_value());

  const std::string place = folder.path() + "/out/" + scenario.policies[0];
  std::map<std::string, Seen> seen;
  double held = 0, last_end = 0;
  for (const auto& row : rows_of(place + "/intervals.csv")) {
    const double start = std::stod(row[3]), end = std::stod(row[4]);
    Seen& job = seen[row[0]];
    if (job.spans.insert({start, end}).second) job.run += end - start;
    job.end = std::max(job.end, end);
    held += std::stod(row[2]) * (end - start);
    last_end = std::max(last_end, end);
  }
  double jct_sum = 0, wait_sum = 0, first_submit = 1e9;
  std::uint64_t preemptions = 0;
  const auto jobs = rows_of(place + "/jobs.csv");
  for (const auto& row : jobs) {
    const Seen& job = seen[row[0]];
    const double submit = std::stod(row[4]);
    RC_ASSERT(std::abs(job.end - std::stod(row[6])) < 1e-9);
    RC_ASSERT(std::abs(job.run - std::stod(row[7])) < 1e-6);
    jct_sum += job.end - submit;
    wait_sum += job.end - submit - job.run;
    first_submit = std::min(first_submit, submit);
    preemptions += std::stoull(row[10]);
  }
  const auto summary = nlohmann::json::parse(bytes_of(place + "/summary.json"));
  const auto& m = summary["metrics"];
  const auto near = [&](const char* key, double value) {
    return std::abs(m[key].get<double>() - value) <= 1e-6 * std::max(1.0, std::abs(value));
  };
  const auto n = static_cast<double>(jobs.size());
  RC_ASSERT(jobs.size() == static_cast<std::size_t>(count));
  RC_ASSERT(near("avg_jct_s", jct_sum / n));
  RC_ASSERT(near("avg_wait_s", wait_sum / n));
  RC_ASSERT(near("last_end_s", last_end));
  RC_ASSERT(near("makespan_s", last_end - first_submit));
  if (last_end > first_submit) RC_ASSERT(near("gpu_allocation", held / (16 * (last_end - first_submit))));
  RC_ASSERT(m["preemptions"].get<std::uint64_t>() == preemptions);
}

struct Idle {
  [[nodiscard]] std::string_view name() const { return "idle"; }
  void decide(const View&, Decision&) {}
};

TEST(Replay, CountsTheJobsThatAPolicyLeavesWaiting) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace =
      folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n1,0,5,1,1000\n2,3,5,1,1000\n");
  scenario.cluster = "4";
  scenario.policies = {"idle,fifo"};
  PolicyRegistry registry = PolicyRegistry::standard();
  registry.add(
      {.name = "idle",
       .summary = {},
       .source = {},
       .make = [](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> { return AnyPolicy(Idle{}); }});
  const auto input = load_replay(scenario, registry);
  ASSERT_TRUE(input);
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 2, {}, progress);
  ASSERT_TRUE(runs);
  EXPECT_EQ((*runs)[0].unfinished, 2u);
  EXPECT_EQ((*runs)[0].why_unfinished, "left 2 jobs waiting for ever");
  EXPECT_EQ((*runs)[1].unfinished, 0u);
}

// Two jobs on one GPU take turns of 100 s, or leases of 100 s of which they pay with a part, and a restart takes as
// long.
TEST(Replay, StopsWhereJobsTakeTurnsForEver) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace =
      folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n1,0,250,1,1000\n2,0,250,1,1000\n");
  scenario.cluster = "1";
  scenario.policies = {"las{quantum_gpu_s=100},themis{lease_s=100,auction=true,filter=0},gandiva{slice_s=100},fifo"};
  const auto run_with_restart = [&](std::int64_t restart_s) {
    scenario.conditions.preemption.restart = whole_seconds(restart_s);
    const auto input = load_replay(scenario, PolicyRegistry::standard());
    EXPECT_TRUE(input);
    ReplayProgress progress;
    return run_replay(*input, PolicyRegistry::standard(), 1, {}, progress);
  };
  const auto stuck = run_with_restart(100);
  ASSERT_TRUE(stuck);
  for (const PolicyRun& run : *stuck) {
    if (run.policy == "fifo") continue;
    EXPECT_EQ(run.unfinished, 2u) << run.policy;
    EXPECT_EQ(run.why_unfinished,
              "makes 2 jobs take turns for ever: preemption costs them as much as they do in a turn; give longer turns "
              "or cheaper restarts")
        << run.policy;
  }
  EXPECT_EQ(stuck->back().unfinished, 0u);
  const auto slow = run_with_restart(99);
  ASSERT_TRUE(slow);
  for (const PolicyRun& run : *slow) EXPECT_EQ(run.unfinished, 0u) << run.policy;
}

// jobs.csv did not say which jobs were measured: its means were not those of the summary behind a warm-up.
TEST(Report, MeansOfTheMeasuredRowsAreThoseOfTheSummary) {
  const TempFolder folder;
  std::string csv = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,family,estimate_s\n";
  for (int i = 0; i < 50; ++i) {
    csv += std::to_string(i) + "," + std::to_string(3 * i) + "," + std::to_string(10 + 7 * i % 31) + "," +
           std::to_string(1 + i % 3) + ",1000,a," + (i % 2 == 0 ? "train" : "infer") + "," +
           (i % 5 == 0 ? "" : std::to_string(100 + i)) + "\n";
  }
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv", csv);
  scenario.cluster =
      folder.write("c.json", R"({"nodes": [{"gpus": 2, "gpu_type": "V100"}, {"gpus": 2, "gpu_type": "T4"}]})");
  scenario.policies = {"fifo"};
  scenario.split = "class";
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto check = [&](std::uint32_t expected) {
    const auto input = load_replay(scenario, registry);
    ASSERT_TRUE(input) << input.error().to_string();
    ReplayProgress progress;
    const auto runs = run_replay(*input, registry, 1, {.splits = true, .job_files = true}, progress);
    ASSERT_TRUE(runs);
    const std::string out = folder.path() + "/out";
    auto results = OutputFolder::open(out, manifest_name);
    ASSERT_TRUE(results);
    ASSERT_TRUE(write_policy_files(*results, *input, runs->front()));
    const auto summary = nlohmann::json::parse(bytes_of(out + "/fifo/summary.json"));
    double jct = 0, wait = 0, trained = 0;
    std::uint32_t measured = 0, train = 0;
    for (const std::vector<std::string>& row : rows_of(out + "/fifo/jobs.csv")) {
      ASSERT_EQ(row.size(), 17u);
      EXPECT_EQ(row[12], "a");
      EXPECT_TRUE(row[14] == "V100" || row[14] == "T4" || row[14] == "V100|T4" || row[14] == "T4|V100") << row[14];
      if (row[16] != "true") continue;
      ++measured;
      jct += std::stod(row[9]);
      wait += std::stod(row[8]);
      if (row[13] != "train") continue;
      ++train;
      trained += std::stod(row[9]);
    }
    EXPECT_EQ(measured, expected);
    EXPECT_EQ(summary["metrics"]["jobs"], expected);
    EXPECT_NEAR(summary["metrics"]["avg_jct_s"].get<double>(), jct / measured, 1e-6);
    EXPECT_NEAR(summary["metrics"]["avg_wait_s"].get<double>(), wait / measured, 1e-6);
    const auto& split = summary["splits"]["class"];
    ASSERT_EQ(split.size(), 2u);
    for (const auto& entry : split) {
      if (entry["key"] != "train") continue;
      EXPECT_EQ(entry["jobs"], train);
      EXPECT_NEAR(entry["avg_jct_s"].get<double>(), trained / train, 1e-6);
    }
  };
  check(50);
  scenario.warmup_jobs = 7;
  check(43);
  scenario.measure_jobs = 20;
  check(20);
  scenario.warmup_jobs = scenario.measure_jobs = 0;
  scenario.warmup = whole_seconds(30);
  scenario.measure = whole_seconds(60);
  check(20);
}

// The estimates of jobs.csv, of a's jobs, whose work is 10, 30 and 5 s: a policy is asked when a job is submitted.
TEST(Report, TellsTheRunTimeThatAPolicyExpected) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,estimate_s\n"
                                "1,0,10,1,1000,a,100\n2,20,30,1,1000,a,200\n3,60,5,1,1000,a,\n");
  scenario.cluster = "1x1";
  scenario.policies = {"fifo,fifo+easy{estimate=user},srtf,sjf,sjf{estimate=user-mean}+easy,las"};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  ASSERT_TRUE(input) << input.error().to_string();
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 2, {.splits = true, .job_files = true}, progress);
  ASSERT_TRUE(runs);
  const std::vector<std::vector<std::string>> expected = {{"", "", ""},         {"100", "200", "31536000"},
                                                          {"10", "30", "5"},    {"10", "30", "5"},
                                                          {"3600", "10", "20"}, {"", "", ""}};
  for (std::size_t i = 0; i < runs->size(); ++i) {
    auto out = OutputFolder::open(folder.path() + "/out" + std::to_string(i), manifest_name);
    ASSERT_TRUE(out);
    ASSERT_TRUE(write_policy_files(*out, *input, (*runs)[i]));
    std::vector<std::string> estimates;
    for (std::vector<std::string>& row :
         rows_of(folder.path() + "/out" + std::to_string(i) + "/" + (*runs)[i].folder + "/jobs.csv")) {
      row.resize(18);  // an empty cell at the end is lost
      estimates.push_back(row[17]);
    }
    EXPECT_EQ(estimates, expected[i]) << (*runs)[i].policy;
  }
  ReplayProgress again;
  const auto without_files = run_replay(*input, registry, 1, {}, again);
  ASSERT_TRUE(without_files);
  for (const PolicyRun& run : *without_files) EXPECT_TRUE(run.estimates.empty());
}

// The second could run from 1000 on, and the third from 2100 + 50; of what the fourth waited for, the log has no start.
TEST(Report, RecordedWaitsBeginWhereAJobNeedNotWaitForOthers) {
  const JobTable jobs = test::table_of({{.work = 1000, .start = 0},
                                        {.work = 1000, .start = 1100, .after = {"0"}},
                                        {.work = 1000, .start = 2350, .after = {"1"}, .delay = 50},
                                        {.work = 10},
                                        {.work = 10, .start = 40, .after = {"3"}}});
  const auto waits = recorded_waits(jobs, {});
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->jobs, 3u);
  EXPECT_DOUBLE_EQ(waits->avg_wait_s, 100);
  EXPECT_DOUBLE_EQ(waits->avg_jct_s, 1100);
}

// Waits of 5, 0 and 100 s in the log; the fourth job has no start, the last is not measured.
TEST(Report, HasTheWaitsOfTheTracesOwnLog) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s\n"
                                "1,0,10,1,1000,5\n2,20,30,1,1000,20\n3,60,5,9,1000,160\n4,70,5,1,1000,\n"
                                "5,80,5,1,1000,80\n");
  scenario.cluster = "1x9";
  scenario.policies = {"fifo"};
  scenario.measure_jobs = 4;
  const auto input = load_replay(scenario, PolicyRegistry::standard());
  ASSERT_TRUE(input);
  ASSERT_TRUE(input->recorded);
  EXPECT_EQ(input->recorded->jobs, 3u);
  EXPECT_EQ(input->recorded->measured, 4u);
  EXPECT_DOUBLE_EQ(input->recorded->avg_wait_s, 35);
  EXPECT_DOUBLE_EQ(input->recorded->avg_jct_s, 50);  // 15, 30, 105
  EXPECT_DOUBLE_EQ(input->recorded->median_jct_s, 30);
  EXPECT_DOUBLE_EQ(input->recorded->p99_wait_s, 98.1);  // 5 + 0.98 x 95
  EXPECT_DOUBLE_EQ(input->recorded->avg_bounded_slowdown, (1.5 + 1 + 10.5) / 3);
  ReplayProgress progress;
  const auto runs = run_replay(*input, PolicyRegistry::standard(), 1, {}, progress);
  ASSERT_TRUE(runs);
  const std::string table = comparison_table(scenario, *input, *runs);
  EXPECT_THAT(table, testing::HasSubstr("\n(recorded)          -      50.00"));
  EXPECT_THAT(table, testing::HasSubstr("3 of the 4 measured jobs"));
  const auto report = nlohmann::json::parse(json_report(scenario, *input, *runs, {}));
  EXPECT_EQ(report["manifest"]["recorded"]["avg_wait_s"], 35);
  EXPECT_EQ(report["runs"].size(), 1u);

  scenario.recorded = "none";
  const auto silent = load_replay(scenario, PolicyRegistry::standard());
  ASSERT_TRUE(silent);
  EXPECT_EQ(comparison_table(scenario, *silent, *runs).find("recorded"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(json_report(scenario, *silent, *runs, {}))["manifest"].contains("recorded"));

  scenario.recorded = "show";
  scenario.warmup_jobs = 3;
  scenario.measure_jobs = 1;  // the one without a start
  const auto unknown = load_replay(scenario, PolicyRegistry::standard());
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->recorded);
}

// ann's first job holds all 4 GPUs until 100 s. Then her fair-share factor is 2^-(1/0.5) and bob's, who used
// nothing, 1.
TEST(Report, WritesSlurmsTermsOfEveryStart) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                                "a0,0,100,4,1000,ann\na1,10,50,2,1000,ann\nb0,10,604700,4,1000,bob\n");
  scenario.cluster = "1x4";
  scenario.policies = {"slurm{weight_age=1000,weight_size=100}", "fifo"};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  ASSERT_TRUE(input.has_value());
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {.splits = true, .job_files = true}, progress);
  ASSERT_TRUE(runs.has_value());
  for (const PolicyRun& run : *runs) {
    auto out = OutputFolder::open(folder.path() + "/out", manifest_name);
    ASSERT_TRUE(out);
    ASSERT_TRUE(write_policy_files(*out, *input, run).has_value());
  }
  std::vector<std::string> slurm_folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/out")) {
    if (std::filesystem::exists(entry.path() / "terms.csv")) slurm_folders.push_back(entry.path());
  }
  ASSERT_EQ(slurm_folders.size(), 1u);
  using Rows = std::vector<std::vector<std::string>>;
  // a0 and b0 want all of the GPUs; 90 s of waiting are 0.15 of the 1000 that a week is worth. a1 waits for a week.
  const Rows rows = rows_of(slurm_folders[0] + "/terms.csv");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"a0", "0", "11100", "0", "10000", "100", "1000", "0"}));
  EXPECT_EQ(rows[1], (std::vector<std::string>{"b0", "100", "11100", "0", "10000", "100", "1000", "0"}));
  EXPECT_EQ(rows[2][0], "a1");
  EXPECT_EQ(rows[2][1], "604800");
  EXPECT_EQ(rows[2][3], "1000");
  EXPECT_EQ(rows[2][5], "50");
  // ann used the GPUs for 100 s, half forgotten by now, and bob for a week: U = 200 / 1.745e6, the factor 2^-(U/0.5).
  EXPECT_EQ(rows[2][4], "9998");
}

TEST(Replay, MeasuresByTimeOfSubmission) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n"
                                "1,100,5,1,1000\n2,110,5,1,1000\n3,119,5,1,1000\n4,120,5,1,1000\n");
  scenario.cluster = "4";
  scenario.policies = {"fifo"};
  scenario.warmup = whole_seconds(10);
  scenario.measure = whole_seconds(10);
  const auto input = load_replay(scenario, PolicyRegistry::standard());
  ASSERT_TRUE(input);
  EXPECT_EQ(input->window.first, 1u);
  EXPECT_EQ(input->window.end(4), 3u);
  scenario.warmup = whole_seconds(21);
  EXPECT_THAT(load_replay(scenario, PolicyRegistry::standard()).error().to_string(),
              testing::HasSubstr("no job is left to measure"));
}

TEST(Replay, SharedGpusSlowJobsAndDrawPowerAsTheProfileSays) {
  const TempFolder folder;
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv",
                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family\n"
                                "1,0,100,1,500,bert\n2,0,100,1,500,bert\n");
  scenario.cluster = folder.write("cluster.json", R"({"nodes": [{"gpus": 1, "gpu_type": "V100"}]})");
  scenario.policies = {"fifo"};
  scenario.conditions.speeds.profiles = "V100=V100";
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto run_once = [&] {
    const auto input = load_replay(scenario, registry);
    EXPECT_TRUE(input) << input.error().to_string();
    ReplayProgress progress;
    auto runs = run_replay(*input, registry, 1, {}, progress);
    return nlohmann::json::parse(json_report(scenario, *input, *runs, {}));
  };
  const auto together = run_once();
  const auto& metrics = together["runs"][0]["metrics"];
  const double slowdown = co_location_slowdown(*shipped_profile("V100"), "bert", "bert")->factor;
  ASSERT_GT(slowdown, 1.1);
  EXPECT_NEAR(metrics["avg_jct_s"].get<double>(), 100 * slowdown, 0.01);
  EXPECT_NEAR(metrics["gpu_utilization"].get<double>(), 1, 1e-6);  // occupied, though each did half as much
  // The card is as busy as one job alone would keep it: between idle (53.5 W) and busy (300 W).
  const double watts = metrics["energy_kwh"].get<double>() * 3.6e6 / metrics["makespan_s"].get<double>();
  EXPECT_GT(watts, 200);
  EXPECT_LT(watts, 300);
  const auto& sources = together["manifest"]["value_sources"];
  EXPECT_THAT(sources["rates"].dump(), testing::HasSubstr("\"/interference\""));
  EXPECT_THAT(sources["power"].dump(), testing::HasSubstr("/power/idle_w"));
  scenario.conditions.speeds.interference = "none";
  EXPECT_NEAR(run_once()["runs"][0]["metrics"]["avg_jct_s"].get<double>(), 100, 1e-6);
  scenario.conditions.speeds.profiles.clear();
  EXPECT_TRUE(run_once()["runs"][0]["metrics"]["energy_kwh"].is_null());
}

TEST(Report, WritesDurationsForPeople) {
  EXPECT_EQ(human_duration(0), "0.0 s");
  EXPECT_EQ(human_duration(59.94), "59.9 s");
  EXPECT_EQ(human_duration(59.96), "1m 00s");
  EXPECT_EQ(human_duration(3599.6), "1h 00m");
  EXPECT_EQ(human_duration(11'520), "3h 12m");
  EXPECT_EQ(human_duration(97'920), "1d 03:12");
}

TEST(Report, WritesCountsAndSecondsExactly) {
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(80'539), "80,539");
  EXPECT_EQ(human_count(1'234'567), "1,234,567");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(80'539, "row"), "80,539 rows");
  EXPECT_EQ(counted(0, "irregularity", "irregularities"), "0 irregularities");
  EXPECT_EQ(exact_seconds(Time{12'000'000}), "12");
  EXPECT_EQ(exact_seconds(Time{500'000}), "0.5");
  EXPECT_EQ(exact_seconds(Time{-1'000'001}), "-1.000001");
  EXPECT_EQ(exact_seconds(Time{0}), "0");
}

TEST(ReplaceFile, FollowsALinkAndLeavesNothingElseBehind) {
  const TempFolder folder;
  const std::string file = folder.write("file", "old"), link = folder.path() + "/link";
  std::filesystem::create_symlink(file, link);
  ASSERT_TRUE(replace_file(link, "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(bytes_of(file), "new");
  EXPECT_FALSE(replace_file(folder.path(), "x"));
  EXPECT_FALSE(replace_file(folder.path() + "/none/x", "x"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(NearestName, ForgivesCaseAndLettersThatChangedPlaces) {
  const std::vector<std::string> names = {"fifo", "srtf", "--policy"};
  EXPECT_EQ(suggest_nearest("srft", names), " (did you mean 'srtf'?)");
  EXPECT_EQ(suggest_nearest("FIFO", names), " (did you mean 'fifo'?)");
  EXPECT_EQ(suggest_nearest("--polciy", names), " (did you mean '--policy'?)");
  EXPECT_EQ(suggest_nearest("rtfs", names), "");
}

}  // namespace
}  // namespace gpusched::test
