// SPDX-License-Identifier: Apache-2.0
// Evaluations and sweeps over routers: one site gives what its cluster gives, and figures are those of federate.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/evaluate.hpp"
#include "src/sim/site_stretch.hpp"
#include "src/sites/federate.hpp"
#include "src/sites/federate_report.hpp"
#include "src/sweep/sweep_file.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_point_run.hpp"
#include "tests/support/files.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched::test {
namespace {

// Gangs that queue, with homes by user.
std::string crowded_rows(int jobs) {
  std::string text = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n";
  for (int i = 0; i < jobs; ++i) {
    text += std::to_string(i) + "," + std::to_string(7 * i) + "," + std::to_string(20 + 13 * i % 170) + "," +
            std::to_string(1 + i % 5) + ",1000," + (i % 3 == 0 ? "ann" : "bob") + "\n";
  }
  return text;
}

constexpr const char* two_homes = R"({
  "sites": [{"name": "eu", "cluster": "1x8", "carbon": 300, "usd_per_gpu_h": 1},
            {"name": "us", "cluster": "1x8", "carbon": 100}],
  "links": [{"between": ["eu", "us"], "mbps": 1000, "rtt_ms": 70, "usd_per_gb": 0.02}],
  "home": {"by": "user", "of": {"ann": "us"}, "else": "eu"}})";

EvaluateScenario windows_of_sites(const TempFolder& folder) {
  EvaluateScenario scenario;
  scenario.traces = {folder.write("crowded.csv", crowded_rows(120))};
  scenario.policies = {"fifo", "sjf"};
  scenario.window_jobs = 40;
  scenario.mode = "windows-only";
  return scenario;
}

EvaluationOutcome outcome_of_plan(const EvaluateScenario& scenario, std::uint64_t threads) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = load_evaluation(scenario, registry);
  EXPECT_TRUE(plan) << plan.error().to_string();
  EvaluationProgress progress;
  auto outcome = run_evaluation(*plan, registry, threads, progress);
  EXPECT_TRUE(outcome) << outcome.error().to_string();
  return *std::move(outcome);
}

// A service of jobs' length, with or without its sites.
std::string service_file(const std::string& sites) {
  return R"({"services": [{"name": "s", "requests": {"rate_per_s": 2, "duration_s": 400}, "serves": {"mean_s": 0.7},
             "promise": {"part": 0.9, "within_s": 2}, "replica": {"gpus": 1}, "least": 0, "start": {"cold_s": 5},
             "autoscaler": {"rule": "kpa"}, )" +
         sites + "}]}";
}

void expect_same_windows(const EvaluationOutcome& routed, const EvaluationOutcome& alone) {
  ASSERT_EQ(routed.windows.front().contestants.size(), 2u);
  for (std::size_t c = 0; c < 2; ++c) {
    const Contestant& ours = routed.windows.front().contestants[c];
    const Contestant& theirs = alone.windows.front().contestants[c];
    EXPECT_EQ(ours.name, theirs.name + " via least-loaded");
    for (std::size_t w = 0; w < theirs.runs.front().windows.size(); ++w) {
      const Metrics& a = *ours.runs.front().windows[w];
      const Metrics& b = *theirs.runs.front().windows[w];
      EXPECT_EQ(a.avg_jct_s, b.avg_jct_s);
      EXPECT_EQ(a.p99_wait_s, b.p99_wait_s);
      EXPECT_EQ(a.worst_decile_slowdown, b.worst_decile_slowdown);
      EXPECT_EQ(a.makespan_s, b.makespan_s);
      EXPECT_EQ(a.slo_attainment, b.slo_attainment);
      EXPECT_EQ(a.p99_latency_s, b.p99_latency_s);
      EXPECT_GT(a.avg_wait_s, 0);
      if (a.p99_latency_s) continue;  // GPU time is of jobs alone, and replicas are told to each site
      EXPECT_EQ(a.gpu_utilization, b.gpu_utilization);
      EXPECT_EQ(a.events, b.events);
    }
  }
}

TEST(ComparedSites, OneSiteHasTheFiguresOfItsCluster) {
  const TempFolder folder;
  EvaluateScenario scenario = windows_of_sites(folder);
  scenario.clusters = {"1x8"};
  EvaluateScenario over = scenario;
  over.clusters.clear();
  over.sites = folder.write("one.json", R"({"sites": [{"name": "only", "cluster": "1x8"}]})");
  over.routers = {"least-loaded"};
  expect_same_windows(outcome_of_plan(over, 2), outcome_of_plan(scenario, 1));
  scenario.conditions.services = folder.write("alone.json", service_file(R"("most": 4)"));
  over.conditions.services = folder.write("over.json", service_file(R"("sites": {"at": {"only": 4}})"));
  scenario.figure = over.figure = "slo_attainment";
  const EvaluationOutcome served = outcome_of_plan(over, 2);
  expect_same_windows(served, outcome_of_plan(scenario, 1));
  EXPECT_LT(*served.windows.front().contestants[0].runs.front().windows[1]->slo_attainment, 1);
}

