// SPDX-License-Identifier: Apache-2.0
// Files of runs over sites: a federation of one site writes what a replay writes.
#include "src/sites/federate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"
#include "src/sim/scenario.hpp"
#include "src/sites/federate_report.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

constexpr const char* job_rows =
    "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,after,deadline_s,site,data_gb\n"
    "0,0,100,4,1000,ann,,400,eu,10\n1,0,50,8,1000,bob,,,eu,0\n2,10,200,3,1000,ann,0,,us,2\n3,20,30,1,500,cid,,300,us,"
    "0\n"
    "4,25,80,2,1000,bob,,,eu,5\n5,60,10,8,1000,ann,4,,us,0\n";
constexpr const char* power_file =
    R"({"gpus": {"GPU": {"idle_w": 10, "full_w": 100}}, "nodes": {"base_w": 5}, "carbon": 300})";

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without the last column.
std::string without_site(const std::string& csv) {
  std::istringstream lines(csv);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.rfind(',')) + "\n";
  return text;
}

// A run with what it borrows.
struct FederatedRun : RouterRun {
  std::unique_ptr<const FederateInput> input;
};
struct ReplayedRun : PolicyRun {
  std::unique_ptr<const ReplayInput> input;
};

// What a router wrote into the folder.
FederatedRun federate(const TempFolder& folder, FederateOptions options, const std::string& sites) {
  options.trace = folder.path() + "/jobs.csv";
  options.sites = folder.write("sites.json", sites);
  const PolicyRegistry registry = PolicyRegistry::standard();
  auto loaded = load_federate(options, registry);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  auto input = std::make_unique<const FederateInput>(*std::move(loaded));
  static const std::atomic<bool> stop = false;
  auto run = run_router(*input, input->routers.front(), registry, stop);
  EXPECT_TRUE(run && run->why_unfinished.empty()) << (run ? run->why_unfinished : run.error().message);
  auto out = OutputFolder::open(folder.path() + "/out", manifest_name);
  EXPECT_TRUE(write_router_files(*out, *input, *run, 0));
  return {*std::move(run), std::move(input)};
}

// What a replay of the same jobs on 2x4 wrote under replay/FOLDER; `services`: a file, or nothing.
ReplayedRun replay(const TempFolder& folder, const std::string& policy, const std::string& services = "") {
  Scenario scenario;
  scenario.trace = folder.path() + "/jobs.csv";
  scenario.cluster = "2x4";
  scenario.policies = {policy};
  scenario.seed = 3;
  scenario.conditions.power = folder.write("power.json", power_file);
  scenario.conditions.services = services;
  const PolicyRegistry registry = PolicyRegistry::standard();
  auto loaded = load_replay(scenario, registry);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  auto input = std::make_unique<const ReplayInput>(*std::move(loaded));
  ReplayProgress progress;
  auto runs = run_replay(*input, registry, 1, {.splits = true, .job_files = true}, progress);
  EXPECT_TRUE(runs);
  auto out = OutputFolder::open(folder.path() + "/replay", manifest_name);
  EXPECT_TRUE(write_policy_files(*out, *input, runs->front()));
  return {std::move(runs->front()), std::move(input)};
}

// The same jobs at one site of that cluster.
FederatedRun federate_one_site(const TempFolder& folder, const std::string& policy, const std::string& services = "") {
  FederateOptions options;
  options.routers = {"least-loaded"};
  options.policy = policy;
  options.seed = 3;
  options.services = services;
  return federate(folder, options,
                  R"({"sites": [{"name": "eu", "cluster": "2x4", "power": "power.json"}],
                      "home": {"by": "user"}, "jobs": "homes.csv"})");
}

TEST(Federate, OneSiteWritesTheReplaysJobsAndHistory) {
  const TempFolder folder;
  folder.write("jobs.csv", job_rows);
  folder.write("homes.csv", "job_id,data_gb\n0,10\n");
  for (const std::string policy : {"fifo", "fifo-skip", "sjf", "tiresias", "drf"}) {
    const ReplayedRun alone = replay(folder, policy);
    const FederatedRun run = federate_one_site(folder, policy);
    EXPECT_EQ(run.histories[0].value(), alone.history_hash) << policy;
    EXPECT_EQ(compute_metrics(run.federation->engine(0), run.logs[0]).avg_jct_s, alone.metrics.avg_jct_s);
    EXPECT_EQ(run.accounts[0].bill.carbon_kg(), *alone.metrics.carbon_kg);
    std::string replayed = text_of(folder.path() + "/replay/" + alone.folder + "/jobs.csv");
    EXPECT_EQ(without_site(text_of(folder.path() + "/out/1-least-loaded/jobs.csv")), replayed) << policy;
  }
}