TEST(ComparedSites, EveryPolicyRunsUnderEveryRouterWhateverTheThreads) {
  const TempFolder folder;
  EvaluateScenario scenario = windows_of_sites(folder);
  scenario.sites = folder.write("two.json", two_homes);
  scenario.routers = {"local", "lowest-carbon", "least-loaded"};
  const PolicyRegistry registry = PolicyRegistry::standard();
  scenario.figure = "cost_usd";
  const EvaluationOutcome one = outcome_of_plan(scenario, 1), two = outcome_of_plan(scenario, 2);
  std::vector<std::string> names;
  for (const Contestant& contestant : one.windows.front().contestants) names.push_back(contestant.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fifo via local", "fifo via lowest-carbon", "fifo via least-loaded",
                                             "sjf via local", "sjf via lowest-carbon", "sjf via least-loaded"}));
  const auto plan = load_evaluation(scenario, registry);
  ASSERT_TRUE(plan);
  EXPECT_EQ(evaluation_tables(*plan, one), evaluation_tables(*plan, two));
  // All jobs at the site where GPUs cost nothing.
  EXPECT_EQ(one.windows.front().contestants[1].runs.front().windows.front()->cost_usd, 0.0);
  EXPECT_GT(*one.windows.front().contestants[0].runs.front().windows.front()->cost_usd, 0.0);
}

// It was taken for unknown: only the file of sites was looked at.
TEST(ComparedSites, CarbonOfAPowerFileIsKnown) {
  const TempFolder folder;
  EvaluateScenario scenario = windows_of_sites(folder);
  scenario.sites =
      folder.write("one.json", R"({"sites": [{"name": "only", "cluster": "1x8", "power": "power.json"}]})");
  folder.write("power.json", R"({"gpus": {"any": {"full_w": 300}}, "nodes": {"base_w": 0}, "carbon": 200})");
  scenario.routers = {"local"};
  scenario.figure = "carbon_kg";
  const EvaluationOutcome outcome = outcome_of_plan(scenario, 1);
  const Metrics& window = *outcome.windows.front().contestants[0].runs.front().windows.front();
  EXPECT_GT(*window.carbon_kg, 0);
  EXPECT_NEAR(*window.carbon_kg, *window.energy_kwh * 0.2, 1e-12);
}

TEST(ComparedSites, BadOptionsAreToldInALine) {
  const TempFolder folder;
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto refusal = [&](auto change) {
    EvaluateScenario scenario = windows_of_sites(folder);
    scenario.sites = folder.write("two.json", two_homes);
    change(scenario);
    const auto checked = check_evaluate_scenario(scenario);
    if (!checked) return checked.error().to_string();
    const auto plan = load_evaluation(scenario, registry);
    EXPECT_FALSE(plan);
    return plan ? std::string() : plan.error().to_string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  has(refusal([](EvaluateScenario& s) { s.sites.clear(), s.routers = {"local"}; }), "expected --sites FILE");
  has(refusal([](EvaluateScenario& s) { s.clusters = {"8x8"}; }), "expected none beside --sites");
  has(refusal([](EvaluateScenario& s) { s.routers = {"locale"}; }), "did you mean 'local'");
  has(refusal([](EvaluateScenario& s) { s.routers = {"burst"}; }), "no site is unlimited");
  has(refusal([](EvaluateScenario& s) { s.figure = "energy_kwh"; }), "give a site power");
  has(refusal([](EvaluateScenario& s) { s.figure = "jain_fairness"; }), "not known over several sites");
  has(refusal([](EvaluateScenario& s) { s.figure = "cost_usd", s.warmup_jobs = 10; }), "all jobs are measured");
  has(refusal([](EvaluateScenario& s) { s.conditions.failures = "x.json"; }), "beside sites");
}

SweepResult result_of(const SweepPlan& plan, std::uint64_t number) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto point = plan.sweep.point(number);
  EXPECT_TRUE(point);
  auto trace = read_requested_trace({.trace = point->run.trace});
  EXPECT_TRUE(trace);
  std::map<std::uint32_t, Trace> traces;
  traces.emplace(plan.runs[number].trace, *std::move(trace));
  return PointRunner(plan, registry, traces, "", "").run(number);
}