// Each request draws where it is from.
TEST(Federate, TheOrderOfSitesMeansNothingToRequests) {
  const TempFolder folder;
  folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task,site\n0,0,300,1,1000,eu\n");
  FederateOptions options;
  options.routers = {"least-loaded"};
  options.services = folder.write("services.json", R"({"services": [{
      "name": "f", "requests": {"rate_per_s": 3, "duration_s": 300}, "serves": {"seconds": 0.5}, "replica": {"gpus": 1},
      "sites": {"at": {"eu": 3, "ap": 1}, "from": {"eu": 0.8, "ap": 0.2}, "rule": "nearest"}}]})");
  const auto mean_of = [&](const std::string& first, const std::string& second) {
    const auto site = [](const std::string& name) { return R"({"name": ")" + name + R"(", "cluster": "1x8"})"; };
    const FederatedRun run = federate(folder, options,
                                      R"({"sites": [)" + site(first) + ", " + site(second) +
                                          R"(], "links": [{"between": ["eu", "ap"], "mbps": 50, "rtt_ms": 100}]})");
    return run.services.front().all.mean_latency_s;
  };
  EXPECT_EQ(mean_of("eu", "ap"), mean_of("ap", "eu"));
}

// Job 0 is cancelled, which starts job 2, and no mean counts it.
TEST(Federate, OneSiteCancelsAsItsClusterDoes) {
  const TempFolder folder;
  folder.write("jobs.csv",
               "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,vc,after,site\n0,0,100,8,1000,ann,low,,eu\n"
               "1,10,30,4,1000,bob,top,,eu\n2,15,20,4,1000,ann,low,0,eu\n");
  folder.write("homes.csv", "job_id,data_gb\n0,10\n");
  for (const std::string backfill : {"", "+easy"}) {
    const std::string policy = "slurm{preempts_by=partition,preempts=[top>low],cancels=[low]}" + backfill;
    const ReplayedRun alone = replay(folder, policy);
    FederatedRun run = federate_one_site(folder, policy);
    EXPECT_EQ(alone.metrics.policy_cancelled_jobs, 1.0);
    EXPECT_EQ(alone.metrics.avg_jct_s, 25.0) << "from 10 to 40, and from 15 to 35 s";
    EXPECT_EQ(run.accounts[0].cancelled, 1u);
    EXPECT_EQ(run.accounts[0].jobs, 2u);
    EXPECT_EQ(run.accounts[0].bill.carbon_kg(), *alone.metrics.carbon_kg);
    std::string replayed = text_of(folder.path() + "/replay/" + alone.folder + "/jobs.csv");
    EXPECT_EQ(without_site(text_of(folder.path() + "/out/1-least-loaded/jobs.csv")), replayed) << policy;
    std::vector<RouterRun> runs;
    runs.push_back(std::move(static_cast<RouterRun&>(run)));
    const std::vector<std::string> notes = federate_notes(*run.input, runs);
    EXPECT_NE(std::find(notes.begin(), notes.end(),
                        "router least-loaded: policy " + policy + " cancels 1 job, which no average counts"),
              notes.end());
  }
}

TEST(Federate, OneSiteServesAsItsClusterDoes) {
  const TempFolder folder;
  folder.write("jobs.csv", job_rows);
  folder.write("homes.csv", "job_id,data_gb\n0,10\n");
  const std::string service = R"({"services": [{"name": "s", "requests": {"rate_per_s": 2, "duration_s": 600},
      "serves": {"mean_s": 0.7}, "promise": {"part": 0.9, "within_s": 3}, "replica": {"gpus": 1}, "least": 0,
      "start": {"cold_s": 5}, "autoscaler": {"rule": "kpa"}, )";
  for (const std::string policy : {"fifo", "fifo-skip", "las", "tiresias", "drf"}) {
    const ReplayedRun alone =
        replay(folder, policy, folder.write("one.json", service + R"("most": 4}], "list_requests": true})"));
    const FederatedRun run = federate_one_site(
        folder, policy, folder.write("over.json", service + R"("sites": {"at": {"eu": 4}}}], "list_requests": true})"));
    EXPECT_EQ(run.histories[0].value(), alone.history_hash) << policy;
    EXPECT_EQ(run.accounts[0].bill.carbon_kg(), *alone.metrics.carbon_kg);
    EXPECT_EQ(run.accounts[0].jobs, 6u);
    const std::string replayed_to = folder.path() + "/replay/" + alone.folder;
    const std::string router = folder.path() + "/out/1-least-loaded";
    EXPECT_EQ(without_site(text_of(router + "/jobs.csv")), text_of(replayed_to + "/jobs.csv")) << policy;
    std::string requests = text_of(router + "/requests.csv");
    for (std::size_t at = 0; (at = requests.find("s,eu,eu,", at)) != std::string::npos;)
      requests.replace(at, requests.find(",0,", at) + 3 - at, "s,");
    const std::string replayed = text_of(replayed_to + "/requests.csv");
    EXPECT_TRUE(requests.substr(requests.find('\n')) == replayed.substr(replayed.find('\n'))) << policy;
  }
}

TEST(Federate, ServicesThatNoSiteServesAreToldBeforeARun) {
  const TempFolder folder;
  FederateOptions options;
  options.routers = {"local"};
  options.trace = folder.write("jobs.csv", job_rows);
  options.sites = folder.write("sites.json", R"({"sites": [{"name": "eu", "cluster": "1x8"},
      {"name": "us", "cluster": "1x8"}, {"name": "edge", "cluster": "1x1"}],
      "links": [{"between": ["eu", "us"], "mbps": 8000}, {"from": "edge", "to": "us", "mbps": 8}]})");
  const auto error_of = [&](const std::string& rest) {
    options.services = folder.write("services.json", R"({"services": [{"name": "s", "serves": {"seconds": 1},
        "requests": {"rate_per_s": 1, "duration_s": 9}, "replica": {"gpus": 2}, )" +
                                                         rest + "}]}");
    const auto input = load_federate(options, PolicyRegistry::standard());
    if (input) return std::string();
    const std::string text = input.error().to_string();
    return text.substr(text.find("services.json: ") + 15);
  };
  EXPECT_EQ(error_of(R"("sites": {"at": {"eu": 1}, "from": {"us": 1}})"), "");
  EXPECT_EQ(error_of(R"("most": 2)"), "/services/0/most: expected none, as sites/at says it for each site");
  EXPECT_EQ(error_of(R"("least": 1)"), "/services/0/sites: is missing");
  EXPECT_EQ(error_of(R"("sites": {"at": {"uk": 1}})"),
            "/services/0/sites/at/uk: expected the name of a site (did you mean 'us'?)");
  EXPECT_EQ(error_of(R"("sites": {"at": {"us": 1}, "from": {"edge": 1}})"),
            "/services/0/sites/from/edge: expected links to a site of \"at\" and back");
  EXPECT_EQ(error_of(R"("sites": {"at": {"edge": 1}})"),
            "/services/0/replica: a replica of 's@edge' fits nowhere on the cluster 1x1, even when it is empty");
  EXPECT_EQ(error_of(R"("sites": {"at": {"eu": 1}, "rule": "promise"})"),
            "/services/0/sites/rule: expected a promise with within_s beside it");
}

// It was found in mid-run, as a fault of the router.
TEST(Federate, AJobThatFitsNoSiteIsToldBeforeARun) {
  const TempFolder folder;
  FederateOptions options;
  options.routers = {"local"};
  options.trace = folder.write("jobs.csv",
                               "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n0,0,10,9,1000\n1,0,10,8,1000\n"
                               "2,5,10,1,9000\n3,9,10,13,1000\n");
  options.sites =
      folder.write("sites.json", R"({"sites": [{"name": "a", "cluster": "3x4"}, {"name": "b", "cluster": "1x8"}]})");
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_federate(options, registry);
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().to_string(),
            options.trace +
                ": job '2' asks for 9 GPUs, which no site can ever provide; such jobs: 2; leave them out with --where");
  const std::string one_way = R"("links": [{"from": "a", "to": "b", "mbps": 8}])";
  folder.write("sites.json", R"({"sites": [{"name": "a", "cluster": "3x4"}, {"name": "b", "cluster": "1x8"}]})");
  options.trace = folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task,site\n1,0,10,1,8000,a\n");
  const auto apart = load_federate(options, registry);
  ASSERT_FALSE(apart);
  EXPECT_EQ(apart.error().to_string(), options.trace +
                                           ": job '1' asks for 8 GPUs, which no site can ever provide to "
                                           "which links lead from its home, 'a'; such jobs: 1; leave them "
                                           "out with --where");
  folder.write("sites.json",
               R"({"sites": [{"name": "a", "cluster": "3x4"}, {"name": "b", "cluster": "1x8"}], )" + one_way + "}");
  const auto linked = load_federate(options, registry);
  EXPECT_TRUE(linked) << linked.error().to_string();
  options.conditions.placement = "count";  // without nodes 9 GPUs are 9 GPUs
  options.trace = folder.write("fewer.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n2,5,10,1,9000\n");
  const auto pooled = load_federate(options, registry);
  EXPECT_TRUE(pooled) << pooled.error().to_string();
}