TEST(ComparedSites, ASweepVariesRoutersAndItsFiguresAreThoseOfFederate) {
  const TempFolder folder;
  const std::string trace = folder.write("crowded.csv", crowded_rows(60)), sites = folder.write("two.json", two_homes);
  auto sweep = read_sweep_json(R"({"base": {"trace": ")" + trace + R"(", "policy": "fifo", "sites": ")" + sites +
                                   R"("}, "grid": {"router": ["local", "least-loaded"]}})",
                               "s.json");
  ASSERT_TRUE(sweep) << sweep.error().to_string();
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = plan_sweep(*std::move(sweep), registry);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const auto reads_sites = [&](const SweepInputFile& file) { return file.path == sites; };
  EXPECT_TRUE(std::any_of(plan->files.begin(), plan->files.end(), reads_sites));
  FederateOptions options;
  options.trace = trace;
  options.sites = sites;
  options.routers = {"local,least-loaded"};
  const auto input = load_federate(options, registry);
  ASSERT_TRUE(input);
  const std::atomic<bool> stop = false;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const SweepResult swept = result_of(*plan, i);
    ASSERT_EQ(swept.status, RunStatus::done) << swept.message;
    const auto run = run_router(*input, input->routers[i], registry, stop);
    ASSERT_TRUE(run);
    SiteAccount sum;
    for (const SiteAccount& account : run->accounts) sum += account;
    EXPECT_DOUBLE_EQ(*swept.metrics.cost_usd, sum.egress_usd() + sum.rent_usd());
    EXPECT_NEAR(*swept.metrics.avg_wait_s, static_cast<double>(sum.wait_us) / 60e6, 1e-9);
  }
  EXPECT_NE(result_of(*plan, 0).metrics.avg_wait_s, result_of(*plan, 1).metrics.avg_wait_s);
}

TEST(ComparedSites, ASweepVariesServicesOverSites) {
  const TempFolder folder;
  const std::string trace = folder.write("crowded.csv", crowded_rows(60)), sites = folder.write("two.json", two_homes);
  const auto over = [&](const std::string& rule) {
    const std::string text =
        R"("sites": {"at": {"eu": 3, "us": 1}, "from": {"eu": 0.5, "us": 0.5}, "rule": ")" + rule + R"("})";
    return folder.write(rule + ".json", service_file(text));
  };
  const std::vector<std::string> files{over("nearest"), over("shortest")};
  auto sweep = read_sweep_json(R"({"base": {"trace": ")" + trace + R"(", "policy": "fifo", "sites": ")" + sites +
                                   R"("}, "grid": {"services": [")" + files[0] + R"(", ")" + files[1] + R"("]}})",
                               "s.json");
  ASSERT_TRUE(sweep) << sweep.error().to_string();
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = plan_sweep(*std::move(sweep), registry);
  ASSERT_TRUE(plan) << plan.error().to_string();
  std::vector<double> p99;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const SweepResult swept = result_of(*plan, i);
    ASSERT_EQ(swept.status, RunStatus::done) << swept.message;
    FederateOptions options;
    options.trace = trace;
    options.sites = sites;
    options.services = files[i];
    options.routers = {"local"};
    const auto input = load_federate(options, registry);
    ASSERT_TRUE(input) << input.error().to_string();
    const std::atomic<bool> stop = false;
    const auto run = run_router(*input, input->routers.front(), registry, stop);
    ASSERT_TRUE(run);
    EXPECT_EQ(swept.metrics.p99_latency_s, run->services.front().all.p99_latency_s);
    EXPECT_EQ(swept.metrics.jobs, 60u);
    p99.push_back(*swept.metrics.p99_latency_s);
  }
  EXPECT_NE(p99[0], p99[1]);
}

TEST(ComparedSites, ASweepTellsWhatSitesDoNotTake) {
  const auto lonely =
      read_sweep_json(R"({"base": {"trace": "t.csv", "policy": "fifo", "router": "random"}})", "s.json");
  ASSERT_TRUE(lonely);
  EXPECT_NE(lonely->point(0).error().to_string().find("expected sites beside it"), std::string::npos);
  const auto limited = read_sweep_json(
      R"({"base": {"trace": "t.csv", "policy": "fifo", "sites": "s.json", "limits": "user{gpus=1}"}})", "s.json");
  ASSERT_TRUE(limited);
  EXPECT_NE(limited->point(0).error().to_string().find("expected none beside sites, which have no limits"),
            std::string::npos);
}

TEST(ComparedSites, ATimelineHasTheLevelsOfEachSite) {
  const TempFolder folder;
  FederateOptions options;
  options.trace = folder.write("t.csv",
                               "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                               "0,0,10,8,1000,ann\n1,5,10,8,1000,ann\n2,5,4,2,1000,bob\n");
  options.sites = folder.write("two.json", two_homes);
  options.out = folder.path() + "/out";
  options.timeline = true;
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_federate(options, registry);
  ASSERT_TRUE(input) << input.error().to_string();
  const std::atomic<bool> stop = false;
  const auto run = run_router(*input, input->routers.front(), registry, stop);
  ASSERT_TRUE(run);
  auto out = OutputFolder::open(options.out, manifest_name);
  ASSERT_TRUE(write_router_files(*out, *input, *run, 0));
  std::ifstream file(options.out + "/1-local/timeline.csv");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text,
            "site,time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n"
            "eu,5,0,1,0,2,8\neu,9,0,0,0,0,8\n"
            "us,0,0,1,0,8,8\nus,5,1,1,8,8,8\nus,10,0,1,0,8,8\nus,20,0,0,0,0,8\n");
}

}  // namespace
}  // namespace gpusched::test