// The router before it ran first.
TEST(Federate, WhatARouterLacksIsToldBeforeARun) {
  const TempFolder folder;
  FederateOptions options;
  options.routers = {"local", "lowest-carbon"};
  options.trace = folder.write("jobs.csv", job_rows);
  options.sites = folder.write("sites.json", R"({"sites": [{"name": "eu", "cluster": "1x8", "carbon": 100},
      {"name": "us", "cluster": "1x8"}], "links": [{"between": ["eu", "us"], "mbps": 8000}]})");
  const auto input = load_federate(options, PolicyRegistry::standard());
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().to_string(), "routers: router lowest-carbon: site 'us' has no carbon");
}

TEST(Federate, RentsOfPowerFilesAndBrokenCapsAreTold) {
  const TempFolder folder;
  folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n0,0,3600,1,1000\n");
  folder.write("cap.csv", "time_s,cap_w\n0,600\n30,50\n50,600\n");
  folder.write("power.json", R"({"gpus": {"any": {"idle_w": 30, "full_w": 130}}, "nodes": {"base_w": 40},
      "rent": {"usd_per_gpu_h": 1.5}, "caps": [{"w": "cap.csv"}]})");
  FederateOptions options;
  options.routers = {"local"};
  options.trace = folder.path() + "/jobs.csv";
  options.sites = folder.write(
      "sites.json",
      R"({"sites": [{"name": "eu", "cluster": "1x2", "usd_per_gpu_h": 2, "power": "power.json", "carbon": 100}]})");
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_federate(options, registry);
  ASSERT_TRUE(input) << input.error().to_string();
  static const std::atomic<bool> stop = false;
  std::vector<RouterRun> runs;
  runs.push_back(*run_router(*input, input->routers.front(), registry, stop));
  const auto report = nlohmann::json::parse(federate_json(options, *input, runs));
  EXPECT_EQ(report["runs"][0]["total"]["gpus_usd"], 3.5) << "one GPU for an hour, at 2 of the site and 1.5 of its file";
  EXPECT_EQ(report["runs"][0]["total"]["avg_data_wait_s"], 0);
  const std::vector<std::string> notes = federate_notes(*input, runs);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("local: site eu: power cap 0 was exceeded for 20.0 s, by up to ")) << notes[0];
}

TEST(Federate, FilesTellSitesAndTransfers) {
  const TempFolder folder;
  folder.write("jobs.csv", job_rows);
  FederateOptions options;
  options.routers = {"least-loaded"};
  federate(folder, options,
           R"({"sites": [{"name": "eu", "cluster": "1x8", "usd_per_gpu_h": 2}, {"name": "us", "cluster": "1x8"}],
               "links": [{"between": ["eu", "us"], "mbps": 8000, "rtt_ms": 100, "usd_per_gb": 0.5}]})");
  const std::string transfers = text_of(folder.path() + "/out/1-least-loaded/transfers.csv");
  // Jobs 0 and 1 come at once: 0 stays, 1 goes to the other site without data. Job 4 finds half of its home free.
  EXPECT_EQ(transfers.substr(0, transfers.find('\n')), "what,name,from,to,bytes,begin_s,end_s,egress_usd");
  const std::string sites = text_of(folder.path() + "/out/1-least-loaded/sites.csv");
  EXPECT_EQ(sites.substr(0, 15), "site,jobs,gpu_h");
  EXPECT_NE(sites.find("\ntotal,6,"), std::string::npos);
  const std::string jobs = text_of(folder.path() + "/out/1-least-loaded/jobs.csv");
  EXPECT_NE(jobs.find(",site\n"), std::string::npos);
}

}  // namespace
}  // namespace gpusched::test
